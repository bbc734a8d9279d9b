"""What the simulated kubelets do while AWS does not answer, on a clock that jumps."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from localenv.kubelets.instances import Instances, boot_times
from tests.virtual_time import run_in_virtual_time


class SilentCloud:
    """Answers the first question after a while, or not at all; then at once. Keeps when it was asked."""

    def __init__(self, seconds: float, failure: Exception | None) -> None:
        self.asked: list[float] = []
        self._seconds = seconds
        self._failure = failure

    async def instances(self) -> list[Any]:
        self.asked.append(asyncio.get_running_loop().time())
        if len(self.asked) == 1:
            await asyncio.sleep(self._seconds)
            if self._failure is not None:
                raise self._failure
        return []

    async def reboots(self) -> dict[str, int]:
        return {}


@pytest.mark.parametrize(
    "failure", [None, ReadTimeoutError(endpoint_url="http://aws"), ValueError("cut off")]
)
@pytest.mark.parametrize("seconds", [5.0, 75.0, 600.0])
def test_an_aws_that_stood_still_is_asked_again_soon(seconds: float, failure: Exception | None) -> None:
    async def followed() -> SilentCloud:
        cloud = SilentCloud(seconds, failure)
        nodes: Any = SimpleNamespace(synced=asyncio.Event())
        nothing: Any = SimpleNamespace()
        follower = Instances(
            nothing,
            cloud,
            nothing,
            nothing,
            nodes=nodes,
            pods=nothing,
            drivers=nothing,
            boot_seconds=0.0,  # type: ignore[arg-type]
        )
        running = asyncio.create_task(follower.run())
        await asyncio.sleep(seconds + 30)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return cloud

    cloud = run_in_virtual_time(followed())
    assert len(cloud.asked) > 5
    assert cloud.asked[1] - seconds <= 10


def test_a_kubelet_registers_its_node_some_time_before_that_is_ready() -> None:
    """Ten of thirty seconds, as AWS measured."""
    assert boot_times(100.0, 30.0) == (120.0, 130.0)
    assert boot_times(100.0, 0.0) == (100.0, 100.0)
