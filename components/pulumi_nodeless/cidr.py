"""How a VPC's address range is split into subnets: plain arithmetic, no resources.

The layout does not depend on how many zones are in use: a stack that grows from two zones to three
adds subnets and moves none. The range is cut into eight equal slices. Slices 0 to 5 are the private
subnets of up to six zones, for nodes and Fargate pods, since the VPC CNI gives every pod an address of
its subnet. Slice 6 holds small public subnets, for NAT gateways and load balancers, slice 7 small ones
without a way to the internet, for databases and the like.

    10.0.0.0/16:  private 10.0.0.0/19, 10.0.32.0/19, ...   public 10.0.192.0/22, 10.0.196.0/22, ...
                  intra 10.0.224.0/22, 10.0.228.0/22, ...
"""

from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network

MAXIMUM_ZONES = 6
"""Zones the layout has room for; no AWS region has more."""
_PRIVATE_BITS = 3
_SMALL_BITS = 6
_FIRST_PUBLIC = MAXIMUM_ZONES << (_SMALL_BITS - _PRIVATE_BITS)
_FIRST_INTRA = (MAXIMUM_ZONES + 1) << (_SMALL_BITS - _PRIVATE_BITS)
_LARGEST_PREFIX = 16
_SMALLEST_PREFIX = 28 - _SMALL_BITS
"""A subnet of AWS has at least 16 addresses (/28), a VPC at most 65,536 (/16)."""


@dataclass(frozen=True, slots=True)
class ZoneSubnets:
    """The address ranges of one zone."""

    private: str
    public: str
    intra: str


def parse_vpc_cidr(cidr: str) -> IPv4Network:
    """Reads the address range of a VPC.

    Raises:
        ValueError: it is not an IPv4 network address between /16 and /22.
    """
    network = IPv4Network(cidr)
    if not _LARGEST_PREFIX <= network.prefixlen <= _SMALLEST_PREFIX:
        bounds = f"/{_LARGEST_PREFIX} to /{_SMALLEST_PREFIX}"
        message = f"{cidr} has a prefix of /{network.prefixlen}, allowed are {bounds}"
        raise ValueError(message)
    return network


def split(cidr: str, zones: int) -> tuple[ZoneSubnets, ...]:
    """The subnets of the first `zones` zones of a VPC.

    Raises:
        ValueError: the range or the number of zones is out of bounds.
    """
    if not 1 <= zones <= MAXIMUM_ZONES:
        message = f"{zones} zones requested, but the layout has room for 1 to {MAXIMUM_ZONES}"
        raise ValueError(message)
    network = parse_vpc_cidr(cidr)
    private = list(network.subnets(prefixlen_diff=_PRIVATE_BITS))
    small = list(network.subnets(prefixlen_diff=_SMALL_BITS))
    return tuple(
        ZoneSubnets(str(private[i]), str(small[_FIRST_PUBLIC + i]), str(small[_FIRST_INTRA + i]))
        for i in range(zones)
    )


def is_network(text: str) -> bool:
    """Whether this is a network in CIDR notation, without bits of hosts."""
    try:
        # An address alone, or with a mask, would be read as well.
        return str(text).rpartition("/")[2] == str(ip_network(text).prefixlen)
    except ValueError:
        return False
