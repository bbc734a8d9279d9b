"""A plan as people and pipelines read it: launches, where workloads land, cost, and what is not placed.

The report is data; `nodeless plan` prints it as tables, as JSON, and as a page with a picture.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodeless.explain.bill import BillSum, CommitmentUse, commitment_uses, sums, unknown_parts
from nodeless.explain.decisions import Situation
from nodeless.explain.fill import NEW, NodeFill, existing_nodes, new_nodes
from nodeless.explain.lost_work import CapacityReason, reason_of
from nodeless.explain.preference_costs import NOTHING, PreferenceCosts
from nodeless.explain.together import Together, kept_together
from nodeless.explain.words import count, listed
from nodeless.explain.workload_counts import workloads_of
from nodeless.model.bill import HOURS_A_MONTH, BillPart
from nodeless.model.instance_types import Catalog
from nodeless.model.plan import ChosenCapacity, FewerNodes, Plan, PlannedNode, Refusal, Relaxation
from nodeless.model.pods import PodShape
from nodeless.model.workloads import Workload, workload_of
from nodeless.scheduling.capacity.coverage import running_coverage
from nodeless.scheduling.capacity.pricing import priced
from nodeless.scheduling.diagnostics.changes import Trial
from nodeless.scheduling.diagnostics.counterfactual import remedies
from nodeless.state.saving import plain

#: Types told after the one that is bought.
NEXT = 3
#: Groups of refused pods for which help is looked for; each costs some twenty solves.
GROUPS_HELPED = 8
#: Seconds of work in which each of these solves must do: pods that need more get no advice.
ADVICE_DEADLINE = 0.5


#: Before the parts that `Report.unknown_before` names.
UNKNOWN_BEFORE = "Not known, and not included in what existing nodes cost"


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars an hour. `lower_bound` and `gap` are about what the plan adds."""

    before: float
    added: float
    unpriced: int = 0
    """Nodes that stand and whose price is not known: they are not in `before`."""
    lower_bound: float | None = None
    gap: float | None = None
    proved_cheapest: bool = False
    """Whether no other plan adds less, as far as prices are known."""
    fewer_nodes: FewerNodes | None = None
    """How the plan differs from the cheapest one found, of which nodes were merged."""
    parts: tuple[BillSum, ...] = ()
    """What is added, by part of the nodes' bills; none where only instances are priced."""
    unknown: tuple[str, ...] = ()
    """Parts of the new nodes' bills of which some have no price: they are in none of the figures."""

    @property
    def as_known(self) -> str:
        """What limits that a plan is the cheapest, before a sentence that says so; empty: nothing does.

        Parts that are not known of other nodes only lower the bound.
        """
        if not self.unknown:
            return ""
        return f"Leaving out {listed(self.unknown, 3)}, whose price is not known, "

    @property
    def after(self) -> float:
        return self.before + self.added


@dataclass(frozen=True, slots=True)
class NextBest:
    """A type that would have done as well, and what it costs an hour."""

    instance_type: str
    zone: str
    capacity_type: str
    price: float


@dataclass(frozen=True, slots=True)
class Launch:
    """Nodes to launch that differ in nothing but their zones."""

    count: int
    pool: str
    instance_type: str
    zones: tuple[str, ...]
    capacity_type: str
    price: float
    nodes: tuple[str, ...]
    workloads: tuple[tuple[Workload, int], ...]
    """What one of them holds."""
    next_best: tuple[NextBest, ...]
    types: int
    """How many types would do."""
    parts: tuple[BillPart, ...] = ()
    """What the price of one of them is made of, the instance first; none: the instance alone."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Where the pods of one workload come to be."""

    workload: Workload
    pods: int
    on_new: tuple[tuple[str, int], ...]
    on_existing: tuple[tuple[str, int], ...]
    refused: int


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason, and the pools for which it holds; no pools: for all of them."""

    code: str
    message: str
    pools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Pods that get no capacity for the same reasons."""

    code: str
    pods: tuple[str, ...]
    workloads: tuple[tuple[Workload, int], ...]
    obstacles: tuple[Obstacle, ...]
    remedies: tuple[str, ...] = ()
    """The smallest changes that help, each tried by planning again."""


@dataclass(frozen=True, slots=True)
class RelaxedPreferences:
    """A preference of some placed pods that was relaxed, and why."""

    code: str
    message: str
    pods: tuple[str, ...]
    workloads: tuple[tuple[Workload, int], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All of it."""

    launches: tuple[Launch, ...]
    landings: tuple[Landing, ...]
    unplaced: tuple[Unplaced, ...]
    cost: Cost
    nodes: tuple[NodeFill, ...]
    """New ones first, then those that stand."""
    relaxed: tuple[RelaxedPreferences, ...]
    chosen: tuple[CapacityReason, ...] = ()
    """Spot or on-demand, for pods that say what an interruption loses."""
    together: tuple[Together, ...] = ()
    """What keeping pods together costs."""
    preferences: PreferenceCosts = NOTHING
    """What soft rules cost."""
    commitments: tuple[CommitmentUse, ...] = ()
    """What is used of each commitment once the plan is carried out."""
    notes: tuple[str, ...] = ()
    """What the plan rests on: date of prices, assumptions, changes that were asked for."""

    @property
    def complete(self) -> bool:
        """Whether every pod has a place."""
        return not self.unplaced

    @property
    def pods(self) -> int:
        """Pods that the plan is about."""
        return sum(landing.pods for landing in self.landings)

    @property
    def unknown_before(self) -> str:
        """Parts that are not known of nodes that exist: `public IPv4 of 2 nodes, license of 1 node`."""
        existing = [node.parts for node in self.nodes if node.state != NEW]
        unknown = unknown_parts(existing).items()
        return ", ".join(f"{name} of {count(number, 'node')}" for name, number in unknown if number)

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON document; dollars an hour and, for the sums, a month."""
        document: dict[str, Any] = plain(self)
        cost = self.cost
        document["cost"] = {
            "perHour": {"before": cost.before, "added": cost.added, "after": cost.after},
            "perMonth": {
                "before": cost.before * HOURS_A_MONTH,
                "added": cost.added * HOURS_A_MONTH,
                "after": cost.after * HOURS_A_MONTH,
            },
            "lowerBoundPerHour": cost.lower_bound,
            "gap": cost.gap,
            "provedCheapest": cost.proved_cheapest,
            "fewerNodes": cost.fewer_nodes.to_json() if cost.fewer_nodes else None,
            "unpricedNodes": cost.unpriced,
            "addedByPart": {part.name: part.dollars for part in cost.parts},
            "unknownParts": list(cost.unknown),
        }
        return {"complete": self.complete, **document}


def report(
    situation: Situation,
    plan: Plan,
    notes: Iterable[str] = (),
    wider: Catalog | None = None,
    preferences: PreferenceCosts = NOTHING,
) -> Report:
    """The report on a plan.

    Args:
        situation: What was planned.
        plan: The plan.
        notes: Lines on what it rests on; faults of the plan are added.
        wider: Types that pools might buy if their requirements allowed them, by pool key.
        preferences: What soft rules cost (`preference_costs`).
    """
    snapshot, policy = situation.snapshot, situation.policy
    catalog = priced(situation.catalog, snapshot.pools.values(), policy.price_adjustments, policy.node_fee)
    new = new_nodes(snapshot, catalog, plan)
    existing = existing_nodes(snapshot, catalog, plan, policy.commitments)
    coverage = running_coverage(snapshot, catalog, policy.commitments, plan.new_nodes)
    prices = [node.price for node in existing]
    bills = [node.alternatives[0].offering.parts for node in plan.new_nodes]
    return Report(
        launches=launches_of(plan, new),
        landings=_landings(situation, plan, new),
        unplaced=unplaced(situation, plan.refusals, wider),
        cost=Cost(
            before=sum(price for price in prices if price is not None),
            added=plan.cost_per_hour,
            unpriced=sum(price is None for price in prices),
            lower_bound=plan.lower_bound,
            gap=plan.gap,
            proved_cheapest=plan.proved_cheapest,
            fewer_nodes=plan.fewer_nodes,
            parts=sums(bills),
            unknown=tuple(name for name, number in unknown_parts(bills).items() if number),
        ),
        nodes=(*new, *existing),
        relaxed=relaxed(situation, plan.relaxations),
        chosen=chosen(situation, plan.choices),
        together=kept_together(situation, plan),
        preferences=preferences,
        commitments=commitment_uses(policy.commitments, coverage, catalog),
        notes=(*notes, *plan.fault_notes()),
    )


def unplaced(
    situation: Situation, refusals: Iterable[Refusal], wider: Catalog | None = None
) -> tuple[Unplaced, ...]:
    """Refusals with the same reasons together, the most pods first, with what would help."""
    groups: dict[tuple[str, tuple[Obstacle, ...]], list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault((refusal.code, _obstacles(refusal)), []).append(refusal)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[1][0].pod))
    return tuple(
        Unplaced(
            code,
            tuple(refusal.pod for refusal in members),
            workloads_of(situation.snapshot, (refusal.pod for refusal in members)),
            obstacles,
            helping(situation, members, wider) if number < GROUPS_HELPED else (),
        )
        for number, ((code, obstacles), members) in enumerate(ordered)
    )


def relaxed(situation: Situation, relaxations: Iterable[Relaxation]) -> tuple[RelaxedPreferences, ...]:
    """What placed pods do not get, with their workloads."""
    return tuple(
        RelaxedPreferences(
            relaxation.code,
            relaxation.message,
            relaxation.pods,
            workloads_of(situation.snapshot, relaxation.pods),
        )
        for relaxation in relaxations
    )


def chosen(situation: Situation, choices: Iterable[ChosenCapacity]) -> tuple[CapacityReason, ...]:
    """Spot or on-demand for pods that say what an interruption loses, with their workloads."""
    return tuple(
        replace(reason, pods=choice.pods, workloads=workloads_of(situation.snapshot, choice.pods))
        for choice in choices
        if (reason := reason_of(choice.lost_work)) is not None
    )


def helping(
    situation: Situation, refusals: Sequence[Refusal], wider: Catalog | None = None
) -> tuple[str, ...]:
    """The smallest changes that would give pods with the same reasons a place, as lines.

    Pods of several shapes may share their reasons: changes are looked for on those of the most pods.
    """
    pods = situation.snapshot.pods
    shapes: dict[PodShape, list[Refusal]] = {}
    for refusal in refusals:
        shapes.setdefault(pods[refusal.pod].shape, []).append(refusal)
    chosen = max(shapes.values(), key=len, default=[])
    trial = Trial(situation.snapshot, situation.catalog)
    policy = replace(situation.policy, deadline=min(ADVICE_DEADLINE, situation.policy.deadline))
    found = remedies(trial, policy, chosen, wider=wider)
    return tuple(str(remedy) for remedy in found)


def _obstacles(refusal: Refusal) -> tuple[Obstacle, ...]:
    if refusal.message or not refusal.reasons:
        return (Obstacle(refusal.code, refusal.message or refusal.code),)
    pools: dict[tuple[str, str], list[str]] = {}
    for reason in refusal.reasons:
        pools.setdefault((reason.code, reason.message), []).append(str(reason.pool))
    return tuple(Obstacle(code, message, tuple(names)) for (code, message), names in pools.items())


def launches_of(plan: Plan, fills: tuple[NodeFill, ...]) -> tuple[Launch, ...]:
    """The new nodes of a plan, those that differ in nothing but their zones together."""
    groups: dict[tuple[object, ...], list[tuple[PlannedNode, NodeFill]]] = {}
    for node, fill in zip(plan.new_nodes, fills, strict=True):
        held = tuple((share.workload, share.pods) for share in fill.shares)
        key = (fill.pool, fill.instance_type, fill.capacity_type, fill.price, held)
        groups.setdefault(key, []).append((node, fill))
    return tuple(_launch(members) for members in groups.values())


def _launch(members: list[tuple[PlannedNode, NodeFill]]) -> Launch:
    node, fill = members[0]
    return Launch(
        len(members),
        fill.pool,
        fill.instance_type,
        tuple(sorted({each.zone for _, each in members})),
        fill.capacity_type,
        node.price,
        tuple(each.name for _, each in members),
        tuple((share.workload, share.pods) for share in fill.shares),
        tuple(
            NextBest(
                other.instance_type, other.offering.zone, other.offering.capacity_type, other.offering.price
            )
            for other in node.alternatives[1 : 1 + NEXT]
        ),
        len(node.alternatives),
        node.alternatives[0].offering.parts,
    )


def _landings(situation: Situation, plan: Plan, fills: tuple[NodeFill, ...]) -> tuple[Landing, ...]:
    new: dict[Workload, dict[str, int]] = {}
    existing: dict[Workload, dict[str, int]] = {}
    pods = situation.snapshot.pods
    for node, fill in zip(plan.new_nodes, fills, strict=True):
        for key in node.pods:
            _count(new, workload_of(pods[key]), fill.name)
    for key, name in plan.placements.items():
        _count(existing, workload_of(pods[key]), name)
    refused = dict(workloads_of(situation.snapshot, (refusal.pod for refusal in plan.refusals)))
    return tuple(
        Landing(
            workload,
            sum(new.get(workload, {}).values())
            + sum(existing.get(workload, {}).values())
            + refused.get(workload, 0),
            tuple(new.get(workload, {}).items()),
            tuple(sorted(existing.get(workload, {}).items())),
            refused.get(workload, 0),
        )
        for workload in sorted({*new, *existing, *refused})
    )


def _count(counts: dict[Workload, dict[str, int]], workload: Workload, node: str) -> None:
    on = counts.setdefault(workload, {})
    on[node] = on.get(node, 0) + 1


def where(places: tuple[tuple[str, int], ...], shown: int = 4) -> str:
    """`new-1 (4), new-2 (3) and 2 others`."""
    return listed([name if number == 1 else f"{name} ({number})" for name, number in places], shown)


def zones(names: tuple[str, ...]) -> str:
    """`us-east-1a`, or `us-east-1a, b, c` for zones of one region."""
    first = names[0]
    if len(names) > 1 and all(name[:-1] == first[:-1] for name in names):
        return ", ".join((first, *(name[-1] for name in names[1:])))
    return ", ".join(names)
