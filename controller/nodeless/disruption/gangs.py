"""Gangs and the end of nodes: what is kept while a gang is assembled, released when it cannot be had.

A claim names the gangs for which it was launched (`LAUNCHED_FOR_GANG`).

| what is seen | what is done |
|---|---|
| the gang is whole: as many members as it needs run or have succeeded | the claim names it no more |
| it is not, so long after the first of its empty nodes was launched | its empty nodes end |
| the same of a node that has pods | the claim names it no more |
| its last pod is gone for a minute | its empty nodes end |

The moment is the creation of the oldest claim, which no restart of the controller changes. Nothing is
evicted.

A gang that runs is disturbed as a whole by the end of any of its nodes (`GangCosts`).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from nodeless.model.instructions import AnnotateClaim, DeleteClaim, Instruction, PublishEvent
from nodeless.model.labels import DO_NOT_DISRUPT, LAUNCHED_FOR_GANG, PAUSE, PLANNED_PODS
from nodeless.model.nodes import NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.gangs import Gang, gang_of, gangs_named
from nodeless.state.disruption_cost import eviction_cost
from nodeless.state.expected import uid_digest

#: Reason of the deletion, as in the label of `karpenter_nodes_terminated`.
REASON = "gang_incomplete"
RELEASED = "GangNodesReleased"
#: Seconds for which the nodes of a gang without pods are kept: those of a Job that begins anew come again.
ABSENCE = 60.0


@dataclass(frozen=True, slots=True)
class GangSteps:
    """What follows for the claims that were launched for gangs."""

    instructions: Mapping[str, tuple[Instruction, ...]] = field(default_factory=dict)
    """By claim."""
    released: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The gangs of which nodes end, with the claims."""
    gangs: Mapping[str, Gang] = field(default_factory=dict)
    """Those of which there are pods."""


def gangs_on(claim: NodeClaim) -> tuple[str, ...]:
    """The gangs for which a claim was launched, as far as they are not whole or released yet."""
    return tuple(filter(None, claim.annotations.get(LAUNCHED_FOR_GANG, "").split(",")))


def is_whole(gang: Gang) -> bool:
    """Whether so many members as a gang needs run or have succeeded."""
    return bool(gang.size) and gang.bound >= gang.size


class GangCosts:
    """What it costs the gangs of a cluster that some of their pods are moved."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        #: By gang; made when the first member is met, so that a cluster without gangs is not searched.
        self._totals: dict[str, float] | None = None

    def of_others(self, moving: Iterable[Pod]) -> float:
        """Eviction costs of the members that run elsewhere: they stand still while one of theirs moves."""
        sizes, here = self._snapshot.gang_sizes, dict[str, float]()
        for pod in moving:
            if (pod.annotations or sizes) and (name := gang_of(pod, sizes)):
                here[name] = here.get(name, 0.0) + max(eviction_cost(pod), 0.0)
        if not here:
            return 0.0
        totals = self._of_all()
        return sum(max(totals.get(name, 0.0) - cost, 0.0) for name, cost in here.items())

    def _of_all(self) -> dict[str, float]:
        if self._totals is None:
            self._totals = {}
            sizes = self._snapshot.gang_sizes
            for pod in self._snapshot.pods.values():
                if pod.node_name and pod.reschedulable and (name := gang_of(pod, sizes)):
                    self._totals[name] = self._totals.get(name, 0.0) + max(eviction_cost(pod), 0.0)
        return self._totals


def gang_steps(
    snapshot: Snapshot,
    now: float,
    patience: float,
    absent: Mapping[str, float],
    gone_after: float = ABSENCE,
) -> GangSteps:
    """What to do about all claims that were launched for gangs.

    Args:
        snapshot: The cluster.
        now: Seconds since the epoch.
        patience: Seconds for which nodes are kept for a gang that is not whole.
        absent: Since when there are no pods of a gang, by name.
        gone_after: Seconds after which such a gang does not come again.
    """
    claims = {
        name: claim
        for name, claim in sorted(snapshot.claims.items())
        if LAUNCHED_FOR_GANG in claim.annotations and claim.deletion_timestamp is None and not claim.invalid
    }
    if not claims or snapshot.teardown or snapshot.room_unknown:
        return GangSteps()
    gangs = gangs_named(snapshot, {name for claim in claims.values() for name in gangs_on(claim)})
    whole = {name for name, gang in gangs.items() if is_whole(gang)}
    empty = {name: claim for name, claim in claims.items() if is_without_pods(snapshot, claim)}
    over = _over(empty.values(), gangs, whole, snapshot, now - patience, absent, now - gone_after)
    expected = waiting_digests(snapshot, over) if over else frozenset()
    instructions: dict[str, tuple[Instruction, ...]] = {}
    released: dict[str, list[str]] = {}
    for name, claim in claims.items():
        named = gangs_on(claim)
        left = [gang for gang in named if gang not in whole]
        if name in empty and left and over.issuperset(left):
            if not is_for_others(snapshot, claim, expected):
                why = why_released(left[0], gangs.get(left[0]), patience)
                instructions[name] = release(claim, why, RELEASED, REASON)
                for gang in left:
                    released.setdefault(gang, []).append(name)
            continue
        if name not in empty and now - claim.created_at >= patience:
            left = []
        if len(left) < len(named) or not left:
            note = {LAUNCHED_FOR_GANG: ",".join(left) or None}
            instructions[name] = (AnnotateClaim(f"claim:{name}", name, note),)
    return GangSteps(instructions, {gang: tuple(names) for gang, names in released.items()}, gangs)


def _over(
    empty: Collection[NodeClaim],
    gangs: Mapping[str, Gang],
    whole: Collection[str],
    snapshot: Snapshot,
    launched_before: float,
    absent: Mapping[str, float],
    absent_before: float,
) -> frozenset[str]:
    """The gangs whose time is up."""
    since: dict[str, float] = {}
    for claim in empty:
        for name in gangs_on(claim):
            since[name] = min(since.get(name, claim.created_at), claim.created_at)
    return frozenset(
        name
        for name, first in since.items()
        if name not in whole
        and (
            first <= launched_before
            or name in snapshot.paused_gangs
            or (name not in gangs and absent.get(name, absent_before + 1) <= absent_before)
        )
    )


def is_without_pods(snapshot: Snapshot, claim: NodeClaim) -> bool:
    """Whether no pod runs on a claim's node that somebody would have to evict, and nobody protects it."""
    node, pool = snapshot.node_of(claim), snapshot.pools.get(str(claim.pool))
    if pool is not None and pool.own_annotations.get(PAUSE) == "true":
        return False
    if node is None:
        return True
    if node.annotations.get(PAUSE) == "true" or node.annotations.get(DO_NOT_DISRUPT) == "true":
        return False
    return not any(pod.occupies for pod in snapshot.pods_on(node.name))


def is_for_others(snapshot: Snapshot, claim: NodeClaim, digests: Collection[str]) -> bool:
    """Whether room on a claim's node is kept for buffers or requests, or was planned for some pods.

    Args:
        snapshot: The cluster.
        claim: Of the node.
        digests: Of the pods (`waiting_digests`).
    """
    planned = claim.annotations.get(PLANNED_PODS, "").split(",")
    return any(name in snapshot.buffered for name in names_of(snapshot, claim)) or any(
        digest in digests for digest in planned
    )


def names_of(snapshot: Snapshot, claim: NodeClaim) -> tuple[str, ...]:
    """By which plans know the room of a claim: its own name, and its node's once there is one."""
    node = snapshot.node_of(claim)
    return (claim.name,) if node is None else (claim.name, node.name)


def waiting_digests(snapshot: Snapshot, over: Collection[str] = ()) -> frozenset[str]:
    """Of the pods that wait and are in none of these gangs, as claims name them."""
    return frozenset(
        uid_digest(pod.uid)
        for pod in snapshot.pods.values()
        if not pod.node_name and not pod.terminal and gang_of(pod, snapshot.gang_sizes) not in over
    )


def why_released(name: str, gang: Gang | None, patience: float) -> str:
    """Why nodes of a gang are released.

    Args:
        name: Of the gang.
        gang: None: it has no pods any more.
        patience: Seconds for which nodes are kept for a gang that is not whole.
    """
    if gang is None:
        return f"gang {name} has no pods any more"
    lacking = f"{gang.bound} of {gang.size} pods run" if gang.size else gang.problem
    return f"gang {name} was not whole {patience / 60:g} min after its first node was launched: {lacking}"


def release(claim: NodeClaim, why: str, event: str, reason: str) -> tuple[Instruction, ...]:
    """What ends an empty node that nothing will use, and says so.

    Args:
        claim: Of the node.
        why: What happened.
        event: The reason of the event.
        reason: That of the end, as metrics count it.
    """
    cause, text = f"claim:{claim.name}", f"released: {why}"
    told = PublishEvent(cause, "NodeClaim", claim.name, "Warning", event, text, uid=claim.uid)
    return (told, DeleteClaim(cause, claim.name, reason))
