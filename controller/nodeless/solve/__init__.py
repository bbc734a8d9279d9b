"""The solver: `solve(snapshot, catalog, policy, now) -> Plan`, pure and deterministic.

Start reading at `solver`, which states the problem and names the other modules in the order
of the work.
"""

from nodeless.solve.eligibility import pods_to_place
from nodeless.solve.policy import FEWEST_NODES, LOWEST_PRICE, Policy
from nodeless.solve.pricing import PriceAdjustment
from nodeless.solve.solver import solve
from nodeless.solve.static_pools import static_shortage

__all__ = [
    "FEWEST_NODES",
    "LOWEST_PRICE",
    "Policy",
    "PriceAdjustment",
    "pods_to_place",
    "solve",
    "static_shortage",
]
