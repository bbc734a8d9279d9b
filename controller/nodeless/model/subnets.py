"""Subnets as far as plans depend on them: how many nodes and pods their addresses are for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


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


def capped(
    subnets: Mapping[str, tuple[SubnetRoom, ...]], addresses: int
) -> dict[str, tuple[SubnetRoom, ...]]:
    """The subnets of each pool, by its key, with no more free addresses than so many: more change nothing."""
    return {
        pool: tuple(replace(room, free_addresses=min(room.free_addresses, addresses)) for room in rooms)
        for pool, rooms in subnets.items()
    }
