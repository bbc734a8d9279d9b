"""What takes the place of one node that must go for its own sake: too old, drifted or broken.

A dynamic pool owes room to the node's pods, wherever it is; a static pool owes a node, whatever the pods.
"""

from dataclasses import replace

from nodeless.disruption.candidates import Candidate
from nodeless.disruption.context import DisruptionContext
from nodeless.disruption.simulation import Outcome, simulate_scheduling
from nodeless.model.disruption import DisruptionReason
from nodeless.model.instance_types import Catalog, Offering
from nodeless.model.labels import CAPACITY_RESERVATION_ID
from nodeless.model.nodes import INITIALIZED_CONDITION
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import has_slot, spare_slots, static_nodes
from nodeless.scheduling.capacity.pool_table import NODES
from nodeless.state.usage import pool_members


def replacement_for(context: DisruptionContext, candidate: Candidate, reason: DisruptionReason) -> Outcome:
    """The nodes to launch before the candidate ends, or why that cannot be done now.

    Without nodes the candidate ends first: in a static pool at its limit, and where the policy allows it for
    the reason, when only the slot that the candidate holds of a reservation can hold its replacement.
    """
    found = _outcome_of(context, candidate, reason, context.catalog)
    if found.placed or reason not in context.policy.terminate_first:
        return found
    freed = _with_its_slot(context.catalog, candidate)
    if freed is None or not _outcome_of(context, candidate, reason, freed).placed:
        return found
    return Outcome(True, "", ())


def _outcome_of(
    context: DisruptionContext, candidate: Candidate, reason: DisruptionReason, catalog: Catalog
) -> Outcome:
    if candidate.pool.replicas is not None:
        return _one_for_one(context, candidate, reason, catalog)
    return simulate_scheduling(context.scheduled.snapshot, [candidate], catalog, context.policy.solving)


def _with_its_slot(catalog: Catalog, candidate: Candidate) -> Catalog | None:
    """What is for sale once the candidate has given back its slot of a reservation; None when it has none."""
    reservation = candidate.node.labels.get(CAPACITY_RESERVATION_ID, "")
    if not reservation:
        return None

    def freed(offering: Offering) -> Offering:
        if offering.reservation != reservation:
            return offering
        return replace(offering, available=True, remaining=offering.remaining + 1)

    return {
        pool: tuple(
            replace(each, offerings=tuple(map(freed, each.offerings)))
            if any(offering.reservation == reservation for offering in each.offerings)
            else each
            for each in types
        )
        for pool, types in catalog.items()
    }


def _one_for_one(
    context: DisruptionContext, candidate: Candidate, reason: DisruptionReason, catalog: Catalog
) -> Outcome:
    """The new node first, or the old one where the pool's limit never has room for both.

    Where it has, and others are being replaced in that room, the node waits for its turn: ended first, the
    pool would hold fewer nodes than its replicas for no need. Where it never has, nodes that are still to
    join count against the budgets of one that is not broken: it would be missed beside them.
    """
    pool = candidate.pool
    nodes = static_nodes(context.snapshot, catalog, context.policy.solving, {pool.key: 1})
    if not nodes:
        return Outcome(False, f"{pool.key} can make no node now")
    if has_slot(context.snapshot, pool):
        return Outcome(True, "", nodes)
    if spare_slots(pool):
        return Outcome(
            False, "what the limit of nodes leaves beside its replicas is taken; it waits for its turn"
        )
    missing = _missing(context.snapshot, pool)
    if reason != DisruptionReason.UNHEALTHY and missing >= context.allowance(pool, reason).allowed:
        return Outcome(False, f"{missing} of the nodes of its pool are still to join; it waits for its turn")
    return Outcome(True, "", ())


def _missing(snapshot: Snapshot, pool: Pool) -> int:
    """How many nodes a static pool at its limit lacks: they leave, are launched, or start."""
    joined = sum(
        claim.deletion_timestamp is None
        and node is not None
        and (node.initialized or claim.is_true(INITIALIZED_CONDITION))
        for claim, node in pool_members(snapshot, pool)
    )
    limit = (pool.limits or {}).get(NODES, joined)
    return max(min(pool.replicas or 0, limit) - joined, 0)
