"""The error boundary around every unit of work: what fails inside concerns that unit alone.

A unit is what one loop does for one object (a claim, a pool, a node class, a message, an instance) or what
one watch does with one line. Whatever it raises is said once with its cause, on the object as an event, and
in metrics; the unit rests for a while that doubles with each failure, and is taken up at once when its
object has changed (`nodeless.model.quarantine`). The others go on.

Only a `ProcessMustEnd` passes through: the lease is lost, or this process can no longer trust its own memory
of the cluster (docs/architecture.md says where that is).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from nodeless.cloudprovider import CloudError
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.event_recorder import Recorder
from nodeless.model.conditions import Condition
from nodeless.model.instructions import PublishEvent
from nodeless.model.quarantine import LONGEST_DELAY, ProcessMustEnd, Quarantine
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.tracebacks import traceback_of

__all__ = [
    "QUARANTINED",
    "ErrorBoundary",
    "ProcessMustEnd",
    "Subject",
    "cause_of",
    "is_conflict",
    "is_transient",
    "kept_running",
    "must_end",
    "quarantine_conditions",
    "release_conditions",
]

#: Reason of the event, and type of the condition, on an object that rests.
QUARANTINED = "Quarantined"
#: Characters of a cause that are shown: an error may quote the whole object.
_LONGEST_CAUSE = 500
_CONFLICT = 409
_REFUSALS = (400, 413, 422)


def must_end(error: BaseException) -> bool:
    """Whether the process must end for an error, also for one among several that came together."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(must_end, error.exceptions))
    return isinstance(error, ProcessMustEnd)


def is_conflict(error: Exception) -> bool:
    """Whether somebody else wrote an object first: it is read and looked at anew."""
    return isinstance(error, ApiError) and error.status == _CONFLICT


def is_transient(error: Exception) -> bool:
    """Whether an error is one of the ordinary course of things, and says nothing against the object.

    The API server refuses what a write says with 400, 413 and 422; all else passes with time.
    """
    if isinstance(error, ApiError):
        return error.status not in _REFUSALS
    return isinstance(error, ApiUnavailable | CloudError)


def quarantine_conditions(conditions: Iterable[Condition], cause: str, now: float) -> tuple[Condition, ...]:
    """Conditions of an object that is set aside, beside those that it has."""
    return _with(conditions, Condition(QUARANTINED, "True", "Failed", cause, now))


def release_conditions(conditions: Iterable[Condition], now: float) -> tuple[Condition, ...]:
    """Conditions of an object that is no longer skipped."""
    return _with(conditions, Condition(QUARANTINED, "False", "Succeeded", "", now))


def _with(conditions: Iterable[Condition], new: Condition) -> tuple[Condition, ...]:
    known = {condition.type: condition for condition in conditions}
    before = known.get(new.type)
    if before is not None and before.status == new.status:
        new = replace(new, last_transition_time=before.last_transition_time)
    return tuple({**known, new.type: new}.values())


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that a unit of work is about: where its event stands."""

    kind: str
    name: str
    uid: str = ""
    namespace: str = ""


def cause_of(error: BaseException) -> str:
    """What went wrong in one line of at most 500 characters, whatever the error is like."""
    try:
        text = " ".join(str(error).split()).encode("utf-8", "replace").decode()
    except Exception:  # an error that cannot even be shown, as of a number with too many digits
        text = ""
    known = isinstance(error, ApiError | ApiUnavailable | CloudError)
    cause = text if known and text else f"{type(error).__name__}: {text}".removesuffix(": ")
    return cause if len(cause) <= _LONGEST_CAUSE else f"{cause[:_LONGEST_CAUSE]}..."


class ErrorBoundary:
    """The boundary around the units of one kind, with the quarantine of those that failed."""

    def __init__(self, unit: str, metrics: Metrics, recorder: Recorder | None = None) -> None:
        """`unit` is what the log and the metrics call them: claim, pool, message."""
        self._unit = unit
        self._recorder = recorder
        self._quarantine = Quarantine()
        self._failures = metrics.unit_failures.labels(unit)
        self._resting = metrics.quarantined.labels(unit)
        self._log = logger("quarantine")

    @contextmanager
    def around(self, key: str, version: str = "", subject: Subject | None = None) -> Iterator[None]:
        """Keep what fails inside from whatever comes after it.

        Raises:
            ProcessMustEnd: As it came.
            ApiUnavailable: As it came, for the next unit would meet it as well; noted nevertheless, so that
                a unit which alone gets no answer does not stand before the others for ever.
        """
        try:
            yield
        except ProcessMustEnd:
            raise
        except Exception as error:
            self.record_failure(key, error, version, subject)
            if isinstance(error, ApiUnavailable):
                raise
        else:
            self.record_success(key)

    def record_failure(
        self, key: str, error: Exception, version: str = "", subject: Subject | None = None
    ) -> float:
        """Note that a unit failed; gives back the seconds after which it may be tried again.

        A conflict says nothing of the object: somebody else wrote first, and it is looked at anew.
        """
        if is_conflict(error):
            return 0.0
        cause, now = cause_of(error), time.monotonic()
        new = self._quarantine.is_new_cause(key, cause)
        self._quarantine = self._quarantine.after_failure(key, cause, now, version)
        wait = self._quarantine.seconds_to_rest(key, now, version)
        self._failures.inc()
        self._resting.set(len(self._quarantine.entries))
        if new:
            self._tell(key, cause, error)
        if subject is not None and self._recorder is not None:
            message = f"skipped after a failure and tried again later, everything else continues: {cause}"
            name, namespace, uid = subject.name, subject.namespace, subject.uid
            self._recorder.publish(
                PublishEvent(
                    "quarantine", subject.kind, name, "Warning", QUARANTINED, message, namespace, uid
                )
            )
        return wait

    def _tell(self, key: str, cause: str, error: Exception) -> None:
        text = f"{self._unit} is skipped, everything else continues: {cause}"
        if isinstance(error, ApiError | ApiUnavailable | CloudError):
            self._log.warning(text, key=key)
        else:
            self._log.error(text, key=key, exception=traceback_of(error))

    def record_success(self, key: str) -> None:
        """The unit succeeded, or its object is gone."""
        if key in self._quarantine.entries:
            self._quarantine = self._quarantine.after_success(key)
            self._resting.set(len(self._quarantine.entries))
            self._log.info(f"{self._unit} is no longer skipped", key=key)

    def seconds_to_rest(self, key: str, version: str = "") -> float:
        """Seconds that the unit must rest yet; 0: it may be tried."""
        return self._quarantine.seconds_to_rest(key, time.monotonic(), version)

    def cause(self, key: str) -> str:
        """Why a unit is set aside; empty when it is not."""
        entry = self._quarantine.entries.get(key)
        return entry.cause if entry is not None else ""


async def kept_running(name: str, run: Callable[[], Awaitable[None]], boundary: ErrorBoundary) -> None:
    """Run a loop; one that dies of a defect begins anew after a while, and the others do not notice.

    This is the last boundary, around what no unit's own one has caught.

    Raises:
        ProcessMustEnd: As it came, alone or among other errors.
    """
    while True:
        started = time.monotonic()
        try:
            await run()
            return
        except Exception as error:
            if must_end(error):
                raise
            if time.monotonic() - started > LONGEST_DELAY:
                boundary.record_success(name)
            wait = boundary.record_failure(name, error)
        await asyncio.sleep(wait)
