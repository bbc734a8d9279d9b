"""What a node class selects in the cloud at this moment. Found by `cloudprovider`, used by `fleet`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeless.model.placement import CapacityReservation, PlacementGroup
from nodeless.model.requirements import Requirements


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet; `free_addresses` as EC2 said, less one for each node launched since and each of its pods."""

    id: str
    zone: str
    free_addresses: int
    full: bool = False
    """EC2 refused a launch for lack of addresses a short while ago."""
    zone_id: str = ""
    """Id of the zone, the same in every account."""
    shifted: bool = False
    """AWS shifts work away from its zone for now."""
    public_addresses: bool | None = None
    """Whether instances get a public IPv4 address where their node class does not say; None: not told."""
    promised: int = 0
    """What these nodes and launches under way may come to take beside: all pods that they have room for."""

    @property
    def unpromised(self) -> int:
        """What a launch chooses a subnet by; negative when more is promised than there is."""
        return self.free_addresses - self.promised


@dataclass(frozen=True, slots=True)
class Image:
    """A machine image and the instance types that it is for; `created` is RFC 3339, empty when not known."""

    id: str
    requirements: Requirements = field(default_factory=Requirements)
    name: str = ""
    created: str = ""
    deprecated: bool = False
    """Its owner advises against it; used where there is no other."""
    platform: str = ""
    """What a license is paid for with it, in EC2's words (`Red Hat Enterprise Linux`); empty: nothing."""


@dataclass(frozen=True, slots=True)
class ResolvedNodeClass:
    """The cloud's side of a node class.

    `subnets` are sorted by zone and id, `security_groups` by id; `images` are in order of preference: an
    instance type takes the first whose requirements it meets.
    """

    subnets: tuple[Subnet, ...]
    security_groups: tuple[str, ...]
    images: tuple[Image, ...]
    instance_profile: str
    group_names: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Names of the security groups by id."""
    reservations: tuple[CapacityReservation, ...] = ()
    """Those that its instances may be bought from, sorted by id."""
    placement_group: PlacementGroup | None = None
    pods_take_addresses: bool = True
    """Whether pods take IPv4 addresses of the subnets, as nodes do."""

    @property
    def zones(self) -> frozenset[str]:
        return frozenset(subnet.zone for subnet in self.subnets)

    @property
    def public_addresses(self) -> bool | None:
        """Whether the subnets give public IPv4 addresses; None where they differ or it is not known."""
        told = {subnet.public_addresses for subnet in self.subnets}
        return told.pop() if len(told) == 1 else None

    @property
    def platform(self) -> str:
        """What is paid for with some of the images; empty: nothing."""
        return next((image.platform for image in self.images if image.platform), "")

    @property
    def shifted_zones(self) -> frozenset[str]:
        """The zones that AWS shifts work away from."""
        return frozenset(subnet.zone for subnet in self.subnets if subnet.shifted)

    @property
    def full_zones(self) -> frozenset[str]:
        """The zones in which every subnet is full."""
        return self.zones - {subnet.zone for subnet in self.subnets if not subnet.full}
