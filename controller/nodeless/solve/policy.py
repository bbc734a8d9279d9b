"""What the operator may choose about a solve."""

from collections.abc import Mapping
from dataclasses import dataclass, field

FEWEST_NODES = "fewest-nodes"
PACKINGS = (FEWEST_NODES,)


@dataclass(frozen=True, slots=True)
class Policy:
    """How to pack, and what is known to be wrong with pools.

    Raises:
        ValueError: an unknown packing, or no room for an alternative.
    """

    packing: str = FEWEST_NODES
    """`fewest-nodes`: as few nodes as first-fit decreasing finds, each then as cheap as its pods allow."""
    max_alternatives: int = 60
    """How many instance types a planned node keeps (AWS's limit of overrides that Karpenter sends)."""
    pool_problems: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Pool key to why the pool cannot be used now, for example a node class without subnets."""

    def __post_init__(self) -> None:
        if self.packing not in PACKINGS:
            raise ValueError(f"unknown packing {self.packing!r}; hint: use one of {', '.join(PACKINGS)}")
        if self.max_alternatives < 1:
            raise ValueError(f"max_alternatives is {self.max_alternatives}; hint: use 1 or more")
