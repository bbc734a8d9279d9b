"""The first-fit plan: every class in its order onto existing room and new nodes.

Price decides where a pod goes, never whether. Where pods are left over that some pool could make a node
for, the plan is made again in other ways, and the one that leaves the fewest is kept: with nodes that
count the least against their pool's limits (limits make it a knapsack: the node on which a dollar buys most
may use up what two smaller ones needed), with nodes as large as they come (`fewest-nodes`), with the groups
of those pods served first, node by node, with those pods ahead of all others, and with small pods first.
Where limits may be why, all this is tried once more as if no limit closed a domain (`class_placer.Trust`;
dropped where one does). Where few pods wait, an integer program has the last word (`assigning`). Where that
leaves pods that `fewest-nodes` would place, and `fewest-nodes` leaves no more, its plan is kept. Who is left
over even so is tried again when it is known what is bought in the end (`resumed`), for that may leave more of
the limits. Where nodes are bought for pods that room which is there already would hold, the plan is made
again with those first on that room: so claims that do not name their pods are filled as they were planned.

Where many nodes are there because pods keep off each other, `anti_affinity_first_plan` puts those first.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.existing import Slot
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim, price_of
from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.supply import ReservationManager
from nodeless.scheduling.capacity.targets import Targets
from nodeless.scheduling.first_fit.anti_affinity_first import nodes_apart
from nodeless.scheduling.first_fit.asking import Places
from nodeless.scheduling.first_fit.assigning import assigned
from nodeless.scheduling.first_fit.class_placer import Trust
from nodeless.scheduling.first_fit.filling import Existing
from nodeless.scheduling.first_fit.keeping import Step, order_to_keep
from nodeless.scheduling.first_fit.ordering import Left, Placed, place_all, place_left, queue
from nodeless.scheduling.first_fit.packing import Packing
from nodeless.scheduling.first_fit.turns import (
    Turn,
    ahead_of_others,
    apart_from_those_left,
    by_group,
    by_group_of_one_leader,
    by_group_once,
    plainly,
    smallest_first,
    smallest_first_on_new_nodes,
    with_leaders_on_what_is_there,
)
from nodeless.scheduling.meter import Meter, Shares
from nodeless.scheduling.pods.classes import PodClass, how_many
from nodeless.scheduling.pods.profiles import Profiles
from nodeless.scheduling.pods.rules import TopologyGroup
from nodeless.scheduling.policy import Policy
from nodeless.scheduling.topology.tracking import Topology

#: Pods that keep off each other matter when they need so many nodes, and this share of all.
_MANY, _SHARE = 20, 0.3
#: Nodes of a first-fit plan beyond which none is made again with those pods first.
_MOST = 5000
#: Classes and nodes up to which a plan that leaves pods is made again in every way.
_FEW_CLASSES, _FEW_NODES = 200, 500
#: How often a plan is made again so that it uses what is there.
_ROUNDS = 4
#: More pods than any plan has.
_ALL = 2**62
#: Of the pass, what placing may take, what another first-fit plan may, and what may be used up before it.
_PART, _OTHER, _SHORT = 0.6, 0.1, 0.25
_NOBODY: Mapping[PodClass, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class SchedulingInput:
    """What a first-fit plan starts from; none of it is changed."""

    snapshot: Snapshot
    policy: Policy
    profiles: Profiles
    daemons_to_come: Mapping[TopologyGroup, Sequence[int]]
    """By topology group, the slots that will get pods of DaemonSets which it counts."""
    slots: Sequence[Slot]
    by_pool: dict[str, PoolTable]
    usable: Sequence[PoolTable]
    classes: Sequence[PodClass]
    resources: int
    """How many resources there are."""
    places: Mapping[str, str]
    """Where pods that wait are expected."""
    meter: Meter
    """Counts the work on it."""
    late: frozenset[PodClass]
    """Classes that go after the others because they used more than their share of passes before."""
    order: Sequence[Step] = ()
    """In which pods are kept where they are expected, where the usual order kept some out."""
    wide: bool = False
    """Whether no type is set aside for its price, by whatever choice a plan is made."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstFitPlan:
    """One first-fit plan, with all that it has counted."""

    topology: Topology
    existing: Existing
    budgets: RemainingLimits
    targets: Targets
    supply: ReservationManager
    nodes: Sequence[InFlightNodeClaim]
    placements: dict[str, str]
    left: Left
    aside: Left
    """Pods of classes that have used up their share of the pass."""
    trust: Trust
    """Whether it leans on limits that close no domain."""
    choice: "Choice"
    """How it was made."""
    led: Collection[PodClass]
    """The classes that its choice was made for."""
    displaced_classes: Sequence[PodClass] = ()
    """Classes with pods that are not where they are expected."""

    @property
    def refused(self) -> int:
        """Pods without a place; more than there can be where its trust was broken."""
        if self.trust.broken:
            return _ALL
        return sum(len(keys) for _, keys in (*self.left, *self.aside))


def _in_order(ordered: Sequence[PodClass], _: Collection[PodClass]) -> list[Turn]:
    return plainly(ordered)


def _limits_matter(first_fit: FirstFitPlan, inputs: SchedulingInput) -> bool:
    return any(_limited(pods, inputs.usable) for pods, _ in first_fit.left)


def _limits_matter_to_few(first_fit: FirstFitPlan, inputs: SchedulingInput) -> bool:
    return _few(first_fit, inputs) and _limits_matter(first_fit, inputs)


def _prices_matter(first_fit: FirstFitPlan, inputs: SchedulingInput) -> bool:
    return not inputs.wide and any(first_fit.targets.aims(table) for table in inputs.usable)


def _groups_matter(first_fit: FirstFitPlan, inputs: SchedulingInput) -> bool:
    return _few(first_fit, inputs) and any(pods.hard_rules.affinity for pods, _ in first_fit.left)


def _groups_and_limits_matter(first_fit: FirstFitPlan, inputs: SchedulingInput) -> bool:
    return _groups_matter(first_fit, inputs) and _limits_matter(first_fit, inputs)


def _few(first_fit: FirstFitPlan, inputs: SchedulingInput) -> bool:
    """Whether a plan is so small that it may be made several times."""
    return len(inputs.classes) <= _FEW_CLASSES and len(first_fit.nodes) <= _FEW_NODES


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to make the choices of a first-fit plan again, for pods that were left over."""

    thrifty: bool = False
    """Types that count the least against their pool's limits before any price."""
    wide: bool = False
    """No type is set aside for its price."""
    turns: Callable[[Sequence[PodClass], Collection[PodClass]], list[Turn]] = _in_order
    helps: Callable[[FirstFitPlan, SchedulingInput], bool] = _few


_AS_ASKED = Choice()
_CHOICES = (
    Choice(thrifty=True, helps=_limits_matter),
    Choice(wide=True, helps=_prices_matter),
    Choice(turns=by_group, helps=_groups_matter),
    Choice(turns=by_group_once, helps=_groups_matter),
    Choice(turns=by_group_of_one_leader, helps=_groups_matter),
    Choice(wide=True, turns=by_group_of_one_leader, helps=_groups_matter),
    Choice(turns=ahead_of_others),
    Choice(wide=True, turns=by_group, helps=_groups_matter),
    Choice(wide=True, turns=ahead_of_others),
    Choice(thrifty=True, turns=by_group, helps=_groups_and_limits_matter),
    Choice(thrifty=True, turns=ahead_of_others, helps=_limits_matter_to_few),
    Choice(thrifty=True, turns=smallest_first, helps=_limits_matter_to_few),
    Choice(wide=True, turns=smallest_first, helps=_limits_matter_to_few),
    Choice(turns=smallest_first),
    Choice(turns=smallest_first_on_new_nodes, helps=_limits_matter_to_few),
    Choice(thrifty=True, turns=smallest_first_on_new_nodes, helps=_limits_matter_to_few),
    Choice(turns=apart_from_those_left, helps=_limits_matter_to_few),
    Choice(thrifty=True, turns=apart_from_those_left, helps=_limits_matter_to_few),
)


def first_fit_plan(inputs: SchedulingInput) -> FirstFitPlan:
    """The plan that leaves the fewest pods, and of those the one that makes most of what is there."""
    first_fit, inputs = _with_pods_kept(_laid(inputs, part=_PART), inputs)
    first_fit = _chosen(first_fit, inputs, _CHOICES)
    if first_fit.left and _limits_matter(first_fit, inputs) and not _hurried(first_fit, inputs):
        other = _laid(inputs, trusting=True)
        other = _chosen(other, inputs, [choice for choice in _CHOICES if not choice.thrifty])
        first_fit = other if other.refused < first_fit.refused else first_fit
    if not any(slot.starting for slot in inputs.slots):
        return first_fit
    return _without_needless_nodes(_using_what_is_there(first_fit, inputs), inputs)


def worked_out(first_fit: FirstFitPlan, inputs: SchedulingInput) -> FirstFitPlan:
    """The plan, or where few pods wait a better one by an integer program (`assigning`).

    One that leaves fewer of them; or, where nodes are bought for pods that room on its way would hold, one
    that leaves no more and buys less.
    """
    for domains in (True, False) if inputs.policy.domains_by_program else (False,):
        if any(_possible(pods, inputs) or _had_room(pods, first_fit, inputs) for pods, _ in first_fit.left):
            other = _assigned(first_fit, inputs, more=True, domains=domains)
            first_fit = other if other.refused < first_fit.refused else first_fit
    if first_fit.nodes and first_fit.supply.is_unchanged and any(slot.starting for slot in inputs.slots):
        bought, _ = _without_room(first_fit, inputs)
        if _that_had_room(bought, (), first_fit, inputs):
            other = _assigned(first_fit, inputs, more=False)
            first_fit = other if _spares_nodes(other, first_fit, inputs) else first_fit
    return first_fit


def leaving_whom_fewest_nodes_leave(first_fit: FirstFitPlan, inputs: SchedulingInput) -> FirstFitPlan:
    """The plan, or, where that leaves no more pods but others, the one that `fewest-nodes` would be.

    What that packing places is placed by price, too: of two groups that take each other's room, the same goes
    without under both.
    """
    if (
        not _prices_matter(first_fit, inputs)
        or not _few(first_fit, inputs)
        or _hurried(first_fit, inputs)
        or not _any_possible(first_fit, inputs)
    ):
        return first_fit
    wide = replace(inputs, wide=True)
    other = worked_out(first_fit_plan(wide), wide)
    if other.refused > first_fit.refused or _numbers_left(first_fit) <= _numbers_left(other):
        return first_fit
    return other


def _numbers_left(first_fit: FirstFitPlan) -> Counter[PodClass]:
    return Counter({pods: len(keys) for pods, keys in first_fit.left})


def _spares_nodes(other: FirstFitPlan, first_fit: FirstFitPlan, inputs: SchedulingInput) -> bool:
    """Whether another plan leaves no more pods, and buys fewer nodes of the same pools for less."""
    return (
        other.refused <= first_fit.refused
        and len(other.nodes) < len(first_fit.nodes)
        and _bought(other, inputs) < _bought(first_fit, inputs)
        and {node.table.pool.key for node in other.nodes} <= {node.table.pool.key for node in first_fit.nodes}
    )


def _assigned(
    first_fit: FirstFitPlan, inputs: SchedulingInput, *, more: bool, domains: bool = False
) -> FirstFitPlan:
    """A plan with `more` pods than one, or as many, by the program; the plan itself where there is none.

    Domains are decided for what pods of others ask for only while the pass has time for such work.
    """
    if _hurried(first_fit, inputs) or (domains and not inputs.meter.common_left):
        return first_fit
    start = _start(inputs, _AS_ASKED)
    where = Places(
        start.topology,
        start.existing,
        start.budgets,
        start.targets,
        start.packing,
        inputs.usable,
        inputs.places,
    )
    ordered = queue(inputs.classes, start.topology.keys)
    shares = Shares(inputs.meter, _OTHER * inputs.policy.deadline, inputs.classes)
    placed = assigned(
        where, ordered, first_fit.left, first_fit.placements, shares, more=more, domains=domains
    )
    return start.first_fit(placed, _AS_ASKED, ()) if placed is not None else first_fit


def _using_what_is_there(first_fit: FirstFitPlan, inputs: SchedulingInput) -> FirstFitPlan:
    """The plan again, as long as nodes are bought for pods which room that others took would hold.

    Those come first the next time, each time those for whom was bought last: what an earlier pass found for
    them is found again, though nothing is known of it any more. So it may be where something is coming up.
    """
    first_fit = _with_leaders_joining(first_fit, inputs)
    ahead: list[PodClass] = []
    tried = first_fit
    for _ in range(_ROUNDS):
        bought, left = _without_room(tried, inputs)
        found = _that_had_room(bought, ahead, tried, inputs) or _that_had_room(left, ahead, tried, inputs)
        if not found or not _few(first_fit, inputs) or _hurried(first_fit, inputs):
            break
        ahead = list(dict.fromkeys([*found, *ahead]))
        tried = _laid(
            inputs, _there_first(ahead, first_fit), left=first_fit.led, trusting=first_fit.trust.given
        )
        first_fit = _better(tried, first_fit, inputs)
    return first_fit


def _with_leaders_joining(first_fit: FirstFitPlan, inputs: SchedulingInput) -> FirstFitPlan:
    """The plan, or a better one whose leaders of groups go where any of their followers can come after them.

    Followers of other kinds, which can go nowhere, make room that is there look too small for a group.
    """
    choice = first_fit.choice

    def turns(ordered: Sequence[PodClass], led: Collection[PodClass]) -> list[Turn]:
        return [replace(turn, joining=turn.fresh) for turn in choice.turns(ordered, led)]

    if choice.helps is not _groups_matter or not _few(first_fit, inputs) or _hurried(first_fit, inputs):
        return first_fit
    joining = replace(choice, turns=turns)
    other = _laid(inputs, joining, left=first_fit.led, trusting=first_fit.trust.given)
    return _better(other, first_fit, inputs)


def _better(other: FirstFitPlan, first_fit: FirstFitPlan, inputs: SchedulingInput) -> FirstFitPlan:
    """The one of two plans that leaves fewer pods, or as many and buys less; the second of equal ones."""
    mine, others = ((each.refused, *_bought(each, inputs)) for each in (first_fit, other))
    return other if others < mine else first_fit


def _there_first(ahead: Sequence[PodClass], first_fit: FirstFitPlan) -> Choice:
    """The choice of a plan, with classes on what is there before anybody else."""

    def turns(ordered: Sequence[PodClass], led: Collection[PodClass]) -> list[Turn]:
        return [*with_leaders_on_what_is_there(ahead, ordered), *first_fit.choice.turns(ordered, led)]

    return replace(first_fit.choice, turns=turns)


def _bought(first_fit: FirstFitPlan, inputs: SchedulingInput) -> tuple[float, float]:
    price, number = round(price_of(first_fit.nodes), 9), float(len(first_fit.nodes))
    return (price, number) if _prices_matter(first_fit, inputs) else (number, price)


def _without_room(first_fit: FirstFitPlan, inputs: SchedulingInput) -> tuple[list[PodClass], list[PodClass]]:
    """The classes for whose pods nodes are bought, and those that are left over."""
    bought = {key for node in first_fit.nodes for key in node.pods}
    left = {pods for pods, _ in first_fit.left}
    return (
        [pods for pods in inputs.classes if not bought.isdisjoint(pods.pods)],
        [pods for pods in inputs.classes if pods in left],
    )


def _that_had_room(
    classes: Sequence[PodClass], ahead: Sequence[PodClass], first_fit: FirstFitPlan, inputs: SchedulingInput
) -> list[PodClass]:
    """Those of some classes which room that others took would hold; with the least choice first."""
    rooms = {
        pods: _rooms_there(pods, first_fit, inputs)
        for pods in classes
        if not pods.shape.placeholder and pods not in ahead[:1]
    }
    return sorted((pods for pods, number in rooms.items() if number), key=lambda pods: rooms[pods])


def _rooms_there(pods: PodClass, first_fit: FirstFitPlan, inputs: SchedulingInput) -> int:
    """How many slots as they were at the start would take a pod of the class, other pods apart."""
    accepts = first_fit.existing.accepts(pods, include_prefer_no_schedule=True)
    return sum(
        accepted and bool((slot.free >= pods.requests).all())
        for accepted, slot in zip(accepts.tolist(), inputs.slots, strict=True)
    )


def _with_pods_kept(first_fit: FirstFitPlan, inputs: SchedulingInput) -> tuple[FirstFitPlan, SchedulingInput]:
    """The plan, made again in an order that keeps pods where they are expected, where that takes another one.

    So it may be where such a pod is left over, or a node is bought for it. Of two plans that leave as many
    pods, the one that gives up fewer of those that an earlier pass had placed.
    """
    if not first_fit.displaced_classes or _hurried(first_fit, inputs):
        return first_fit, inputs
    lost = _lost(first_fit, inputs)
    out = [pods for pods in first_fit.displaced_classes if not lost.isdisjoint(pods.pods)]
    if not out:
        return first_fit, inputs

    def start() -> Existing:
        topology = topology_of(inputs, inputs.meter)
        return Existing(inputs.slots, inputs.resources, topology, inputs.meter)

    shares = Shares(inputs.meter, _OTHER * inputs.policy.deadline, inputs.classes)
    order = order_to_keep(start, inputs.classes, inputs.places, shares, out)
    if not order:
        return first_fit, inputs
    ordered = replace(inputs, order=order)
    other = _laid(ordered)
    now, then = (
        (each.refused, len(_lost(each, inputs)), *_bought(each, inputs)) for each in (other, first_fit)
    )
    return (other, ordered) if now < then else (first_fit, inputs)


def _lost(first_fit: FirstFitPlan, inputs: SchedulingInput) -> set[str]:
    """The pods that are expected on room which is there, and are left over or get a new node."""
    there = {slot.name for slot in inputs.slots}
    left = (key for _, keys in (*first_fit.left, *first_fit.aside) for key in keys)
    bought = (key for node in first_fit.nodes for key in node.pods)
    return {key for key in (*left, *bought) if inputs.places.get(key) in there}


def _chosen(first_fit: FirstFitPlan, inputs: SchedulingInput, choices: Sequence[Choice]) -> FirstFitPlan:
    """The plan, or that of a choice that leaves fewer pods."""
    if not first_fit.left:
        return first_fit
    trials = _Trials(
        inputs, queue(inputs.classes, first_fit.topology.keys), _prices_matter(first_fit, inputs)
    )
    trials.note(first_fit, trials.origin(first_fit.choice, first_fit.led))
    for choice in choices:
        first_fit = trials.better(first_fit, choice, [pods for pods, _ in first_fit.left])
    # What is done for groups that were left over may leave other groups: then it is done for all of them.
    for choice in choices:
        if choice.helps is _groups_matter and len(trials.ever_left) > len(first_fit.left):
            first_fit = trials.better(first_fit, choice, list(trials.ever_left))
    return first_fit


_Origin = tuple[bool, bool, tuple[Turn, ...]]
"""What two plans have in common that are the same: thrifty, wide, and whose turn it is when."""


@dataclass(slots=True, eq=False)
class _Trials:
    """The plans that were made for the pods that one of them left; none is made twice."""

    inputs: SchedulingInput
    ordered: Sequence[PodClass]
    prices_matter: bool
    ever_left: dict[PodClass, None] = field(default_factory=dict)
    """The classes that any of them left, in order."""
    made: set[_Origin] = field(default_factory=set)
    """What each of them followed from."""

    def note(self, first_fit: FirstFitPlan, origin: _Origin) -> None:
        """Remember a plan, and whom it left."""
        self.made.add(origin)
        self.ever_left.update(dict.fromkeys(pods for pods, _ in first_fit.left))

    def better(self, first_fit: FirstFitPlan, choice: Choice, led: Sequence[PodClass]) -> FirstFitPlan:
        """The plan, or that of another choice for some classes that leaves fewer pods."""
        inputs = self.inputs
        if (
            not first_fit.left
            or _hurried(first_fit, inputs)
            or not _any_possible(first_fit, inputs)
            or not choice.helps(first_fit, inputs)
            or (origin := self.origin(choice, led)) in self.made
        ):
            return first_fit
        other = _laid(inputs, choice, left=led, trusting=first_fit.trust.given)
        self.note(other, origin)
        return other if other.refused < first_fit.refused else first_fit

    def origin(self, choice: Choice, led: Collection[PodClass]) -> _Origin:
        """What a plan follows from."""
        wide = choice.wide and self.prices_matter
        return choice.thrifty, wide, tuple(choice.turns(self.ordered, led))


def _hurried(first_fit: FirstFitPlan, inputs: SchedulingInput) -> bool:
    """Whether the pass has no time for another first-fit plan."""
    return bool(first_fit.aside) or inputs.meter.spent > _SHORT * inputs.policy.deadline


def resumed(
    inputs: SchedulingInput,
    first_fit: FirstFitPlan,
    nodes: Sequence[InFlightNodeClaim],
    placements: Mapping[str, str],
) -> FirstFitPlan | None:
    """The first-fit plan with what became of it, and with those who were left over where they fit now.

    None where no limit keeps anybody out, or where nodes hold something scarce.

    Args:
        inputs: What the plan started from.
        first_fit: The plan.
        nodes: The nodes that are bought in its place.
        placements: Where pods are on room that exists, in its place.
    """
    if (
        not first_fit.left
        or not _limits_matter(first_fit, inputs)
        or not first_fit.supply.is_unchanged
        or _hurried(first_fit, inputs)
    ):
        return None
    return _gone_on(inputs, _AS_ASKED, (), nodes, placements, first_fit.left)


def _gone_on(
    inputs: SchedulingInput,
    choice: Choice,
    led: Collection[PodClass],
    nodes: Sequence[InFlightNodeClaim],
    placements: Mapping[str, str],
    left: Left,
) -> FirstFitPlan:
    """The plan that begins with nodes and with pods on room that exists, and places those who are left."""
    start = _start(inputs, choice)
    for pods in inputs.classes:
        start.existing.adopt(pods, placements)
        start.targets.begin(pods)
    start.packing.adopt(nodes)
    shares = Shares(inputs.meter, _OTHER * inputs.policy.deadline, inputs.classes)
    placed = place_left(left, start.existing, start.packing, shares, dict(placements))
    return start.first_fit(placed, choice, led)


def _without_needless_nodes(first_fit: FirstFitPlan, inputs: SchedulingInput) -> FirstFitPlan:
    """The plan without nodes whose pods room that is there would take now.

    They were opened so that pods of others could follow, and those went elsewhere, or nowhere. Where
    something is coming up, such pods may have been what it was bought for.
    """
    if not first_fit.supply.is_unchanged or not _few(first_fit, inputs) or _hurried(first_fit, inputs):
        return first_fit
    roomy = {
        key
        for pods in inputs.classes
        if not pods.shape.placeholder and first_fit.existing.holds(pods).any()
        for key in pods.pods
    }
    needless = [node for node in first_fit.nodes if roomy.issuperset(node.pods)]
    if not needless:
        return first_fit
    class_of = {key: pods for pods in inputs.classes for key in pods.pods}
    unfollowed = [node for node in needless if len({class_of[key] for key in node.pods}) == 1]
    # Room that is there may be too little for all of them: then for those at least that nobody followed.
    for dropped in (needless, unfollowed) if len(unfollowed) < len(needless) else (needless,):
        other = _without(dropped, first_fit, inputs) if dropped else first_fit
        if other.refused <= first_fit.refused and _bought(other, inputs) < _bought(first_fit, inputs):
            return other
    return first_fit


def _without(
    dropped: Sequence[InFlightNodeClaim], first_fit: FirstFitPlan, inputs: SchedulingInput
) -> FirstFitPlan:
    """The plan without some of its nodes, their pods and those who are left placed after the others."""
    moved = {key for node in dropped for key in node.pods}
    again = ((pods, [key for key in pods.pods if key in moved]) for pods in inputs.classes)
    return _gone_on(
        inputs,
        first_fit.choice,
        first_fit.led,
        [node for node in first_fit.nodes if node not in dropped],
        first_fit.placements,
        [*((pods, keys) for pods, keys in again if keys), *first_fit.left],
    )


def anti_affinity_first_plan(inputs: SchedulingInput, first_fit: FirstFitPlan) -> FirstFitPlan | None:
    """The plan that puts pods first which keep off each other, so that their nodes carry the others.

    None where they do not matter, where something else than the price decides (the number of nodes, weights
    of limited pools, preferences), or where it leaves more pods without a place.
    """
    if _hurried(first_fit, inputs) or not _price_alone_counts(inputs, first_fit.targets):
        return None
    apart = nodes_apart(inputs.classes)
    needed, nodes = max(apart.values(), default=0.0), len(first_fit.nodes)
    if needed < max(_MANY, _SHARE * nodes) or nodes > _MOST:
        return None
    other = _laid(inputs, apart=apart)
    return other if other.refused <= first_fit.refused else None


@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """All that counts while a first-fit plan is made."""

    topology: Topology
    existing: Existing
    budgets: RemainingLimits
    targets: Targets
    supply: ReservationManager
    packing: Packing
    trust: Trust

    def first_fit(self, placed: Placed, choice: Choice, led: Collection[PodClass]) -> FirstFitPlan:
        return FirstFitPlan(
            self.topology,
            self.existing,
            self.budgets,
            self.targets,
            self.supply,
            self.packing.nodes,
            placed.placements,
            placed.left,
            placed.aside,
            self.trust,
            choice,
            led,
            placed.displaced_classes,
        )


def topology_of(inputs: SchedulingInput, meter: Meter) -> Topology:
    """A topology in which nothing is placed yet."""
    return Topology(
        inputs.snapshot, inputs.profiles, inputs.slots, inputs.usable, meter, inputs.daemons_to_come
    )


def _start(
    inputs: SchedulingInput,
    choice: Choice,
    *,
    apart: Mapping[PodClass, float] = _NOBODY,
    trusting: bool = False,
) -> _Start:
    meter = inputs.meter
    topology = topology_of(inputs, meter)
    existing = Existing(inputs.slots, inputs.resources, topology, meter)
    budgets = RemainingLimits(inputs.snapshot, inputs.by_pool)
    targets = Targets(
        inputs.usable,
        inputs.classes,
        inputs.policy.packing,
        thrifty=choice.thrifty,
        wide=choice.wide or inputs.wide,
        apart=apart,
        meter=meter,
    )
    waiting = sum(len(pods.pods) for pods in inputs.classes)
    supply = ReservationManager(
        inputs.usable, inputs.policy.subnets, inputs.snapshot.claims.values(), waiting
    )
    trust = Trust(trusting)
    packing = Packing(inputs.usable, budgets, topology, targets, supply, inputs.resources, trust, meter)
    return _Start(topology, existing, budgets, targets, supply, packing, trust)


def _laid(
    inputs: SchedulingInput,
    choice: Choice | None = None,
    *,
    left: Collection[PodClass] = (),
    apart: Mapping[PodClass, float] = _NOBODY,
    trusting: bool = False,
    part: float = _OTHER,
) -> FirstFitPlan:
    choice = choice or _AS_ASKED
    start = _start(inputs, choice, apart=apart, trusting=trusting)
    turns = choice.turns(queue(inputs.classes, start.topology.keys, apart), left)
    shares = Shares(inputs.meter, part * inputs.policy.deadline, inputs.classes)
    placed = place_all(turns, start.existing, start.packing, shares, inputs.places, inputs.late, inputs.order)
    return start.first_fit(placed, choice, left)


def _price_alone_counts(inputs: SchedulingInput, targets: Targets) -> bool:
    weights = {table.pool.weight for table in inputs.usable}
    return (
        all(map(targets.aims, inputs.usable))
        and (len(weights) == 1 or not any(table.limit_names for table in inputs.usable))
        and not any(pods.demand.preferred or pods.rules != pods.hard_rules for pods in inputs.classes)
    )


def _any_possible(first_fit: FirstFitPlan, inputs: SchedulingInput) -> bool:
    """Whether some pool could make a node for any of those that are left over."""
    return any(_possible(pods, inputs) for pods, _ in first_fit.left)


def _possible(pods: PodClass, inputs: SchedulingInput) -> bool:
    """Whether some pool could make a node for a class, limits and other pods apart."""
    return any(
        table.refuses(pods.shape.tolerations, soft=True) is None
        and any(
            table.fresh(pods, node_requirements) is not None for node_requirements in pods.demand.required
        )
        for table in inputs.usable
    )


def _had_room(pods: PodClass, first_fit: FirstFitPlan, inputs: SchedulingInput) -> bool:
    """Whether an existing node would hold a pod of a class, had others not taken its room in this pass."""
    if not inputs.slots or not _few(first_fit, inputs):
        return False
    there = first_fit.existing.accepts(pods, include_prefer_no_schedule=True)
    free = np.array([slot.free for slot, yes in zip(inputs.slots, there, strict=True) if yes])
    return bool(len(free)) and bool((how_many(free, pods.requests) > 0).any())


def _limited(pods: PodClass, tables: Sequence[PoolTable]) -> bool:
    """Whether limits may be why a class is left over."""
    return any(
        bool(table.limit_names)
        and table.refuses(pods.shape.tolerations, soft=True) is None
        and any(
            table.fresh(pods, node_requirements) is not None for node_requirements in pods.demand.required
        )
        for table in tables
    )
