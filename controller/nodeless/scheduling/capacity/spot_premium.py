"""Spot or on-demand, for pods that say what an interruption loses.

Problem
-------
A pod that runs on an instance of type t which holds k_t such pods pays its share s_t = price_t / k_t of it.
Spot takes an instance r_t times an hour on average. A pod that loses L hours of work whenever it is
interrupted has to pay for these hours once more, at the price that they had: on average

    premium_t = r_t * n_t * L * s_t        US dollars an hour

where n_t is the number of instances of which each, when it is taken, loses the pod's work. That is 1 for a
pod by itself. The g members of a gang lose everybody's work when one of them stops, and are on n_t = ceil(g /
k_t) instances at least: all of them lose r_t * n_t * g * L * s_t an hour, and each member its g-th part.

On-demand is no dearer than spot when

    s_u of on-demand  <=  s_t + premium_t of spot

with u and t the types of least share of each, for these are what a plan would buy; of equal ones, that which
holds the most. Types are those that could hold such a pod, in the heaviest pools that have any. Interruptions
are taken to be independent of each other and of the work, and a premium to be small: a job that is
interrupted more often than it gets work done never ends, and is better off on-demand all the more.

Example: 10 h lost, one interruption in 50 h, 10 USD/h on spot and 12 USD/h on-demand. The premium is 1/50 *
10 * 10 = 2 USD/h: on-demand is no dearer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nodeless.model.bill import HOURS_A_MONTH
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from nodeless.model.lost_work import (
    CapacityChoice,
    InterruptionRate,
    LostWork,
    interruptions_a_month,
)
from nodeless.model.requirements import IN, NOT_IN, Requirement
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.pods.classes import PodClass
from nodeless.scheduling.pods.constraints import NodeRequirements, node_requirements_of

#: What a pod asks of a node where on-demand is no dearer. Reserved capacity is as good.
OFF_SPOT = (Requirement.of(CAPACITY_TYPE, NOT_IN, (SPOT,)),)


def choose_capacity(
    pods: PodClass, lost: LostWork, tables: Sequence[PoolTable], rates: tuple[InterruptionRate, ...]
) -> CapacityChoice | None:
    """What speaks for on-demand and what for spot; None: there is nothing to choose.

    That is so where the pods say of which capacity type their nodes are, and where no pool could make a node
    of one of the two.

    Args:
        pods: The class.
        lost: What an interruption of one of them loses.
        tables: The pools, heaviest first.
        rates: How often spot takes nodes.
    """
    if any(CAPACITY_TYPE in required.requirements for required in pods.demand.required):
        return None
    on_demand = min(_offered(pods, tables, ON_DEMAND), key=_by_share, default=None)
    spot = min(_offered(pods, tables, SPOT), key=_by_share, default=None)
    if on_demand is None or spot is None:
        return None
    nodes = -(-lost.pods // spot.holds)
    per_month = nodes * interruptions_a_month(rates, spot.pool, spot.instance_type)
    expected = per_month / HOURS_A_MONTH * lost.seconds / 3600 * spot.share
    return CapacityChoice(expected, on_demand.share - spot.share, per_month)


@dataclass(frozen=True, slots=True)
class _Offer:
    """A type at its least price in a pool, for pods of a class."""

    pool: str
    instance_type: str
    share: float
    """USD an hour of one of the pods."""
    holds: int
    """How many of them."""


def _by_share(offer: _Offer) -> tuple[float, int, str, str]:
    return offer.share, -offer.holds, offer.instance_type, offer.pool


def _offered(pods: PodClass, tables: Sequence[PoolTable], capacity_type: str) -> Iterator[_Offer]:
    """What could hold pods of a class at a capacity type, of the heaviest pools that have any."""
    weight: int | None = None
    only = Requirement.of(CAPACITY_TYPE, IN, (capacity_type,))
    for table in tables:
        if weight is not None and table.pool.weight < weight:
            return
        if table.refuses(pods.shape.tolerations, soft=True) is not None:
            continue
        for required in pods.demand.required:
            wanted = node_requirements_of((*required.expressions, only))
            fresh = table.fresh(pods, wanted) if isinstance(wanted, NodeRequirements) else None
            if fresh is None:
                continue
            terms, counts = fresh
            weight = table.pool.weight
            for row in np.flatnonzero((counts > 0) & terms.types & np.isfinite(terms.prices)).tolist():
                held = int(counts[row])
                share = float(terms.prices[row]) / held
                yield _Offer(table.pool.name, table.table.types[row].name, share, held)


def off_spot(required: Sequence[NodeRequirements]) -> tuple[NodeRequirements, ...]:
    """Alternatives that keep off spot, too; those that contradict it are left out."""
    narrowed = (node_requirements_of((*one.expressions, *OFF_SPOT)) for one in required)
    return tuple(one for one in narrowed if isinstance(one, NodeRequirements))
