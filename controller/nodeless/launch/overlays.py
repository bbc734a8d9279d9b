"""NodeOverlays laid over what pools may buy: which of them count, and what comes of it.

The rules (Karpenter core, `nodeoverlay`):

1. overlays are looked at by weight, the highest first, and by name, the last of the alphabet first
2. an overlay means a type for a pool when its requirements can hold of the type's labels, the labels of the
   pool's template and the pool's name together, and then those of its offerings whose zone, capacity type
   and reservation the requirements allow; a label that is defined nowhere meets none but `NotIn` and
   `DoesNotExist`
3. the price of an offering is that of the first overlay that names one, the amount of a resource that of the
   first overlay that names the resource; the devices of a driver those of the first that names the driver
4. an overlay of the weight of another one before it that says something of the same offering's price or of
   the same resource of a type contradicts that one, and has no effect at all, on no pool
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodeless.model.bill import PriceSource
from nodeless.model.devices import DriverDevices
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import NODE_POOL, RESERVATION_LABELS
from nodeless.model.overlays import NodeOverlay
from nodeless.model.pools import NODE_POOL_KIND, Pool
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import MEMORY, Resources
from nodeless.model.subnets import named_zones

#: Before the name of a driver: what an overlay says of its devices.
_DEVICES = "devices of "
#: Before the size of huge pages.
_HUGE_PAGES = "hugepages-"
#: Names of types in the words about a contradiction.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Why an overlay has no effect: another one of its weight says something else of the same."""

    other: str
    """Name of the overlay that counts."""
    about: str
    """`price`, or the name of a resource."""
    pool: str
    """Key of the first pool where they meet."""
    types: tuple[str, ...]
    """Types of that pool on which they meet."""

    def __str__(self) -> str:
        shown = ", ".join(self.types[:_SHOWN])
        others = f" and {len(self.types) - _SHOWN} others" if len(self.types) > _SHOWN else ""
        what = "the price" if self.about == "price" else f"capacity {self.about}"
        what = self.about if self.about.startswith(_DEVICES) else what
        return (
            f"conflict with NodeOverlay {self.other}, which has the same weight and also changes {what} "
            f"of {shown}{others} in {self.pool}; hint: give them different weights, or requirements "
            "that do not overlap"
        )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Which overlays count."""

    accepted: tuple[NodeOverlay, ...]
    """Those in effect, in the order in which they are asked."""
    contradictions: Mapping[str, Contradiction] = field(default_factory=dict)
    """Of those without effect, by name; an overlay that is invalid does not stand here."""
    unused: tuple[str, ...] = ()
    """Names of accepted overlays that change nothing, since they mean no type of any pool; sorted."""


Sold = Iterable[tuple[Pool, tuple[InstanceType, ...]]]


def in_order(overlays: Iterable[NodeOverlay]) -> list[NodeOverlay]:
    """The overlays that can be used, by weight and name, the highest and the last first."""
    usable = (overlay for overlay in overlays if not overlay.invalid)
    return sorted(usable, key=lambda overlay: (overlay.weight, overlay.name), reverse=True)


def with_named_zones(overlays: Iterable[NodeOverlay], names: Mapping[str, str]) -> list[NodeOverlay]:
    """The overlays with what they require of a zone's id required of its name: offerings have that alone."""
    return [replace(each, requirements=named_zones(each.requirements, names)) for each in overlays]


def evaluate(overlays: Iterable[NodeOverlay], sold: Sold) -> Evaluation:
    """Which overlays count for pools that buy these types.

    What the types cost and have plays no part, so they may have overlays laid over already.
    """
    taken: dict[tuple[str, ...], tuple[int, str]] = {}
    sold = list(sold)
    accepted: list[NodeOverlay] = []
    contradictions: dict[str, Contradiction] = {}
    unused: list[str] = []
    for overlay in in_order(overlays):
        # (pool, type, about, ...): what the overlay speaks of, the same for each that speaks of it.
        spoken = [each for pool, types in sold for each in _spoken(overlay, pool, types)]
        found = _contradiction(overlay, spoken, taken)
        if found is not None:
            contradictions[overlay.name] = found
            continue
        accepted.append(overlay)
        if not spoken:
            unused.append(overlay.name)
        taken.update(dict.fromkeys(spoken, (overlay.weight, overlay.name)))
    return Evaluation(tuple(accepted), contradictions, tuple(sorted(unused)))


def laid_over(
    overlays: Sequence[NodeOverlay], pool: Pool, types: tuple[InstanceType, ...]
) -> tuple[InstanceType, ...]:
    """The types as a pool may buy them when overlays count; types of which none speaks are the same objects.

    An offering without a price gets one by an overlay that names it, and is available then.

    Args:
        overlays: Those that count, in their order (`Evaluation.accepted`).
        pool: Who buys.
        types: What is sold.
    """
    changes: dict[str, _Change] = {}
    for overlay in overlays:
        for instance_type, offerings in meant(overlay, pool, types):
            changes.setdefault(instance_type.name, _Change()).add(overlay, offerings)
    if not changes:
        return types
    return tuple(changes[each.name].apply_to(each) if each.name in changes else each for each in types)


def meant(
    overlay: NodeOverlay, pool: Pool, types: Iterable[InstanceType]
) -> Iterator[tuple[InstanceType, tuple[Offering, ...]]]:
    """The types that an overlay means, each with at least one offering that it means."""
    labels = _labels_of(pool)
    if not all(
        _may_hold(wanted, (labels[key],)) for key, wanted in overlay.requirements.items() if key in labels
    ):
        return
    # Only offerings know of reservations; each type knows every other label of those that there are.
    of_types = [each for key, each in overlay.requirements.items() if key not in RESERVATION_LABELS]
    for instance_type in types:
        if all(_may_hold(wanted, _known_values(wanted.key, labels, instance_type)) for wanted in of_types):
            offerings = tuple(
                each for each in instance_type.offerings if each.allowed_by(overlay.requirements)
            )
            if offerings:
                yield instance_type, offerings


@dataclass(slots=True)
class _Change:
    """What overlays say of one type."""

    prices: dict[Offering, NodeOverlay] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)
    by: list[str] = field(default_factory=list)
    devices: dict[str, DriverDevices] = field(default_factory=dict)

    def add(self, overlay: NodeOverlay, offerings: Iterable[Offering]) -> None:
        """What an overlay says that none before it has said."""
        if overlay.prices:
            for offering in offerings:
                self.prices.setdefault(offering, overlay)
        lacking: Resources = {
            name: amount for name, amount in overlay.capacity.items() if name not in self.capacity
        }
        if lacking:
            self.capacity.update(lacking)
            self.by.append(overlay.name)
        for one in overlay.devices:
            self.devices.setdefault(one.driver, one)

    def apply_to(self, instance_type: InstanceType) -> InstanceType:
        """The type as it is by what was said."""
        offerings = tuple(
            _price_offering(offering, self.prices[offering]) if offering in self.prices else offering
            for offering in instance_type.offerings
        )
        return replace(
            instance_type,
            offerings=offerings,
            capacity={**instance_type.capacity, **self.capacity} if self.capacity else instance_type.capacity,
            overhead=self._with_huge_pages(instance_type),
            price_overlays=tuple(sorted({overlay.name for overlay in self.prices.values()})),
            capacity_overlays=tuple(sorted(self.by)),
            devices=tuple(self.devices.values()),
        )

    def _with_huge_pages(self, instance_type: InstanceType) -> Resources:
        """What is kept of the type: the memory of huge pages is for pods that request these alone."""
        pages = sum(amount for name, amount in self.capacity.items() if name.startswith(_HUGE_PAGES))
        kept, memory = instance_type.overhead, instance_type.capacity.get(MEMORY, 0)
        return {**kept, MEMORY: min(kept.get(MEMORY, 0) + pages, memory)} if pages else kept


def _price_offering(offering: Offering, overlay: NodeOverlay) -> Offering:
    # One that is sold out has its price.
    unpriced = not offering.available and not offering.price and not offering.reservation
    if unpriced and overlay.price is None:
        # A change of no price is no price either.
        return offering
    available = offering.available or unpriced
    return replace(
        offering,
        price=overlay.adjust_price(offering.price),
        available=available,
        source=_overlay_source(offering.source, overlay),
    )


def _overlay_source(listed: PriceSource | None, overlay: NodeOverlay) -> PriceSource:
    """That of an overlay's own price, or of a listed price that it changes."""
    if overlay.price is not None or listed is None:
        return PriceSource(f"NodeOverlay {overlay.name}")
    return PriceSource(f"NodeOverlay {overlay.name} over {listed.name}", listed.date)


def _spoken(overlay: NodeOverlay, pool: Pool, types: Iterable[InstanceType]) -> Iterator[tuple[str, ...]]:
    if not (overlay.prices or overlay.capacity or overlay.devices):
        return
    for instance_type, offerings in meant(overlay, pool, types):
        if overlay.prices:
            for each in offerings:
                place = (each.zone, each.capacity_type, each.reservation)
                yield (pool.key, instance_type.name, "price", *place)
        for name in overlay.capacity:
            yield (pool.key, instance_type.name, name)
        for one in overlay.devices:
            yield (pool.key, instance_type.name, f"{_DEVICES}{one.driver}")


def _contradiction(
    overlay: NodeOverlay,
    spoken: Iterable[tuple[str, ...]],
    taken: Mapping[tuple[str, ...], tuple[int, str]],
) -> Contradiction | None:
    """The first contradiction, with all types of its pool on which the two say something of the same."""
    first: tuple[str, str, str] | None = None
    types: dict[str, None] = {}
    for each in spoken:
        weight, other = taken.get(each, (-1, ""))
        if weight != overlay.weight:
            continue
        pool, name, about = each[:3]
        first = first or (other, about, pool)
        if first == (other, about, pool):
            types[name] = None
    return None if first is None else Contradiction(*first, tuple(types))


def _labels_of(pool: Pool) -> Requirements:
    """What a pool adds to the labels of a type: its name, and the labels of its template."""
    named = {NODE_POOL: pool.name} if pool.reference.kind == NODE_POOL_KIND else {}
    return Requirements.from_labels({**pool.labels, **named})


def _known_values(key: str, labels: Requirements, instance_type: InstanceType) -> tuple[Requirement, ...]:
    """What pool and type say of a label."""
    both = (labels.get(key), instance_type.label(key))
    return tuple(each for each in both if each is not None)


def _may_hold(wanted: Requirement, known: Sequence[Requirement]) -> bool:
    """Whether a requirement can hold where this is known of its label."""
    if not known:
        return wanted.allows_absence()
    offered = known[0]
    for other in known[1:]:
        offered = offered.intersect(other)
    if not wanted.complement and not offered.complement and wanted.values:
        # The usual case, asked for each type: no new requirement is made for it.
        return not wanted.values.isdisjoint(offered.values)
    return offered.overlaps(wanted)
