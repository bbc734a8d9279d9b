"""The instance types that a claim may become at this moment, and whether as reserved, spot or on-demand.

The rules, in order (Karpenter's provider, `filterInstanceTypes` and `getCapacityType`):

1. keep types that meet the claim's requirements, hold its requests, and have an available offering
2. drop exotic ones (bare metal, accelerators) while ordinary ones remain: nobody asked for what they cost
3. where both spot and on-demand are to be had, drop spot offerings dearer than the cheapest on-demand
4. reserved capacity when it is allowed and to be had (below), else spot, else on-demand
5. cheapest first, at most 60

Where a requirement asks for different values (`minValues`), 2 and 3 are left out, for they would take
away what the launch is to choose from, and 5 keeps first what brings those values. Where the types that are
left offer too few of them, nothing is launched, unless minValues may be lowered.

Of reserved capacity one kind is asked for at a time, the one with the cheapest offering: on-demand
reservations, a single capacity block, or reservations that EC2 may take back. In a zone the reservation
of a type that has most left stands for the others.

Next: `fleet`, which turns the candidates into a request.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nodeless.launch.claims import MAX_INSTANCE_TYPES
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import (
    INSTANCE_SIZE,
    INSTANCE_TYPE,
    ON_DEMAND,
    RESERVED,
    SPOT,
)
from nodeless.model.min_values import bringing, least_values, too_few
from nodeless.model.placement import CAPACITY_BLOCK
from nodeless.model.requirements import Requirements
from nodeless.model.resources import Resources, fits

#: Resources that make a type exotic.
ACCELERATORS = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A type and its offerings that may be asked for, cheapest first; never empty."""

    instance_type: InstanceType
    offerings: tuple[Offering, ...]

    @property
    def price(self) -> float:
        return self.offerings[0].price


@dataclass(frozen=True, slots=True)
class Candidates:
    """What to ask for, cheapest first. All offerings are of `capacity_type`."""

    capacity_type: str
    types: tuple[Candidate, ...]

    def offerings(self) -> tuple[tuple[str, str, str], ...]:
        """Each as (instance type, zone, capacity type)."""
        return tuple(
            (candidate.instance_type.name, offering.zone, offering.capacity_type)
            for candidate in self.types
            for offering in candidate.offerings
        )

    def reservations(self) -> dict[tuple[str, str], Offering]:
        """The reserved offerings by instance type and zone; of each pair there is one at most."""
        return {
            (candidate.instance_type.name, offering.zone): offering
            for candidate in self.types
            for offering in candidate.offerings
            if offering.reservation
        }


def candidates_for(
    requirements: Requirements,
    requests: Resources,
    instance_types: Iterable[InstanceType],
    *,
    lowers_min_values: bool = False,
) -> Candidates | None:
    """The candidates of a claim with these requirements and requests; None when nothing can be had.

    Args:
        requirements: Of the claim.
        requests: What all its pods take.
        instance_types: The catalog.
        lowers_min_values: Fewer different values than `minValues` asks for will do.
    """
    named = requirements.get(INSTANCE_TYPE)
    possible = [
        Candidate(instance_type, offerings)
        for instance_type in instance_types
        # A claim names up to 60 of some 700 types: this test first makes the whole ten times as fast.
        if (named is None or named.allows(instance_type.name))
        and (offerings := _offerings(instance_type, requirements))
        and instance_type.allowed_by(requirements)
        and fits(requests, instance_type.allocatable)
    ]
    reserved = _has(possible, RESERVED)
    if reserved:
        possible = _reserved_candidates(possible)
    elif not least_values(requirements):
        possible = [candidate for candidate in possible if not _exotic(candidate.instance_type)] or possible
        possible = _without_dear_spot(possible)
    if not possible or not (lowers_min_values or _meets_min_values(possible, requirements)):
        return None
    if reserved:
        return Candidates(RESERVED, _cheapest_first(possible, requirements))
    capacity_type = SPOT if _has(possible, SPOT) else ON_DEMAND
    chosen = _only(possible, lambda offering: offering.capacity_type == capacity_type)
    return Candidates(capacity_type, _cheapest_first(chosen, requirements))


def _meets_min_values(possible: Sequence[Candidate], requirements: Requirements) -> bool:
    return all(
        too_few((each.instance_type.values(key, each.offerings, requirements) for each in possible), number)
        is None
        for key, number in least_values(requirements)
    )


def _cheapest_first(chosen: Iterable[Candidate], requirements: Requirements) -> tuple[Candidate, ...]:
    """At most 60, among them those that bring the different values that are asked for."""
    ordered = sorted(chosen, key=lambda candidate: (candidate.price, candidate.instance_type.name))

    def offered(place: int, key: str) -> frozenset[str]:
        candidate = ordered[place]
        return candidate.instance_type.values(key, candidate.offerings, requirements)

    places = bringing(least_values(requirements), len(ordered), MAX_INSTANCE_TYPES, offered)
    return tuple(ordered[place] for place in places)


def _reserved_candidates(possible: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of the kind of reservation that is asked for."""
    reserved = _only(possible, lambda offering: bool(offering.reservation))
    cheapest = min((offering for candidate in reserved for offering in candidate.offerings), key=_by_kind)
    kind = _by_kind(cheapest)[1]
    if cheapest.reservation_type == CAPACITY_BLOCK:
        return _only(reserved, lambda offering: offering.reservation == cheapest.reservation)
    of_kind = _only(reserved, lambda offering: _by_kind(offering)[1] == kind)
    return [Candidate(candidate.instance_type, _roomiest(candidate.offerings)) for candidate in of_kind]


def _by_kind(offering: Offering) -> tuple[float, int, str]:
    """Price, then the kind of reservation: on-demand, capacity block, interruptible."""
    return offering.price, offering.reservation_rank, offering.reservation


def _roomiest(offerings: Sequence[Offering]) -> tuple[Offering, ...]:
    """In each zone the reservation with most left."""
    best: dict[str, Offering] = {}
    for offering in sorted(offerings, key=lambda offering: (-offering.remaining, offering.reservation)):
        best.setdefault(offering.zone, offering)
    return tuple(best[zone] for zone in sorted(best))


def _offerings(instance_type: InstanceType, requirements: Requirements) -> tuple[Offering, ...]:
    return tuple(
        sorted(
            (
                offering
                for offering in instance_type.offerings
                if offering.for_sale and offering.allowed_by(requirements)
            ),
            key=lambda offering: (offering.price, offering.zone, offering.capacity_type),
        )
    )


def _exotic(instance_type: InstanceType) -> bool:
    size = instance_type.requirements.get(INSTANCE_SIZE)
    metal = size is not None and any("metal" in value for value in size.values)
    return metal or any(instance_type.capacity.get(name, 0) > 0 for name in ACCELERATORS)


def _without_dear_spot(possible: list[Candidate]) -> list[Candidate]:
    on_demand = [
        offering.price
        for candidate in possible
        for offering in candidate.offerings
        if offering.capacity_type == ON_DEMAND
    ]
    if not on_demand or not _has(possible, SPOT):
        return possible
    limit = min(on_demand)
    return _only(possible, lambda offering: offering.capacity_type != SPOT or offering.price <= limit)


def _has(possible: Sequence[Candidate], capacity_type: str) -> bool:
    return any(
        offering.capacity_type == capacity_type for candidate in possible for offering in candidate.offerings
    )


def _only(possible: Sequence[Candidate], wanted: Callable[[Offering], bool]) -> list[Candidate]:
    return [
        Candidate(candidate.instance_type, kept)
        for candidate in possible
        if (kept := tuple(offering for offering in candidate.offerings if wanted(offering)))
    ]
