"""What the cloud sells: instance types, and offerings of each in a zone as spot, on-demand or reserved."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import fsum

from nodeless.model.bill import (
    ADJUSTMENTS,
    COMMITMENTS,
    INSTANCE,
    LICENSE,
    LINUX,
    NODE_FEE,
    NODE_FEE_SOURCE,
    Bill,
    BillPart,
    PriceSource,
)
from nodeless.model.devices import DriverDevices
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ZONE,
)
from nodeless.model.placement import CAPACITY_BLOCK
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import Resources, subtract

#: Dollars an hour below which a difference of sums is rounding.
_CENTS_OF_NOTHING = 1e-9
#: Asked of every offering of a catalog: a union of the two would be made anew each time.
_NUMBERS = (int, float)


@dataclass(frozen=True, slots=True, order=True)
class Offering:
    """One way to buy a type: `price` in US dollars an hour; not `available` when sold out or unpriced.

    The price is that of the instance alone, or of the whole node where there is a `bill`.
    """

    zone: str
    capacity_type: str
    price: float
    available: bool = True
    reservation: str = ""
    """Id of the capacity reservation that it is bought from; empty for spot and on-demand."""
    remaining: int = 0
    """Instances that are left of the reservation."""
    reservation_type: str = ""
    """`default` or `capacity-block`; empty without a reservation."""
    interruptible: bool = False
    """Whether EC2 may take the reservation back."""
    bill: Bill | None = field(default=None, compare=False)
    """What the price is made of; None: it is the instance's alone."""
    source: PriceSource | None = field(default=None, compare=False)
    """Where the price of the instance is from; None: not told."""

    @property
    def instance_price(self) -> float:
        """What EC2 lists for the instance, without all else that comes with a node of it."""
        return self.price if self.bill is None else self.bill.instance

    @property
    def adjusted_instance_price(self) -> float:
        """What the user pays for the instance alone, commitments left out: at least 0."""
        return self._instance_with(ADJUSTMENTS)

    @property
    def coverable_price(self) -> float:
        """What commitments may cover of the price, with what they do cover: the instance and its license."""
        return self._instance_with(ADJUSTMENTS, LICENSE)

    @property
    def coverable_list_price(self) -> float:
        """The same at list prices: by these a Savings Plan is used up, whatever else the user pays."""
        return self._instance_with(LICENSE)

    @property
    def license_price(self) -> float:
        """What its license is of that: Savings Plans take nothing off it."""
        return 0.0 if self.bill is None else fsum(self._dollars_of(self.bill, LICENSE))

    def _instance_with(self, *names: str) -> float:
        if self.bill is None:
            return self.price
        return max(0.0, fsum((self.bill.instance, *self._dollars_of(self.bill, *names))))

    @staticmethod
    def _dollars_of(bill: Bill, *names: str) -> Iterator[float]:
        return (part.dollars or 0.0 for part in bill.parts if part.name in names)

    @property
    def platform(self) -> str:
        """What EC2 bills the instance as: `Linux/UNIX`, `Windows`, `Red Hat Enterprise Linux` and so on."""
        return LINUX if self.bill is None else self.bill.platform

    @property
    def is_committed(self) -> bool:
        """Whether a commitment covers some of it."""
        return self.bill is not None and any(part.name == COMMITMENTS for part in self.bill.parts)

    def less(self, parts: Iterable[BillPart]) -> "Offering":
        """The same with some parts off its bill; not below nothing."""
        off = tuple(parts)
        if not off:
            return self
        bill = Bill.of_instance(self.price) if self.bill is None else self.bill
        price = fsum((self.price, *(part.dollars or 0.0 for part in off)))
        return self.at_price(max(0.0, price), replace(bill, parts=(*bill.parts, *off)))

    @property
    def parts(self) -> tuple[BillPart, ...]:
        """What the price is made of, the instance first."""
        sources = () if self.source is None else (self.source,)
        instance = BillPart(INSTANCE, self.instance_price, sources=sources)
        if self.bill is None:
            return (instance,)
        rest = self.price - self.bill.total
        fee = BillPart(NODE_FEE, rest, sources=(NODE_FEE_SOURCE,))
        return (instance, *self.bill.parts, *((fee,) if abs(rest) > _CENTS_OF_NOTHING else ()))

    def at_instance_price(self, dollars: float, adjusted: float) -> "Offering":
        """The same with another price of the instance; what comes with a node stays.

        Args:
            dollars: What EC2 would list for the instance.
            adjusted: What the user would pay for it, by discounts and surcharges.
        """
        if self.bill is None:
            return self.at_price(adjusted, None)
        bill = replace(self.bill, instance=dollars).adjusted(adjusted - dollars)
        return self.at_price(max(0.0, fsum((self.price, -self.bill.total, bill.total))), bill)

    def billed(self, bill: Bill) -> "Offering":
        """The same at the price of a whole node, whose bill this is; not below nothing."""
        return self.at_price(max(0.0, bill.total), bill)

    def at_price(self, price: float, bill: Bill | None) -> "Offering":
        """The same at another price, in US dollars an hour, of which `bill` says what it is made of."""
        # Without `replace`, which takes twice the time: a catalog has tens of thousands of offerings.
        return Offering(
            self.zone,
            self.capacity_type,
            price,
            self.available,
            self.reservation,
            self.remaining,
            self.reservation_type,
            self.interruptible,
            bill,
            self.source,
        )

    @property
    def for_sale(self) -> bool:
        """Whether it can be bought: available, at a price that is one, not used up."""
        return self.available and self.priced and (not self.reservation or self.remaining > 0)

    @property
    def priced(self) -> bool:
        """Whether the price is one: a number, not negative, not infinite."""
        return isinstance(self.price, _NUMBERS) and 0 <= self.price < float("inf")

    @property
    def price_known(self) -> bool:
        """Whether somebody names its price.

        One that nobody prices is at 0, not available and without a source: it is not known, which is
        something else than free, as what a reservation has paid for may be.
        """
        return self.priced and (
            self.price > 0 or self.available or self.bill is not None or self.source is not None
        )

    def allowed_by(self, requirements: Requirements) -> bool:
        """Whether requirements on zone, capacity type and reservation allow it."""
        return (
            _allows(requirements, ZONE, self.zone)
            and _allows(requirements, CAPACITY_TYPE, self.capacity_type)
            and all(_allows(requirements, key, value) for key, value in self._reservation_labels().items())
        )

    def _reservation_labels(self) -> dict[str, str]:
        """The labels of its reservation; empty ones are absent."""
        interruptible = str(self.interruptible).lower() if self.reservation else ""
        return {
            CAPACITY_RESERVATION_ID: self.reservation,
            CAPACITY_RESERVATION_TYPE: self.reservation_type,
            CAPACITY_RESERVATION_INTERRUPTIBLE: interruptible,
        }

    @property
    def reservation_rank(self) -> int:
        """Which kind of reservation is taken first at equal prices: 0 lasts, 1 a block, 2 interruptible.

        Karpenter's order (its provider's `CapacityReservationTypeFilter`).
        """
        if self.interruptible:
            return 2
        return int(self.reservation_type == CAPACITY_BLOCK)

    @property
    def reservation_labels(self) -> dict[str, str]:
        """The labels that a node has by its reservation; none without one."""
        return {key: value for key, value in self._reservation_labels().items() if value}


def _allows(requirements: Requirements, key: str, value: str) -> bool:
    """Whether a label may be so; empty: absent."""
    requirement = requirements.get(key)
    if requirement is None:
        return True
    return requirement.allows(value) if value else requirement.allows_absence()


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A type as one node class and kubelet configuration would run it.

    `requirements`: every well-known label that it determines, `DoesNotExist` for those that it never carries.
    `overhead`: what kubelet and system keep; allocatable is `capacity - overhead`.
    """

    name: str
    requirements: Requirements
    capacity: Resources = field(hash=False)
    overhead: Resources = field(hash=False)
    offerings: tuple[Offering, ...] = ()
    volume_limits: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Volumes that a CSI driver can attach to it, by driver; a driver that is missing has no limit."""
    price_overlays: tuple[str, ...] = ()
    """NodeOverlays by which some of its offerings are priced."""
    capacity_overlays: tuple[str, ...] = ()
    """NodeOverlays that say something of its capacity."""
    devices: tuple[DriverDevices, ...] = ()
    """What NodeOverlays say of the devices that its nodes will publish."""

    @property
    def allocatable(self) -> dict[str, int]:
        return subtract(self.capacity, self.overhead)

    def allowed_by(self, requirements: Requirements) -> bool:
        """Whether requirements of a pool leave it any of the labels that it determines."""
        return requirements.conflict(self.requirements) is None

    def label(self, key: str) -> Requirement | None:
        """What it carries under a key; None where it determines nothing."""
        carried: Requirement | None = self.requirements.get(key)
        if carried is None and key == INSTANCE_TYPE:
            return Requirement(key, False, frozenset((self.name,)))
        return carried

    def values(self, key: str, bought: Iterable[Offering], requirements: Requirements) -> frozenset[str]:
        """The values that a label may have under the requirements when one of some offerings is bought."""
        if key == ZONE:
            return frozenset(offering.zone for offering in bought)
        if key == CAPACITY_TYPE:
            return frozenset(offering.capacity_type for offering in bought)
        carried = self.label(key)
        if carried is None or carried.complement:
            return frozenset()
        requirement = requirements.get(key)
        return frozenset(
            value for value in carried.values if requirement is None or requirement.allows(value)
        )

    def cheapest(self, requirements: Requirements) -> Offering | None:
        """The cheapest available offering that the requirements allow (ties: zone, capacity type)."""
        allowed = [
            offering for offering in self.offerings if offering.for_sale and offering.allowed_by(requirements)
        ]
        return min(
            allowed,
            key=lambda offering: (offering.price, offering.zone, offering.capacity_type),
            default=None,
        )


Catalog = Mapping[str, tuple[InstanceType, ...]]
"""The instance types that each pool may use, by pool key (`Provisioner/default`)."""
