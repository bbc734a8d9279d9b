"""What if these nodes were not there? The solver's answer on the snapshot without them.

First everything that waits for a place anyway is settled (`schedule_pending`): pods that are pending
or on nodes that leave go where the solver would put them, and count there. So a simulation
is about the pods of the nodes in question alone, and pods that nobody can place block no
move.

A node in question is marked as leaving; the solver then finds room for its pods on the
others. Nodes that changed a short while ago (inside `consolidateAfter`) or are not initialized take
none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf

from immutables import Map

from nodeless.disruption.candidates import Candidate
from nodeless.model.events import PodGone, PodSeen
from nodeless.model.instance_types import Catalog
from nodeless.model.plan import Plan, PlannedNode
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import DISRUPTED, Taint
from nodeless.scheduling import Policy, pods_to_place, solve, with_placeholders
from nodeless.scheduling.capacity.existing import initialized
from nodeless.scheduling.pods.eligibility import leaving
from nodeless.scheduling.same_cluster import SameCluster
from nodeless.state import apply

_CLOSED = Taint("nodeless.dev/closed", "NoSchedule")
#: Pods that have waited longer for capacity which is being planned hold no command back.
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class ScheduledSnapshot:
    """A snapshot in which everything that waits has its place or is left out."""

    snapshot: Snapshot
    expected: Mapping[str, int]
    """Node or claim name to the number of pods that will come there."""
    planning: int
    """Pods for which new capacity is being planned at this moment."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the pods of some nodes would go."""

    placed: bool
    """Whether each of them has a place, on an initialized node or a new one."""
    reason: str
    """Why not."""
    new_nodes: tuple[PlannedNode, ...] = ()
    """For those that have a place on one, whether all have a place or not."""
    placements: Mapping[str, str] = field(default_factory=dict, hash=False)
    spill: tuple[str, ...] = ()
    """Pods that find no room where kube-scheduler puts the others, if that was simulated (`as_bound`)."""


def schedule_pending(
    snapshot: Snapshot,
    catalog: Catalog,
    policy: Policy,
    now: float,
    promised: frozenset[str] = frozenset(),
    ending: frozenset[str] = frozenset(),
) -> ScheduledSnapshot:
    """Give every pod that waits its place.

    For pods in `promised` (by key) capacity is decided already: they will not come to nodes in `ending`.
    """
    scheduled = _schedule(SameCluster(snapshot, catalog, policy), promised, ending)
    fresh = sum(1 for pod in scheduled.planned if pod.key not in promised and _is_fresh(snapshot, pod, now))
    return ScheduledSnapshot(scheduled.snapshot, scheduled.expected, fresh)


@dataclass(frozen=True, slots=True)
class _Scheduled:
    """A snapshot in which nothing waits, and what has come to where."""

    snapshot: Snapshot
    expected: Mapping[str, int]
    planned: tuple[Pod, ...]
    """Those for which there will be new nodes."""


@lru_cache(maxsize=2)
def _schedule(cluster: SameCluster, promised: frozenset[str], ending: frozenset[str]) -> _Scheduled:
    """The very same for the very same cluster: what searches found in it stays right."""
    snapshot = cluster.snapshot
    waiting = pods_to_place(snapshot, cluster.policy.now)
    plan = solve(snapshot, cluster.catalog, cluster.policy) if waiting else Plan()
    expected: dict[str, int] = {}
    after = snapshot
    planned = {key for node in plan.new_nodes for key in node.pods}
    for pod in waiting:
        place = plan.placements.get(pod.key)
        if pod.key in promised and place in ending:
            place = None
        if place is not None:
            expected[place] = expected.get(place, 0) + 1
        # Pods that will come to a claim keep its node from being touched; they need no room elsewhere.
        if place is not None and place in snapshot.nodes:
            after = apply(after, PodSeen(replace(pod, node_name=place, unschedulable=False)))
        else:
            after = apply(after, PodGone(pod.key))
    bought = tuple(pod for pod in waiting if pod.key in planned)
    return _Scheduled(_close_uninitialized(after), expected, bought)


def _close_uninitialized(snapshot: Snapshot) -> Snapshot:
    """Keep pods of commands off nodes and claims that are not initialized: they may never be."""
    claims, nodes = snapshot.claims, snapshot.nodes
    for name, claim in snapshot.claims.items():
        node = snapshot.node_of(claim)
        if node is None:
            claims = claims.set(name, replace(claim, taints=(*claim.taints, _CLOSED)))
        elif not initialized(node, claim):
            nodes = nodes.set(node.name, replace(node, unschedulable=True))
    return replace(snapshot, claims=claims, nodes=nodes)


def with_buffers(snapshot: Snapshot, catalog: Catalog, policy: Policy) -> Snapshot:
    """The cluster with the placeholders of buffers and requests as pods of the nodes that have room for them.

    So a node that holds room is not empty, and its placeholders move with its pods. What would need new
    nodes is left out.
    """
    if not snapshot.capacity_buffers and not snapshot.provisioning_requests:
        return snapshot
    return _place_buffers(SameCluster(snapshot, catalog, policy))


@lru_cache(maxsize=2)
def _place_buffers(cluster: SameCluster) -> Snapshot:
    """The very same for the very same cluster: what searches found in it stays right."""
    snapshot = cluster.snapshot
    whole = with_placeholders(snapshot)
    plan = solve(whole, cluster.catalog, cluster.policy)
    after = replace(
        snapshot,
        capacity_buffers=whole.capacity_buffers,
        provisioning_requests=whole.provisioning_requests,
    )
    for key, name in sorted(plan.placements.items()):
        pod = whole.pods[key]
        if pod.shape.placeholder and name in snapshot.nodes:
            after = apply(after, PodSeen(replace(pod, node_name=name, unschedulable=False)))
    return after


def _is_fresh(snapshot: Snapshot, pod: Pod, now: float) -> bool:
    if not pod.node_name:
        return now - pod.created_at < PATIENCE
    node = snapshot.nodes.get(pod.node_name)
    claim = snapshot.claim_of(node) if node is not None else None
    since = claim.deletion_timestamp if claim is not None else None
    return since is None or now - since < PATIENCE


def simulate_scheduling(
    snapshot: Snapshot,
    candidates: Iterable[Candidate],
    catalog: Catalog,
    policy: Policy,
    closed: frozenset[str] = frozenset(),
) -> Outcome:
    """Where the candidates' pods go when their nodes end.

    Args:
        snapshot: Settled.
        candidates: The nodes in question.
        catalog: What may be bought; empty: nothing.
        policy: How to plan.
        closed: Names of nodes that take no pods.
    """
    some = tuple(candidates)
    moving = {pod.key for candidate in some for pod in candidate.pods}
    plan = solve(mark_leaving(snapshot, some, closed), catalog, policy)
    refused = [refusal for refusal in plan.refusals if refusal.pod in moving]
    if refused:
        reason = f"pod {refused[0].pod} would have no place: {refused[0]}"
        return Outcome(False, reason, plan.new_nodes, plan.placements)
    for key, name in sorted(plan.placements.items()):
        node = snapshot.nodes.get(name)
        if key in moving and (node is None or not _ready_for_pods(snapshot, name)):
            reason = f"pod {key} would go to {name}, which is not initialized"
            return Outcome(False, reason, plan.new_nodes, plan.placements)
    return Outcome(
        True, "", plan.new_nodes, plan.placements, tuple(key for key in plan.spill if key in moving)
    )


def price_alone(snapshot: Snapshot, keys: Iterable[str], catalog: Catalog, policy: Policy) -> float:
    """What nodes for some pods alone would cost, in US dollars an hour; infinite if any has none."""
    pods = {key: replace(snapshot.pods[key], node_name="", unschedulable=True) for key in keys}
    alone = replace(
        snapshot,
        pods=Map(pods),
        pods_of_node=Map(),
        nodes=Map(),
        node_names=Map(),
        claims=Map(),
        claim_names=Map(),
    )
    plan = solve(alone, catalog, replace(policy, as_bound=False, commitments=()))
    return inf if plan.refusals else plan.cost_per_hour


def _ready_for_pods(snapshot: Snapshot, name: str) -> bool:
    node = snapshot.nodes[name]
    claim = snapshot.claim_of(node)
    return claim is None or initialized(node, claim)


def mark_leaving(snapshot: Snapshot, candidates: Iterable[Candidate], closed: frozenset[str]) -> Snapshot:
    """The snapshot with the candidates leaving and the closed nodes cordoned."""
    nodes = snapshot.nodes.mutate()
    names = set()
    for candidate in candidates:
        names.add(candidate.node.name)
        node = nodes[candidate.node.name]
        nodes[node.name] = replace(node, taints=(*node.taints, DISRUPTED))
    for name in closed - names:
        if name in nodes:
            nodes[name] = replace(nodes[name], unschedulable=True)
    return replace(snapshot, nodes=nodes.finish())


def leaving_soon(snapshot: Snapshot, claims: Iterable[str]) -> Snapshot:
    """The snapshot with the nodes of some claims leaving."""
    nodes = snapshot.nodes
    for name in claims:
        claim = snapshot.claims.get(name)
        node = snapshot.node_of(claim) if claim is not None else None
        if node is not None and not leaving(node, claim):
            nodes = nodes.set(node.name, replace(node, taints=(*node.taints, DISRUPTED)))
    return replace(snapshot, nodes=nodes)


def apply_command(snapshot: Snapshot, candidate: Candidate, placements: Mapping[str, str]) -> Snapshot:
    """The snapshot once a candidate's node is gone and its pods run where they were placed.

    Pods that were placed on no node that there is already (but on a new one, or nowhere) are left out.
    """
    after = snapshot
    for pod in candidate.pods:
        place = placements.get(pod.key, "")
        there = place in snapshot.nodes
        after = apply(after, PodSeen(replace(pod, node_name=place)) if there else PodGone(pod.key))
    nodes = after.nodes
    node = nodes[candidate.node.name]
    if not leaving(node, None):
        nodes = nodes.set(node.name, replace(node, taints=(*node.taints, DISRUPTED)))
    return replace(after, nodes=nodes)
