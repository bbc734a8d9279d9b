"""Subnets as far as plans depend on them: their zones, and for how many nodes and pods they have room."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from nodeless.model.labels import ZONE, ZONE_ID
from nodeless.model.requirements import Requirement, Requirements


@dataclass(frozen=True, slots=True, order=True)
class SubnetRoom:
    """What is left of a subnet that nodes of a pool may be launched in."""

    id: str
    zone: str
    free_addresses: int
    """IP addresses that nobody holds, as far as is known; may be negative for a moment."""
    zone_id: str = ""
    """Id of the zone, the same in every account; empty: not known."""
    pods_take_addresses: bool = True
    """Whether pods take IPv4 addresses of it, too; False: nodes alone do."""


def zone_names(subnets: Mapping[str, Iterable[SubnetRoom]]) -> dict[str, str]:
    """The names of the zones of pools' subnets by their ids, as far as EC2 tells these."""
    return {room.zone_id: room.zone for rooms in subnets.values() for room in rooms if room.zone_id}


def named_zone(requirement: Requirement, names: Mapping[str, str]) -> Requirement:
    """A requirement on the id of a zone as one on its name; an id that is not known stays as it is."""
    if requirement.key != ZONE_ID:
        return requirement
    values = frozenset(names.get(each, each) for each in requirement.values)
    return replace(requirement, key=ZONE, values=values)


def named_zones(requirements: Requirements, names: Mapping[str, str]) -> Requirements:
    """Requirements of which none is on the id of a zone."""
    if ZONE_ID not in requirements:
        return requirements
    return Requirements(named_zone(each, names) for each in requirements.values())


def capped(
    subnets: Mapping[str, tuple[SubnetRoom, ...]], addresses: int
) -> dict[str, tuple[SubnetRoom, ...]]:
    """The subnets of each pool, by its key, with no more free addresses than so many: more change nothing."""
    return {
        pool: tuple(replace(room, free_addresses=min(room.free_addresses, addresses)) for room in rooms)
        for pool, rooms in subnets.items()
    }
