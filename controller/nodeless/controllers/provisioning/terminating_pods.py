"""Pods that wait for the room of pods that terminate: for a while no node is launched for them."""

from collections.abc import Iterable

from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.buffers import is_placeholder
from nodeless.scheduling.pods.gangs import gang_of


class TerminatingPods:
    """Since when pods wait for the room of others, and for which of them it is time for a node."""

    def __init__(self) -> None:
        #: By uid of a pod without a node: since when it has waited for such room.
        self._since: dict[str, float] = {}

    def must_not_wait(self, snapshot: Snapshot, key: str, now: float, longest: float) -> bool:
        """Whether a pod of a snapshot gets no room that is not free yet.

        One that has waited for the longest time, in seconds: others took the room, or whoever was to go did
        not. One that still runs on a node that is being removed, whose room is to be there before it is
        evicted. A member of a gang, which runs with all others or not at all. And a placeholder, whose buffer
        or provisioning request says that its room is there.
        """
        pod = snapshot.pods[key]
        return (
            bool(pod.node_name)
            or is_placeholder(key)
            or bool(gang_of(pod, snapshot.gang_sizes))
            or not 0 <= now - self._since.get(pod.uid, now) <= longest
        )

    def note(self, snapshot: Snapshot, waiting: Iterable[str], now: float) -> None:
        """Remember which pods of a snapshot wait; a pod that has a node is forgotten."""
        if self._since:
            unbound = {pod.uid for pod in snapshot.pods.values() if not pod.node_name}
            self._since = {uid: since for uid, since in self._since.items() if uid in unbound}
        for key in waiting:
            if key in snapshot.pods:
                self._since.setdefault(snapshot.pods[key].uid, now)
