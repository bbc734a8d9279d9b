"""The end of a node that has our finalizer but no claim: drained, then let go.

Happens only when somebody took the finalizer off the claim by hand. Its instance is the collector's.
"""

from collections.abc import Iterable

from nodeless.model.instructions import RemoveFinalizer
from nodeless.model.labels import TERMINATION_FINALIZER
from nodeless.model.nodes import Node, NodeClaim, is_node_of_others
from nodeless.model.pods import Pod
from nodeless.model.pools import NODE_POOL_KIND, Reference
from nodeless.nodeclaim.draining import Drain, delays_drain, drain_taint, requests_to_leave
from nodeless.nodeclaim.termination import DRAIN_AGAIN, cordon
from nodeless.nodeclaim.view import Step


def step_orphan(node: Node, pods: Iterable[Pod], now: float) -> Step:
    """What a node without a claim needs next, once it is deleted.

    Nodes of Karpenter v0.27 have the same finalizer, and never had a claim: they are not ours to end. Nodes
    of EKS Auto Mode and of other providers have it, too, and claims that are not ours: their controllers
    drain them.

    Args:
        node: A node that no claim belongs to.
        pods: The pods on it.
        now: Seconds since the epoch.
    """
    if is_node_of_others(node.labels, node.provider_id) or not node.registered:
        return Step()
    if node.deletion_timestamp is None or not node.terminating:
        return Step()
    stand_in = _claim_of(node)
    drain = Drain(drain_taint(stand_in.pool), node.deletion_timestamp)
    marks = cordon(stand_in, node)
    waiting = tuple(pod for pod in pods if delays_drain(pod, drain.taint, now))
    # The collector ends the instance of a missing claim: then no pod of a silent node ends any more.
    if not node.ready or not (marks or waiting):
        cause = f"node:{node.name}"
        return Step((RemoveFinalizer(cause, "Node", node.name, TERMINATION_FINALIZER, node.uid),))
    asked, _ = requests_to_leave(stand_in, node, waiting, now, drain)
    return Step((*marks, *asked), now + DRAIN_AGAIN)


def _claim_of(node: Node) -> NodeClaim:
    """What the rules of a drain ask of a claim, as far as its node says it."""
    pool = node.pool or Reference(NODE_POOL_KIND, "")
    return NodeClaim(node.name, pool, Reference("", ""), provider_id=node.provider_id)
