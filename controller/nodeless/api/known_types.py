"""Which instance types meet a pool's requirements: sets of types as bits of one number each.

Admission asks this while a user waits, so that a requirement costs one look per value of its label, not one
per type. Only labels that are the same wherever a type runs are known here: zones, regions and pods are not.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_PODS, INSTANCE_TYPE, REGION, RESERVED, SPOT, ZONE
from nodeless.model.requirements import Requirement, Requirements

_ELSEWHERE = frozenset({ZONE, REGION, INSTANCE_PODS})


class KnownTypes:
    """The labels of all instance types that are known, and where that knowledge is from."""

    def __init__(
        self, names: Iterable[str], bearers: Mapping[str, Mapping[str, int]], source: str = ""
    ) -> None:
        """What is known of some types.

        Args:
            names: Of the types.
            bearers: The types that have a value of a label, by label and value; bits by the order of names.
            source: Where that is from.
        """
        self.names = tuple(names)
        self.source = source
        self.everything = (1 << len(self.names)) - 1
        self._bearers = {key: dict(values) for key, values in bearers.items()}
        if CAPACITY_TYPE in self._bearers:
            # Which types are reserved is known to the account alone.
            self._bearers[CAPACITY_TYPE].setdefault(RESERVED, self.everything)
        self._without = {
            key: self.everything & ~_union(values.values()) for key, values in self._bearers.items()
        }
        self.spot = self._bearers.get(CAPACITY_TYPE, {}).get(SPOT, 0)

    @classmethod
    def of(cls, types: Mapping[str, Requirements], source: str = "") -> Self:
        """What the labels of some types say, by the types' names."""
        bearers: dict[str, dict[str, int]] = {}
        for position, labels in enumerate(types.values()):
            for key, requirement in labels.items():
                if key not in _ELSEWHERE:
                    values = bearers.setdefault(key, {})
                    for value in requirement.values:
                        values[value] = values.get(value, 0) | 1 << position
        return cls(types, bearers, source)

    @classmethod
    def from_index(cls, index: Mapping[str, Any]) -> Self:
        """What `to_index` has written."""
        names = index["names"]
        bearers = {
            key: {value: int(mask, 16) for value, mask in values.items()}
            for key, values in index["bearers"].items()
        }
        bearers[INSTANCE_TYPE] = {name: 1 << position for position, name in enumerate(names)}
        return cls(names, bearers, index["source"])

    def to_index(self) -> dict[str, Any]:
        """All of it as JSON, without what the names say themselves: sets of types as hexadecimal numbers."""
        return {
            "source": self.source,
            "names": list(self.names),
            "bearers": {
                key: {value: f"{mask:x}" for value, mask in sorted(values.items())}
                for key, values in sorted(self._bearers.items())
                if key != INSTANCE_TYPE
            },
        }

    def describes(self, key: str) -> bool:
        """Whether types differ in this label as far as is known."""
        return key in self._bearers

    def values(self, key: str) -> Iterable[str]:
        """The values that some type bears."""
        return self._bearers.get(key, {})

    def bearing(self, key: str, value: str) -> int:
        """The types whose label has a value."""
        return self._bearers.get(key, {}).get(value, 0)

    def meeting(self, requirement: Requirement) -> int:
        """The types that meet one requirement; all of them when it is about another label."""
        values = self._bearers.get(requirement.key)
        if values is None:
            return self.everything
        absent = self._without[requirement.key] if requirement.allows_absence() else 0
        if requirement.complement:
            return absent | _union(mask for value, mask in values.items() if requirement.allows(value))
        return absent | _union(values.get(value, 0) for value in requirement.values)

    def meeting_all(self, requirements: Iterable[Requirement]) -> int:
        """The types that meet every one of them."""
        left = self.everything
        for requirement in requirements:
            left &= self.meeting(requirement)
        return left

    def listed(self, types: int) -> list[str]:
        """The names of a set of types."""
        return [name for position, name in enumerate(self.names) if types >> position & 1]


def _union(masks: Iterable[int]) -> int:
    result = 0
    for mask in masks:
        result |= mask
    return result
