"""Pods of equal shape as one class, and resources as one row of integers.

Everything after this module works on classes: the cost of a solve grows with the number of
distinct shapes, not with the number of pods.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nodeless.model.lost_work import LostWork
from nodeless.model.pods import HostPort, PodShape
from nodeless.model.requirements import Requirement
from nodeless.model.resources import CPU, MEMORY, PODS, Resources
from nodeless.scheduling.pods.constraints import NodeRequirements, PodRequirements
from nodeless.scheduling.pods.rules import NO_RULES, Affinity, Rules, TopologyGroup

Amounts = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: Stands for "as many as you like" where a class asks for nothing.
UNBOUNDED = np.int64(2**40)
#: A petabyte and more: no node has that much of anything, and sums of thousands of it fit 64 bits.
_LARGEST = 2**50
_ANY_ADDRESS = ("", "0.0.0.0", "::")


def bounded(amount: int) -> int:
    """An amount that can be computed with; what is beyond any node is as good as infinite."""
    return min(max(amount, -_LARGEST), _LARGEST)


def column(many: Sequence[Resources], name: str) -> Amounts:
    """The amounts of one resource in each mapping; shape (len(many),)."""
    amounts = [resources.get(name, 0) for resources in many]
    if max(amounts, default=0) > _LARGEST or min(amounts, default=0) < -_LARGEST:
        amounts = list(map(bounded, amounts))
    return np.array(amounts, dtype=np.int64)


class Axis:
    """The resources that matter in a solve, in a fixed order: cpu, memory, pods, then by name."""

    def __init__(self, names: Iterable[str]) -> None:
        first = (CPU, MEMORY, PODS)
        self.names: tuple[str, ...] = (*first, *sorted(set(names) - set(first)))

    def __len__(self) -> int:
        return len(self.names)

    def row(self, resources: Resources) -> Amounts:
        """The amounts of a resource mapping; a resource that nobody asks for is dropped."""
        return np.array([bounded(resources.get(name, 0)) for name in self.names], dtype=np.int64)

    def table(self, many: Sequence[Resources]) -> Amounts:
        """One row for each mapping; shape (len(many), len(names))."""
        columns = [column(many, name) for name in self.names]
        return np.stack(columns, axis=1) if many else np.zeros((0, len(self)), dtype=np.int64)

    def resources(self, row: Amounts) -> dict[str, int]:
        """A row as a mapping without zeros."""
        return {name: int(amount) for name, amount in zip(self.names, row, strict=True) if amount}


@dataclass(frozen=True, slots=True, eq=False)
class DaemonRules:
    """What rules that select the pods of DaemonSets mean for new nodes (`topology.daemon_pods`)."""

    demand: PodRequirements
    """What the pods ask of nodes themselves: that is what is asked of those that are there."""
    required: Mapping[str, tuple[NodeRequirements, ...]]
    """What anti-affinity makes of that for new nodes of a pool, as alternatives, by its key."""
    refused: Mapping[str, str]
    """Pools that can make no node which anti-affinity allows, by their keys, and why."""
    affinity: Affinity | None
    """The rule that is satisfied on a node which gets a pod of a DaemonSet."""
    beside: tuple[tuple[Requirement, ...], ...]
    """What such a node is asked for in addition, as alternatives."""


@dataclass(frozen=True, slots=True, eq=False)
class PodClass:
    """Pods that are interchangeable; `pods` in the order in which they get their places (oldest first)."""

    shape: PodShape
    demand: PodRequirements
    """What is asked of new nodes; of nodes that are there, see `demand_of_slots`."""
    pods: tuple[str, ...]
    requests: Amounts
    rules: Rules = NO_RULES
    """What other pods mean to these."""
    hard_rules: Rules = NO_RULES
    """The rules without preferences."""
    adds: tuple[TopologyGroup, ...] = ()
    """Where these count for others."""
    shared: tuple[tuple[str, Amounts], ...] = ()
    """Claims that others mount too, with what a node needs to attach their volume once for all."""
    daemon_rules: DaemonRules | None = None
    """What rules on pods of DaemonSets mean; `demand` is then what is asked of new nodes."""

    @property
    def demand_of_slots(self) -> PodRequirements:
        """What the pods ask of nodes that are there."""
        return self.demand if self.daemon_rules is None else self.daemon_rules.demand

    def attaching(self, held: Container[str] = ()) -> Amounts:
        """What a node needs for those shared volumes that it does not hold yet, however many pods come."""
        return sum((row for key, row in self.shared if key not in held), np.zeros_like(self.requests))

    def with_lost_work(self, lost: LostWork) -> "PodClass":
        """The class once it is known what interruptions of its pods lose."""
        return replace(self, shape=replace(self.shape, lost_work=lost))

    def without_preferred_terms(self) -> "PodClass":
        """The class as it is when preferred node affinity has no influence."""
        return replace(self, demand=PodRequirements(self.demand.required, ()))


def how_many(room: Amounts, requests: Amounts) -> Amounts:
    """How many times `requests` fits into each row of `room`; a resource that is not requested never limits.

    Shape (rows,). Negative room counts as none, and room is negative only where something is wrong with
    the row as a whole, so then nothing fits.
    """
    needed = np.flatnonzero(requests > 0)
    counts: Amounts = (room[:, needed] // requests[needed]).min(axis=1, initial=UNBOUNDED)
    counts[room.min(axis=1, initial=0) < 0] = 0
    return counts


def ports_conflict(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> bool:
    """Whether two sets of host ports cannot be on one node.

    Same protocol and port, and the same address or an address that stands for all.
    """
    held: dict[tuple[int, str], set[str]] = {}
    for have in taken:
        held.setdefault((have.port, have.protocol or "TCP"), set()).add(have.ip)
    if not held:
        return False
    for want in wanted:
        there = held.get((want.port, want.protocol or "TCP"))
        if there and (want.ip in there or want.ip in _ANY_ADDRESS or not there.isdisjoint(_ANY_ADDRESS)):
            return True
    return False


def requested_names(shapes: Iterable[PodShape]) -> set[str]:
    """The resources that any of the shapes asks for."""
    some = list(shapes)
    requested = {name for shape in some for name, amount in shape.requests if amount > 0}
    return requested | {name for shape in some for _, name in shape.shared_volumes}


def requests_of(shape: PodShape) -> Mapping[str, int]:
    return dict(shape.requests)
