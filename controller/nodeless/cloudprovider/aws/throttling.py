"""Calls that AWS throttles rest: however many ask, AWS is asked ever more seldom until it answers again.

AWS throttles each operation of an account and region by itself, and what is refused still counts against
the rate. botocore tries a call four times; after the second such failure in a row the operation rests, for
twice as long with each more, and whoever asks meanwhile gets the last refusal at once.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.errors import THROTTLED, translate

#: Seconds of the first rest, and of the longest.
FIRST_REST, LONGEST_REST = 1.0, 20.0
_MOST_DOUBLINGS = 5


@dataclass(frozen=True, slots=True)
class _Throttled:
    failures: int
    until: float
    error: CloudError


class Throttling:
    """Which operations rest, by service and operation; of all clients of a session, from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], _Throttled] = {}

    def assert_awake(self, service: str, operation: str) -> None:
        """Raises the last refusal of an operation that rests."""
        with self._lock:
            known = self._known.get((service, operation))
            if known is not None and self._clock() < known.until:
                raise known.error.with_traceback(None)

    def note_answer(self, service: str, operation: str, code: str, error: CloudError | None) -> None:
        """Note the end of a call, after botocore's own attempts: its code, empty for a success."""
        with self._lock:
            before = self._known.pop((service, operation), None)
            if error is not None and code in THROTTLED:
                failures = before.failures + 1 if before is not None else 1
                rest = FIRST_REST * 2 ** min(failures - 2, _MOST_DOUBLINGS) if failures > 1 else 0.0
                until = self._clock() + min(rest, LONGEST_REST)
                self._known[service, operation] = _Throttled(failures, until, error)

    def watch(self, client: Any) -> None:
        """Have a client's calls noted, and kept back while their operation rests."""
        service, url = client.meta.service_model.service_name, client.meta.endpoint_url

        def begin(model: Any, **_: Any) -> None:
            self.assert_awake(service, model.name)

        def on_answer(model: Any, parsed: Any, **_: Any) -> None:
            code = _code(parsed)
            refusal = translate(ClientError(parsed, model.name), service, model.name, url) if code else None
            self.note_answer(service, model.name, code, refusal)

        client.meta.events.register("before-call", begin)
        client.meta.events.register_first("after-call", on_answer)


def _code(parsed: Any) -> str:
    error = parsed.get("Error") if isinstance(parsed, dict) else None
    return str(error.get("Code") or "") if isinstance(error, dict) else ""
