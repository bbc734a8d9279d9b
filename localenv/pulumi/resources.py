"""What a provider has to know of one type of resource, and what follows from it without a cloud.

A `Resource` names its inputs, says which of them can change in place, and carries
itself out on a backend (boto3 clients for AWS, an API server for Kubernetes). Which
change replaces a resource, and whether the old one must go first because the
physical name is taken, follows from those tables: `compare`. An input no table
names is refused, for an input that is ignored would be a difference to AWS that
nobody sees. The gRPC side stands in `provider`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, ClassVar, Generic, TypeVar

from localenv.pulumi import wire

Inputs = Mapping[str, Any]
Outputs = dict[str, Any]
BackendT = TypeVar("BackendT")

#: Key in the outputs of a resource whose `finish` failed.
UNFINISHED = "__unfinished"

#: Key in the inputs that lists those a provider filled in by itself, as the real AWS provider keeps it.
DEFAULTS = "__defaults"


class ResourceFailed(RuntimeError):
    """A resource could not be made, changed or deleted.

    Attributes:
        identity: Id of a resource that exists all the same and has to be recorded; else "".
        inputs: The inputs it was given.
        outputs: What is known of that resource.
    """

    def __init__(
        self, message: str, identity: str = "", inputs: Inputs | None = None, outputs: Outputs | None = None
    ) -> None:
        self.identity = identity
        self.inputs = inputs or {}
        self.outputs = outputs or {}
        super().__init__(message)


class Cancelled(ResourceFailed):
    """The operation was stopped while a resource was being waited for."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What separates two sets of inputs: changed keys, those that replace, and in which order."""

    changed: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    delete_first: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """The inputs before and after, and the outputs recorded so far."""

    old: Inputs
    new: Inputs
    state: Inputs


@dataclass(frozen=True, slots=True)
class Fault:
    """One input that is not right; `path` is empty when the resource as a whole is not."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The inputs to go on with, and what is wrong with them."""

    inputs: Outputs
    faults: tuple[Fault, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the engine gives along for physical names: the logical name, the old inputs, a seed."""

    logical_name: str
    olds: Inputs
    seed: bytes

    def physical_name(self, digits: int) -> str:
        """`<logical name>-<hexadecimal digits>`, as providers name what the program does not."""
        return f"{self.logical_name}-{self.seed.hex()[:digits]}"


class Resource(ABC, Generic[BackendT]):
    """One type of resource, carried out on a backend."""

    token: ClassVar[str]
    #: Inputs that must be given.
    required: ClassVar[frozenset[str]] = frozenset()
    #: Inputs that may be given.
    optional: ClassVar[frozenset[str]] = frozenset()
    #: Inputs whose change is carried out in place; a change of any other one replaces the resource.
    in_place: ClassVar[frozenset[str]] = frozenset()
    #: Of those, the ones some changes of which replace after all: whether one from old to new inputs does.
    conditions: ClassVar[Mapping[str, Callable[[Inputs, Inputs], bool]]] = {}
    #: Outputs that are known only after the resource was made.
    computed: ClassVar[tuple[str, ...]] = ()
    #: The input that is a unique physical name, generated when the program gives none.
    physical_name: ClassVar[str | None] = None

    def check(self, inputs: Inputs, proposal: Proposal) -> Checked:
        """Fill in defaults and name everything that is wrong with the inputs."""
        known = self.required | self.optional
        faults = [self._unknown_input(key, known) for key in inputs if key not in known and key != DEFAULTS]
        filled = {key: value for key, value in inputs.items() if key != DEFAULTS}
        name = self.physical_name
        if name is not None and name not in filled:
            before: Inputs = proposal.olds if name in proposal.olds.get(DEFAULTS, []) else {}
            filled[name] = before.get(name) or proposal.physical_name(7)
            filled[DEFAULTS] = [name]
        faults += [
            Fault(key, "required input is missing") for key in sorted(self.required) if key not in filled
        ]
        return Checked(filled, tuple(faults))

    def compare(self, old: Inputs, new: Inputs) -> Difference:
        """What separates two sets of inputs of one resource."""
        keys = sorted((old.keys() | new.keys()) - {DEFAULTS})
        changed = tuple(key for key in keys if old.get(key) != new.get(key))
        replaces = tuple(key for key in changed if self.replaced_by(key, old, new))
        name = self.physical_name
        taken = name is not None and name not in new.get(DEFAULTS, []) and old.get(name) == new.get(name)
        return Difference(changed, replaces, delete_first=bool(replaces) and taken)

    def replaced_by(self, key: str, old: Inputs, new: Inputs) -> bool:
        """Whether the change of one input replaces the resource."""
        condition = self.conditions.get(key)
        return key not in self.in_place or (condition is not None and condition(old, new))

    def foresee(self, inputs: Inputs) -> Outputs:
        """The outputs a preview can promise: the inputs, and unknowns for what is computed."""
        return dict.fromkeys(self.computed, wire.UNKNOWN) | dict(inputs)

    @abstractmethod
    def create(self, backend: BackendT, inputs: Inputs) -> str:
        """Make the resource in one call that works or does not, and give its id."""

    def finish(self, backend: BackendT, identity: str, inputs: Inputs) -> None:
        """Do what is left after `create`: further calls, waiting. May run again after it failed."""
        del backend, identity, inputs

    @abstractmethod
    def read(self, backend: BackendT, identity: str, inputs: Inputs) -> Outputs | None:
        """The computed outputs as they stand now, or None when the resource is gone."""

    def update(self, backend: BackendT, identity: str, old: Inputs, new: Inputs) -> None:
        """Carry out a change of inputs named by `in_place`."""
        raise NotImplementedError(f"{self.token} changes nothing in place")

    @abstractmethod
    def delete(self, backend: BackendT, identity: str, state: Inputs) -> None:
        """Delete the resource; one that is gone already is no error."""

    def _unknown_input(self, key: str, known: frozenset[str]) -> Fault:
        close = get_close_matches(key, known, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        return Fault(key, f"{self.token} has no such input on the local AWS{hint}")
