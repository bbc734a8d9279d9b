"""What an hour of a node costs, in parts: the instance, its volumes, its address, CPU credits, a license.

A part whose price is not known says so; it is never counted as free.
"""

from dataclasses import dataclass, replace
from math import fsum

#: Hours of a month, as AWS counts them.
HOURS_A_MONTH = 730
#: What no price, fee or amount that users give comes near; sums of such figures stay finite.
HIGHEST_FIGURE = 1_000_000
#: Bytes that a type must leave for pods, unless the settings say something else.
LEAST_MEMORY = 128 * 2**20
INSTANCE = "instance"
LICENSE = "license"
CREDITS = "CPU credits"
VOLUMES = "volumes"
ADDRESS = "public IPv4"
ADJUSTMENTS = "adjustments"
COMMITMENTS = "commitments"
#: What an instance is billed as where its image says nothing else, in EC2's words; and one of Windows.
LINUX, WINDOWS = "Linux/UNIX", "Windows"
#: What settings call the parts that can be left out of a bill.
LICENSES, CPU_CREDITS, EBS_VOLUMES, ADDRESSES = "licenses", "credits", "volumes", "addresses"
PARTS = (LICENSES, CPU_CREDITS, EBS_VOLUMES, ADDRESSES)
#: How T families are run.
DEFAULT_MODE, UNLIMITED, STANDARD = "default", "unlimited", "standard"
#: What a price holds beyond its bill: the fee that the policy of a pass adds to every node.
NODE_FEE = "node fee"


@dataclass(frozen=True, slots=True)
class PriceSource:
    """Where a price is from."""

    name: str
    date: str = ""
    """ISO 8601: the day that the price is of, or the time at which it was read; empty: it has none, as what
    the user says."""

    def __str__(self) -> str:
        return f"{self.name} ({self.date})" if self.date else self.name


#: Of the node fee, and of adjustments: what the user says.
NODE_FEE_SOURCE = PriceSource("nodeless.nodeFee")
ADJUSTMENTS_SOURCE = PriceSource("nodeless.priceAdjustments")


@dataclass(frozen=True, slots=True)
class BillPart:
    """One part. `dollars` an hour, negative for a discount; None: not known, and `detail` says why."""

    name: str
    dollars: float | None
    detail: str = ""
    sources: tuple[PriceSource, ...] = ()
    """What the dollars are reckoned by."""

    @property
    def known(self) -> bool:
        return self.dollars is not None


@dataclass(frozen=True, slots=True)
class Bill:
    """The bill of an offering.

    `instance` is what EC2 lists for the instance, the only price that EC2 compares; `parts` are the others.
    """

    instance: float
    parts: tuple[BillPart, ...] = ()
    platform: str = LINUX
    """What EC2 bills the instance as: Reserved Instances are of one."""
    left_out: frozenset[str] = frozenset()
    """Those of `PARTS` that settings leave out of it."""

    @property
    def total(self) -> float:
        """US dollars an hour of all parts that are known."""
        return fsum([self.instance, *[part.dollars for part in self.parts if part.dollars is not None]])

    def adjusted(self, difference: float) -> "Bill":
        """With what discounts and surcharges change of the instance's price, in place of what they did."""
        parts = tuple(part for part in self.parts if part.name != ADJUSTMENTS)
        if difference:
            parts = (BillPart(ADJUSTMENTS, difference, sources=(ADJUSTMENTS_SOURCE,)), *parts)
        return replace(self, parts=parts)

    @classmethod
    def of_instance(cls, price: float) -> "Bill":
        """A bill of nothing but the instance."""
        return cls(price, left_out=frozenset(PARTS))
