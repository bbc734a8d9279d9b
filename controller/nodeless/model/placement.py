"""Capacity that is reserved, and groups of hosts: where in the cloud instances are put."""

from dataclasses import dataclass

CAPACITY_BLOCK = "capacity-block"
#: Seconds before the end of a capacity block from which its nodes are drained: EC2 begins to end its
#: instances 30 minutes before the end, and a drain is given 10 minutes (Karpenter).
DRAIN_AHEAD = 40 * 60.0
#: Seconds before the end of a capacity block at which EC2 begins to end its instances.
END_AHEAD = 30 * 60.0


@dataclass(frozen=True, slots=True)
class CapacityReservation:
    """Capacity of one type in one zone that is paid for; `remaining` instances of it are not in use."""

    id: str
    instance_type: str
    zone: str
    remaining: int
    type: str = "default"
    """`default`, or `capacity-block`, which is for a limited time."""
    match_criteria: str = "targeted"
    owner: str = ""
    interruptible: bool = False
    """EC2 may take it back."""
    ends: float | None = None
    """When it ends, in seconds since the epoch; None: when its owner ends it."""
    platform: str = ""
    """What its instances run, in EC2's words: `Linux/UNIX`, `Red Hat Enterprise Linux` and so on."""

    @property
    def instances_end(self) -> float | None:
        """When EC2 begins to end the instances of a capacity block; None: none is known."""
        return self.ends - END_AHEAD if self.type == CAPACITY_BLOCK and self.ends is not None else None

    def expiring(self, now: float) -> bool:
        """Whether its nodes must be drained: EC2 will begin to end the instances of a block."""
        return self.type == CAPACITY_BLOCK and self.ends is not None and now >= self.ends - DRAIN_AHEAD


@dataclass(frozen=True, slots=True)
class PlacementGroup:
    """A placement group: how EC2 puts instances onto hosts; `partitions` is 0 for other strategies."""

    id: str
    name: str
    strategy: str
    partitions: int = 0
