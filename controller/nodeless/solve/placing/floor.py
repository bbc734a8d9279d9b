"""The floor plan: every class in its order onto existing room and new nodes.

Limits make it a knapsack: the node on which a dollar buys most may use up what two smaller ones
needed. Where pods that limited pools would take are left over, the plan is made once more with nodes
that count the least against their limits, and the one that leaves fewer pods is kept.

Where many nodes are there because pods keep off each other, `carried_plan` puts those first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nodeless.model.snapshot import Snapshot
from nodeless.solve.capacity.existing import Slot
from nodeless.solve.capacity.limits import Budgets
from nodeless.solve.capacity.opened import OpenedNode
from nodeless.solve.capacity.pool_table import PoolTable
from nodeless.solve.capacity.supply import Supply
from nodeless.solve.capacity.targets import Targets
from nodeless.solve.placing.apart import nodes_apart
from nodeless.solve.placing.filling import Existing
from nodeless.solve.placing.ordering import place_all, queue
from nodeless.solve.placing.packing import Packing
from nodeless.solve.pods.classes import PodClass
from nodeless.solve.pods.profiles import Profiles
from nodeless.solve.policy import Policy
from nodeless.solve.topology.tracking import Topology

#: Pods that keep off each other matter when they need so many nodes, and this share of all.
_MANY, _SHARE = 20, 0.3
#: Nodes of a floor plan beyond which none is made again with those pods first.
_MOST = 5000
_NOBODY: Mapping[PodClass, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """What a floor plan starts from; none of it is changed."""

    snapshot: Snapshot
    policy: Policy
    profiles: Profiles
    slots: Sequence[Slot]
    by_pool: dict[str, PoolTable]
    usable: Sequence[PoolTable]
    classes: Sequence[PodClass]
    resources: int
    """How many resources there are."""
    places: Mapping[str, str]
    """Where pods that wait are expected."""


@dataclass(frozen=True, slots=True, eq=False)
class Floor:
    """One floor plan, with all that it has counted."""

    topology: Topology
    existing: Existing
    budgets: Budgets
    targets: Targets
    supply: Supply
    nodes: Sequence[OpenedNode]
    placements: dict[str, str]
    left: list[tuple[PodClass, Sequence[str]]]

    @property
    def refused(self) -> int:
        return sum(len(keys) for _, keys in self.left)


def floor_plan(site: Site) -> Floor:
    """The floor plan that leaves the fewest pods."""
    floor = _laid(site)
    if not any(_limited(pods, site.usable) for pods, _ in floor.left):
        return floor
    other = _laid(site, thrifty=True)
    return other if other.refused < floor.refused else floor


def carried_plan(site: Site, floor: Floor) -> Floor | None:
    """The floor plan that puts pods first which keep off each other, so that their nodes carry the others.

    None where they do not matter, where something else than the price decides (the number of nodes, weights
    of limited pools, wishes), or where it leaves more pods without a place.
    """
    if not _price_alone_counts(site, floor.targets):
        return None
    apart = nodes_apart(site.classes)
    needed, nodes = max(apart.values(), default=0.0), len(floor.nodes)
    if needed < max(_MANY, _SHARE * nodes) or nodes > _MOST:
        return None
    other = _laid(site, apart=apart)
    return other if other.refused <= floor.refused else None


def _laid(site: Site, *, thrifty: bool = False, apart: Mapping[PodClass, float] = _NOBODY) -> Floor:
    topology = Topology(site.snapshot, site.profiles, site.slots, site.usable)
    existing = Existing(site.slots, site.resources, topology)
    budgets = Budgets(site.snapshot, site.by_pool)
    targets = Targets(site.usable, site.classes, site.policy.packing, thrifty=thrifty, apart=apart)
    waiting = sum(len(pods.pods) for pods in site.classes)
    supply = Supply(site.usable, site.policy.subnets, site.snapshot.claims.values(), waiting)
    packing = Packing(site.usable, budgets, topology, targets, supply, site.resources)
    placements, left = place_all(queue(site.classes, topology.keys, apart), existing, packing, site.places)
    return Floor(topology, existing, budgets, targets, supply, packing.nodes, placements, left)


def _price_alone_counts(site: Site, targets: Targets) -> bool:
    weights = {table.pool.weight for table in site.usable}
    return (
        all(map(targets.aims, site.usable))
        and (len(weights) == 1 or not any(table.limit_names for table in site.usable))
        and not any(pods.demand.preferred or pods.rules != pods.hard_rules for pods in site.classes)
    )


def _limited(pods: PodClass, tables: Sequence[PoolTable]) -> bool:
    """Whether limits may be why a class is left over."""
    return any(
        bool(table.limit_names)
        and table.refuses(pods.shape.tolerations, soft=True) is None
        and any(table.fresh(pods, wish) is not None for wish in pods.demand.required)
        for table in tables
    )
