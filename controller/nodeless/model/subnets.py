"""Subnets as far as plans depend on them: how many nodes and pods their addresses are for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class SubnetRoom:
    """What is left of a subnet that nodes of a pool may be launched in."""

    id: str
    zone: str
    free_addresses: int
    """IP addresses that nobody holds, as far as is known; may be negative for a moment."""
    zone_id: str = ""
    """Id of the zone, the same in every account; empty: not known."""
