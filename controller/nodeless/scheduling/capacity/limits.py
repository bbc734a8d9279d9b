"""What a pool may still grow by.

Budget = limits - capacity of the pool's living nodes and claims - capacity of nodes opened in
this pass. A node that is still open counts as much as the largest of its remaining types, for
the cloud may launch any of them; so no launch can exceed a limit. When that caution is what
forbids another node, the open nodes are first bound to their cheapest size (`tighten`).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.resources import Resources
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.in_flight_node import charged_capacity
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim
from nodeless.scheduling.capacity.pool_table import NODES, PoolTable, bounded_limit
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.pods.eligibility import claims_by_provider_id, leaving


def drop_far_limits(snapshot: Snapshot, tables: Mapping[str, PoolTable], pods: int) -> None:
    """Make tables forget limits that a pass cannot reach, not with a node of the largest type for each pod.

    So that a limit which nobody meets changes no plan: whatever knows of limits is careful with them.
    """
    used = _capacity_by_pool(snapshot, tables)
    for key, table in tables.items():
        if table.limit_names:
            left = table.limits - _spent(table, used.get(key, []))
            table.keep_limits(left // max(pods, 1) < table.limited.max(axis=0, initial=0))


class RemainingLimits:
    """The budgets of all pools in one solve."""

    def __init__(self, snapshot: Snapshot, tables: Mapping[str, PoolTable]) -> None:
        used = _capacity_by_pool(snapshot, tables)
        self._left: dict[str, Amounts] = {}
        for key, table in tables.items():
            self._left[key] = table.limits - _spent(table, used.get(key, []))
        self._opened: dict[str, list[InFlightNodeClaim]] = {}

    def affordable(self, table: PoolTable) -> Mask:
        """The types of which one more node stays within the limits."""
        if not table.limit_names:
            return np.ones(len(table.table), dtype=np.bool_)
        left = self._left[table.pool.key].copy()
        for node in self._opened.get(table.pool.key, ()):
            left -= node.charge()
        mask: Mask = np.logical_and.reduce(table.limited <= left, axis=1)
        return mask

    def affordable_instead(self, node: InFlightNodeClaim) -> Mask:
        """The types that an open node could be instead of those it has, within the limits."""
        table = node.table
        if not table.limit_names:
            return np.ones(len(table.table), dtype=np.bool_)
        left = self.left(table, self._opened.get(table.pool.key, ())) + node.charge()
        mask: Mask = np.logical_and.reduce(table.limited <= left, axis=1)
        return mask

    def left(self, table: PoolTable, opened: Sequence[InFlightNodeClaim]) -> Amounts:
        """What is left of a pool's limits when only these nodes of this pass are opened, by limit name."""
        left: Amounts = self._left[table.pool.key].copy()
        for node in opened:
            if node.table is table:
                left -= node.charge()
        return left

    def tighten(self, table: PoolTable) -> bool:
        """Bind the pool's open nodes to types no larger than their cheapest one; whether that changed any."""
        changed = False
        for node in self._opened.get(table.pool.key, ()):
            size = table.limited[node.by_price()[0]]
            before = len(node.types)
            node.restrict((table.limited <= size).all(axis=1))
            changed = changed or len(node.types) != before
        return changed

    def exhausted(self, table: PoolTable) -> tuple[str, int, int] | None:
        """A limit that is used up: its name, the limit and what is used of it before this pass."""
        for name, limit, left in zip(
            table.limit_names, table.limits, self._left[table.pool.key], strict=True
        ):
            if left <= 0:
                return name, int(limit), int(limit - left)
        return None

    def opened(self, node: InFlightNodeClaim) -> None:
        """Count a node from now on."""
        if node.table.limit_names:
            self._opened.setdefault(node.table.pool.key, []).append(node)


def _spent(table: PoolTable, capacities: list[Resources]) -> Amounts:
    """What counts against a pool's limits already, by limit."""
    spent = [bounded_limit(_amount(capacities, name)) for name in table.limit_names]
    return np.array(spent, dtype=np.int64)


def _capacity_by_pool(snapshot: Snapshot, tables: Mapping[str, PoolTable]) -> dict[str, list[Resources]]:
    """The capacities of each pool's living nodes, and of claims whose node has not appeared."""
    claims = claims_by_provider_id(snapshot)
    used: dict[str, list[Resources]] = {}
    seen = set()
    for node in snapshot.nodes.values():
        claim = claims.get(node.provider_id) if node.provider_id else None
        seen.add(node.provider_id)
        pool = claim.pool if claim is not None else node.pool
        if pool is not None and not leaving(node, claim):
            used.setdefault(str(pool), []).append(_node_capacity(node, claim))
    for claim in snapshot.claims.values():
        if claim.deletion_timestamp is None and (not claim.provider_id or claim.provider_id not in seen):
            key = str(claim.pool)
            used.setdefault(key, []).append(charged_capacity(claim, tables.get(key)))
    return used


def _node_capacity(node: Node, claim: NodeClaim | None) -> Resources:
    if claim is None or node.initialized:
        return node.capacity
    reported = {name: amount for name, amount in node.capacity.items() if amount}
    return {**claim.capacity, **reported}


def _amount(capacities: list[Resources], name: str) -> int:
    if name == NODES:
        return len(capacities)
    return sum(capacity.get(name, 0) for capacity in capacities)
