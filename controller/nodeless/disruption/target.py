"""The target: what the solver would buy for all pods that may move, and the commands that lead there.

The target is one solve: the nodes that may be consolidated now are taken away, what stays keeps its pods
and its room, and new nodes are planned for the rest. Its price is what the cluster would cost if one began
anew; the difference to today's is the distance. The path is what consolidation would do, one command after
the other, each of them carried out on the snapshot: each is right by itself and within the budgets, and none
needs the next one. It may end before the target: a command must save enough, more with each node that it
launches beyond the number of those that end, and leave a spot node alone that only another spot node could
replace.
"""

from dataclasses import dataclass, replace
from math import fsum

from nodeless.disruption.candidates import Candidate, Prices
from nodeless.disruption.command_history import NOTHING_REMEMBERED, CommandHistory
from nodeless.disruption.context import DisruptionContext
from nodeless.disruption.controller import DisruptionMethods
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.disruption.simulation import simulate_scheduling
from nodeless.launch.claims import claims_for
from nodeless.model.disruption import Command
from nodeless.model.events import ClaimGone, ClaimSeen, NodeGone, NodeSeen, PodSeen
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, REGISTERED, ZONE
from nodeless.model.nodes import INITIALIZED_CONDITION, LAUNCHED, REGISTERED_CONDITION, Condition, Node
from nodeless.model.plan import Plan, PlannedNode
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import solve
from nodeless.scheduling.capacity.coverage import running_coverage
from nodeless.state import apply

#: Commands of a path that are looked for.
MOST_STEPS = 50
_UP = (LAUNCHED, REGISTERED_CONDITION, INITIALIZED_CONDITION)


@dataclass(frozen=True, slots=True)
class Target:
    """What a cluster costs, and what it would if its pods that may move were planned anew; in USD an hour."""

    price: float
    """Of all nodes whose price is known."""
    whole: float
    """The same at the target; never more than `price`, for nothing is also an answer."""
    ending: tuple[str, ...] = ()
    """Claims that the target does without or replaces, by name."""
    launches: tuple[PlannedNode, ...] = ()

    @property
    def distance(self) -> float:
        return self.price - self.whole


@dataclass(frozen=True, slots=True)
class Step:
    """A command on the way, and what the cluster costs after it in USD an hour."""

    command: Command
    price: float


def target(
    snapshot: Snapshot,
    catalog: Catalog,
    policy: DisruptionPolicy,
    now: float,
    memory: CommandHistory = NOTHING_REMEMBERED,
) -> Target:
    """The target of a cluster: one solve of everything that may move now.

    Args:
        snapshot: The cluster.
        catalog: What each pool may buy, by pool key, at list prices.
        policy: How commands are judged; its packing is the target's.
        now: Seconds since the epoch.
        memory: What earlier passes decided: workloads that rest do not move.
    """
    context = DisruptionMethods(snapshot, catalog, policy, now, memory.with_only_waiting((), now))
    price = _price_of(snapshot, context)
    movable = _movable(context)
    if not movable:
        return Target(price, price)
    solving = replace(context.policy.solving, keeps_off_spot=True)
    outcome = simulate_scheduling(
        context.scheduled.snapshot, movable, context.catalog, solving, closed=context.closed_nodes()
    )
    saved = fsum(candidate.price or 0.0 for candidate in movable) - fsum(
        node.price for node in outcome.new_nodes
    )
    if not outcome.placed or saved <= 0:
        return Target(price, price)
    return Target(price, price - saved, tuple(candidate.name for candidate in movable), outcome.new_nodes)


def path(
    snapshot: Snapshot, catalog: Catalog, policy: DisruptionPolicy, now: float, most: int = MOST_STEPS
) -> tuple[Step, ...]:
    """The commands that consolidation would make, one after the other, each once the one before is done."""
    steps: list[Step] = []
    seen = snapshot
    while len(steps) < most:
        context = DisruptionMethods(seen, catalog, policy, now)
        commands = context.saving_commands()
        after = _carried_out(seen, commands[0], catalog, policy, now) if commands else None
        if after is None:
            break
        seen = after
        steps.append(Step(commands[0], _price_of(seen, context)))
    return tuple(steps)


def _movable(context: DisruptionMethods) -> list[Candidate]:
    return [
        candidate
        for candidate in context.consolidatable()
        if candidate.empty or candidate.pool.consolidation_enabled
    ]


def _price_of(snapshot: Snapshot, context: DisruptionContext) -> float:
    catalog = context.catalog
    prices = Prices(catalog, running_coverage(snapshot, catalog, context.policy.solving.commitments))
    known = (
        prices.of(claim, node, snapshot.pools[str(claim.pool)])
        for claim in snapshot.claims.values()
        if (node := snapshot.node_of(claim)) is not None and str(claim.pool) in snapshot.pools
    )
    return fsum(price for price in known if price is not None)


def _carried_out(
    snapshot: Snapshot, command: Command, catalog: Catalog, policy: DisruptionPolicy, now: float
) -> Snapshot | None:
    """The cluster once a command is done; None where its pods have no place then."""
    nodes = [node for name in command.claims if (node := snapshot.node_of(snapshot.claims[name])) is not None]
    pods = [pod for node in nodes for pod in snapshot.pods_on(node.name)]
    after = snapshot
    for pod in pods:
        waits = pod.occupies and pod.deletion_timestamp is None
        after = apply(after, PodSeen(replace(pod, node_name="", unschedulable=waits)))
    for node in nodes:
        after = apply(after, NodeGone(node.name))
    for name in command.claims:
        after = apply(after, ClaimGone(name))
    after = _with_launched(after, command, catalog, now)
    plan = solve(after, {}, policy.solving)
    for pod in pods:
        place = plan.placements.get(pod.key, "")
        if place not in after.nodes and pod.occupies and pod.deletion_timestamp is None:
            return None
        bound = replace(after.pods[pod.key], node_name=place, unschedulable=False)
        after = apply(after, PodSeen(bound))
    return after


def _with_launched(snapshot: Snapshot, command: Command, catalog: Catalog, now: float) -> Snapshot:
    """With a node of the intended type and offering for each replacement, initialized and quiet."""
    taken = frozenset(snapshot.claims)
    created = claims_for(Plan(new_nodes=command.replacements), dict(snapshot.pools), now, taken=taken)
    after = snapshot
    for create, planned in zip(created, command.replacements, strict=True):
        intended = planned.alternatives[0]
        kind = next(each for each in catalog[str(planned.pool)] if each.name == intended.instance_type)
        labels = {
            **create.claim.labels,
            **kind.requirements.single_values(),
            **planned.requirements.single_values(),
            INSTANCE_TYPE: kind.name,
            ZONE: intended.offering.zone,
            CAPACITY_TYPE: intended.offering.capacity_type,
        }
        name = create.claim.name
        claim = replace(
            create.claim,
            labels=labels,
            provider_id=f"aws:///{intended.offering.zone}/{name}",
            node_name=name,
            created_at=0.0,
            conditions=tuple(
                Condition(capacity_type, "True", capacity_type, "", 0.0) for capacity_type in _UP
            ),
            capacity=kind.capacity,
            allocatable=kind.allocatable,
        )
        node = Node(
            name=name,
            provider_id=claim.provider_id,
            labels={**labels, REGISTERED: "true", INITIALIZED: "true"},
            taints=claim.taints,
            capacity=kind.capacity,
            allocatable=kind.allocatable,
            ready=True,
        )
        after = apply(apply(after, ClaimSeen(claim)), NodeSeen(node))
    return after
