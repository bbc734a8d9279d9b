"""Which private addresses new instances get.

moto gives a new instance the address of the one that ended last. EC2 gives an address again that an
instance had, but hardly ever the next minute: names of nodes, which are made of addresses, do not come
back at once.

Source: observed; the EC2 user guide, "Private IPv4 addresses", says that an address returns to the
subnet's pool when its instance is terminated.
"""

from __future__ import annotations

from typing import Any

from moto.ec2.models.subnets import Subnet

from localenv.aws.upstream import replace_method


class Addresses:
    """Whether new instances get the addresses of those that have just ended, as a test may want."""

    reused_at_once = False


_any_address = Subnet.get_available_subnet_ip


def _address(self: Subnet, instance: Any) -> str:
    """An address that nobody has had yet, as long as the subnet has one."""
    if not Addresses.reused_at_once:
        freed, self._unused_ips = self._unused_ips, set()
        try:
            return _any_address(self, instance)
        except StopIteration:
            pass
        finally:
            self._unused_ips |= freed
    return _any_address(self, instance)


def patch() -> None:
    replace_method(Subnet, "get_available_subnet_ip", _address)
