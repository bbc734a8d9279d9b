"""Who has to be somewhere, and where that may be: what bounds on the price of a plan begin with.

Where rules say how many pods may be in a zone, a class is divided by zones (`balances`), as new nodes are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from nodeless.model.labels import ZONE
from nodeless.model.requirements import IN, Requirement
from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.optimizer.balances import Balance, keeps_balance
from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.covering import caps_of
from nodeless.scheduling.optimizer.existing_node_repack import ExistingNodeRepack, ExistingNodes
from nodeless.scheduling.optimizer.items import HostLimits, Item, in_whole_pods
from nodeless.scheduling.optimizer.shapes import Shapes, shapes_for
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass
from nodeless.scheduling.pods.constraints import NodeRequirements, node_requirements_of
from nodeless.scheduling.spread.sharing import ENDLESS

PAIRS = 6000
"""Pairs of a kind and a shape up to which programs of resources know of each."""
#: Seconds for each pair of a class and a shape that is looked at.
_PAIR = 20e-9
#: Alternatives, host ports and rules of a class with which it still counts.
_ALTERNATIVES, _LIMITS = 32, 32
#: Classes, once for each zone, beyond which it is not said how many pods are in which.
_MOST_BY_ZONE = 1000
_Owner = tuple[PodClass, str | None]


@dataclass(frozen=True, slots=True)
class Placed:
    """Pods of a class that a plan places."""

    pods: PodClass
    number: int
    lightest: float = np.inf
    """The weight of the lightest pool of which it buys nodes for them."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Pods of a class (in one zone, where that matters), or resources, that are divided among shapes."""

    requests: Amounts
    number: float
    """Of the class, in whatever zones."""
    allowed: Mask
    """By shape, existing nodes last."""
    hosts: tuple[tuple[int, int], ...] = ()
    """Topology groups of the host that count them, and the most that they allow."""
    pods: PodClass | None = None
    """Their class; None for resources."""
    zone: str | None = None
    most: float = np.inf
    """Of the class in the zone."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundProblem:
    """The pods of a plan and all nodes that could hold them."""

    items: Sequence[Item]
    """One for each kind and alternative of what its class requires."""
    owners: Sequence["_Owner"]
    """The class and zone of each item."""
    kinds: Sequence[Kind]
    shapes: Shapes
    existing: ExistingNodes
    left: Sequence[Amounts]
    """By pool of the shapes, what is left of its limits."""
    balances: Sequence[Balance] = ()

    @property
    def singly(self) -> bool:
        """Whether each existing node is looked at."""
        return bool((self.existing.nodes == 1).all())

    def room_for_whole_pods(self) -> Amounts:
        """The room of all rows, rounded down to what sums of requests can be."""
        return in_whole_pods(np.concatenate([self.shapes.room, self.existing.room]), self.items)

    def hosts(self) -> HostLimits:
        """What kinds allow beside each other on one node."""
        first: dict[_Owner, Item] = {}
        for item, owner in zip(self.items, self.owners, strict=True):
            first.setdefault(owner, item)
        return HostLimits(list(first.values()), any_order=True)

    def cover(self) -> Cover:
        """The kinds as items to cover, at prices without corrections; existing nodes are the last shapes."""
        room = self.existing.room
        there = len(room)
        uses, caps = caps_of(self.shapes, self.left, there)
        nothing = np.zeros(0)
        shapes = Shapes(
            self.shapes.tables,
            np.concatenate([self.shapes.pool, np.full(there, -1, dtype=np.intp)]),
            np.concatenate([self.shapes.room, room]),
            np.concatenate([self.shapes.price, np.zeros(there)]),
            [*self.shapes.charge, *([np.zeros(0, dtype=np.int64)] * there)],
            np.array([kind.allowed for kind in self.kinds]).T,
        )
        return Cover(
            shapes,
            np.array([kind.requests for kind in self.kinds], dtype=np.int64),
            np.array([min(kind.number, kind.most) for kind in self.kinds], dtype=np.int64),
            shapes.price,
            uses,
            caps,
            np.zeros(len(self.kinds)),
            np.zeros(len(self.kinds)),
            shapes.pool < 0,
            np.zeros(0, dtype=np.intp),
            {},
            nothing.reshape(0, room.shape[1]),
        )


def problem_of(
    placed: Sequence[Placed],
    standing: ExistingNodeRepack,
    budgets: RemainingLimits,
    tables: Sequence[PoolTable],
    meter: Meter,
) -> BoundProblem | None:
    """The pods, wherever they may be; None where they are more than `meter` allows, or none.

    Args:
        placed: The pods.
        standing: The existing nodes.
        budgets: The limits of pools.
        tables: The usable pools, heaviest first.
        meter: Counts the work on it.
    """
    items = _items(placed, tables, meter)
    return _problem(items, [(item.pods, None) for item in items], standing, budgets, meter)


def by_zone(
    problem: BoundProblem,
    placed: Sequence[Placed],
    standing: ExistingNodeRepack,
    budgets: RemainingLimits,
    meter: Meter,
    balances: Callable[[], Sequence[Balance]],
) -> BoundProblem | None:
    """The same, with how many pods may be in which zone; None where no rule says so, or they are too many.

    Args:
        problem: The pods, wherever they may be.
        placed: The pods that it was made of.
        standing: The existing nodes.
        budgets: The limits of pools.
        meter: Counts the work on it.
        balances: Finds what rules say.
    """
    if not any(map(keeps_balance, (each.pods for each in placed))):
        return None
    coming = {each.pods: each.number for each in placed}
    left_out = coming.keys() - {item.pods for item in problem.items}
    found = [
        replace(balance, coming=sum(coming.get(pods, 0) for pods in balance.members))
        for balance in balances()
        if left_out.isdisjoint(balance.members)
    ]
    zones: dict[PodClass, set[str]] = {}
    for balance in found:
        for pods in balance.members:
            zones.setdefault(pods, set()).update(balance.zones)
    parts = [
        (within, (item.pods, zone))
        for item in problem.items
        for zone in (sorted(zones[item.pods]) if item.pods in zones else (None,))
        if (within := _within(item, zone)) is not None
    ]
    if not found or len(parts) > _MOST_BY_ZONE:
        return None
    items, owners = [item for item, _ in parts], [owner for _, owner in parts]
    divided = _problem(items, owners, standing, budgets, meter)
    if divided is None:
        return None
    most: dict[tuple[PodClass | None, str | None], float] = {}
    for balance in found:
        for pods, zone in product(balance.members, balance.zones):
            most[pods, zone] = min(most.get((pods, zone), np.inf), balance.most_in(zone))
    kinds = [replace(kind, most=most.get((kind.pods, kind.zone), np.inf)) for kind in divided.kinds]
    return replace(divided, kinds=kinds, balances=found)


def _problem(
    items: Sequence[Item],
    owners: Sequence[_Owner],
    standing: ExistingNodeRepack,
    budgets: RemainingLimits,
    meter: Meter,
) -> BoundProblem | None:
    shapes = None if meter.over or not items else shapes_for(items, meter)
    if shapes is None:
        return None
    existing = standing.at_most(items, PAIRS - int(shapes.allowed.sum()), meter)
    meter.spend(_PAIR * len(items) * (len(shapes) + len(existing.room)))
    if meter.over:
        return None
    kinds = _kinds(items, owners, np.concatenate([shapes.allowed, existing.allowed]))
    left = [budgets.left(table, ()) for table in shapes.tables]
    return BoundProblem(items, owners, kinds, shapes, existing, left)


def _items(placed: Sequence[Placed], tables: Sequence[PoolTable], meter: Meter) -> list[Item]:
    """An item for each class and alternative of its required terms."""
    items = []
    for each in placed:
        pods, number = each.pods, each.number
        if not number or len(pods.demand.required) > _ALTERNATIVES or _many_limits(pods):
            # A bound for fewer pods is a bound for all.
            continue
        if meter.over:
            break
        open_to = _without_lighter(each, _open_to(pods, tables))
        for node_requirements in pods.demand.required:
            items.append(Item(pods, node_requirements, pods.hard_rules, open_to, pods.pods[:number]))
    return items


def _many_limits(pods: PodClass) -> bool:
    return len(pods.shape.host_ports) + sum(1 for _ in pods.hard_rules.topology_groups()) > _LIMITS


def _open_to(pods: PodClass, tables: Sequence[PoolTable]) -> tuple[PoolTable, ...]:
    """The pools that may take a class; PreferNoSchedule counts where a pool without it has no limits."""
    tolerant, welcoming = (
        tuple(table for table in tables if table.refuses(pods.shape.tolerations, soft=soft) is None)
        for soft in (True, False)
    )
    surely = any(
        not table.limit_names
        and any(table.fresh(pods, node_requirements) for node_requirements in pods.demand.required)
        for table in welcoming
    )
    return welcoming if surely else tolerant


def _without_lighter(placed: Placed, tables: tuple[PoolTable, ...]) -> tuple[PoolTable, ...]:
    """The pools that weights leave open: none that is lighter than one which surely takes the pods.

    Of classes with rules, preferences or alternatives it is not sure which pool takes them.
    """
    pods = placed.pods
    if pods.rules or pods.daemon_rules or pods.demand.preferred or len(pods.demand.required) > 1:
        return tables
    endless = (
        table.pool.weight
        for table in tables
        if not (table.limit_names or table.wanted) and table.fresh(pods, pods.demand.required[0])
    )
    heaviest = max(endless, default=None)
    if heaviest is None or placed.lightest < heaviest:
        return tables
    return tuple(table for table in tables if table.pool.weight >= heaviest)


def _within(item: Item, zone: str | None) -> Item | None:
    """The item in a zone, if one is given; None where its nodes cannot be there."""
    if zone is None:
        return item
    expressions = (*item.node_requirements.expressions, Requirement.of(ZONE, IN, (zone,)))
    node_requirements = node_requirements_of(expressions)
    if not isinstance(node_requirements, NodeRequirements):
        return None
    return replace(item, node_requirements=node_requirements)


def _kinds(items: Sequence[Item], owners: Sequence[_Owner], allowed: Mask) -> list[Kind]:
    hosts = HostLimits(items, any_order=True)
    kinds: dict[_Owner, Kind] = {}
    for index, (item, owner) in enumerate(zip(items, owners, strict=True)):
        if owner in kinds:
            known = kinds[owner]
            kinds[owner] = replace(known, allowed=known.allowed | allowed[:, index])
            continue
        limits = tuple(
            (int(topology_group), int(hosts.most[index, topology_group]))
            for topology_group in hosts.touched[index]
            if hosts.adds[index, topology_group] and hosts.most[index, topology_group] < ENDLESS
        )
        kinds[owner] = Kind(item.pods.requests, float(item.count), allowed[:, index], limits, *owner)
    return list(kinds.values())
