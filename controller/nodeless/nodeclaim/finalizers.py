"""A registered node stays tied to its claim: our finalizer, and the claim as its owner.

Both are set when the node is adopted. Whoever takes one of them off (a tool that rewrites metadata, a
node that registered itself anew) would let the node go without a drain.
"""

from nodeless.api.kinds import NODE_CLAIM
from nodeless.model.instructions import UpdateNode
from nodeless.model.labels import TERMINATION_FINALIZER
from nodeless.nodeclaim.view import ClaimView, Step, cause_of


def step_finalizers(view: ClaimView) -> Step:
    """Put back what is missing on the node of a registered claim."""
    claim, node = view.claim, view.node
    if node is None or not node.registered or node.deletion_timestamp is not None:
        return Step()
    owned = any(owner.kind == NODE_CLAIM.kind and owner.name == claim.name for owner in node.owners)
    if owned and TERMINATION_FINALIZER in node.finalizers:
        return Step()
    update = UpdateNode(
        cause_of(claim),
        node.name,
        add_finalizer=TERMINATION_FINALIZER,
        owner_claim=claim,
        stage="tied node to its claim again",
    )
    return Step((update,))
