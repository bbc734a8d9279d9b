"""Tags of an instance that only its node can tell (Karpenter v1, `nodeclaim.tagging`).

What is done is noted on the claim by two annotations. Whoever takes one off has the instance tagged anew.
Claims of Provisioners are left alone: v0.27 tags an instance once, when it makes it.
"""

from nodeless.model.instructions import AnnotateClaim
from nodeless.model.labels import CLUSTER_NAME_TAGGED, INSTANCE_TAGGED
from nodeless.model.nodes import NodeClaim
from nodeless.model.pools import EC2_NODE_CLASS
from nodeless.nodeclaim.view import cause_of

_NOTED = {INSTANCE_TAGGED: "true", CLUSTER_NAME_TAGGED: "true"}


def is_taggable(claim: NodeClaim) -> bool:
    """Whether the claim's node is known and its instance is not noted as tagged."""
    return bool(
        claim.node_class.kind == EC2_NODE_CLASS
        and claim.node_name
        and claim.instance_id
        and claim.deletion_timestamp is None
        and not claim.invalid
        and any(claim.annotations.get(key) != value for key, value in _NOTED.items())
    )


def note_tagged(claim: NodeClaim) -> AnnotateClaim:
    """What notes on the claim that its instance bears the tags."""
    return AnnotateClaim(cause_of(claim), claim.name, dict(_NOTED))
