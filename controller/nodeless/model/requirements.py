"""The algebra of node selector requirements.

A `Requirement` says which values of one label key are allowed: an allow-list
(`In`, `DoesNotExist` with an empty list) or a deny-list (`NotIn`, `Exists` with an
empty list), each with optional integer bounds (`Gt`, `Lt`, inclusive here). A set of
them, `Requirements`, holds one per key; adding to a key intersects. An absent key
allows anything.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from nodeless.model.labels import WELL_KNOWN, canonical_key

IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
GT = "Gt"
LT = "Lt"
GTE = "Gte"
LTE = "Lte"
#: How alike two keys are that may be one misspelt: about one letter in five differs, as Karpenter has it.
_SPELLED_ALIKE = 0.9
#: What a bound can be, and what a label must lie within to be compared with one: 64 bits, as in Kubernetes.
_LEAST, _LARGEST = -(2**63), 2**63 - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT, GTE, LTE)


@dataclass(frozen=True, slots=True)
class Requirement:
    """Allowed values of one label key.

    `complement` False: the label's value is one of `values` (none: the label must be absent).
    `complement` True: the label exists with a value that is not in `values`.
    `minimum`, `maximum`: inclusive integer bounds; with any bound a non-integer value is outside.
    """

    key: str
    complement: bool
    values: frozenset[str] = frozenset()
    minimum: int | None = None
    maximum: int | None = None
    min_values: int | None = None

    @classmethod
    def of(
        cls, key: str, operator: str, values: Iterable[str] = (), min_values: int | None = None
    ) -> "Requirement":
        """From the API's form, the key made canonical. Raises ValueError for an unknown operator or bound."""
        key = canonical_key(key)
        listed = tuple(values)
        match operator:
            case "In":
                return cls(key, False, frozenset(listed), min_values=min_values)
            case "NotIn":
                return cls(key, True, frozenset(listed), min_values=min_values)
            case "Exists":
                return cls(key, True, min_values=min_values)
            case "DoesNotExist":
                return cls(key, False, min_values=min_values)
            case "Gt":
                return cls(key, True, minimum=_read_bound(key, operator, listed) + 1, min_values=min_values)
            case "Gte":
                return cls(key, True, minimum=_read_bound(key, operator, listed), min_values=min_values)
            case "Lt":
                return cls(key, True, maximum=_read_bound(key, operator, listed) - 1, min_values=min_values)
            case "Lte":
                return cls(key, True, maximum=_read_bound(key, operator, listed), min_values=min_values)
        raise ValueError(f"unknown operator {operator!r} for {key}; hint: use one of {', '.join(OPERATORS)}")

    def allows(self, value: str) -> bool:
        """Whether a node whose label has this value satisfies the requirement."""
        return (value in self.values) != self.complement and self._within(value)

    def allows_absence(self) -> bool:
        """Whether a node without the label satisfies the requirement."""
        if self.complement:
            return bool(self.values) and self.minimum is None and self.maximum is None
        return not self.values

    def is_empty(self) -> bool:
        """Whether no value at all is allowed (the label must be absent)."""
        return not self.complement and not self.values

    def is_impossible(self) -> bool:
        """Whether no node satisfies it, with the label or without: `Gt` the largest integer, say."""
        return _no_number_between(self.minimum, self.maximum)

    def _within(self, value: str) -> bool:
        if self.minimum is None and self.maximum is None:
            return True
        if "_" in value:
            return False  # Python reads 1_000 as a number, Kubernetes does not
        try:
            number = int(value)
        except ValueError:
            return False
        return _LEAST <= number <= _LARGEST and (
            (self.minimum is None or number >= self.minimum)
            and (self.maximum is None or number <= self.maximum)
        )

    def intersect(self, other: "Requirement") -> "Requirement":
        """What both allow. Bounds that contradict, or within which nothing is left, leave `DoesNotExist`."""
        minimum = _stricter(self.minimum, other.minimum, max)
        maximum = _stricter(self.maximum, other.maximum, min)
        min_values = _stricter(self.min_values, other.min_values, max)
        if _no_number_between(minimum, maximum):
            return Requirement(self.key, False, min_values=min_values)
        bounded = Requirement(self.key, True, minimum=minimum, maximum=maximum)
        if self.complement and other.complement:
            denied = frozenset(value for value in self.values | other.values if bounded._within(value))
            if _no_number_between(minimum, maximum, denied):
                return Requirement(self.key, False, min_values=min_values)
            return replace(bounded, values=denied, min_values=min_values)
        if self.complement:
            allowed = other.values - self.values
        elif other.complement:
            allowed = self.values - other.values
        else:
            allowed = self.values & other.values
        return Requirement(
            self.key,
            False,
            frozenset(value for value in allowed if bounded._within(value)),
            min_values=min_values,
        )

    def some_value(self) -> str | None:
        """A value that it allows, always the same one; None when the label must be absent.

        The alphabetically first of a list; otherwise the smallest number from 0 or the bound on that is not
        excluded.
        """
        if not self.complement:
            return min(self.values, default=None)
        number = self.minimum if self.minimum is not None else min(0, self.maximum or 0)
        last = _LARGEST if self.maximum is None else self.maximum
        while not self.allows(str(number)):
            number += 1
            if number > last:
                return None
        return str(number)

    def operator(self) -> str:
        """The operator that this reads as; a pure bound reads as Exists."""
        if self.complement:
            return NOT_IN if self.values else EXISTS
        return IN if self.values else DOES_NOT_EXIST

    def overlaps(self, other: "Requirement") -> bool:
        """Whether some value, or absence on both sides, satisfies both."""
        return self._shares_a_value(other) or (self.allows_absence() and other.allows_absence())

    def _shares_a_value(self, other: "Requirement") -> bool:
        if self._bounded or other._bounded:
            return not self.intersect(other).is_empty()
        # Most have no bounds, and every type of a catalog is asked: nothing is made for the answer.
        if self.complement:
            return other.complement or not other.values <= self.values
        return not (self.values <= other.values if other.complement else self.values.isdisjoint(other.values))

    @property
    def _bounded(self) -> bool:
        return self.minimum is not None or self.maximum is not None

    def to_api(self) -> list[dict[str, object]]:
        """The entries of a NodeSelectorRequirement list that say the same, nothing lost."""
        entries: list[dict[str, object]] = []
        if self.minimum is not None:
            entries.append({"key": self.key, "operator": GT, "values": [str(self.minimum - 1)]})
        if self.maximum is not None:
            entries.append({"key": self.key, "operator": LT, "values": [str(self.maximum + 1)]})
        if self.values or not self.complement or not entries:
            entry: dict[str, object] = {"key": self.key, "operator": self.operator()}
            if self.values:
                entry["values"] = sorted(self.values)
            entries.append(entry)
        if self.min_values is not None:
            entries[0]["minValues"] = self.min_values
        return entries

    def __str__(self) -> str:
        listed = sorted(self.values)
        shown = ", ".join(listed[:5]) + (f" and {len(listed) - 5} others" if len(listed) > 5 else "")
        text = f"{self.key} {self.operator()}" + (f" [{shown}]" if listed else "")
        if self.minimum is not None:
            text += f" >={self.minimum}"
        if self.maximum is not None:
            text += f" <={self.maximum}"
        return text


def _read_bound(key: str, operator: str, values: tuple[str, ...]) -> int:
    """The one integer of a bound, of 64 bits as in Kubernetes. Raises ValueError."""
    if len(values) == 1 and _INTEGER.fullmatch(values[0]):
        return int(values[0])
    raise ValueError(f"{operator} for {key} has the values {list(values)}; hint: give one whole number")


def _no_number_between(
    minimum: int | None, maximum: int | None, denied: frozenset[str] = frozenset()
) -> bool:
    """Whether bounds hold no number beside those that are denied."""
    least, largest = _LEAST if minimum is None else minimum, _LARGEST if maximum is None else maximum
    if largest - least >= len(denied):
        return False
    return all(str(number) in denied for number in range(least, largest + 1))


def _stricter(left: int | None, right: int | None, choose: Callable[[int, int], int]) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return choose(left, right)


@lru_cache(maxsize=1024)
def likely_key(key: str, defined: tuple[str, ...] = ()) -> str | None:
    """The key that a mistyped one may stand for, among the well-known ones and those that a pool defines.

    It ends in the same name, or contains the mistyped one, or else is spelled nearly the same.
    """
    known = sorted({*WELL_KNOWN, *defined} - {key}, key=lambda label: (len(label), label))
    name = key.rpartition("/")[2]
    same = (label for label in known if label.rpartition("/")[2] == name)
    longer = (label for label in known if key in label)
    alike = next(same, None) or next(longer, None)
    near = alike or next(iter(get_close_matches(key, known, 1, _SPELLED_ALIKE)), None)
    return near if key else None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why two requirement sets do not go together: the first key that contradicts."""

    key: str
    wanted: Requirement
    offered: Requirement | None
    defined: tuple[str, ...] = field(default=(), compare=False)
    """Keys that are defined, where this one is not: one of them may have been meant."""

    def __str__(self) -> str:
        if self.offered is None:
            meant = likely_key(self.key, self.defined)
            hint = f"; hint: did you mean {meant}?" if meant else ""
            return f"{self.wanted} is asked for, but the label is not defined{hint}"
        if self.wanted.is_impossible():
            return f"{self.wanted} holds for no number"
        return f"{self.wanted} does not overlap with {self.offered}"


class Requirements(Mapping[str, Requirement]):
    """An immutable set of requirements, one per label key; hashable, so that equal sets share work."""

    __slots__ = ("_by_key", "_hash")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        by_key: dict[str, Requirement] = {}
        for requirement in requirements:
            present = by_key.get(requirement.key)
            by_key[requirement.key] = requirement if present is None else present.intersect(requirement)
        self._by_key = by_key
        self._hash: int | None = None

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> "Requirements":
        """Each label as `In` its one value."""
        return cls(
            Requirement(canonical_key(key), False, frozenset((value,))) for key, value in labels.items()
        )

    def __getitem__(self, key: str) -> Requirement:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def get(self, key: str, default: Any = None) -> Requirement | Any:
        """As of any mapping; asked so often that the mixin's way by an exception is too slow."""
        return self._by_key.get(key, default)

    def __len__(self) -> int:
        return len(self._by_key)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._by_key.values()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirements) and self._by_key == other._by_key

    def __repr__(self) -> str:
        return f"Requirements({', '.join(str(self._by_key[key]) for key in sorted(self._by_key))})"

    __str__ = __repr__

    def intersect(self, other: "Requirements") -> "Requirements":
        """Both sets at once, key by key."""
        return Requirements([*self.values(), *other.values()])

    def conflict(self, other: "Requirements") -> Conflict | None:
        """The first key (in alphabetical order) whose requirements share no value, or None."""
        for key in sorted(self._by_key.keys() & other._by_key.keys()):
            if not self._by_key[key].overlaps(other._by_key[key]):
                return Conflict(key, other._by_key[key], self._by_key[key])
        return None

    def incompatible(
        self, pod: "Requirements", may_be_undefined: frozenset[str] = WELL_KNOWN
    ) -> Conflict | None:
        """Why a pod's requirements cannot hold on a node with these, or None.

        `may_be_undefined` are the keys that the node side may leave open: the well-known ones for a
        node yet to be launched, none for a node that exists (Karpenter core, `Requirements.Compatible`).
        """
        for key in sorted(pod._by_key.keys() - self._by_key.keys() - may_be_undefined):
            if not pod._by_key[key].allows_absence():
                return Conflict(key, pod._by_key[key], None, tuple(self._by_key))
        return self.conflict(pod)

    def satisfied_by(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with exactly these labels satisfies every requirement."""
        return all(
            requirement.allows(labels[key]) if key in labels else requirement.allows_absence()
            for key, requirement in self._by_key.items()
        )

    def single_values(self) -> dict[str, str]:
        """The labels that these requirements determine: every key with exactly one allowed value."""
        return {
            key: next(iter(requirement.values))
            for key, requirement in self._by_key.items()
            if not requirement.complement and len(requirement.values) == 1
        }

    def to_api(self) -> list[dict[str, object]]:
        """The NodeSelectorRequirement list, sorted by key."""
        return [entry for key in sorted(self._by_key) for entry in self._by_key[key].to_api()]
