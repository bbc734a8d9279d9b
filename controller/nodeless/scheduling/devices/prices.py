"""What a node costs on which a pod may run, by its type: in the pools that would make one for the pod.

Which of several devices a pod asks for depends on it: what no pool of the pod's can buy is not to be had.
"""

from collections.abc import Collection, Mapping, Sequence
from math import inf

from nodeless.model.identity import Identity
from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_TYPE,
    WELL_KNOWN,
    ZONE,
)
from nodeless.model.pods import PodShape
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirements
from nodeless.model.resources import Resources, fits
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import TaintEffect, find_untolerated
from nodeless.scheduling.pods.constraints import PodRequirements, demand_of

#: What tells the offerings of a type apart.
_OF_OFFERINGS = (
    ZONE,
    CAPACITY_TYPE,
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
)


class TypePrices:
    """The prices of one catalog, for the pods of one cluster."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog, unusable: Collection[str]) -> None:
        """`unusable`: keys of pools that can make no node now."""
        self._sellers = [
            _Seller(pool, {each.name: each for each in catalog.get(pool.key, ())})
            for pool in snapshot.pools.values()
            if pool.deletion_timestamp is None and pool.replicas is None and pool.key not in unusable
        ]
        self._allocatable: dict[Identity, Resources] = {}

    def for_pod(self, shape: PodShape) -> "PodPrices":
        """The prices for a pod."""
        demand = demand_of(shape)
        sellers = [seller for seller in self._sellers if seller.tolerated_by(shape)]
        ways = [
            (one.requirements, [seller for seller in sellers if seller.offers(one.requirements)])
            for one in (demand.required if isinstance(demand, PodRequirements) else ())
        ]
        return PodPrices(dict(shape.requests), ways, self._allocatable)


class PodPrices:
    """The prices of types for one pod."""

    def __init__(
        self,
        requests: Resources,
        ways: "Sequence[tuple[Requirements, Sequence[_Seller]]]",
        allocatable: dict[Identity, Resources],
    ) -> None:
        """`ways`: what the pod asks of its node, with the pools for it; `allocatable`: as far as known."""
        self._requests, self._allocatable = requests, allocatable
        self._ways = [(asked, _of_offerings(asked), sellers) for asked, sellers in ways]

    def least(self, pools: Collection[str], instance_type: InstanceType) -> float:
        """The least price of a type, in some pools or (none) in all; infinite: it is not to be had."""
        same = Identity(instance_type)
        if same not in self._allocatable:
            self._allocatable[same] = instance_type.allocatable
        if not fits(self._requests, self._allocatable[same]):
            return inf
        prices = (
            seller.price(instance_type.name, of_offerings)
            for asked, of_offerings, sellers in self._ways
            if instance_type.allowed_by(asked)
            for seller in sellers
            if not pools or seller.key in pools
        )
        return min(prices, default=inf)


def _of_offerings(asked: Requirements) -> Requirements:
    """The part of some requirements that is about offerings."""
    return Requirements(asked[label] for label in _OF_OFFERINGS if label in asked)


class _Seller:
    """A pool with its types."""

    def __init__(self, pool: Pool, types: Mapping[str, InstanceType]) -> None:
        self.key = pool.key
        self._offered = pool.offered
        self._types = types
        self._hard = [taint for taint in pool.taints if taint.effect != TaintEffect.PREFER_NO_SCHEDULE]
        self._known = WELL_KNOWN.union(*(each.requirements for each in types.values()))
        self._prices: dict[tuple[str, Requirements], float] = {}

    def tolerated_by(self, shape: PodShape) -> bool:
        return find_untolerated(self._hard, shape.tolerations) is None

    def offers(self, asked: Requirements) -> bool:
        """Whether its nodes may be as a pod asks, whatever their type."""
        return self._offered.incompatible(asked, self._known) is None

    def price(self, name: str, asked: Requirements) -> float:
        """The least price of one of its types, of the offerings that meet requirements."""
        key = name, asked
        if key not in self._prices:
            self._prices[key] = self._price(name, asked)
        return self._prices[key]

    def _price(self, name: str, asked: Requirements) -> float:
        instance_type = self._types.get(name)
        if instance_type is None or not instance_type.allowed_by(self._offered):
            return inf
        offering = instance_type.cheapest(self._offered.intersect(asked))
        return inf if offering is None else offering.price
