"""First-fit decreasing over pod classes: new nodes, as few as this finds.

Classes come largest first. Each goes into the open nodes in the order in which they were
opened, then into fresh nodes of the heaviest pool that accepts it. A fresh node starts with
every type of the pool and takes as many of the class as its largest type holds; each placement
gives up the types that have become too small. What is left of the types at the end is bought
at the lowest price. Wishes are hard until relaxed (`relaxing`).

A class that rules look at is divided among domains first (`topology`), and each node that
takes it is bound to a domain: where the class may choose, to the one in which the node stays
cheapest.
"""

from collections.abc import Sequence

from nodeless.model.requirements import Requirement
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim, reopened
from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.supply import ReservationManager
from nodeless.scheduling.capacity.targets import Targets
from nodeless.scheduling.first_fit.class_placer import ClassPlacer, PackingContext, RoomThere, Trust
from nodeless.scheduling.first_fit.open_nodes import OpenNodes
from nodeless.scheduling.first_fit.relaxing import attempts
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass
from nodeless.scheduling.spread.sharing import ENDLESS
from nodeless.scheduling.topology.tracking import Topology


class Packing:
    """The new nodes of one solve, filled class by class."""

    def __init__(
        self,
        tables: Sequence[PoolTable],
        budgets: RemainingLimits,
        topology: Topology,
        targets: Targets,
        supply: ReservationManager,
        resources: int,
        trust: Trust | None = None,
        meter: Meter | None = None,
    ) -> None:
        #: Usable pools, in the order in which they are tried.
        self._tables = tuple(tables)
        self._meter = meter or Meter()
        opened = OpenNodes(resources, topology, supply)
        self._packing_context = PackingContext(
            opened, budgets, topology, targets, self._meter, trust or Trust()
        )

    @property
    def nodes(self) -> Sequence[InFlightNodeClaim]:
        return self._packing_context.open.nodes

    def adopt(self, nodes: Sequence[InFlightNodeClaim]) -> None:
        """Go on with nodes that have pods already, each with all the types that hold those."""
        for node in reopened(nodes):
            self._packing_context.open.adopt(node)
            self._packing_context.budgets.opened(node)

    def place(
        self,
        pods: PodClass,
        waiting: Sequence[str],
        *,
        fresh: bool = False,
        beside: Amounts | None = None,
        there: RoomThere | None = None,
    ) -> Sequence[str]:
        """Place what can be placed of a class, `fresh`: on new nodes that nobody is on; the pods left.

        `beside`: only on new nodes that have room for so much beside a pod of the class. `there`: room that
        exists and comes first in each domain, once pods in other domains let more of the class in.
        """
        return self._by_attempt(pods, waiting, self._tables, fresh=fresh, beside=beside, there=there)

    def _by_attempt(
        self,
        pods: PodClass,
        waiting: Sequence[str],
        allowed: Sequence[PoolTable],
        *,
        fresh: bool = False,
        beside: Amounts | None = None,
        types: Mask | None = None,
        only: int | None = None,
        within: Sequence[Requirement] = (),
        there: RoomThere | None = None,
    ) -> Sequence[str]:
        """Place what can be placed of a class on nodes of some pools (`ClassPlacer`); the pods left."""
        self._packing_context.targets.begin(pods)
        for attempt in attempts(pods, allowed, self._packing_context.targets.rank, self._meter):
            if not waiting or self._meter.over:
                break
            tables = [
                table
                for table in allowed
                if table.refuses(pods.shape.tolerations, soft=attempt.soft_taints) is None
                and table.fresh(pods, attempt.node_requirements) is not None
            ]
            if tables:
                placing = ClassPlacer(
                    self._packing_context,
                    pods,
                    attempt,
                    tables,
                    fresh=fresh,
                    beside=beside,
                    types=types,
                    only=only,
                    within=within,
                    there=there,
                )
                waiting = placing.run(waiting)
        return waiting

    def open(
        self, pods: PodClass, key: str, table: PoolTable, types: Mask, within: Sequence[Requirement] = ()
    ) -> bool:
        """Open a node of a pool that is one of some types, for a pod; whether the pod was let in.

        `within`: the domains that the node must be in.
        """
        return not self._by_attempt(pods, [key], [table], fresh=True, types=types, within=within)

    def place_on(
        self, pods: PodClass, waiting: Sequence[str], node: int, within: Sequence[Requirement] = ()
    ) -> Sequence[str]:
        """Place pods on one of the `nodes`, which is in some domains; those that are left."""
        return self._by_attempt(pods, waiting, [self.nodes[node].table], only=node, within=within)

    def largest_group(self, pods: PodClass) -> int:
        """How many pods of a class that must stay together new nodes could take, limits aside."""
        counts = [
            int(fresh[1].max())
            for table in self._tables
            if table.refuses(pods.shape.tolerations, soft=True) is None
            for node_requirements in pods.demand.required
            if (fresh := table.fresh(pods, node_requirements)) is not None
        ]
        if not counts or not self._packing_context.topology.together_on_host(pods.hard_rules):
            return ENDLESS if counts else 0
        fresh_host = self._packing_context.topology.counters.on_fresh(pods.hard_rules)
        return min(max(counts), fresh_host, pods.hard_rules.most_in_a_domain())
