"""What takes the place of one node that must go for its own sake: too old, drifted or broken.

A dynamic pool owes room to the node's pods, wherever it is; a static pool owes a node, whatever the pods.
"""

from nodeless.disruption.candidates import Candidate
from nodeless.disruption.context import DisruptionContext
from nodeless.disruption.simulation import Outcome, simulate_scheduling
from nodeless.scheduling import has_slot, spare_slots, static_nodes


def replacement_for(context: DisruptionContext, candidate: Candidate) -> Outcome:
    """The nodes to launch before the candidate ends, or why that cannot be done now."""
    if candidate.pool.replicas is not None:
        return _one_for_one(context, candidate)
    return simulate_scheduling(
        context.scheduled.snapshot, [candidate], context.catalog, context.policy.solving
    )


def _one_for_one(context: DisruptionContext, candidate: Candidate) -> Outcome:
    """The new node first, or the old one where the pool's limit never has room for both.

    Where it has, and others are being replaced in that room, the node waits for its turn: ended first, the
    pool would hold fewer nodes than its replicas for no need.
    """
    pool = candidate.pool
    nodes = static_nodes(context.snapshot, context.catalog, context.policy.solving, {pool.key: 1})
    if not nodes:
        return Outcome(False, f"{pool.key} can make no node now")
    if has_slot(context.snapshot, pool):
        return Outcome(True, "", nodes)
    if spare_slots(pool):
        return Outcome(
            False, "what the limit of nodes leaves beside its replicas is taken; it waits for its turn"
        )
    return Outcome(True, "", ())
