"""How new nodes are chosen for pods, by the name that users write.

`lowest-price`: the lowest price, then fewer nodes, then a stable order.
`fewest-nodes`: as few nodes as first-fit decreasing finds, each then as cheap as its pods allow
(Karpenter's way).
"""

LOWEST_PRICE = "lowest-price"
FEWEST_NODES = "fewest-nodes"
PACKINGS = (LOWEST_PRICE, FEWEST_NODES)
#: Annotation on a Provisioner or a NodePool that chooses the packing of its nodes.
PACKING_ANNOTATION = "nodeless.dev/packing"


def packing_defect(packing: object) -> str:
    """What is wrong with the name of a packing; empty when it is known."""
    return "" if packing in PACKINGS else f"is not a packing; hint: use {' or '.join(PACKINGS)}"
