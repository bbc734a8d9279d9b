"""Instance types of one catalog as arrays, and which of them a requirement allows.

A requirement is evaluated once for each distinct value that types carry under its key, not
once for each type, and the answer is kept for the solve. Zones and capacity types are not
looked at here: they belong to offerings (`price_cube`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nodeless.model.identity import Identity
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION_LABELS, WELL_KNOWN, ZONE
from nodeless.model.requirements import Requirement, Requirements
from nodeless.scheduling.capacity.price_cube import PriceCube, Prices
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import UNBOUNDED, Amounts, Axis, Mask
from nodeless.scheduling.pods.volumes import attachable

_OFFERED = frozenset((ZONE, CAPACITY_TYPE))
#: Seconds for a requirement that is new, for each distinct label it is held against, and for each type.
_EVALUATION, _LABEL, _ROW = 10e-6, 0.6e-6, 10e-9
#: Answers that are kept: pods may ask for more different things than there is memory for.
_REMEMBERED = 20_000


class TypeTable:
    """Types sorted by name; every array's first axis is that order."""

    def __init__(self, types: Sequence[InstanceType], axis: Axis, meter: Meter | None = None) -> None:
        """`meter` counts what is asked about the types."""
        self.meter = meter or Meter()
        self.types: tuple[InstanceType, ...] = tuple(
            sorted(types, key=lambda instance_type: instance_type.name)
        )
        self.axis = axis
        attached = tuple(attachable({}, axis.names, 0))
        self.capacity: Amounts = axis.table(
            [_capacity(instance_type, attached) for instance_type in self.types]
        )
        self.allocatable: Amounts = self.capacity - axis.table(
            [instance_type.overhead for instance_type in self.types]
        )
        self.offers = PriceCube(self.types)
        """What is offered where, at what price."""
        self._values: dict[str, tuple[list[Requirement | None], NDArray[np.intp]]] = {}
        self._keys = {key for instance_type in self.types for key in instance_type.requirements}
        self._allowed: dict[tuple[Requirement, bool], Mask] = {}
        self._offerings: dict[tuple[Requirement | None, ...], dict[int, Offering]] = {}

    def __len__(self) -> int:
        return len(self.types)

    def carries(self, key: str) -> bool:
        """Whether any type carries a label under the key, or says that it never does."""
        return key in self._keys

    def carried(self, key: str) -> Sequence[Requirement | None]:
        """The distinct labels that types carry under the key; None stands for those that carry none."""
        return self._labels(key)[0]

    def carried_together(self, keys: Sequence[str]) -> Iterator[tuple[Requirement | None, ...]]:
        """The distinct combinations of labels that types carry under some keys."""
        labels, index = zip(*(self._labels(key) for key in keys), strict=True)
        for row in np.unique(np.stack(index, axis=1), axis=0).tolist():
            yield tuple(known[at] for known, at in zip(labels, row, strict=True))

    def allowed(self, requirement: Requirement, *, defined: bool = False) -> Mask:
        """The types whose label under the requirement's key may satisfy it.

        A type that does not carry the label passes when the requirement allows absence, when the label is
        `defined` elsewhere (by the pool), or when the key is well-known and the cloud will set it.
        """
        memo = (requirement, defined)
        mask = self._allowed.get(memo)
        if mask is None:
            if len(self._allowed) >= _REMEMBERED:
                self._allowed.clear()
            mask = self._allowed[memo] = self._evaluate(requirement, defined)
        return mask

    def cheapest(self, requirements: Requirements, *, sold_out_too: bool = False) -> Prices:
        """Per type the lowest price (USD an hour) of an available, allowed offering; infinite when none."""
        return self.offers.cheapest(
            requirements.get(ZONE), requirements.get(CAPACITY_TYPE), sold_out_too=sold_out_too
        )

    def cheapest_offerings(self, rows: Sequence[int], requirements: Requirements) -> list[Offering]:
        """The offerings behind `cheapest` of some types. Raises ValueError where there is none."""
        place = tuple([requirements.get(key) for key in (ZONE, CAPACITY_TYPE, *RESERVATION_LABELS)])
        known = self._offerings.setdefault(place, {})
        for row in rows:
            if row not in known:
                offering = self.types[row].cheapest(requirements)
                if offering is None:
                    raise ValueError(f"{self.types[row].name} has no available offering for {requirements}")
                known[row] = offering
        return [known[row] for row in rows]

    def values(self, row: int, key: str, requirements: Requirements) -> frozenset[str]:
        """The values of a label that a type can come up with under the requirements."""
        instance_type = self.types[row]
        sold = (each for each in instance_type.offerings if each.for_sale and each.allowed_by(requirements))
        return instance_type.values(key, sold, requirements)

    def _evaluate(self, requirement: Requirement, defined: bool) -> Mask:
        if requirement.key in _OFFERED:
            return np.ones(len(self.types), dtype=np.bool_)
        if requirement.key in RESERVATION_LABELS:
            return np.array(
                [_reservable(instance_type, requirement) for instance_type in self.types], dtype=np.bool_
            )
        if requirement.key != INSTANCE_TYPE and not self.carries(requirement.key):
            self.meter.spend(_EVALUATION)
            absent = defined or requirement.key in WELL_KNOWN or requirement.allows_absence()
            return np.full(len(self.types), absent, dtype=np.bool_)
        values, index = self._labels(requirement.key)
        absent = defined or requirement.key in WELL_KNOWN or requirement.allows_absence()
        self.meter.spend(_EVALUATION + _LABEL * len(values) + _ROW * len(index))
        verdicts = [absent if value is None else _may_satisfy(requirement, value) for value in values]
        return np.array(verdicts, dtype=np.bool_)[index]

    def _labels(self, key: str) -> tuple[list[Requirement | None], NDArray[np.intp]]:
        """The distinct values that types carry under a key, and for each type which of them it carries."""
        known = self._values.get(key)
        if known is None:
            distinct: dict[Requirement | None, int] = {}
            # Catalogs share the labels that types have in common: most are known by identity.
            labels = _carried_by(self.types, key)
            positions: dict[Identity, int] = {}
            index = np.empty(len(labels), dtype=np.intp)
            for row, same in enumerate(map(Identity, labels)):
                if same not in positions:
                    positions[same] = distinct.setdefault(labels[row], len(distinct))
                index[row] = positions[same]
            known = self._values[key] = (list(distinct), index)
        return known


def _capacity(instance_type: InstanceType, attached: tuple[str, ...]) -> Mapping[str, int]:
    """The capacity, with what drivers can attach where any of that is asked for."""
    if not attached:
        return instance_type.capacity
    return {**instance_type.capacity, **attachable(instance_type.volume_limits, attached, int(UNBOUNDED))}


def _carried_by(types: Iterable[InstanceType], key: str) -> list[Requirement | None]:
    if key == INSTANCE_TYPE:
        return [instance_type.label(key) for instance_type in types]
    return [instance_type.requirements.get(key) for instance_type in types]


def _reservable(instance_type: InstanceType, requirement: Requirement) -> bool:
    """Whether the type is sold from a reservation that is allowed, or needs none."""
    return requirement.allows_absence() or any(
        requirement.allows(offering.reservation_labels.get(requirement.key, ""))
        for offering in instance_type.offerings
        if offering.reservation
    )


def _may_satisfy(requirement: Requirement, carried: Requirement) -> bool:
    if carried.complement:
        return requirement.overlaps(carried)
    if not carried.values:
        return requirement.allows_absence()
    return any(requirement.allows(value) for value in carried.values)
