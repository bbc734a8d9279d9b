"""Nodes with and without EFA interfaces: an instance has those only with which it was launched.

EC2 says of a type how many it may have, and a catalog counts on all of them. A node on its way has them
where its claim was made for pods that ask for them, as a resource or as devices, or where its node class
lists them.
"""

from collections.abc import Mapping

from nodeless.model.labels import EFA_DEVICES
from nodeless.model.nodes import NodeClaim
from nodeless.model.pools import NodeClass

#: The resource that counts EFA interfaces of a type.
EFA = "vpc.amazonaws.com/efa"


def launched_with_efa(claim: NodeClaim, node_classes: Mapping[str, NodeClass]) -> bool:
    """Whether a claim's node has EFA interfaces.

    Args:
        claim: The claim, launched or not.
        node_classes: By `KIND/NAME`.
    """
    if claim.requests.get(EFA) or EFA_DEVICES in claim.annotations:
        return True
    node_class = node_classes.get(str(claim.node_class))
    return node_class is not None and any(interface.efa_only for interface in node_class.network_interfaces)
