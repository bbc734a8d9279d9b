"""Pods that cost the others too much, set aside for a while: one class of pods is one unit of work.

A class (pods of one namespace and shape) whose node cannot be written, whose planning fails or takes more
than its share is left out of the next passes, for a time that doubles. The others are planned without it
first; once it is due, a second pass takes it in after them, so that it shares no node with them.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from nodeless.controllers.error_boundary import ErrorBoundary, Subject, is_transient
from nodeless.kube.event_recorder import Recorder
from nodeless.model.plan import Plan, Refusal, RefusalCode
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.operator.metrics import Metrics
from nodeless.scheduling import pods_to_place

UNIT = "pod class"


class PlanningError(Exception):
    """What planning a class of pods came to."""


@dataclass(frozen=True, slots=True)
class Turns:
    """A snapshot for the pods that come first, and what is to be done about the others."""

    first: Snapshot
    """Without any pod that was set aside."""
    second: Snapshot | None
    """With those that are due again; None: nobody is."""
    late: frozenset[str]
    """Keys of those."""
    resting: tuple[Refusal, ...]
    """Those that are not due yet, and why."""


class DeferredPods:
    """The classes of pods that are set aside."""

    def __init__(self, metrics: Metrics, recorder: Recorder) -> None:
        self._boundary = ErrorBoundary(UNIT, metrics, recorder)
        self._known: set[str] = set()
        #: What pools ask for: when that changes, everybody is looked at again.
        self._pools = ""

    def turns(self, snapshot: Snapshot, now: float, heavy: Collection[str] = frozenset()) -> Turns:
        """Who is planned first, who second, and who not in this pass.

        Args:
            snapshot: The cluster.
            now: Seconds since the epoch.
            heavy: Namespaces whose pods come second, whatever they ask for.
        """
        self._pools = _pools_of(snapshot) if self._known else ""
        resting: list[Refusal] = []
        late: list[str] = []
        seen: set[str] = set()
        # Room that is booked is kept from the first pass on, which might give it to others.
        booked = frozenset(snapshot.booked)
        for pod in pods_to_place(snapshot, now) if self._known or heavy else ():
            if pod.key in booked:
                continue
            if not self._known:
                late += [pod.key] if pod.namespace in heavy else []
                continue
            seen.add(class_of(pod))
            cause = self._boundary.cause(class_of(pod))
            if cause and self._boundary.seconds_to_rest(class_of(pod), self._pools):
                message = f"{cause}; the pod is skipped, and tried again after the others"
                resting.append(Refusal(pod.key, RefusalCode.SET_ASIDE, (), message))
            elif cause or pod.namespace in heavy:
                late.append(pod.key)
        self._forget(self._known - seen)
        others = without(snapshot, [each.pod for each in resting])
        return Turns(without(others, late), others if late else None, frozenset(late), tuple(resting))

    def note(self, plan: Plan, snapshot: Snapshot, late: Collection[str]) -> None:
        """Remember the classes that took too long in a pass, and forget those of `late` that did not."""
        self._pools = _pools_of(snapshot)
        slow = {
            each.pod
            for each in plan.refusals
            if each.code in (RefusalCode.PLANNING_TOOK_TOO_LONG, RefusalCode.PLANNING_FAILED)
        }
        by_class = {class_of(snapshot.pods[key]): key for key in sorted(slow) if key in snapshot.pods}
        messages = {each.pod: str(each) for each in plan.refusals} if by_class else {}
        for name, key in by_class.items():
            self._set_aside(name, snapshot.pods[key], PlanningError(messages[key]))
        for key in sorted(late):
            name = class_of(snapshot.pods[key])
            if name not in by_class:
                self.note_passed(name)

    def note_refusal(self, pod: Pod, error: Exception, snapshot: Snapshot) -> None:
        """The node of a pod cannot be written because of what the pod asks for."""
        self._pools = _pools_of(snapshot)
        self._set_aside(class_of(pod), pod, error)

    def note_passed(self, name: str) -> None:
        """A class came through."""
        self._boundary.record_success(name)
        self._known.discard(name)

    def _forget(self, gone: Iterable[str]) -> None:
        """Classes without a pod that waits; not while they rest, or a new pod would begin anew."""
        for name in gone:
            if not self._boundary.seconds_to_rest(name, self._pools):
                self.note_passed(name)

    def _set_aside(self, name: str, pod: Pod, error: Exception) -> None:
        self._known.add(name)
        subject = Subject("Pod", pod.name, pod.uid, pod.namespace)
        self._boundary.record_failure(name, error, self._pools, subject)


def _pools_of(snapshot: Snapshot) -> str:
    asked = [
        (key, pool.requirements, tuple(sorted(pool.labels.items())))
        for key, pool in sorted(snapshot.pools.items())
    ]
    return f"{hash(tuple(asked)):x}"


def class_of(pod: Pod) -> str:
    """What pods that stand and fall together have in common; told apart within one process only."""
    return f"{pod.namespace}/{hash(pod.shape):x}"


def without(snapshot: Snapshot, keys: Iterable[str]) -> Snapshot:
    """The snapshot without some pods that wait."""
    pods = snapshot.pods
    for key in keys:
        if not pods[key].node_name:
            pods = pods.delete(key)
    return snapshot if pods is snapshot.pods else replace(snapshot, pods=pods)


def is_refusal(error: object) -> bool:
    """Whether the API server refuses a claim for what it says."""
    return isinstance(error, Exception) and not is_transient(error)
