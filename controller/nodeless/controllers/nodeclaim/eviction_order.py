"""In which order pods leave the nodes that drain: the large ones first, whatever node they are on.

Replacements are open before their nodes drain, and kube-scheduler binds the successors of evicted pods as
these appear, by its scores. The plan of a command is judged in the order in which large pods come first
(`scheduling.binding`): small ones fit in what these leave, not the other way round. Evicted all at once,
twenty pods of 50m took the room of one of two processors, and a further node was bought for it. So a pod
leaves when none that is larger by a quarter is still to leave, and the successors of those are bound.

Nobody is held for long: not for pods that a budget protects, not where a successor has no room anyway, not
for one that does not come within two seconds, and not later than ten seconds from the beginning of a drain
(`nodeclaim.draining.ORDERED_FOR`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.events import Event
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.draining import ORDERED_FOR, last_drain, leaves_in_order
from nodeless.operator.timing import TIMING, Timing

#: Seconds from the eviction of a workload's last pod for which its successors are waited for.
_LONGEST_SUCCESSION = 2.0
#: Seconds for which the size that goes first is not computed anew,
_SAME_FOR = 0.1
#: and at least so many times as long as computing it took: hundreds of nodes may drain together.
_SAME_TIMES = 20
#: Owners that make a pod's successor as soon as the pod is told to leave.
_REPLACE_AT_ONCE = frozenset(("ReplicaSet", "ReplicationController"))


@dataclass(frozen=True, slots=True)
class _Leaving:
    """Pods of one owner that were evicted."""

    pods: int
    """How many the owner had before."""
    bulk: float
    since: float


class EvictionOrder:
    """Knows how large the pods are that have to leave first."""

    def __init__(self, cluster: Cluster, refused: Callable[[str], bool], timing: Timing = TIMING) -> None:
        """`refused`: whether the last eviction of a pod, by uid, was refused."""
        self._cluster = cluster
        self._refused = refused
        self._now, self._clock = timing.wall_clock, timing.steady_clock
        #: By uid of an owner: how many of its pods are neither leaving nor finished.
        self._active: dict[str, int] = {}
        #: By uid of an owner: keys of those that are not bound.
        self._unbound: dict[str, set[str]] = {}
        self._leaving: dict[str, _Leaving] = {}
        #: Claims that are being deleted.
        self._draining: set[str] = set()
        #: The size that goes first, and until when it is not computed anew.
        self._bulk, self._known_until = 0.0, -inf
        #: Set when a drain begins or one of its pods leaves, until there is no order to keep.
        self._astir = asyncio.Event()
        cluster.listen(self._on_event)

    async def run(self, tell: Callable[[str], None]) -> None:
        """Name the claims that drain whenever smaller pods may leave than before, until cancelled."""
        before = 0.0
        while True:
            await self._astir.wait()
            bulk = self.first_bulk()
            if bulk < before:
                for name in tuple(self._draining):
                    tell(name)
            before = bulk
            if bulk:
                await asyncio.sleep(max(self._known_until - self._clock(), 0.0))
            else:
                self._astir.clear()

    def first_bulk(self) -> float:
        """The size (`Pod.bulk`) of the largest pod that is to leave or has no successor yet; 0: none."""
        if not self._draining:
            return 0.0
        now = self._clock()
        if now >= self._known_until:
            self._bulk = self._first_bulk(self._cluster.snapshot, now)
            done = self._clock()
            self._known_until = done + max(_SAME_FOR, _SAME_TIMES * (done - now))
        return self._bulk

    def _first_bulk(self, snapshot: Snapshot, now: float) -> float:
        found = [pod.bulk for pod in self._to_leave(snapshot)]
        for owner, leaving in tuple(self._leaving.items()):
            waiting = [snapshot.pods[key] for key in self._unbound.get(owner, ()) if key in snapshot.pods]
            if any(pod.unschedulable for pod in waiting):
                return 0.0
            complete = not waiting and self._active.get(owner, 0) >= leaving.pods
            if complete or now >= leaving.since + _LONGEST_SUCCESSION:
                del self._leaving[owner]
            else:
                found.append(leaving.bulk)
        return max(found, default=0.0)

    def _to_leave(self, snapshot: Snapshot) -> list[Pod]:
        """The pods of draining nodes that can leave now and have not been told to."""
        now, found = self._now(), []
        for name in self._draining:
            claim = snapshot.claims.get(name)
            node = snapshot.node_of(claim) if claim is not None else None
            if claim is None or node is None:
                continue
            drain = last_drain(claim, node, now)
            if now < drain.began + ORDERED_FOR:
                found += [
                    pod
                    for pod in snapshot.pods_on(node.name)
                    if leaves_in_order(pod, claim, drain, now) and not self._refused(pod.uid)
                ]
        return found

    def _on_event(self, event: Event, before: Snapshot, after: Snapshot) -> None:
        match event:
            case events.PodSeen(pod):
                self._change(before.pods.get(pod.key), pod, after)
            case events.PodGone(key) if key in before.pods:
                self._change(before.pods[key], None, after)
            case events.ClaimSeen(claim) if claim.deletion_timestamp is not None:
                if claim.name not in self._draining:
                    self._draining.add(claim.name)
                    self._known_until = -inf
                    self._astir.set()
            case events.ClaimGone(name):
                self._draining.discard(name)
                if not self._draining:
                    self._leaving.clear()

    def _change(self, before: Pod | None, after: Pod | None, snapshot: Snapshot) -> None:
        """A pod came, changed or went."""
        known = before or after
        owner = _owner(known) if known is not None else ""
        if not owner:
            return
        was, is_now = _active(before), _active(after)
        if was and not is_now and before is not None and self._drains(snapshot, before.node_name):
            leaving = self._leaving.get(owner)
            pods = leaving.pods if leaving is not None else self._active.get(owner, 0)
            self._leaving[owner] = _Leaving(pods, before.bulk, self._clock())
            self._astir.set()
        if was != is_now:
            self._active[owner] = self._active.get(owner, 0) + is_now - was
            if not self._active[owner]:
                del self._active[owner]
        unbound = self._unbound.setdefault(owner, set())
        if after is not None and is_now and not after.node_name:
            unbound.add(after.key)
        elif known is not None:
            unbound.discard(known.key)
        if not unbound:
            del self._unbound[owner]

    def _drains(self, snapshot: Snapshot, node_name: str) -> bool:
        node = snapshot.nodes.get(node_name) if self._draining else None
        claim = snapshot.claim_of(node) if node is not None else None
        return claim is not None and claim.name in self._draining


def _active(pod: Pod | None) -> bool:
    return pod is not None and pod.deletion_timestamp is None and not pod.terminal


def _owner(pod: Pod) -> str:
    """Uid of the owner that replaces the pod at once; empty: there is none."""
    return next((owner.uid for owner in pod.owners if owner.kind in _REPLACE_AT_ONCE), "")
