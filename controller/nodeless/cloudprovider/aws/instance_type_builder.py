"""The catalog made of facts, a shape, zones and prices; reservations are laid over it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nodeless.cloudprovider.aws.instance_type_compatibility import compatible
from nodeless.cloudprovider.aws.instance_type_labels import type_requirements
from nodeless.cloudprovider.aws.instance_type_math import capacity, overhead, pods, volume_limits
from nodeless.cloudprovider.aws.node_shape import NodeShape
from nodeless.cloudprovider.aws.price_list import Prices
from nodeless.cloudprovider.aws.type_facts import TypeFacts
from nodeless.model.bill import PriceSource
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT
from nodeless.model.placement import CapacityReservation
from nodeless.model.requirements import IN, Requirement, Requirements


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What EC2 tells: facts sorted by name, and the zones that sell each type. Hashed by identity."""

    facts: tuple[TypeFacts, ...]
    zones: Mapping[str, frozenset[str]]


def build(
    known: Known, shape: NodeShape, zones: frozenset[str], prices: Prices, region: str
) -> tuple[InstanceType, ...]:
    """The catalog of types that the zones sell and that can be of this shape."""
    return tuple(
        _instance_type(facts, shape, sold, prices, region)
        for facts in known.facts
        if (sold := sorted(known.zones.get(facts.name, frozenset()) & zones)) and compatible(facts, shape)
    )


def _instance_type(
    facts: TypeFacts, shape: NodeShape, zones: list[str], prices: Prices, region: str
) -> InstanceType:
    capacity_types = [
        capacity_type for capacity_type in (ON_DEMAND, SPOT) if capacity_type in facts.usage_classes
    ]
    return InstanceType(
        name=facts.name,
        requirements=type_requirements(
            facts,
            region=region,
            zones=zones,
            capacity_types=capacity_types,
            pods=pods(facts, shape),
            family=shape.family,
            placement_group=shape.placement_group,
            gpus_are_accelerators=shape.gpus_are_accelerators,
        ),
        capacity=capacity(facts, shape),
        overhead=overhead(facts, shape),
        offerings=tuple(
            Offering(
                zone,
                capacity_type,
                price or 0.0,
                price is not None,
                source=None if price is None else prices.source(facts.name, zone, capacity_type),
            )
            for zone in zones
            for capacity_type in capacity_types
            for price in (prices.of(facts.name, zone, capacity_type),)
        ),
        volume_limits=volume_limits(facts, shape),
    )


#: What a reserved offering costs of its on-demand price: next to nothing, in the order of what it saves.
_RESERVED_SHARE = 1e-7
_RESERVED_SOURCE = PriceSource("capacity reservation, paid for anyway")


def with_reservations(
    instance_types: tuple[InstanceType, ...], reservations: Sequence[CapacityReservation]
) -> tuple[InstanceType, ...]:
    """The catalog with an offering more for each reservation of a type, in its zone."""
    by_type: dict[str, list[CapacityReservation]] = {}
    for reservation in reservations:
        by_type.setdefault(reservation.instance_type, []).append(reservation)
    return tuple(
        _reserve(instance_type, by_type[instance_type.name])
        if instance_type.name in by_type
        else instance_type
        for instance_type in instance_types
    )


def _reserve(instance_type: InstanceType, reservations: Sequence[CapacityReservation]) -> InstanceType:
    on_demand = [
        offering.price for offering in instance_type.offerings if offering.capacity_type == ON_DEMAND
    ]
    price = min(on_demand, default=0.0) * _RESERVED_SHARE
    requirements = instance_type.requirements
    sold = requirements[CAPACITY_TYPE].values | {RESERVED}
    others = (requirement for key, requirement in requirements.items() if key != CAPACITY_TYPE)
    return replace(
        instance_type,
        requirements=Requirements([*others, Requirement.of(CAPACITY_TYPE, IN, sold)]),
        offerings=(
            *instance_type.offerings,
            *(
                Offering(
                    reservation.zone,
                    RESERVED,
                    price,
                    reservation.remaining > 0,
                    reservation.id,
                    reservation.remaining,
                    reservation.type,
                    reservation.interruptible,
                    source=_RESERVED_SOURCE,
                )
                for reservation in reservations
            ),
        ),
    )
