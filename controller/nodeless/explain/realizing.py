"""What plans came to: the price that was planned over the price as kube-scheduler bound the pods.

A minute after a plan, the nodes that were made since and hold one of its pods, or none at all, are what it
came to. 1 is a plan that was kept; less says that pods went elsewhere and more nodes were bought for them.
"""

from dataclasses import dataclass
from math import fsum

from nodeless.disruption.candidates import Prices
from nodeless.model.bill import COMMITMENTS
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import CAPACITY_TYPE, ZONE
from nodeless.model.nodes import NodeClaim
from nodeless.model.plan import Plan
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import Policy
from nodeless.scheduling.capacity.pricing import priced
from nodeless.state.expected import planned_for

#: Seconds from a plan to the look at what became of it.
SETTLES_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan whose pods are being bound."""

    at: float
    """Seconds since the epoch."""
    price: float
    """US dollars an hour of its new nodes, with what commitments cover of them."""
    pods: frozenset[str]
    prices: Prices

    def ratio(self, snapshot: Snapshot) -> float | None:
        """Its price over that of the nodes that it came to; None: there is none whose price is known."""
        known = (self._price(claim) for claim in snapshot.claims.values() if self._is_of_it(snapshot, claim))
        bound = fsum(price for price in known if price is not None)
        return self.price / bound if bound else None

    def _price(self, claim: NodeClaim) -> float | None:
        zone, capacity_type = claim.labels.get(ZONE, ""), claim.labels.get(CAPACITY_TYPE, "")
        return self.prices.at(str(claim.pool), claim.instance_type, zone, capacity_type)

    def _is_of_it(self, snapshot: Snapshot, claim: NodeClaim) -> bool:
        if claim.created_at < int(self.at) or claim.replaces or claim.deletion_timestamp is not None:
            return False
        node = snapshot.node_of(claim)
        held = {pod.key for pod in snapshot.pods_on(node.name) if pod.occupies} if node is not None else set()
        # One that holds nothing yet may be of a later plan, whose pods it names.
        expected = held or {pod.key for pod in planned_for(snapshot, claim)[1]}
        return not expected or not expected.isdisjoint(self.pods)


@dataclass(frozen=True, slots=True)
class Realizing:
    """Plans that are not a minute old; a value, every method gives the next one."""

    waiting: tuple[Planned, ...] = ()

    def planned(
        self, plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: float
    ) -> "Realizing":
        """After a plan; one that only plans pods of an earlier one again is part of that one."""
        pods = frozenset(key for node in plan.new_nodes for key in node.pods)
        if not pods or any(pods <= planned.pods for planned in self.waiting):
            return self
        pools = snapshot.pools.values()
        prices = Prices(priced(catalog, pools, policy.price_adjustments, policy.node_fee))
        return Realizing((*self.waiting, Planned(now, _listed(plan), pods, prices)))

    def measure(self, snapshot: Snapshot, now: float) -> tuple["Realizing", tuple[float, ...]]:
        """The plans that still wait, and the ratios of those that are a minute old."""
        old = [planned for planned in self.waiting if not 0 <= now - planned.at < SETTLES_WITHIN]
        if not old:
            return self, ()
        ratios = (planned.ratio(snapshot) for planned in old)
        rest = tuple(planned for planned in self.waiting if planned not in old)
        return Realizing(rest), tuple(ratio for ratio in ratios if ratio is not None)


def _listed(plan: Plan) -> float:
    """The price of a plan without commitments: they cover as much wherever its pods are bound."""
    parts = (part for node in plan.new_nodes for part in node.alternatives[0].offering.parts)
    covered = fsum(part.dollars or 0.0 for part in parts if part.name == COMMITMENTS)
    return plan.cost_per_hour - covered
