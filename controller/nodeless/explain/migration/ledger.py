"""An account of every member of some input: carried over to where, or not and why.

A `Members` is a mapping that knows which of its members were looked at. When it is closed, whatever was not
is listed as left, so that a member that AWS adds tomorrow is not lost in silence.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Why something is left that describes what is there, and not what it should be like.
STATE = "describes the current state, not how nodes are created"
_UNKNOWN = "it has no known counterpart; hint: check whether your nodes need it before you remove them"
#: Characters of a value that are shown.
_SHOWN = 80


class BadAnswer(ValueError):
    """A part of an answer of AWS that is not what it should be; the text says where, what and what to do."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A setting with a counterpart."""

    source: str
    """The object that it is of, as `nodegroup/web`."""
    member: str
    to: str
    """Where it is now."""


@dataclass(frozen=True, slots=True)
class Left:
    """Something of the input that is not carried over.

    Attributes:
        source: The object that it is of.
        member: Its path there.
        value: The value, shortened.
        reason: Why it is not carried over, and what to do where something should be done.
        matters: Whether nodes or pods may behave differently without it.
    """

    source: str
    member: str
    value: str
    reason: str
    matters: bool = True


@dataclass(slots=True)
class Ledger:
    """What became of everything."""

    carried: list[Carried] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)

    def carry(self, source: str, member: str, to: str) -> None:
        """Note that a member has a counterpart."""
        entry = Carried(source, member, to)
        if entry not in self.carried:
            self.carried.append(entry)

    def leave(self, source: str, member: str, value: Any, reason: str, *, matters: bool = True) -> None:
        """Note that a member has none."""
        entry = Left(source, member, shown(value), reason, matters)
        if entry not in self.left:
            self.left.append(entry)


def shown(value: Any) -> str:
    """A value in few characters."""
    text = value if isinstance(value, str) else _plain(value)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_plain(below)}" for key, below in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(f"({_plain(item)})" if isinstance(item, Mapping) else _plain(item) for item in value)
    return str(value)


class Members:
    """A mapping of the input whose members are accounted for.

    Args:
        value: The mapping itself.
        source: The object that it is of.
        ledger: Where the account is kept.
        path: Where it is in the object.
        place: The file, for faults.

    Raises:
        BadAnswer: It is no mapping.
    """

    def __init__(self, value: Any, source: str, ledger: Ledger, path: str = "", place: str = "") -> None:
        self.source, self.ledger, self.place = source, ledger, place
        self._path = path
        if not isinstance(value, Mapping):
            raise BadAnswer(f"{place}: {source}: {path or 'it'} is not an object: {shown(value)}; {_HINT}")
        self._value = value
        self._seen: set[str] = set()

    def path(self, name: str) -> str:
        """Where a member is in its object."""
        return f"{self._path}.{name}" if self._path else name

    def __contains__(self, name: str) -> bool:
        return not _is_nothing(self._value.get(name))

    def read(self, name: str) -> Any:
        """A member that is accounted for elsewhere; None where there is none."""
        self._seen.add(name)
        value = self._value.get(name)
        return None if _is_nothing(value) else value

    def take(self, name: str, to: str) -> Any:
        """A member that is carried over."""
        value = self.read(name)
        if value is not None:
            self.ledger.carry(self.source, self.path(name), to)
        return value

    def leave(self, reason: str, *names: str, matters: bool = True) -> None:
        """Members that are not carried over; what is off or zero says nothing."""
        for name in names:
            value = self.read(name)
            if value not in (None, False, 0):
                self.ledger.leave(self.source, self.path(name), value, reason, matters=matters)

    def state(self, *names: str) -> None:
        """Members that describe what is there now."""
        self.leave(STATE, *names, matters=False)

    def text(self, name: str, to: str = "") -> str:
        """A string, empty where there is none. Raises BadAnswer."""
        value = self.take(name, to) if to else self.read(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.bad(name, value, "string")
        return value

    def number(self, name: str, to: str = "") -> int | None:
        """A whole number. Raises BadAnswer."""
        value = self.take(name, to) if to else self.read(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.bad(name, value, "whole number")

    def texts(self, name: str, to: str = "") -> list[str]:
        """A list of strings. Raises BadAnswer."""
        value = (self.take(name, to) if to else self.read(name)) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.bad(name, value, "list of strings")
        return value

    def mapping(self, name: str, to: str = "") -> dict[str, str]:
        """A map of strings. Raises BadAnswer."""
        value = (self.take(name, to) if to else self.read(name)) or {}
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            raise self.bad(name, value, "map of strings")
        return value

    def below(self, name: str) -> "Members | None":
        """A member that is an object itself. Raises BadAnswer."""
        value = self.read(name)
        return None if value is None else self._member(value, self.path(name))

    def each(self, name: str) -> "list[Members]":
        """The objects of a list. Raises BadAnswer."""
        value = self.read(name) or []
        if not isinstance(value, list):
            raise self.bad(name, value, "list")
        return [self._member(item, f"{self.path(name)}[{at}]") for at, item in enumerate(value)]

    def close(self) -> None:
        """List what nobody looked at."""
        self.leave(_UNKNOWN, *(name for name in self._value if name not in self._seen))

    def bad(self, name: str, value: Any, wanted: str) -> BadAnswer:
        """The fault of a member that is of another type."""
        path = self.path(name)
        return BadAnswer(f"{self.place}: {self.source}: {path} is not a {wanted}: {shown(value)}; {_HINT}")

    def _member(self, value: Any, path: str) -> "Members":
        return Members(value, self.source, self.ledger, path, self.place)


_HINT = "hint: give the output of the AWS CLI unchanged"


def _is_nothing(value: Any) -> bool:
    return value is None or value in ("", [], {})


def merged(left: Iterable[Left]) -> dict[tuple[str, bool], list[Left]]:
    """Entries with the same reason together, those that matter first."""
    groups: dict[tuple[str, bool], list[Left]] = {}
    for entry in sorted(left, key=lambda entry: not entry.matters):
        groups.setdefault((entry.reason, entry.matters), []).append(entry)
    return groups
