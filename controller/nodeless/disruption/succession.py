"""What takes the place of one node that must go for its own sake: too old, drifted or broken.

A dynamic pool owes room to the node's pods, wherever it is; a static pool owes a node, whatever the pods.
"""

from nodeless.disruption.candidates import Candidate
from nodeless.disruption.look import Look
from nodeless.disruption.simulation import Outcome, without
from nodeless.solve import has_slot, static_nodes


def succession(look: Look, candidate: Candidate) -> Outcome:
    """The nodes to launch before the candidate ends, or why that cannot be done now."""
    if candidate.pool.replicas is not None:
        return _one_for_one(look, candidate)
    return without(look.settled.snapshot, [candidate], look.catalog, look.policy.solving, look.now)


def _one_for_one(look: Look, candidate: Candidate) -> Outcome:
    """The new node first, or the old one where the pool's limit has no room for both."""
    pool = candidate.pool
    nodes = static_nodes(look.snapshot, look.catalog, look.policy.solving, {pool.key: 1})
    if not nodes:
        return Outcome(False, f"{pool.key} can make no node now")
    return Outcome(True, "", nodes if has_slot(look.snapshot, pool) else ())
