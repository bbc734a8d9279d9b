"""The plan that is cheapest with commitments: what is paid for already is used first, the rest at list price.

Price of a plan: its nodes, less what is left of commitments once the nodes that run have used theirs. What
a node costs so depends on how many others are covered, and an offering has one price. So plans are made in
which each price is right:

1. as if there were no commitments;
2. as if each node had all that is left of them for itself: what is covered as a whole has a nominal price;
3. where they do not reach for all nodes of the second plan, those are kept that cost no more than was
   planned, the ones first whose pods would cost the most elsewhere; the other pods are planned beside them,
   at list prices, or with what is left in the same way;
4. as if each unit of a commitment had a price: an instance costs the units that it uses, and never more than
   its own price; the others as in 3.

The cheapest with what commitments cover of it is taken.

Bound: each plan's own, less what commitments may take off it at most (`commitment_worth`). In the first plan
a unit of each is worth the most that it can be, in the second nearly nothing, in those of 4. what leaves room
for the highest bound. Nodes that are bought in any case are part of it (`BoughtFirst`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import fsum, isclose
from typing import TypeVar

from nodeless.model.bill import COMMITMENTS, BillPart
from nodeless.model.commitments import Commitment, Coverage, cover
from nodeless.model.events import NodeSeen, PodSeen
from nodeless.model.instance_types import Catalog, Offering
from nodeless.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    ON_DEMAND,
    REGISTERED,
    ZONE,
)
from nodeless.model.min_values import least_values
from nodeless.model.node_offerings import NodeOfferings
from nodeless.model.nodes import Node
from nodeless.model.plan import Alternative, ChosenCapacity, Plan, PlannedNode, Relaxation
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.model.subnets import SubnetRoom
from nodeless.scheduling.batch import pools_in_order
from nodeless.scheduling.capacity.coverage import (
    NOMINAL,
    at_worth,
    covered_catalog,
    most_worth,
    running_coverage,
    unused,
    usage_of,
    uses_of,
)
from nodeless.scheduling.capacity.pricing import priced
from nodeless.scheduling.commitment_worth import InstanceUse, PlanUse, highest_bound
from nodeless.scheduling.faults import or_without
from nodeless.scheduling.pods.volumes import mounts
from nodeless.scheduling.policy import Policy
from nodeless.state.applying import apply

#: How much of the time box each plan after the first may use; there are ten at most.
_BOX = 1 / 4
#: The part of a pass after whose counted work no further plan is made.
_LATE = 1 / 3
#: US dollars an hour that are rounding.
_ROUNDING = 1e-9
#: How often what is left of commitments is planned with.
_ROUNDS = 3
#: How many plans are made at a worth of commitments, and by which part of the price a bound must be able to
#: rise for each.
_TRIALS, _WORTHWHILE = 3, 0.01
#: By which part a worth must differ from those that were tried.
_NEAR = 1e-3
#: Which part of a bound does not matter.
_LITTLE = 1e-3
_NAME = "planned.nodeless.dev/{}"

Planner = Callable[[Snapshot, Catalog, Policy], Plan]
"""Plans for the pods that lack capacity, without commitments."""


@dataclass(frozen=True, slots=True)
class BoughtFirst:
    """Nodes that are bought in any case, and what was left of commitments before they used theirs."""

    nodes: tuple[PlannedNode, ...] = ()
    """At prices without commitments."""
    commitments: tuple[Commitment, ...] = ()
    """Those of which something was left."""
    left: Mapping[str, float] = field(default_factory=dict)
    """Units of each, by its name."""
    most: Mapping[str, float] = field(default_factory=dict)
    """What a unit of each is worth at most, by its name."""

    def least(self, worth: Mapping[str, float]) -> float:
        """What the nodes add to a bound of plans whose instances cost what they use of commitments.

        Args:
            worth: Of a unit of each commitment, by its name; the most where it is not named.
        """
        known = {**self.most, **worth}
        units = fsum(amount * known[name] for name, amount in self.left.items())
        at_worth = tuple(known[each.name] for each in self.commitments)
        nodes = Counter(self.nodes)
        return fsum(number * self._least(node, at_worth) for node, number in nodes.items()) - units

    def highest(self) -> float:
        """What the nodes cost at least with all that was left of commitments."""
        if not self.commitments:
            return self.least({})
        amounts = [self.left[each.name] for each in self.commitments]
        most = [self.most[each.name] for each in self.commitments]
        _, worth = highest_bound([_use_of(self.nodes, self.commitments)], amounts, most)
        return self.least(dict(zip((each.name for each in self.commitments), worth, strict=True)))

    def _least(self, node: PlannedNode, worth: Sequence[float]) -> float:
        """What a node costs at least: on its cheapest type at the worth."""
        prices = []
        for each in node.alternatives:
            price = each.offering.coverable_price
            uses = uses_of(each.instance_type, each.offering, self.commitments)
            units = [one * use for one, use in zip(worth, uses, strict=True) if use is not None]
            prices.append(_listed(each.offering) - price + min([price, *units]))
        return min(prices)


def cheapest_with_commitments(
    snapshot: Snapshot,
    catalog: Catalog,
    policy: Policy,
    planner: Planner,
    beside: BoughtFirst | None = None,
) -> Plan:
    """The cheapest plan that is found with what is left of commitments; its bills say what is covered.

    Args:
        snapshot: The cluster.
        catalog: What each pool may buy.
        policy: How to plan, with the commitments that count now.
        planner: Makes plans.
        beside: What is bought first. It is part of the plan's lower bound, and of nothing else.
    """
    without = replace(policy, commitments=(), commitments_left=None)
    plain = planner(snapshot, catalog, without)
    faults: list[str] = []
    # What commitments might take off it is not known where that fails.
    least = replace(plain, lower_bound=None)
    if not catalog or not policy.commitments or not plain.new_nodes:
        found = plain if beside is None else or_without(lambda: _plus(plain, beside.highest()), least, faults)
    else:
        search = partial(_with_commitments, plain, snapshot, catalog, policy, planner, beside)
        found = or_without(search, least, faults)
    return replace(found, faults=(*found.faults, *faults)) if faults else found


def covered_first(
    nodes: tuple[PlannedNode, ...], snapshot: Snapshot, catalog: Catalog, policy: Policy
) -> tuple[tuple[PlannedNode, ...], Policy, BoughtFirst]:
    """Nodes that are bought in any case, with what commitments cover of them, and the policy for all others.

    Args:
        nodes: The nodes.
        snapshot: The cluster.
        catalog: What each pool may buy.
        policy: How to plan, with the commitments that count now.
    """
    search = _Search.of(snapshot, catalog, policy, _no_plan)
    if search is None:
        return nodes, policy, BoughtFirst(nodes)
    found = search.cover(list(enumerate(nodes)))
    covered = (search.less(node, found.parts.get(str(number), ())) for number, node in enumerate(nodes))
    left = replace(policy, commitments_left={**search.left, **found.left})
    return tuple(covered), left, replace(search.beside, nodes=nodes)


def _no_plan(*_: object) -> Plan:
    return Plan()


def _with_commitments(
    plain: Plan,
    snapshot: Snapshot,
    catalog: Catalog,
    policy: Policy,
    planner: Planner,
    beside: BoughtFirst | None,
) -> Plan:
    search = _Search.of(snapshot, catalog, policy, planner, beside)
    if search is None:
        return plain if beside is None else _plus(plain, beside.least({}))
    best, made = search.with_coverage(plain), [_Made(plain, search.most)]
    faults: list[str] = []
    while (tried := or_without(partial(search.trial, best, made), None, faults)) is not None:
        one_more, other = tried
        made.append(one_more)
        best = min(best, other, key=_order)
    return replace(
        best,
        lower_bound=search.bound(best, made),
        choices=_choices_of_bought(plain, best),
        faults=(*best.faults, *faults),
    )


def _choices_of_bought(plain: Plan, best: Plan) -> tuple[ChosenCapacity, ...]:
    """Spot or on-demand as list prices decide it, for pods whose nodes are bought at these.

    What decides for the others is that their nodes are covered.
    """
    covered = {key for node in best.new_nodes if _is_nominal(node) for key in node.pods}
    refused = _refused(best)
    pods = {key for choice in plain.choices for key in choice.pods} - covered - refused
    return tuple(_of_pods(plain.choices, pods))


@dataclass(frozen=True, slots=True)
class _Made:
    """A plan, and the worth of a unit of each commitment at which its bound is one with commitments."""

    plan: Plan
    worth: tuple[float, ...]


def _order(plan: Plan) -> tuple[int, float]:
    return len(plan.refusals), plan.cost_per_hour


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """What all plans of a search have in common."""

    snapshot: Snapshot
    catalog: Catalog
    """At the prices of nodes, adjustments applied."""
    covered: Catalog
    """The same with the nominal price of what may be covered."""
    hurried: Policy
    """Of every plan after the first, without what is in the catalogs."""
    planner: Planner
    commitments: tuple[Commitment, ...]
    """Those of which something is left."""
    left: Mapping[str, float]
    """What is left of each, by its name."""
    offerings: NodeOfferings
    """At the prices of nodes, the fee for each added."""
    most: tuple[float, ...]
    """What a unit of each commitment is worth at most."""
    beside: BoughtFirst
    """What is bought first."""

    @staticmethod
    def of(
        snapshot: Snapshot,
        catalog: Catalog,
        policy: Policy,
        planner: Planner,
        beside: BoughtFirst | None = None,
    ) -> "_Search | None":
        """None where nothing is left of any commitment."""
        pools = pools_in_order(snapshot)
        at_price = priced(catalog, pools, policy.price_adjustments, 0.0)
        left = policy.commitments_left
        if left is None:
            left = running_coverage(snapshot, at_price, policy.commitments).left
        commitments = unused(policy.commitments, left)
        if not commitments:
            return None
        covered = covered_catalog(at_price, pools, commitments, left)
        hurried = replace(
            policy,
            price_adjustments=(),
            commitments=(),
            commitments_left=None,
            time_box=_BOX * policy.time_box,
        )
        offerings = NodeOfferings(priced(at_price, pools, (), policy.node_fee))
        most = most_worth(at_price, commitments)
        if beside is None:
            names = [each.name for each in commitments]
            amounts = {name: left[name] for name in names}
            beside = BoughtFirst((), commitments, amounts, dict(zip(names, most, strict=True)))
        return _Search(
            snapshot, at_price, covered, hurried, planner, commitments, left, offerings, most, beside
        )

    def with_coverage(self, plan: Plan) -> Plan:
        """The plan with what is left of commitments off its nodes' bills; nominal prices become real."""
        order = sorted(range(len(plan.new_nodes)), key=lambda number: self._rank(plan.new_nodes[number]))
        nodes = [self._at_list_price(node) for node in plan.new_nodes]
        found = self.cover([(number, nodes[number]) for number in order])
        return replace(
            plan,
            new_nodes=tuple(
                self.less(node, found.parts.get(str(number), ())) for number, node in enumerate(nodes)
            ),
            fewer_nodes=None if found.parts else plan.fewer_nodes,
        )

    def within_commitments(self, ample: Plan, policy: Policy, rounds: int = _ROUNDS) -> Plan:
        """A plan whose nominal nodes are all covered: those of `ample` that are, and others for the rest.

        What the nodes that are kept leave of commitments may cover smaller ones: it is planned with in the
        same way, so many times.
        """
        nominal = sorted((node for node in ample.new_nodes if _is_nominal(node)), key=self._rank)
        at_price = [self._at_list_price(node) for node in nominal]
        found = self.cover(list(enumerate(at_price)))
        kept = {
            number: node
            for number, node in enumerate(nominal)
            if at_price[number].price - found.dollars(str(number)) <= node.price + _ROUNDING
            and self._can_stand(node)
        }
        if len(kept) == len(nominal):
            return ample
        left = self.cover([(number, at_price[number]) for number in kept]).left
        beside = self._beside(kept.values(), left)
        subnets = _without_addresses(policy.subnets, kept.values())
        rest = beside._rest(replace(policy, subnets=subnets), rounds if kept else 1)
        pods = {key for node in kept.values() for key in node.pods}
        return replace(
            rest,
            new_nodes=(*kept.values(), *rest.new_nodes),
            relaxations=(*_of_pods(ample.relaxations, pods), *rest.relaxations),
            spill=tuple(sorted((*(key for key in ample.spill if key in pods), *rest.spill))),
            faults=(*ample.faults, *rest.faults),
        )

    def _rest(self, policy: Policy, rounds: int) -> Plan:
        """The plan for the pods that no covered node of the plan before has."""
        if rounds <= 1 or self.covers_nothing:
            return self.planner(self.snapshot, self.catalog, policy)
        ample = self.planner(self.snapshot, self.covered, policy)
        return self.within_commitments(ample, policy, rounds - 1)

    def _beside(self, planned: Iterable[PlannedNode], left: Mapping[str, float]) -> "_Search":
        """The search for the other pods once planned nodes run, and have left so much of commitments."""
        snapshot = self._with_nodes(planned)
        covered = covered_catalog(self.catalog, pools_in_order(snapshot), self.commitments, left)
        return replace(self, snapshot=snapshot, left=left, covered=covered)

    @property
    def covers_nothing(self) -> bool:
        """Whether there is nothing left that any node would be planned for."""
        return all(
            new is old
            for key, kinds in self.covered.items()
            for new, old in zip(kinds, self.catalog[key], strict=True)
        )

    def trial(self, best: Plan, made: Sequence[_Made]) -> tuple[_Made, Plan] | None:
        """One plan more, and what commitments make of it; None: none is made.

        Args:
            best: The cheapest plan that is known.
            made: The plans that were made.
        """
        worth = self.next_worth(best, made)
        if worth is None:
            return None
        ample = len(made) == 1
        plan = self.planner(self.snapshot, self.covered if ample else self.at(worth), self.hurried)
        covered = self.within_commitments(plan, self.hurried, _ROUNDS if ample else 1)
        return _Made(plan, worth), self.with_coverage(covered)

    def next_worth(self, best: Plan, made: Sequence[_Made]) -> tuple[float, ...] | None:
        """The worth of a unit of each commitment at which a plan is made next; None: at no other.

        Args:
            best: The cheapest plan that is known.
            made: The plans that were made.
        """
        work = sum(sum(each.plan.work.values()) for each in made)
        if self.covers_nothing or work > _LATE * self.hurried.deadline:
            return None
        if len(made) == 1:
            return tuple(NOMINAL * each for each in self.most)
        # Without a time box no bound is known that could rise: one more plan has nearly all there is to gain.
        trials = _TRIALS if self.hurried.time_box else 1
        if len(made) == 2 + trials or not self.concerns_all_pools:
            return None
        uses = [_use_of((*each.plan.new_nodes, *self.beside.nodes), self.commitments) for each in made]
        most, worth = highest_bound(uses, self._amounts, self.most)
        gain = most - (self.bound(best, made) or 0.0)
        if gain <= _WORTHWHILE * best.cost_per_hour:
            return None
        found = tuple(max(own, floor) for own, floor in zip(worth, self._floors(most), strict=True))
        return None if any(_is_near(found, each.worth) for each in made) else found

    @property
    def _amounts(self) -> list[float]:
        """Units of each commitment, those included that what is bought first uses."""
        return [self.beside.left[each.name] for each in self.commitments]

    def _floors(self, bound: float) -> Iterator[float]:
        """A worth that decides nothing and takes little off a bound, for nothing may be free."""
        for amount, most in zip(self._amounts, self.most, strict=True):
            nominal = NOMINAL * most
            little = _LITTLE * bound / (amount * len(self.commitments))
            yield min(nominal, little) if bound > 0 else nominal

    def bound(self, best: Plan, made: Sequence[_Made]) -> float | None:
        """What no plan for the pods of `best` goes below; None: not known.

        Args:
            best: The plan.
            made: The plans that were made, the first as if there were no commitments.
        """
        plain = made[0].plan
        if plain.lower_bound is None or not _refused(best) <= _refused(plain):
            return None
        names = [each.name for each in self.commitments]
        bounds = [
            plan.lower_bound + self.beside.least(dict(zip(names, worth, strict=True)))
            for plan, worth in ((each.plan, each.worth) for each in made)
            if plan.lower_bound is not None and _refused(best) <= _refused(plan)
        ]
        return max(0.0, *(bounds if self.concerns_all_pools else bounds[:1]))

    def at(self, worth: Sequence[float]) -> Catalog:
        """The catalog whose instances cost what they use of commitments, a unit of each at a worth."""
        return {
            key: tuple(at_worth(kind, self.commitments, worth) for kind in kinds)
            for key, kinds in self.catalog.items()
        }

    @property
    def concerns_all_pools(self) -> bool:
        """Whether the nodes of every pool are planned with commitments."""
        return not any(least_values(pool.requirements) for pool in pools_in_order(self.snapshot))

    def _rank(self, node: PlannedNode) -> tuple[bool, float]:
        """The least uses commitments first: what is planned for them, and what is dearest without them."""
        return not _is_nominal(node), -self._worth(node)

    def _worth(self, node: PlannedNode) -> float:
        """What the pods of a node cost without commitments, for each dollar of its own price."""
        price = _instance_price(self._at_list_price(node))
        elsewhere = self._price_elsewhere(node)
        return elsewhere / price if price > 0 else 0.0

    def _price_elsewhere(self, node: PlannedNode) -> float:
        names = {alternative.instance_type for alternative in node.alternatives}
        offered = (
            kind.cheapest(node.requirements)
            for kind in self.catalog.get(str(node.pool), ())
            if kind.name in names
        )
        return min((offering.price for offering in offered if offering is not None), default=node.price)

    def _at_list_price(self, node: PlannedNode) -> PlannedNode:
        """The node at prices without commitments; one that is planned for them is launched for them only."""
        if not _is_nominal(node):
            return node
        covered = [each for each in node.alternatives if each.offering.is_committed]
        bound = [Requirement.of(CAPACITY_TYPE, IN, (ON_DEMAND,))]
        if any(commitment.zones for commitment in self.commitments):
            bound.append(Requirement.of(ZONE, IN, (node.alternatives[0].offering.zone,)))
            covered = [each for each in covered if each.offering.zone == node.alternatives[0].offering.zone]
        keys = {requirement.key for requirement in bound}
        others = [each for each in node.requirements.values() if each.key not in keys]
        return replace(
            node,
            requirements=Requirements([*others, *bound]),
            alternatives=tuple(replace(each, offering=self._listed(node, each)) for each in covered),
        )

    def _listed(self, node: PlannedNode, alternative: Alternative) -> Offering:
        offering = alternative.offering
        found = self.offerings.find(
            str(node.pool), alternative.instance_type, offering.zone, offering.capacity_type
        )
        return offering if found is None else found

    def cover(
        self, nodes: Sequence[tuple[int, PlannedNode]], left: Mapping[str, float] | None = None
    ) -> Coverage:
        """What commitments cover of nodes, by their number as text, those first that come first.

        Args:
            nodes: The nodes with their numbers.
            left: Units of each commitment that there are for them; None: all that is left.
        """
        usages = [
            usage_of(str(number), node.instance_type, offering)
            for number, node in nodes
            if (offering := node.alternatives[0].offering).capacity_type == ON_DEMAND
        ]
        return cover(self.commitments, usages, self.left if left is None else left)

    def less(self, node: PlannedNode, parts: Sequence[BillPart]) -> PlannedNode:
        """The node with parts off its bill.

        Another type that is launched instead has as many units of each commitment as the intended one, and
        so is covered in part, or not at all.
        """
        intended = node.alternatives[0]
        price = intended.offering.coverable_price
        if not parts or price <= 0:
            return node
        names = [each.name for each in self.commitments]
        uses = dict(
            zip(names, uses_of(intended.instance_type, intended.offering, self.commitments), strict=True)
        )
        units = {part.detail: -(part.dollars or 0.0) / price * (uses[part.detail] or 0.0) for part in parts}

        def covered(alternative: Alternative) -> Alternative:
            alone = replace(node, alternatives=(alternative,))
            off = self.cover([(0, alone)], units).parts.get("0", ())
            return replace(alternative, offering=alternative.offering.less(off))

        first = replace(intended, offering=intended.offering.less(parts))
        return replace(node, alternatives=(first, *map(covered, node.alternatives[1:])))

    def _can_stand(self, node: PlannedNode) -> bool:
        """Whether its pods can be taken as bound: nothing is looked up for them."""
        shapes = [self.snapshot.pods[key].shape for key in node.pods]
        return not any(shape.resource_claims or mounts(shape) for shape in shapes)

    def _with_nodes(self, planned: Iterable[PlannedNode]) -> Snapshot:
        """The cluster as if planned nodes ran, each with its pods and closed to others."""
        after = self.snapshot
        for number, node in enumerate(planned, len(after.nodes)):
            name = _NAME.format(number)
            after = apply(after, NodeSeen(self._node(node, name)))
            for key in node.pods:
                after = apply(after, PodSeen(replace(after.pods[key], node_name=name, unschedulable=False)))
        return after

    def _node(self, planned: PlannedNode, name: str) -> Node:
        intended, pool = planned.alternatives[0], self.snapshot.pools[str(planned.pool)]
        kind = next(each for each in self.catalog[pool.key] if each.name == intended.instance_type)
        return Node(
            name,
            labels={
                **kind.requirements.single_values(),
                **planned.requirements.single_values(),
                **pool.labels,
                pool.reference.pool_label: pool.name,
                INSTANCE_TYPE: kind.name,
                ZONE: intended.offering.zone,
                CAPACITY_TYPE: intended.offering.capacity_type,
                HOSTNAME: name,
                REGISTERED: "true",
                INITIALIZED: "true",
            },
            taints=pool.taints,
            unschedulable=True,
            capacity=kind.capacity,
            allocatable=kind.allocatable,
            ready=True,
        )


def _is_nominal(node: PlannedNode) -> bool:
    return node.alternatives[0].offering.is_committed


def _instance_price(node: PlannedNode) -> float:
    return node.alternatives[0].offering.coverable_price


def _use_of(nodes: Iterable[PlannedNode], commitments: Sequence[Commitment]) -> PlanUse:
    """What nodes cost without commitments, and use of them."""
    beside, instances = 0.0, Counter[tuple[float, tuple[float | None, ...]]]()
    for node in nodes:
        offering = node.alternatives[0].offering
        uses = uses_of(node.instance_type, offering, commitments)
        price = offering.coverable_price if any(use is not None for use in uses) else 0.0
        beside += _listed(offering) - price
        if price:
            instances[price, uses] += 1
    used = (InstanceUse(number, price, uses) for (price, uses), number in instances.items())
    return PlanUse(beside, tuple(used))


def _plus(plan: Plan, dollars: float) -> Plan:
    """A plan whose bound is higher by so many US dollars an hour, if it has one."""
    return plan if plan.lower_bound is None else replace(plan, lower_bound=plan.lower_bound + dollars)


def _listed(offering: Offering) -> float:
    """The price without commitments."""
    off = (part.dollars or 0.0 for part in offering.parts if part.name == COMMITMENTS)
    return offering.price - sum(off)


def _without_addresses(
    subnets: Mapping[str, tuple[SubnetRoom, ...]], nodes: Iterable[PlannedNode]
) -> Mapping[str, tuple[SubnetRoom, ...]]:
    """What planned nodes leave of addresses: each takes one for itself, and where pods take some, theirs.

    They are those of the roomiest subnet of its zone, as launches take it.
    """
    left = {room.id: room.free_addresses for rooms in subnets.values() for room in rooms}
    for node in nodes:
        zone = node.alternatives[0].offering.zone
        rooms = [room for room in subnets.get(str(node.pool), ()) if room.zone == zone]
        if rooms:
            taken = max(rooms, key=lambda room: (left[room.id], room.id))
            left[taken.id] -= 1 + (len(node.pods) if taken.pods_take_addresses else 0)
    return {
        pool: tuple(replace(room, free_addresses=left[room.id]) for room in rooms)
        for pool, rooms in subnets.items()
    }


def _refused(plan: Plan) -> set[str]:
    return {refusal.pod for refusal in plan.refusals}


def _is_near(worth: Sequence[float], other: Sequence[float]) -> bool:
    return all(isclose(one, two, rel_tol=_NEAR) for one, two in zip(worth, other, strict=True))


T = TypeVar("T", Relaxation, ChosenCapacity)


def _of_pods(told: Iterable[T], pods: Collection[str]) -> list[T]:
    """What is told, of some pods alone."""
    mine = (replace(each, pods=tuple(key for key in each.pods if key in pods)) for each in told)
    return [each for each in mine if each.pods]
