"""A claim stays as long as its instance, and a registered node tied to its claim: finalizers and owner.

Those of a node are set when it is adopted, that of a claim when it is written, or here, where a user made it:
before its launch, for it could go before its instance does. Whoever takes one of them off (a tool that
rewrites metadata) would let the node go without a drain.
"""

from nodeless.api.kinds import NODE_CLAIM
from nodeless.model.instructions import AddFinalizer, Instruction, UpdateNode
from nodeless.model.labels import TERMINATION_FINALIZER
from nodeless.nodeclaim.view import ClaimView, Step, cause_of


def step_finalizers(view: ClaimView) -> Step:
    """Put back what is missing on a claim, and on its node once that is registered."""
    claim, node = view.claim, view.node
    missing: list[Instruction] = []
    if TERMINATION_FINALIZER not in claim.finalizers:
        missing.append(AddFinalizer(cause_of(claim), NODE_CLAIM.kind, claim.name, TERMINATION_FINALIZER))
    if node is None or not node.registered or node.deletion_timestamp is not None:
        return Step(tuple(missing))
    owned = any(owner.kind == NODE_CLAIM.kind and owner.name == claim.name for owner in node.owners)
    if not owned or TERMINATION_FINALIZER not in node.finalizers:
        missing.append(
            UpdateNode(
                cause_of(claim),
                node.name,
                add_finalizer=TERMINATION_FINALIZER,
                owner_claim=claim,
                stage="tied node to its claim again",
            )
        )
    return Step(tuple(missing))
