"""Addresses of pods: taken from their subnet, and where they are reached on this machine.

A subnet's addresses are given from its end downwards, away from those that EC2 gives to instances. A full
subnet is not a fault to play here: further pods come from the shared address space 100.64.0.0/10, as with the
VPC CNI's custom networking.

Two environments on one machine give their pods equal addresses, as their VPCs have equal ranges. So each
process of kubelets reserves a part of the loopback network for itself.
"""

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_SPILL = "100.64.0.0/10"
_MOST_ENVIRONMENTS = 32
#: What this process adds to the second octet; 0 unless others were there before (`reserved_network`).
_shift = 0


def local_address(pod_ip: str) -> str:
    """Return the loopback address that stands for a pod's of this process: its first octet is 127."""
    return shifted_address(pod_ip, _shift)


def shifted_address(pod_ip: str, shift: int) -> str:
    """Return the loopback address of a pod of the process of kubelets that has this shift."""
    octets = ipaddress.IPv4Address(pod_ip).packed
    return str(ipaddress.IPv4Address(bytes((127, (octets[1] + shift) % 256, *octets[2:]))))


@contextmanager
def reserved_network() -> Iterator[int]:
    """Keep other environments off the loopback addresses of this process's pods; give the shift.

    The reservation is a name in Linux's abstract socket namespace: the kernel ends it with the process.

    Raises:
        RuntimeError: too many environments run.
    """
    global _shift  # noqa: PLW0603 - one process, one network: it is a fact of the process
    with socket.socket(socket.AF_UNIX) as reservation:
        former, _shift = _shift, _reserve(reservation)
        try:
            yield _shift
        finally:
            _shift = former


def _reserve(reservation: socket.socket) -> int:
    for shift in range(_MOST_ENVIRONMENTS):
        with suppress(OSError):
            reservation.bind(f"\0nodeless-kubelets-{shift}")
            return shift
    raise RuntimeError(f"{_MOST_ENVIRONMENTS} environments run on this machine; hint: stop one of them")


class AddressPool:
    """Addresses in use, by the subnet they come from."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def hold(self, address: str) -> None:
        """Mark an address found in use."""
        self._used.add(address)

    def release(self, address: str) -> None:
        """Give an address back."""
        self._used.discard(address)

    def take(self, cidr: str) -> str:
        """Return a free address of the subnet, never its first four nor its last (AWS keeps those)."""
        network = ipaddress.IPv4Network(cidr)
        size = network.num_addresses
        start = self._next.get(cidr, size - 2)
        for step in range(size - 5):
            offset = (start - step - 4) % (size - 5) + 4
            address = str(network[offset])
            if address not in self._used:
                self._used.add(address)
                self._next[cidr] = offset - 1
                return address
        return self.take(_SPILL)
