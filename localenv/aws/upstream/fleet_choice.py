"""Which pools an instant fleet takes, and in what order. Pure.

A pool is one override: instance type, zone and subnet, capacity type. EC2 does not publish how it weighs
capacity against price, so the choice here is deterministic and documented:

| strategy | order of pools |
|---|---|
| `lowest-price`, `price-capacity-optimized` | cheapest first: all pools count as equally deep |
| `prioritized`, `capacity-optimized-prioritized` | lowest Priority first, those without one last; price |
| `capacity-optimized` | as listed in the request |
| `diversified` | as listed, one instance each in turn |

Ties: instance type, zone, position. The first pool takes all it can hold, the next one the rest (EC2's
instant fleets do the same as long as a pool lasts); pools that refuse are reported, also when others deliver.
moto takes the first override whatever the strategy says.

Source: EC2 user guide, "Allocation strategies for Spot Instances" and "... for On-Demand Instances".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pool:
    """One override of one launch template, resolved."""

    #: Position in the request: configs first, overrides within.
    position: int
    config: int
    override: Mapping[str, Any]
    instance_type: str
    zone: str
    subnet_id: str
    image_id: str
    #: US dollars per hour in the capacity type of the launch; infinite when unknown.
    price: float
    priority: float
    #: Units of capacity that one instance gives.
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pool that gave nothing or not all, in EC2's words."""

    pool: Pool
    code: str
    message: str


#: How many instances a pool can give and why no more.
Probe = Callable[[Pool], tuple[int, tuple[str, str] | None]]


def in_order(pools: Sequence[Pool], strategy: str) -> list[Pool]:
    """The pools in the order in which a strategy tries them."""
    if strategy in {"lowest-price", "price-capacity-optimized"}:
        return sorted(pools, key=lambda p: (p.price, p.instance_type, p.zone, p.position))
    if strategy in {"prioritized", "capacity-optimized-prioritized"}:
        return sorted(pools, key=lambda p: (p.priority, p.price, p.instance_type, p.zone, p.position))
    return sorted(pools, key=lambda p: p.position)


def choose(
    pools: Sequence[Pool], strategy: str, capacity: float, probe: Probe
) -> tuple[list[tuple[Pool, int]], list[Refusal]]:
    """The pools to launch from with the number of instances each, and the pools that refused.

    Args:
        pools: What the request offers.
        strategy: An allocation strategy of EC2, in EC2's spelling.
        capacity: Units wanted.
        probe: Asked at most once per pool.
    """
    taken: dict[int, int] = {}
    room: dict[int, int] = {}
    refusals: list[Refusal] = []
    remaining = capacity
    for rounds in range(len(pools) if strategy == "diversified" else 1):
        for pool in in_order(pools, strategy):
            if remaining <= 0:
                break
            if pool.position not in room:
                available, reason = probe(pool)
                room[pool.position] = available
                if reason is not None and available * pool.weight < remaining:
                    refusals.append(Refusal(pool, *reason))
            wanted = -int(-remaining // pool.weight)
            if strategy == "diversified" and rounds < len(pools) - 1:
                wanted = min(wanted, 1)
            count = min(wanted, room[pool.position])
            if count > 0:
                taken[pool.position] = taken.get(pool.position, 0) + count
                room[pool.position] -= count
                remaining -= count * pool.weight
    by_position = {pool.position: pool for pool in pools}
    return [(by_position[position], count) for position, count in taken.items()], refusals
