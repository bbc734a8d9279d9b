"""The floor plan: every class in its order onto existing room and new nodes.

Limits make it a knapsack: the node on which a dollar buys most may use up what two smaller ones
needed. Where pods that limited pools would take are left over, the plan is made once more with nodes
that count the least against their limits, and the one that leaves fewer pods is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nodeless.model.snapshot import Snapshot
from nodeless.solve.capacity.existing import Slot
from nodeless.solve.capacity.limits import Budgets
from nodeless.solve.capacity.opened import OpenedNode
from nodeless.solve.capacity.pool_table import PoolTable
from nodeless.solve.capacity.supply import Supply
from nodeless.solve.capacity.targets import Targets
from nodeless.solve.placing.filling import Existing
from nodeless.solve.placing.ordering import place_all, queue
from nodeless.solve.placing.packing import Packing
from nodeless.solve.pods.classes import PodClass
from nodeless.solve.pods.profiles import Profiles
from nodeless.solve.policy import Policy
from nodeless.solve.topology.tracking import Topology


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
    floor = _laid(site, thrifty=False)
    if not any(_limited(pods, site.usable) for pods, _ in floor.left):
        return floor
    other = _laid(site, thrifty=True)
    return other if other.refused < floor.refused else floor


def _laid(site: Site, *, thrifty: bool) -> Floor:
    topology = Topology(site.snapshot, site.profiles, site.slots, site.usable)
    existing = Existing(site.slots, site.resources, topology)
    budgets = Budgets(site.snapshot, site.by_pool)
    targets = Targets(site.usable, site.classes, site.policy.packing, thrifty=thrifty)
    waiting = sum(len(pods.pods) for pods in site.classes)
    supply = Supply(site.usable, site.policy.subnets, site.snapshot.claims.values(), waiting)
    packing = Packing(site.usable, budgets, topology, targets, supply, site.resources)
    placements, left = place_all(queue(site.classes, topology.keys), existing, packing)
    return Floor(topology, existing, budgets, targets, supply, packing.nodes, placements, left)


def _limited(pods: PodClass, tables: Sequence[PoolTable]) -> bool:
    """Whether limits may be why a class is left over."""
    return any(
        bool(table.limit_names)
        and table.refuses(pods.shape.tolerations, soft=True) is None
        and any(table.fresh(pods, wish) is not None for wish in pods.demand.required)
        for table in tables
    )
