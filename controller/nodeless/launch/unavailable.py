"""The memory of offerings that failed a short while ago, so that the next plan does without them.

EC2 says that a type is sold out in a zone only when it is asked for; asking again at
once gives the same answer. A mark lasts three minutes (Karpenter's unavailable-offerings
cache) and is renewed by each new failure. The memory lives in one process.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from immutables import Map

from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import SPOT

#: Seconds for which a failed offering is left alone.
UNAVAILABLE_SECONDS = 180.0

OfferingKey = tuple[str, str, str]
"""Instance type, zone, capacity type."""

#: In place of every spot offering.
EVERY_SPOT: OfferingKey = ("*", "*", SPOT)


def all_of_zone(zone: str) -> OfferingKey:
    """In place of every offering of a zone."""
    return "*", zone, "*"


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Immutable: marking gives a new memory. `until` holds the time from which each is tried again."""

    until: Map[OfferingKey, float] = Map()

    def mark(self, keys: Iterable[OfferingKey], now: float) -> "Unavailable":
        """With these offerings left alone from now on, and expired marks dropped."""
        until = {key: time for key, time in self.until.items() if time > now}
        until.update((key, now + UNAVAILABLE_SECONDS) for key in keys)
        return Unavailable(Map(until))

    def at(self, now: float) -> frozenset[OfferingKey]:
        """The offerings to leave alone at a time."""
        return frozenset(key for key, time in self.until.items() if time > now)


def exclude_offerings(
    instance_types: tuple[InstanceType, ...], unavailable: frozenset[OfferingKey]
) -> tuple[InstanceType, ...]:
    """The catalog with these offerings marked as not available."""
    touched = {name for name, _, _ in unavailable}
    every = "*" in touched
    return tuple(
        _mark(instance_type, unavailable) if every or instance_type.name in touched else instance_type
        for instance_type in instance_types
    )


def _mark(instance_type: InstanceType, unavailable: frozenset[OfferingKey]) -> InstanceType:
    every_spot = EVERY_SPOT in unavailable
    return replace(
        instance_type,
        offerings=tuple(
            replace(offering, available=False)
            if (instance_type.name, offering.zone, offering.capacity_type) in unavailable
            or (every_spot and offering.capacity_type == SPOT)
            or all_of_zone(offering.zone) in unavailable
            else offering
            for offering in instance_type.offerings
        ),
    )
