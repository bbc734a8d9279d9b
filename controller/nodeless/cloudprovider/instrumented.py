"""The cloud with its calls measured, under Karpenter's names for them."""

import functools
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from nodeless.cloudprovider import CloudProvider, InsufficientCapacity, NodeClassUnresolved
from nodeless.operator.metrics import Metrics

#: Karpenter's name for each method of its own interface.
_METHODS = {
    "launch": "Create",
    "terminate": "Delete",
    "find": "Get",
    "reboot": "Reboot",
    "instances": "List",
    "catalog": "GetInstanceTypes",
    "billed_catalog": "GetInstanceTypes",
}
#: Karpenter's name for each kind of error that it tells apart.
_ERRORS: dict[type[Exception], str] = {
    InsufficientCapacity: "InsufficientCapacityError",
    NodeClassUnresolved: "NodeClassNotReadyError",
}
_PROVIDER = "aws"


def measure_calls(cloud: CloudProvider, metrics: Metrics) -> CloudProvider:
    """The same cloud; durations and errors of its calls go to the metrics."""
    return cast("CloudProvider", _Measured(cloud, metrics))


class _Measured:
    """Hands everything on."""

    def __init__(self, cloud: CloudProvider, metrics: Metrics) -> None:
        self._cloud = cloud
        self._metrics = metrics

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._cloud, name)
        return self._measure_calls(_METHODS[name], found) if name in _METHODS else found

    def _measure_calls(
        self, method: str, call: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(call)
        async def timed(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return await call(*arguments, **options)
            except Exception as error:
                # Also what nobody foresaw, as in an answer that cannot be read: it was no success.
                name = _ERRORS.get(type(error), type(error).__name__)
                self._metrics.cloud_errors.labels("", method, _PROVIDER, name).inc()
                raise
            finally:
                self._metrics.cloud_seconds.labels("", method, _PROVIDER).observe(
                    time.perf_counter() - started
                )

        return timed
