"""What nodes were seen to have, which replaces the guess for the next node of the same kind.

How much of an instance's memory its hypervisor keeps depends on type and image and is told by nobody but
a node that has joined. So does what an image leaves of the disk that holds pods' files: that depends on the
image and the size of the disk. The least that was seen counts; what was not seen for 60 days is forgotten.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nodeless.model.numbers import whole_number

#: Karpenter's time to live, and how often a sight that says nothing new is written down, in seconds.
KEPT_SECONDS = 60 * 86_400.0
_REFRESHED_SECONDS = 86_400.0
_SEPARATOR = "_"
#: Bytes and seconds beyond this are no sight.
_MOST = 2**62
#: Begins the keys of disks; no instance type is called so.
_DISK = "ephemeral-storage"

Kind = tuple[str, str]
"""Instance type and image id."""
Disk = tuple[str, int]
"""Image id, and the bytes of ephemeral storage that a node was planned to have."""


@dataclass(frozen=True, slots=True, eq=False)
class MemoryObservations:
    """Bytes of memory and the time of the last sight, by kind of node. Compared by identity.

    `disks` holds the bytes of ephemeral storage of nodes that had less than was planned.
    """

    sights: Mapping[Kind, tuple[int, float]] = field(default_factory=dict)
    disks: Mapping[Disk, tuple[int, float]] = field(default_factory=dict)

    def memory(self, instance_type: str, image: str) -> int | None:
        """Bytes; None: none was seen."""
        sight = self.sights.get((instance_type, image))
        return sight[0] if sight else None

    def ephemeral_storage(self, image: str, planned: int) -> int:
        """Bytes that a node has which is planned to have so many; as planned where less was never seen."""
        sight = self.disks.get((image, planned))
        while sight is not None and sight[0] < planned:
            # Nodes that were planned by an earlier sight may have turned out to have even less.
            planned = sight[0]
            sight = self.disks.get((image, planned))
        return planned

    def observe_disk(self, image: str, planned: int, seen: int, now: float) -> "MemoryObservations":
        """With the sight of a node's disk; the same object when it is as planned, or says nothing new."""
        known = self.disks.get((image, planned))
        least = seen if known is None else min(seen, known[0])
        nothing_new = known is not None and least == known[0] and now - known[1] < _REFRESHED_SECONDS
        if seen >= planned or nothing_new:
            return self
        kept = {each: sight for each, sight in self.disks.items() if now - sight[1] < KEPT_SECONDS}
        return replace(self, disks={**kept, (image, planned): (least, now)})

    def observe(self, instance_type: str, image: str, memory: int, now: float) -> "MemoryObservations":
        """With one more sight; the same object when it says nothing new."""
        kind = (instance_type, image)
        known = self.sights.get(kind)
        if known is not None and known[0] <= memory and now - known[1] < _REFRESHED_SECONDS:
            return self
        least = memory if known is None else min(memory, known[0])
        kept = {each: sight for each, sight in self.sights.items() if now - sight[1] < KEPT_SECONDS}
        return replace(self, sights={**kept, kind: (least, now)})


def write_observations(measured: MemoryObservations) -> dict[str, str]:
    """As data of a ConfigMap: `m5.large_ami-1`, or `ephemeral-storage_ami-1_PLANNED`, to bytes and time."""
    sights = {_SEPARATOR.join(kind): sight for kind, sight in measured.sights.items()}
    disks = {
        _SEPARATOR.join((_DISK, image, str(planned))): sight
        for (image, planned), sight in measured.disks.items()
    }
    return {key: f"{amount} {int(time)}" for key, (amount, time) in sorted({**sights, **disks}.items())}


def read_observations(data: Mapping[str, str], now: float) -> MemoryObservations:
    """From a ConfigMap's data; entries that are too old or no such thing are left out."""
    sights: dict[Kind, tuple[int, float]] = {}
    disks: dict[Disk, tuple[int, float]] = {}
    for key, text in data.items():
        head, separator, rest = key.partition(_SEPARATOR)
        bytes_, _, time = text.partition(" ")
        amount, seen = whole_number(bytes_, _MOST), whole_number(time, _MOST)
        if not (separator and rest and amount) or seen is None or now - seen >= KEPT_SECONDS:
            continue
        if head != _DISK:
            sights[head, rest] = (amount, float(seen))
            continue
        image, _, size = rest.partition(_SEPARATOR)
        planned = whole_number(size, _MOST)
        if image and planned:
            disks[image, planned] = (amount, float(seen))
    return MemoryObservations(sights, disks)
