"""What a node class says of an instance's network interfaces and processor (generation v1)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class NetworkInterface:
    """One network interface: its card, its place on the card, and whether it carries EFA traffic alone."""

    card: int
    device: int
    efa_only: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionTracking:
    """Seconds that idle connections are remembered; None: as EC2 does."""

    tcp_established: int | None = None
    udp_stream: int | None = None
    udp: int | None = None


@dataclass(frozen=True, slots=True)
class CpuOptions:
    """Cores, threads of each, and whether the instance can run virtual machines; None: as the type has it."""

    cores: int | None = None
    threads_per_core: int | None = None
    nested_virtualization: bool | None = None
