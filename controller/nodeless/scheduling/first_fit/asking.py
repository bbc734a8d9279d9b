"""Who waits and where there is room, as the question that an integer program answers (`program`).

It knows of requests, of what classes ask of nodes (any two of them at a time), of ports, of limits, and of
what pods mean to others on the same node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from nodeless.model.requirements import Conflict
from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.targets import Targets
from nodeless.scheduling.first_fit.asking_domains import DomainRules, beside_daemons_on, brought_by
from nodeless.scheduling.first_fit.filling import Existing
from nodeless.scheduling.first_fit.offers import Offer
from nodeless.scheduling.first_fit.ordering import Left
from nodeless.scheduling.first_fit.packing import Packing
from nodeless.scheduling.first_fit.program import Crowd, Far, Near, Question, Values, most_nodes
from nodeless.scheduling.first_fit.program_domains import Domains
from nodeless.scheduling.pods.classes import Amounts, PodClass, ports_conflict
from nodeless.scheduling.pods.rules import TopologyGroup
from nodeless.scheduling.topology.tracking import Topology

#: New nodes that may be asked for, and the types of a pool where none is better than another in everything.
_MOST_NODES, _MOST_OFFERS = 64, 24
#: Keys of which every node that is made has one value.
_ONE_FOR_A_NODE = frozenset({HOSTNAME, ZONE, CAPACITY_TYPE})


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where pods may go, nobody placed yet."""

    topology: Topology
    existing: Existing
    budgets: RemainingLimits
    targets: Targets
    packing: Packing
    tables: Sequence[PoolTable]
    """The usable pools, heaviest first."""
    places: Mapping[str, str]
    """Where pods are expected."""


def question(
    where: Places,
    ordered: Sequence[PodClass],
    offers: Sequence[Offer],
    left: Left,
    placements: Mapping[str, str],
    rules: DomainRules | None,
    *,
    more: bool,
) -> Question:
    """What the program is asked: to place `more` than all but those who are left, or as many.

    Of the `placements` so far those are kept where pods are expected. Without `rules` nobody
    says who is in which zone.
    """
    adders = adders_of(ordered)
    domains = rules.question(offers) if rules is not None else Domains()
    names = where.existing.names
    waiting = np.array([len(pods.pods) for pods in ordered], dtype=np.int64)
    spare = sum(pods.shape.placeholder * len(pods.pods) for pods in ordered)
    worth = np.array([1 if pods.shape.placeholder else 1 + spare for pods in ordered], dtype=np.int64)
    out = sum(len(keys) * int(worth[ordered.index(pods)]) for pods, keys in left)
    near, groups = _near(where, ordered, adders, offers)
    requests = np.array([pods.requests for pods in ordered], dtype=np.int64)
    wanted = (requests * waiting[:, None]).sum(axis=0)
    every = list(dict.fromkeys(offer.table for offer in offers))
    return Question(
        waiting=waiting,
        worth=worth,
        requests=requests,
        once=np.array([pods.attaching() for pods in ordered], dtype=np.int64),
        free=np.maximum(where.existing.free, 0),
        most=np.array([_slots_of(where, pods, rules) for pods in ordered], dtype=np.int64).reshape(
            len(ordered), len(names)
        ),
        stays=_stays(where, ordered, placements),
        room=np.array([np.minimum(offer.table.room[offer.row], wanted) for offer in offers], dtype=np.int64)
        if offers
        else np.zeros((0, requests.shape[1]), dtype=np.int64),
        cost=_costs(where, offers),
        holds=_held(ordered, offers),
        limits=[limit for table in every for limit in _limits(where.budgets, table, offers)],
        led=_led(waiting, most_nodes(len(ordered), len(names), len(offers), groups, domains))
        if offers
        else (),
        apart=_apart(ordered, adders),
        strangers=_strangers(ordered, offers),
        near=near,
        far=_far(where, ordered, adders, rules, offers),
        crowds=_crowds(where, ordered, adders),
        groups=groups,
        domains=domains,
        beyond=int((worth * waiting).sum()) - out - (not more),
    )


def adders_of(ordered: Sequence[PodClass]) -> dict[TopologyGroup, list[int]]:
    """By what is counted, the classes whose pods count, by their places in the order."""
    adders: dict[TopologyGroup, list[int]] = {}
    for index, pods in enumerate(ordered):
        for topology_group in pods.adds:
            adders.setdefault(topology_group, []).append(index)
    return adders


def _led(waiting: Amounts, nodes: int) -> tuple[int, ...]:
    """New nodes, by the class that leads each: one for each pod, as long as there are not too many."""
    most = int(waiting.max(initial=0))
    while most > 1 and np.minimum(waiting, most).sum() > min(nodes, _MOST_NODES):
        most -= 1
    return tuple(one for one, number in enumerate(waiting.tolist()) for _ in range(min(number, most)))


def _slots_of(where: Places, pods: PodClass, rules: DomainRules | None) -> Amounts:
    """How many pods of a class each slot takes.

    Pods that must be near others in a domain of which the program knows nothing go where some of those run,
    or where most of them find room.
    """
    holds = where.existing.holds(pods)
    if rules is not None and len(holds):
        holds = np.where(rules.keeps_off(pods), 0, holds)
    for topology_group in dict.fromkeys(
        topology_group for rule in pods.hard_rules.affinity for topology_group in rule.topology_groups
    ):
        if topology_group.key == HOSTNAME or (rules is not None and topology_group.key in rules.values):
            continue
        options = where.existing.options_of((topology_group.key,))
        room: dict[str | None, int] = {}
        for option, number in zip(options, holds.tolist(), strict=True):
            if option is not None:
                room[option[0]] = room.get(option[0], 0) + number
        counted = where.topology.counters[topology_group].domains
        there: set[str | None] = {domain for domain, number in counted.items() if number}
        usable = there or set(sorted(room, key=lambda domain: (-room[domain], str(domain)))[:1])
        holds = np.where([option is not None and option[0] in usable for option in options], holds, 0)
    return holds


def _stays(where: Places, ordered: Sequence[PodClass], placements: Mapping[str, str]) -> Amounts:
    """How many pods of each class are on each slot and expected there: nobody moves them."""
    names = {name: at for at, name in enumerate(where.existing.names)}
    stays: Amounts = np.zeros((len(ordered), len(names)), dtype=np.int64)
    for index, pods in enumerate(ordered):
        for key in pods.pods:
            if key in placements and where.places.get(key) == placements[key]:
                stays[index, names[placements[key]]] += 1
    return stays


def offers_for(where: Places, ordered: Sequence[PodClass], rules: DomainRules | None = None) -> list[Offer]:
    """The types of all pools that take some class, without those that others are as good as in everything."""
    wanted = sum((pods.requests * len(pods.pods) for pods in ordered), np.int64(0))
    offers: list[Offer] = []
    for table in where.tables:
        holds = held_by(table, ordered)
        rows = np.flatnonzero(holds.any(axis=0) & where.budgets.affordable(table))
        price = table.start.prices[rows, None]
        # Less is better in the first columns, more in the others.
        bad = np.hstack([price, table.limited[rows]])
        good = np.hstack([np.minimum(table.room[rows], wanted), np.minimum(holds[:, rows].T, 1)])
        if rules is not None and rules.values:
            inside = [fits[:, rows].any(axis=0) for fits in rules.fits(table)]
            good = np.hstack([good, *inside])
        beside = [
            beside_daemons_on(table, pods, rule)[rows]
            for pods in ordered
            for rule in pods.hard_rules.affinity
        ]
        if any(types.any() for types in beside):
            good = np.hstack([good, np.stack(beside, axis=1)])
        kept: list[int] = []
        for at in np.lexsort((rows, -good.sum(axis=1), price[:, 0])).tolist():
            if not any((bad[other] <= bad[at]).all() and (good[other] >= good[at]).all() for other in kept):
                kept.append(at)
        if len(kept) > _MOST_OFFERS:
            kept = [kept[at] for at in np.linspace(0, len(kept) - 1, _MOST_OFFERS).astype(int)]
        offers += [Offer(table, int(rows[at])) for at in kept]
    return offers


def held_by(table: PoolTable, ordered: Sequence[PodClass]) -> Amounts:
    """How many pods of each class, alone there, each type of a pool holds; shape (classes, types)."""
    holds: Amounts = np.zeros((len(ordered), len(table.table)), dtype=np.int64)
    for index, pods in enumerate(ordered):
        if table.refuses(pods.shape.tolerations, soft=True) is None:
            for node_requirements in pods.demand.required:
                fresh = table.fresh(pods, node_requirements)
                if fresh is not None:
                    holds[index] = np.maximum(holds[index], np.where(fresh[0].types, fresh[1], 0))
    return holds


def _held(ordered: Sequence[PodClass], offers: Sequence[Offer]) -> Amounts:
    tables = {offer.table: held_by(offer.table, ordered) for offer in offers}
    columns = [tables[offer.table][:, offer.row] for offer in offers]
    return np.stack(columns, axis=1) if columns else np.zeros((len(ordered), 0), dtype=np.int64)


def _costs(where: Places, offers: Sequence[Offer]) -> Values:
    """What each offer counts: its price, or one for each node; of a lighter pool more than of any heavier."""
    price = np.array([offer.table.start.prices[offer.row] for offer in offers], dtype=np.float64)
    most = max(float(price.max(initial=0.0)), 1e-9)
    by_price = np.array([where.targets.aims(offer.table) for offer in offers], dtype=np.bool_)
    cost = np.where(by_price, price / most, 1.0 + 0.01 * price / most)
    weights = np.array([-offer.table.pool.weight for offer in offers])
    ahead = 0.0
    for weight in np.unique(weights):
        some = weights == weight
        cost[some] *= max(1.0, ahead / max(float(cost[some].min()), 1e-9))
        ahead = float(cost[some].max())
    return cost


def _limits(budgets: RemainingLimits, table: PoolTable, offers: Sequence[Offer]) -> list[tuple[Amounts, int]]:
    left = budgets.left(table, ())
    return [
        (
            np.array(
                [offer.table.limited[offer.row, at] if offer.table is table else 0 for offer in offers],
                dtype=np.int64,
            ),
            int(left[at]),
        )
        for at in range(len(table.limit_names))
    ]


def _apart(
    ordered: Sequence[PodClass], adders: Mapping[TopologyGroup, Sequence[int]]
) -> list[tuple[int, int]]:
    """The classes that cannot share a node, because of ports or because one keeps the other off.

    Or off its zone or capacity type: pods on one node share those as well.
    """
    pairs: set[tuple[int, int]] = set()
    for index, pods in enumerate(ordered):
        rules = pods.hard_rules
        for topology_group in (*(rule.topology_group for rule in rules.anti_affinity), *rules.repelled_by):
            if topology_group.key in _ONE_FOR_A_NODE:
                pairs.update(
                    (min(index, other), max(index, other)) for other in adders.get(topology_group, ())
                )
        if pods.shape.host_ports:
            pairs.add((index, index))
    for (one, some), (other, others) in combinations(enumerate(ordered), 2):
        if ports_conflict(some.shape.host_ports, others.shape.host_ports):
            pairs.add((one, other))
    return sorted(pairs)


def _strangers(
    ordered: Sequence[PodClass], offers: Sequence[Offer]
) -> list[tuple[int, int, tuple[int, ...]]]:
    """Classes that ask for different nodes, with the offers of which no node would do for both."""
    by_table: dict[PoolTable, list[int]] = {}
    for at, offer in enumerate(offers):
        by_table.setdefault(offer.table, []).append(at)
    return [
        (one, other, tuple(some))
        for (one, pods), (other, others) in combinations(enumerate(ordered), 2)
        if pods.demand is not others.demand
        for table, some in by_table.items()
        if not _together(table, pods, others)
    ]


def _together(table: PoolTable, pods: PodClass, others: PodClass) -> bool:
    """Whether a node of a pool may be what both classes require."""
    for node_requirements in pods.demand.required:
        terms = table.grow(table.start, node_requirements)
        if isinstance(terms, Conflict):
            continue
        for other in others.demand.required:
            both = table.grow(terms, other)
            if not isinstance(both, Conflict) and both.types.any():
                return True
    return False


def _near(
    where: Places,
    ordered: Sequence[PodClass],
    adders: Mapping[TopologyGroup, Sequence[int]],
    offers: Sequence[Offer],
) -> tuple[list[Near], int]:
    """Who must share a node with whom, and how many groups there are of which nobody runs."""
    groups: dict[TopologyGroup, int] = {}
    near = []
    for index, pods in enumerate(ordered):
        for rule in pods.hard_rules.affinity:
            for topology_group in rule.topology_groups:
                if topology_group.key != HOSTNAME:
                    continue
                counter = where.topology.counters[topology_group]
                others = adders.get(topology_group, ())
                group = None
                if rule.counts_itself:
                    # Of pods that would do themselves one may be alone, the others follow.
                    others = [at for at in others if not _leads(ordered[at], topology_group)]
                    if not counter.total:
                        group = groups.setdefault(topology_group, len(groups))
                there = tuple(bool(count) for count in counter.slots.tolist())
                daemons = tuple(brought_by(offers, pods, rule))
                near.append(Near(index, tuple(others), there, group, daemons))
    return near, len(groups)


def _far(
    where: Places,
    ordered: Sequence[PodClass],
    adders: Mapping[TopologyGroup, Sequence[int]],
    rules: DomainRules | None,
    offers: Sequence[Offer],
) -> list[Far]:
    """Who must share a domain larger than a node with others, of whom none runs anywhere yet.

    In which domain the program does not say: only that somebody must be there whom they could join.
    """
    return [
        Far(index, tuple(adders.get(topology_group, ())), tuple(brought_by(offers, pods, rule)))
        for index, pods in enumerate(ordered)
        for rule in pods.hard_rules.affinity
        if not rule.counts_itself
        for topology_group in rule.topology_groups
        if topology_group.key != HOSTNAME
        and (rules is None or topology_group.key not in rules.values)
        and not where.topology.counters[topology_group].total
    ]


def _leads(pods: PodClass, topology_group: TopologyGroup) -> bool:
    return any(
        rule.counts_itself and topology_group in rule.topology_groups for rule in pods.hard_rules.affinity
    )


def _crowds(
    where: Places, ordered: Sequence[PodClass], adders: Mapping[TopologyGroup, Sequence[int]]
) -> list[Crowd]:
    return [
        Crowd(
            index,
            tuple(adders.get(rule.topology_group, ())),
            rule.max_skew,
            tuple(where.topology.counters[rule.topology_group].slots.tolist()),
        )
        for index, pods in enumerate(ordered)
        for rule in pods.hard_rules.spread
        if rule.topology_group.key == HOSTNAME
    ]
