"""What would let a pod grow whose resize in place waits (`PodResizePending`): room here, or another node.

Its node has to have what the pod lacks. Either other pods leave it, of which the fewest and smallest are
named, or a pod of that size gets another node: one that has room, or a new one of the cheapest type. With it
come the commands that make the room, and show what it costs that the node's pods move.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from immutables import Map

from nodeless.disruption.blocking import Blocking
from nodeless.explain.decisions import Situation
from nodeless.explain.what_if import without_place
from nodeless.explain.words import SHOWN, amounts, listed, price
from nodeless.model.nodes import Node
from nodeless.model.pods import Pod
from nodeless.model.resources import PODS, Resources, add, subtract, total
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import solve

_NO_PLACE = "has no place"


@dataclass(frozen=True, slots=True)
class ResizeAdvice:
    """What a resize lacks, and what would help."""

    reason: str
    """`Deferred`: the node has no room now; `Infeasible`: it never has."""
    node: str
    granted: Resources = field(hash=False)
    """What the pod has, by resource."""
    wanted: Resources = field(hash=False)
    missing: Resources = field(hash=False)
    """What its node lacks for it; empty: the kubelet has another reason."""
    leaving: tuple[str, ...] = ()
    """Pods of the node without which it would have room, by key; empty: none that may leave make enough."""
    places: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Where those would go, by key, on nodes that exist; without those that have no place there."""
    home: str = ""
    """Where a pod of that size would be planned, or why nowhere; empty: not tried."""
    commands: tuple[str, ...] = ()
    """What to run for it, in a shell: first what makes the room, where controllers make those pods anew; last
    what shows where the node's pods would go, and what that costs."""

    def lines(self) -> tuple[str, ...]:
        """The advice as sentences."""
        what = f"its resize from {amounts(self.granted)} to {amounts(self.wanted)} waits ({self.reason})"
        if not self.missing:
            text = f"{what}: node {self.node} has room for it; its condition PodResizePending has the reason"
            return (text, *self._home())
        lacking = f"{what}: node {self.node} lacks {amounts(self.missing)}"
        hint = (f"hint: {', or '.join(self.commands)}",) if self.commands else ()
        return (lacking, self._room(), *self._home(), *hint)

    def _room(self) -> str:
        if not self.leaving:
            return "no pods that may leave the node make room enough for it"
        room = f"there is room for it without {listed(self.leaving)}"
        found = sorted({self.places[key] for key in self.leaving if key in self.places})
        if len(self.places) < len(self.leaving):
            return room
        return f"{room}, with room for {'it' if len(self.leaving) == 1 else 'them'} on {listed(found)}"

    def _home(self) -> tuple[str, ...]:
        return (f"a pod of that size {self.home}",) if self.home else ()


def advise_resize(situation: Situation, pod: Pod, *, existing: bool = True) -> ResizeAdvice | None:
    """What would let a pod grow; None: no resize of it waits, or its node is not known.

    Args:
        situation: The cluster, what may be bought, and how to plan.
        pod: One of its pods.
        existing: Whether to look for room on existing nodes, too, which takes as long as a pass.
    """
    snapshot = situation.snapshot
    node = snapshot.nodes.get(pod.node_name)
    if pod.resize is None or node is None or pod.shape.invalid:
        return None
    granted, wanted = dict(pod.resize.granted), dict(pod.resize.wanted)
    others = [other for other in snapshot.pods_on(node.name) if other.key != pod.key and not other.terminal]
    missing = _missing(node, wanted, others)
    leaving = _making_room(situation, missing, others) if missing else ()
    home = _home(situation, node, pod, wanted, existing=existing)
    changed = {name for name in {*granted, *wanted} if granted.get(name) != wanted.get(name)}
    return ResizeAdvice(
        pod.resize.reason,
        node.name,
        {name: granted.get(name, 0) for name in sorted(changed)},
        {name: wanted.get(name, 0) for name in sorted(changed)},
        missing,
        tuple(other.key for other in leaving),
        _places(situation, node, leaving) if leaving and existing else {},
        home,
        _commands(node, leaving, home) if missing else (),
    )


def _commands(node: Node, leaving: Sequence[Pod], home: str) -> tuple[str, ...]:
    """What to run so that these pods leave a node, and to see what it costs that all do.

    kube-scheduler counts the pod with the size that it waits for, so that what leaves does not come back.
    Pods that nobody makes anew are not deleted.
    """
    if not leaving and home.startswith(_NO_PLACE):
        return ()
    anew = all(any(owner.controller for owner in pod.owners) for pod in leaving)
    by_namespace: dict[str, list[str]] = {}
    for pod in leaving if anew and len(leaving) <= SHOWN else ():
        by_namespace.setdefault(pod.namespace, []).append(pod.name)
    deletions = [f"kubectl delete pod -n {space} {' '.join(names)}" for space, names in by_namespace.items()]
    shown = f"nodeless plan --what-if without-node={node.name}"
    return (*((" && ".join(deletions),) if deletions else ()), shown)


def _missing(node: Node, wanted: Resources, others: Iterable[Pod]) -> dict[str, int]:
    """What a node lacks for a pod beside others."""
    free = subtract(node.allocatable, total(other.requests for other in others))
    lacks = ((name, amount - free.get(name, 0)) for name, amount in sorted(wanted.items()))
    return {name: amount for name, amount in lacks if amount > 0}


def _making_room(situation: Situation, missing: Resources, others: Sequence[Pod]) -> tuple[Pod, ...]:
    """The smallest pod that makes room alone, or as few as possible; only those that nothing holds there."""
    blocking = Blocking(situation.snapshot)
    movable = [
        other
        for other in others
        if other.occupies
        and other.deletion_timestamp is None
        and blocking.first_blocker([other], situation.now) is None
    ]
    by_size = sorted(movable, key=lambda other: (other.bulk, other.key))
    for other in by_size:
        if _frees(missing, [other]):
            return (other,)
    chosen: list[Pod] = []
    for other in reversed(by_size):
        chosen.append(other)
        if _frees(missing, chosen):
            break
    else:
        return ()
    for other in tuple(chosen):
        rest = [kept for kept in chosen if kept is not other]
        if _frees(missing, rest):
            chosen = rest
    return tuple(sorted(chosen, key=lambda other: other.key))


def _frees(missing: Resources, leaving: Iterable[Pod]) -> bool:
    freed = add({}, *(other.requests for other in leaving))
    return all(freed.get(name, 0) >= amount for name, amount in missing.items())


def _places(situation: Situation, node: Node, leaving: Iterable[Pod]) -> dict[str, str]:
    pods = {pod.key: without_place(pod) for pod in leaving}
    plan = solve(_elsewhere(situation.snapshot, node, pods), {}, situation.policy)
    return {key: place for key, place in plan.placements.items() if key in pods}


def _home(situation: Situation, node: Node, pod: Pod, wanted: Resources, *, existing: bool) -> str:
    shape = replace(pod.shape, requests=tuple(sorted(({PODS: 1} | dict(wanted)).items())))
    grown = without_place(replace(pod, shape=shape))
    seen = situation.snapshot
    around = _elsewhere(seen, node, {pod.key: grown}) if existing else _alone(seen, grown)
    plan = solve(around, situation.catalog, replace(situation.policy, as_bound=False))
    if pod.key in plan.placements:
        return f"has room on {plan.placements[pod.key]}"
    for planned in plan.new_nodes:
        if pod.key in planned.pods:
            chosen = planned.alternatives[0]
            where = f"{chosen.offering.capacity_type} in {chosen.offering.zone}"
            return (
                f"gets a new node of {planned.pool}: {chosen.instance_type}, {where}, {price(planned.price)}"
            )
    refusal = next((refusal for refusal in plan.refusals if refusal.pod == pod.key), None)
    return f"{_NO_PLACE}: {refusal}" if refusal is not None else ""


def _elsewhere(snapshot: Snapshot, node: Node, pods: Mapping[str, Pod]) -> Snapshot:
    """The cluster in which these pods of a node alone look for a place, and not there."""
    seen = snapshot.pods.mutate()
    for key, pod in snapshot.pods.items():
        if key in pods:
            seen[key] = pods[key]
        elif not pod.node_name:
            del seen[key]
    left = snapshot.pods_of_node.get(node.name, frozenset()) - pods.keys()
    return replace(
        snapshot,
        pods=seen.finish(),
        pods_of_node=snapshot.pods_of_node.set(node.name, left),
        nodes=snapshot.nodes.set(node.name, replace(node, unschedulable=True)),
    )


def _alone(snapshot: Snapshot, pod: Pod) -> Snapshot:
    """The pod without any node that is there or on its way."""
    return replace(
        snapshot,
        pods=Map({pod.key: pod}),
        pods_of_node=Map(),
        nodes=Map(),
        node_names=Map(),
        claims=Map(),
        claim_names=Map(),
    )
