"""The solver: `solve(snapshot, catalog, policy) -> Plan`, pure and deterministic.

Start reading at `solver`, which states the problem and names the other modules in the order
of the work.
"""

from nodeless.scheduling.capacity.pricing import PriceAdjustment
from nodeless.scheduling.capacity.static_pools import has_slot, spare_slots, static_shortage
from nodeless.scheduling.capacity_choices import with_running_choices
from nodeless.scheduling.pods.buffers import with_placeholders
from nodeless.scheduling.pods.eligibility import pods_to_place
from nodeless.scheduling.policy import FEWEST_NODES, LOWEST_PRICE, Policy
from nodeless.scheduling.solver import solve, static_nodes

__all__ = [
    "FEWEST_NODES",
    "LOWEST_PRICE",
    "Policy",
    "PriceAdjustment",
    "has_slot",
    "pods_to_place",
    "solve",
    "spare_slots",
    "static_nodes",
    "static_shortage",
    "with_placeholders",
    "with_running_choices",
]
