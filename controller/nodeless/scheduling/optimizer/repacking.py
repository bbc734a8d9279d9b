"""A cheaper plan for the pods of the first-fit plan, if there is one.

The pods that may move become items (`items`), what can be bought for them shapes (`shapes`), room
on existing nodes further shapes that cost nothing and stand there once (`existing_node_repack`, `covering`).
`column_generation` looks for a cheaper cover. What it finds is built with the same `InFlightNodeClaim` as
the first-fit plan, which counts room, labels, offerings and ports again for itself: a plan that does
not come out as it was meant is dropped, and the first-fit plan stays.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodeless.model.identity import places_of_same
from nodeless.model.plan import FewerNodes
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim, Part, price_of
from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.supply import ReservationManager
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.optimizer.anytime import AnytimeSearch
from nodeless.scheduling.optimizer.configuration_bound import translated
from nodeless.scheduling.optimizer.configurations import Configuration, Configurations
from nodeless.scheduling.optimizer.cover import Chosen, Cover, cost_of
from nodeless.scheduling.optimizer.covering import cover_of
from nodeless.scheduling.optimizer.existing_node_repack import ExistingNodeRepack
from nodeless.scheduling.optimizer.few_nodes import few_nodes
from nodeless.scheduling.optimizer.items import HostLimits, Item, items_of, movable
from nodeless.scheduling.optimizer.known import Known
from nodeless.scheduling.optimizer.merging import merged
from nodeless.scheduling.optimizer.nearly_cheapest import NodeMerger, Tolerated
from nodeless.scheduling.optimizer.patterns import Filler
from nodeless.scheduling.optimizer.shapes import shapes_for
from nodeless.scheduling.optimizer.whole_nodes import SAME, whole_nodes
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts
from nodeless.scheduling.pods.matmul import matmul

#: Plans whose prices differ by less are equally cheap.
_SAME = 1e-9
#: The first-fit plan is left as it is for fewer pods, and where it costs little more than resources in bulk.
_MANY, _GOOD = 50, 1.05
#: Seconds of work that belong to the first-fit plan: for each pod, and at most.
_FLOOR_POD, _FLOOR = 100e-6, 0.5
#: Pods up to which an integer program looks for the cheapest plan of few nodes.
_FEW = 60
#: Pods, or items, up to which an integer program looks for the cheapest whole nodes.
_WHOLE_PODS, _WHOLE_ITEMS = 150, 25
#: Parts of the time box: for the search before that program, which only says what it has to beat, and for it;
#: where it proves nothing, for a longer search, and for few nodes after it.
_BEFORE_WHOLE, _WHOLE, _INSTEAD, _AFTER_WHOLE = 0.1, 0.75, 0.5, 0.2
#: For the longer search in a time box of less than a second, of which that program takes little.
_INSTEAD_OF_LITTLE = 0.6
#: Seconds for greedy covers before that program.
_GREEDY = 0.1
#: Seconds for that program at first, then where it has proved nothing: 0.1, 1 and 4.6 in all, and so on.
_BOXES = (0.1, 0.9, *(3.6 * 4.0**turn for turn in range(8)))
#: For that program where the number of nodes is limited, and the search has used up all.
_LEFT_FOR_WHOLE = 0.25
#: Pairs of a shape and an item beyond which no cheaper plan is looked for: a search has no time to begin.
_MOST_PAIRS = 4_000_000
#: Limits for a single node beyond which no cheaper plan is looked for.
_HOST_LIMITS = 1000
#: Seconds in which the nodes of a cover are built, for each item of each kind of them.
_PART = 20e-6
#: By how much a cover may count more than the price of its nodes.
_NODES = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Where the pods of a solve are: on new nodes, and on existing ones by pod key."""

    nodes: Sequence[InFlightNodeClaim]
    placements: Mapping[str, str]
    fewer: FewerNodes | None = None
    """What merging nodes changed."""


def repack(
    first_fit: Packed,
    standing: ExistingNodeRepack,
    budgets: RemainingLimits,
    supply: ReservationManager,
    tables: Sequence[PoolTable],
    aims: frozenset[str],
    time_box: float,
    most_new_nodes: int | None,
    tolerated: Tolerated,
    meter: Meter,
    known: Known,
) -> Packed:
    """The first-fit plan, or a cheaper one for the same pods.

    Without a time box only a greedy cover is tried, where it is cheap to find and much may be won. With one,
    integer programs pack few pods at last: on whole nodes, and on few nodes where that is not proved the
    cheapest.

    Args:
        first_fit: The plan to beat.
        standing: The existing nodes.
        budgets: The limits of pools.
        supply: What there is only so much of; nodes that hold some of it stay as they are.
        tables: The usable pools, heaviest first.
        aims: Keys of the pools whose nodes are chosen by price.
        time_box: Seconds that the search may take (`work_budget`).
        most_new_nodes: So many at most are wanted; a first-fit plan of more stays only where none is found.
        tolerated: What may be done for fewer nodes than those of the cheapest plan that the search finds.
        meter: Counts what goes before the search; the first-fit plan stays where that is too much.
        known: Gets what is found of the bounds on its price.
    """
    free = [node for node in movable(first_fit.nodes, aims) if not supply.fixed(node)]
    if not free:
        return first_fit
    moving = set(free)
    fixed = [node for node in first_fit.nodes if node not in moving]
    bought = items_of(free)
    items = standing.joined(bought, [table for table in tables if table.pool.key in aims])
    shapes = shapes_for(items, meter)
    if shapes is None or len(shapes) * len(items) > _MOST_PAIRS:
        return first_fit
    room, allowed, names = standing.shapes(items, meter)
    if meter.over:
        return first_fit
    cover = cover_of(items, shapes, [budgets.left(table, fixed) for table in shapes.tables], (room, allowed))
    best = _Built(free, {}, cover.weight_penalties)
    most = np.inf if most_new_nodes is None else most_new_nodes - len(fixed)
    if most < 1:
        return first_fit
    pods = sum(item.count for item in items)
    # For what is bought alone: items that are joined with placed pods need more.
    in_bulk = float(matmul(cover.worth[: len(bought)], np.array([item.count for item in bought])))
    if not time_box and (pods < _MANY or best.cost <= _GOOD * in_bulk):
        return first_fit
    hosts = HostLimits(items)
    if hosts.count > _HOST_LIMITS:
        return first_fit
    bound = best.cost if len(free) <= most else np.inf
    contest = _Contest(_Builder(items, cover, names), best, bound, best)
    configurations = Configurations(items, cover.shapes)
    seeds = _seeds(cover, configurations, free, first_fit.placements, names)
    search = AnytimeSearch(cover, Filler(cover.shapes, cover.requests, hosts), seeds)

    def offer(covers: Iterable[Sequence[Chosen]]) -> None:
        for chosen in covers:
            whole, seconds = merged(chosen, cover, hosts)
            search.spent += seconds
            if contest.may_be_won_at(cost_of(cover, whole)) and _new_nodes(cover, whole) <= most:
                search.spent += _seconds_to_build(whole)
                contest.offer(whole)

    if not time_box:
        # Room that stands is free, whatever the pods are worth that it takes.
        below = np.inf if names else best.cost * (1 + _NODES)
        offer(search.greedy_covers(min(_FLOOR, _FLOOR_POD * pods), hopeful=False, below=below))
        return contest.outcome(first_fit, standing, fixed)
    few_enough = pods <= _WHOLE_PODS or len(items) <= _WHOLE_ITEMS
    # Of many pods that keep off others on their host it proves little, and a longer search finds more.
    briefly = pods > _WHOLE_PODS and hosts.count > 0
    proved = False
    if few_enough and most_new_nodes is None:
        offer(search.greedy_covers(_GREEDY))
        for box in _boxes(min(time_box, _BOXES[0]) if briefly else time_box):
            offer(search.covers(_BEFORE_WHOLE * box))
            more = Effort(_WHOLE * box)
            chosen_nodes, proved = _on_whole_nodes(cover, hosts, more, contest.bound, known)
            proved = (chosen_nodes is None or contest.offer(chosen_nodes)) and proved
            if proved:
                break
            offer(search.covers(_instead(box)))
        if not proved:
            # Fewer pods have a program of their own, below.
            offer(search.covers(time_box if briefly else _instead(time_box), further=pods > _FEW))
        effort = Effort(_AFTER_WHOLE * time_box)
    else:
        offer(search.covers(time_box, further=most_new_nodes is None))
        effort = Effort(max(0.0, time_box - search.spent))
    known.configurations = lambda problem, effort: list(
        translated(search.of_use(effort), items, shapes, names, problem)
    )
    tried = int(min(most, float(len(contest.best.nodes) + 1)))
    if pods <= _FEW and not proved:
        contest.offer(few_nodes(cover, hosts, tried, contest.bound, effort))
    # With no more nodes than few_nodes was allowed, it has found the cheapest.
    if few_enough and most_new_nodes is not None and most > tried:
        more = Effort(max(effort.left, _LEFT_FOR_WHOLE * time_box))
        contest.offer(_limited(cover, hosts, more, most, contest.bound))
    merger = NodeMerger(cover, hosts, configurations, tolerated, contest.builder.node)
    return contest.outcome(first_fit, standing, fixed, merger.merge)


@dataclass(slots=True, eq=False)
class _Contest:
    """The best plan so far, and what a better one must cost less than; infinity where any is better."""

    builder: "_Builder"
    best: "_Built"
    bound: float
    first: "_Built"
    """The plan to beat."""

    def may_be_won_at(self, cost: float) -> bool:
        """Whether the nodes of a cover that counts so much may be better than the best."""
        return cost <= self.bound * (1 + _NODES) + _SAME

    def offer(self, chosen: Sequence[Chosen] | None) -> bool:
        """Build what was found and keep it if it is better; whether it comes out as it was meant."""
        built = self.builder.build(chosen) if chosen is not None else None
        if built is not None and (self.bound == np.inf or built.better_than(self.best)):
            self.best, self.bound = built, built.cost
        return built is not None

    def outcome(
        self,
        first_fit: Packed,
        standing: ExistingNodeRepack,
        fixed: Sequence[InFlightNodeClaim],
        merge: Callable[[Sequence[InFlightNodeClaim]], Sequence[InFlightNodeClaim]] = lambda nodes: nodes,
    ) -> Packed:
        """All nodes of a solve with the best plan, merged, and all pods on existing ones."""
        placements = dict(first_fit.placements)
        if self.best is not self.first:
            for keys in standing.placed.values():
                for key in keys:
                    placements.pop(key, None)
            placements.update(self.best.placements)
        nodes = merge(self.best.nodes)
        fewer = len(self.best.nodes) - len(nodes)
        merged_nodes = FewerNodes(fewer, price_of(nodes) - price_of(self.best.nodes)) if fewer else None
        return Packed([*fixed, *nodes], placements, merged_nodes)


def _limited(
    cover: Cover, hosts: HostLimits, effort: Effort, most_new_nodes: float, below: float
) -> list[Chosen] | None:
    """The cheapest whole nodes that were found, with no more of them than that."""
    found = whole_nodes(cover, hosts, effort, most_new_nodes, below=below * (1 + _NODES))
    return found.chosen if found is not None else None


def _on_whole_nodes(
    cover: Cover, hosts: HostLimits, effort: Effort, below: float, known: Known
) -> tuple[Sequence[Chosen] | None, bool]:
    """The cheapest nodes for few pods, if any are found, and whether they are proved to be that."""
    penalized = any(penalty != 1 for penalty in cover.weight_penalties.values())
    # At plain prices, so that the bound is one for the plan: of equal prices `merged` sees to fewer nodes.
    plain = cover if penalized else replace(cover, cost=cover.shapes.price)
    found = whole_nodes(plain, hosts, effort, below=below * (1 + _NODES) if penalized else below)
    if found is None:
        return None, False
    if penalized:
        return None if found.chosen is None else merged(found.chosen, cover, hosts)[0], False
    known.remember(plain, hosts, found.bound)
    if found.chosen is None:
        return None, below <= found.bound * (1 + SAME)
    proved = cost_of(plain, found.chosen) <= found.bound * (1 + SAME)
    return merged(found.chosen, cover, hosts)[0], proved


def _seconds_to_build(chosen: Sequence[Chosen]) -> float:
    return _PART * float(sum(np.count_nonzero(one.filling) for one in chosen))


def _new_nodes(cover: Cover, chosen: Sequence[Chosen]) -> int:
    return sum(one.times for one in chosen if not cover.standing[one.shape])


def _instead(time_box: float) -> float:
    """Seconds until which the search goes on where the program for whole nodes proves nothing."""
    return max(_INSTEAD * time_box, min(_INSTEAD_OF_LITTLE * time_box, _INSTEAD))


def _boxes(time_box: float) -> Iterator[float]:
    """Boxes for what cannot go on where it stopped: together this time box at most.

    A smaller one than all of them has none: a box of its own could find what those of larger ones do not.
    """
    together = 0.0
    for box in _BOXES:
        together += box
        if together > time_box:
            return
        yield box


def _seeds(
    cover: Cover,
    configurations: Configurations,
    free: Sequence[InFlightNodeClaim],
    placements: Mapping[str, str],
    names: Sequence[str],
) -> Iterator[Configuration]:
    """The nodes of the first-fit plan as configurations."""
    yield from filter(None, map(configurations.of, free))
    item_of = configurations.item_of
    first = len(cover.shapes) - len(names)
    there = {name: number for number, name in enumerate(names)}
    slots: dict[int, Amounts] = {}
    for key, name in placements.items():
        if key in item_of and name in there:
            filling = slots.setdefault(there[name], np.zeros(len(cover.needed), dtype=np.int64))
            filling[item_of[key]] += 1
    yield from ((first + number, filling) for number, filling in sorted(slots.items()))


@dataclass(slots=True, eq=False)
class _Built:
    nodes: list[InFlightNodeClaim]
    placements: dict[str, str]
    weight_penalties: Mapping[str, float]

    @property
    def cost(self) -> float:
        """What the nodes count; twins cost the same."""
        costs = [0.0] * len(self.nodes)
        for twins in places_of_same([(node.types, node.terms) for node in self.nodes]):
            node = self.nodes[twins[0]]
            cost = float(node.terms.prices[node.types].min())
            cost *= self.weight_penalties.get(node.table.pool.key, 1.0)
            for twin in twins:
                costs[twin] = cost
        return sum(costs)

    def better_than(self, other: "_Built") -> bool:
        mine, others = self.cost, other.cost
        return mine < others - _SAME or (mine <= others + _SAME and len(self.nodes) < len(other.nodes))


class _Builder:
    """Makes nodes of counts; pods are given out in their order."""

    def __init__(self, items: Sequence[Item], cover: Cover, names: Sequence[str]) -> None:
        self._items = items
        self._cover = cover
        self._names = names

    def build(self, chosen: Sequence[Chosen]) -> _Built | None:
        """The nodes; None when one does not take what was meant for it."""
        waiting = [list(reversed(item.keys)) for item in self._items]
        result = _Built([], {}, self._cover.weight_penalties)
        for one in sorted(chosen, key=lambda one: (self._cover.shapes.pool[one.shape] >= 0, one.shape)):
            node: InFlightNodeClaim | None = None
            meant = [(int(index), int(one.filling[index])) for index in np.flatnonzero(one.filling)]
            for _ in range(one.times):
                parts = self._parts(meant, waiting)
                if not parts:
                    continue
                if self._cover.shapes.pool[one.shape] < 0:
                    name = self._names[one.shape - len(self._cover.shapes)]
                    result.placements.update((key, name) for _, keys in parts for key in keys)
                    continue
                node = self.node(one.shape, parts, node)
                if node is None:
                    return None
                result.nodes.append(node)
        return None if any(waiting) else result

    def _parts(
        self, meant: Sequence[tuple[int, int]], waiting: list[list[str]]
    ) -> list[tuple[Item, list[str]]]:
        """The pods of each item for one node, no longer waiting; fewer than meant where fewer wait."""
        parts = []
        for index, number in meant:
            keys = waiting[index][: -number - 1 : -1]
            if keys:
                del waiting[index][-len(keys) :]
                parts.append((self._items[index], keys))
        return parts

    def node(
        self, shape: int, parts: Sequence[tuple[Item, list[str]]], last: InFlightNodeClaim | None = None
    ) -> InFlightNodeClaim | None:
        """A node with these pods; the twin of the last one where only the pods' names differ.

        None where it cannot be made as it was meant.
        """
        if last is not None and [part.count for part in last.parts] == [len(keys) for _, keys in parts]:
            return last.twin([key for _, keys in parts for key in keys])
        shapes = self._cover.shapes
        table = shapes.tables[shapes.pool[shape]]
        fresh = table.fresh(parts[0][0].pods, parts[0][0].node_requirements)
        if fresh is None:
            return None
        types = fresh[0].types & (fresh[1] > 0)
        if table.limit_names:
            types = types & (table.limited <= shapes.charge[shape]).all(axis=1)
        if not types.any():
            return None
        node = InFlightNodeClaim.opened(table, types)
        for item, keys in parts:
            if node.place(item.pods, item.node_requirements, len(keys)) < len(keys):
                return None
            node.pods.extend(keys)
            node.parts.append(Part(item.pods, item.node_requirements, item.rules, item.tables, len(keys)))
        return node
