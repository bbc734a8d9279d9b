"""AMI families: what images of one kind have in common. Pure.

| family | disks by default | pods' disk | user data |
|---|---|---|---|
| AL2, AL2023 | `/dev/xvda` 20 GiB | `/dev/xvda` | MIME archive |
| Ubuntu | `/dev/sda1` 20 GiB | `/dev/sda1` | MIME archive |
| Bottlerocket | `/dev/xvda` 4 GiB, `/dev/xvdb` 20 GiB | `/dev/xvdb` | TOML |
| Windows | `/dev/sda1` 50 GiB | `/dev/sda1` | PowerShell |
| Custom | the image's own | the last | the user's own |

The flags are Karpenter's feature flags of a family; `nodeless.cloudprovider.aws.instance_type_math` computes
by them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from nodeless.model.pools import BlockDevice

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Family:
    """One family; the flags are those of most."""

    block_devices: tuple[BlockDevice, ...] = ()
    """Disks where a node class gives none; the first one is the root volume."""
    ephemeral_device: str = ""
    """The device that holds pods' files; empty: that of the last mapping."""
    eni_limited_overhead: bool = True
    """Memory is reserved for as many pods as network interfaces allow, whatever the real limit of pods is."""
    pods_per_core: bool = True
    """The kubelet takes `podsPerCore`."""
    eviction_soft: bool = True
    """The soft eviction thresholds count as overhead."""
    eni_limited_density: bool = True
    """Pods are limited by network interfaces; False: always 110."""
    instance_store: bool = True
    """Its start-up can make one volume of the disks inside the host."""
    windows_build: str = ""
    """Build of Windows; empty: Linux."""

    @property
    def root_device(self) -> str:
        """The device of the image's own root volume; empty: it is not known."""
        return self.block_devices[0].device_name if self.block_devices else ""

    @property
    def os(self) -> str:
        return "windows" if self.windows_build else "linux"


def _disk(device: str, gibibytes: int) -> BlockDevice:
    return BlockDevice(device, gibibytes * GIB, "gp3", encrypted=True)


def _windows(build: str) -> Family:
    return Family(
        (_disk("/dev/sda1", 50),),
        "/dev/sda1",
        eni_limited_overhead=False,
        eni_limited_density=False,
        instance_store=False,
        windows_build=build,
    )


#: An image of which nothing is known: its node class writes all of its user data.
CUSTOM = "Custom"

FAMILIES: Mapping[str, Family] = {
    "AL2": Family((_disk("/dev/xvda", 20),), "/dev/xvda"),
    "AL2023": Family((_disk("/dev/xvda", 20),), "/dev/xvda"),
    "Ubuntu": Family((_disk("/dev/sda1", 20),), "/dev/sda1", instance_store=False),
    "Bottlerocket": Family(
        (_disk("/dev/xvda", 4), _disk("/dev/xvdb", 20)),
        "/dev/xvdb",
        eni_limited_overhead=False,
        pods_per_core=False,
        eviction_soft=False,
    ),
    "Windows2019": _windows("10.0.17763"),
    "Windows2022": _windows("10.0.20348"),
    "Windows2025": _windows("10.0.26100"),
    CUSTOM: Family(),
}


def family_of(name: str) -> Family:
    """The family of a name; one that is not known is like Custom."""
    return FAMILIES.get(name, FAMILIES[CUSTOM])
