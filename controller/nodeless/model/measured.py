"""Memory that nodes were seen to have, which replaces the guess for the next node of the same kind.

How much of an instance's memory its hypervisor keeps depends on type and image and is told by nobody but
a node that has joined. The least that was seen counts; what was not seen for 60 days is forgotten.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeless.model.numbers import whole_number

#: Karpenter's time to live, and how often a sight that says nothing new is written down, in seconds.
KEPT_SECONDS = 60 * 86_400.0
_REFRESHED_SECONDS = 86_400.0
_SEPARATOR = "_"
#: Bytes and seconds beyond this are no sight.
_MOST = 2**62

Kind = tuple[str, str]
"""Instance type and image id."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Bytes of memory and the time of the last sight, by kind of node. Compared by identity."""

    sights: Mapping[Kind, tuple[int, float]] = field(default_factory=dict)

    def memory(self, instance_type: str, image: str) -> int | None:
        """Bytes; None: none was seen."""
        sight = self.sights.get((instance_type, image))
        return sight[0] if sight else None

    def observe(self, instance_type: str, image: str, memory: int, now: float) -> "Measured":
        """With one more sight; the same object when it says nothing new."""
        kind = (instance_type, image)
        known = self.sights.get(kind)
        if known is not None and known[0] <= memory and now - known[1] < _REFRESHED_SECONDS:
            return self
        least = memory if known is None else min(memory, known[0])
        kept = {each: sight for each, sight in self.sights.items() if now - sight[1] < KEPT_SECONDS}
        return Measured({**kept, kind: (least, now)})


def write_measured(measured: Measured) -> dict[str, str]:
    """As data of a ConfigMap: `m5.large_ami-1` to bytes and time."""
    return {
        _SEPARATOR.join(kind): f"{memory} {int(time)}"
        for kind, (memory, time) in sorted(measured.sights.items())
    }


def read_measured(data: Mapping[str, str], now: float) -> Measured:
    """From a ConfigMap's data; entries that are too old or no such thing are left out."""
    sights: dict[Kind, tuple[int, float]] = {}
    for key, text in data.items():
        instance_type, separator, image = key.partition(_SEPARATOR)
        memory, _, time = text.partition(" ")
        amount, seen = whole_number(memory, _MOST), whole_number(time, _MOST)
        if not (separator and image and amount) or seen is None:
            continue
        if now - seen < KEPT_SECONDS:
            sights[instance_type, image] = (amount, float(seen))
    return Measured(sights)
