"""What is paid for whether it runs or not: Reserved Instances and Savings Plans, so much in each hour.

A commitment has an amount that instances on demand use up while they run: instances of a type, normalized
units of a family, or US dollars at the rate of a Savings Plan. What it covers costs nothing more; what it
does not reach, also of one instance, is paid for at the list price. Commitments are used in AWS's order:
Reserved Instances first, then the Savings Plans for some instance types, then those for all.

Example: two m7g.xlarge that are reserved size-flexibly are 16 units, and cover one m7g.2xlarge, or four
m7g.large, or half of an m7g.8xlarge.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import fsum, isfinite

from nodeless.model.bill import COMMITMENTS, LINUX, WINDOWS, BillPart, PriceSource
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import ON_DEMAND

COMMITMENTS_SOURCE = PriceSource("nodeless.commitments")
#: Normalized units of the sizes that have a name (EC2 User Guide, "instance size flexibility"); an `Nxlarge`
#: has N times those of an `xlarge`.
_UNITS = {"nano": 0.25, "micro": 0.5, "small": 1.0, "medium": 2.0, "large": 4.0, "xlarge": 8.0}
_XLARGE = "xlarge"
#: Those of bare metal, by family: as many as the same machine has in its largest other size. Where a size
#: follows, as in `metal-24xl`, it says so itself.
_METAL = "metal"
_UNITS_OF_METAL = {
    family: units
    for units, families in (
        (32.0, "a1"),
        (96.0, "m5zn x2iezn z1d"),
        (128.0, "c6g c6gd c7g c7gd c7gn i3 m6g m6gd m7g m7gd r6g r6gd r7g r7gd x2gd"),
        (144.0, "c5n"),
        (192.0, "c5 c5d i3en m5 m5d m5dn m5n r5 r5b r5d r5dn r5n"),
        (256.0, "c6i c6id c6in i4i m6i m6id m6idn m6in r6i r6id r6idn r6in x2idn x2iedn"),
        (384.0, "c6a m6a r6a"),
        (448.0, "u-18tb1 u-24tb1"),
        (896.0, "u-6tb1 u-9tb1 u-12tb1"),
    )
    for family in families.split()
}
#: Families whose Reserved Instances are never size-flexible (EC2 User Guide, "Limitations").
_OF_ONE_SIZE = frozenset({
    "g4ad", "g4dn", "g5", "g5g", "g6", "g6e", "g6f", "gr6", "gr6f", "hpc7a", "inf1", "inf2", "p5",
    "u7i-6tb", "u7i-8tb",
})  # fmt: skip
#: What Reserved Instances are sold for (EC2 API, `ProductDescription`), but for database servers.
PLATFORMS = (
    LINUX,
    WINDOWS,
    "Red Hat Enterprise Linux",
    "Red Hat Enterprise Linux with HA",
    "SUSE Linux",
    "Ubuntu Pro",
)
_WILDCARDS = frozenset("*?[")
#: Below this part of an hour nothing is left.
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Commitment:
    """One commitment; an empty selection matches everything.

    Attributes:
        name: Under which plans and metrics show it.
        instance_types: Names of instance types; `*` and `?` are wildcards. A Reserved Instance names one.
        zones: Names of zones, for a Reserved Instance of a zone.
        region: Of which region; empty: of the cluster's.
        platform: What instances a Reserved Instance covers are billed as, one of `PLATFORMS`; empty:
            `Linux/UNIX`. A Savings Plan covers all.
        instances: How many instances of the type are reserved; None: a Savings Plan.
        size_flexible: Whether the instances are reserved for all sizes of the family together.
        dollars: US dollars an hour that are committed to; None: a Reserved Instance.
        discount: By how many percent the rate of a Savings Plan is below the list price.
        discounts: The same by instance type, each with its wildcard: the first that matches counts, and types
            that none matches are not covered.
        start: Seconds since the epoch from which it counts; None: it has begun.
        end: Seconds since the epoch from which it counts no more; None: no end.

    Raises:
        ValueError: it has no amount or two, or covers nothing.
    """

    name: str
    instance_types: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    region: str = ""
    platform: str = ""
    instances: float | None = None
    size_flexible: bool = False
    dollars: float | None = None
    discount: float = 0.0
    discounts: tuple[tuple[str, float], ...] = ()
    start: float | None = None
    end: float | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("name is missing; hint: plans and metrics show the commitment under its name")
        if (self.instances is None) == (self.dollars is None):
            raise ValueError(
                "it needs instances or dollarsPerHour, and not both; "
                "hint: instances for a Reserved Instance, dollarsPerHour for a Savings Plan"
            )
        if self.dollars is None:
            self._check_reserved()
        elif self.size_flexible:
            raise ValueError("sizeFlexible is for instances; hint: leave it out beside dollarsPerHour")
        elif self.platform:
            raise ValueError("platform is for instances; hint: a Savings Plan covers all, so leave it out")
        if not (isfinite(self.amount) and self.amount > 0):
            raise ValueError(f"its amount is {self.amount:g}; hint: a number above 0")
        for discount in (self.discount, *(percent for _, percent in self.discounts)):
            if not 0 <= discount < 100:
                raise ValueError(f"discountPercent is {discount:g}; hint: from 0 to below 100")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError("it ends before it begins; hint: until is after from")

    def _check_reserved(self) -> None:
        if len(self.instance_types) != 1 or _WILDCARDS & set(self.instance_types[0]):
            raise ValueError(
                "instanceTypes must be one type; hint: a Reserved Instance is of one, for example "
                '["m7g.2xlarge"]; sizeFlexible covers the sizes of its family'
            )
        if self.platform and self.platform not in PLATFORMS:
            raise ValueError(f"platform is {self.platform!r}; hint: use one of {', '.join(PLATFORMS)}")
        if self.size_flexible and self.platform not in ("", LINUX):
            raise ValueError(
                f"Reserved Instances for {self.platform} are not size-flexible, only those for {LINUX} are; "
                "hint: leave out sizeFlexible"
            )
        family = _family(self.instance_types[0])
        if self.size_flexible and family in _OF_ONE_SIZE:
            raise ValueError(
                f"Reserved Instances of {family} are not size-flexible; hint: leave out sizeFlexible"
            )
        if self.size_flexible and normalized_units(self.instance_types[0]) is None:
            raise ValueError(f"{self.instance_types[0]} has no normalized size; hint: leave out sizeFlexible")
        if self.size_flexible and self.zones:
            raise ValueError(
                "a Reserved Instance of a zone is not size-flexible; hint: leave out one of both"
            )

    @property
    def amount(self) -> float:
        """What there is of it in each hour: instances, normalized units or US dollars."""
        if self.dollars is not None:
            return self.dollars
        units = normalized_units(self.instance_types[0]) if self.size_flexible else 1.0
        return (self.instances or 0.0) * (units or 0.0)

    @property
    def unit(self) -> str:
        """What the amount is counted in."""
        if self.dollars is not None:
            return "USD/h"
        return "normalized units" if self.size_flexible else "instances"

    def concerns(self, instance_type: str, zone: str, platform: str = LINUX) -> bool:
        """Whether it covers instances on demand of a type in a zone, billed as a platform."""
        if self.instances is not None and platform != (self.platform or LINUX):
            return False
        if self.zones and zone not in self.zones:
            return False
        if self.region and not _is_in(zone, self.region):
            return False
        if self.size_flexible:
            family = _family(self.instance_types[0])
            return _family(instance_type) == family and normalized_units(instance_type) is not None
        if self.discount_of(instance_type) is None:
            return False
        return not self.instance_types or any(
            fnmatchcase(instance_type, pattern) for pattern in self.instance_types
        )

    def discount_of(self, instance_type: str) -> float | None:
        """By how many percent the rate for an instance type is below its list price; None: it has no rate."""
        if not self.discounts:
            return self.discount
        return next(
            (percent for pattern, percent in self.discounts if fnmatchcase(instance_type, pattern)), None
        )

    def use(self, instance_type: str, list_price: float, license_price: float = 0.0) -> float:
        """What an instance that it concerns uses of it in an hour.

        The rates of a Savings Plan are AWS's own: discounts and surcharges of the user do not change them.
        They are below the list price of the instance alone, and hold its license at its full price, as
        AWS's lists of rates show for Windows beside Linux.

        Args:
            instance_type: Its type.
            list_price: Of the instance with its license, in US dollars an hour.
            license_price: Of the license alone.
        """
        if self.dollars is not None:
            discount = (self.discount_of(instance_type) or 0.0) / 100
            return list_price - discount * (list_price - license_price)
        return (normalized_units(instance_type) or 0.0) if self.size_flexible else 1.0

    def is_in_term(self, now: float) -> bool:
        """Whether it counts at a time, in seconds since the epoch."""
        return (self.start is None or self.start <= now) and (self.end is None or now < self.end)


def _family(instance_type: str) -> str:
    return instance_type.partition(".")[0]


def normalized_units(instance_type: str) -> float | None:
    """The normalized units of an instance type by its size; None: it has none that are known."""
    family, _, size = instance_type.partition(".")
    if size in _UNITS:
        return _UNITS[size]
    if size == _METAL:
        return _UNITS_OF_METAL.get(family)
    if size.startswith(f"{_METAL}-") and size.endswith("xl"):
        size = size.removeprefix(f"{_METAL}-") + "arge"
    times = size.removesuffix(_XLARGE)
    if size.endswith(_XLARGE) and times.isascii() and times.isdigit() and 0 < len(times) < 4:
        return _UNITS[_XLARGE] * int(times)
    return None


@dataclass(frozen=True, slots=True)
class Usage:
    """An instance on demand that runs, or will."""

    name: str
    """Under which the coverage has it."""
    instance_type: str
    zone: str
    dollars: float
    """What is paid for it an hour: the instance's price and its license's, as the user's settings adjust
    them."""
    list_price: float
    """The same at list prices."""
    platform: str = LINUX
    """What EC2 bills it as."""
    license_price: float = 0.0
    """What the license is of the list price."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What commitments cover of instances, and what is left of them."""

    parts: Mapping[str, tuple[BillPart, ...]] = field(default_factory=dict)
    """What is off the bill of an instance, by its name and by commitment."""
    left: Mapping[str, float] = field(default_factory=dict)
    """Of each commitment, by its name, in its unit."""

    def dollars(self, name: str) -> float:
        """US dollars an hour of an instance that are paid for already."""
        return -fsum(part.dollars or 0.0 for part in self.parts.get(name, ()))


NOT_COVERED = Coverage()


def cover(
    commitments: Iterable[Commitment], usages: Sequence[Usage], left: Mapping[str, float] | None = None
) -> Coverage:
    """What commitments cover of instances, those first that come first.

    But a Savings Plan covers the instances with the largest discount first (Savings Plans User Guide,
    "Understanding how Savings Plans apply to your usage").

    Args:
        commitments: Those that count now.
        usages: The instances.
        left: What is left of each commitment; None: all of it.
    """
    parts: dict[str, list[BillPart]] = {}
    covered = {usage.name: 0.0 for usage in usages}
    after: dict[str, float] = {}
    for commitment in sorted(commitments, key=_order):
        rest = commitment.amount if left is None else left.get(commitment.name, 0.0)
        for usage in _in_turn(commitment, usages):
            if rest <= _NOTHING * commitment.amount:
                break
            part = 1 - covered[usage.name]
            if part <= _NOTHING or not commitment.concerns(usage.instance_type, usage.zone, usage.platform):
                continue
            whole = commitment.use(usage.instance_type, usage.list_price, usage.license_price)
            if whole <= 0:
                continue
            part = min(part, rest / whole)
            covered[usage.name] += part
            rest = max(0.0, rest - part * whole)
            parts.setdefault(usage.name, []).append(part_off(part * usage.dollars, commitment.name))
        after[commitment.name] = rest
    return Coverage({name: tuple(some) for name, some in parts.items()}, after)


def _in_turn(commitment: Commitment, usages: Sequence[Usage]) -> Sequence[Usage]:
    """The instances in the order in which they use a commitment."""
    if not commitment.discounts and not any(usage.license_price for usage in usages):
        return usages
    return sorted(usages, key=lambda usage: -_saved(commitment, usage))


def _saved(commitment: Commitment, usage: Usage) -> float:
    """By which part the rate of a Savings Plan is below the list price; 0 for Reserved Instances."""
    if commitment.dollars is None or not usage.list_price:
        return 0.0
    discount = commitment.discount_of(usage.instance_type) or 0.0
    return discount * (1 - usage.license_price / usage.list_price)


def part_off(dollars: float, name: str) -> BillPart:
    """The part of a bill that says what a commitment covers."""
    return BillPart(COMMITMENTS, -dollars, name, (COMMITMENTS_SOURCE,))


def covers_nothing(catalog: Catalog, commitments: Iterable[Commitment]) -> tuple[str, ...]:
    """Names of commitments that concern nothing which any pool may buy."""
    sold: Collection[tuple[str, str, str]] = {
        (kind.name, offering.zone, offering.platform)
        for kinds in catalog.values()
        for kind in kinds
        for offering in kind.offerings
        if offering.capacity_type == ON_DEMAND
    }
    return tuple(
        commitment.name for commitment in commitments if not any(commitment.concerns(*each) for each in sold)
    )


def _order(commitment: Commitment) -> tuple[bool, bool, bool, float]:
    """Of Reserved Instances those of a zone come first, and those of one size; of plans the narrowest."""
    is_plan = commitment.dollars is not None
    narrow = bool(commitment.zones) if not is_plan else bool(commitment.instance_types)
    most = max((percent for _, percent in commitment.discounts), default=commitment.discount)
    return is_plan, not narrow, commitment.size_flexible, -most


def _is_in(zone: str, region: str) -> bool:
    """Whether a zone is one of a region: its name is the region's with a letter, or a local zone's."""
    rest = zone.removeprefix(region)
    return zone.startswith(region) and (not rest or not rest[0].isdigit())
