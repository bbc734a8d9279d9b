"""Nodes as a reader goes through them: equal ones as a row, rows in groups; what workloads take of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from nodeless.explain.fill import NodeFill, Share
from nodeless.model.resources import CPU, MEMORY
from nodeless.model.workloads import Workload


@dataclass(frozen=True, slots=True)
class Usage:
    """What all pods of a workload take of all nodes."""

    workload: Workload
    pods: int
    cpu: int
    """Millicores."""
    memory: int
    """Bytes."""
    part: float
    """Of everything that the nodes have: the mean of its parts of their processors and memory, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Row:
    """Nodes that differ in nothing but their names and the names of their pods."""

    number: int
    """Its place among all rows."""
    members: tuple[NodeFill, ...]

    @property
    def fill(self) -> NodeFill:
        """Any of them."""
        return self.members[0]

    @property
    def resources(self) -> tuple[str, ...]:
        """Those to show: processors, memory, and devices that pods ask for."""
        own, used = self.fill.allocatable, self.fill.used
        devices = sorted(name for name in own if "/" in name and used.get(name, 0) > 0)
        return tuple(name for name in (CPU, MEMORY, *devices) if own.get(name, 0) > 0)

    @property
    def bill(self) -> float:
        """US dollars an hour of all of them; those without a known price cost nothing."""
        return len(self.members) * (self.fill.price or 0.0)


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to put rows into groups: the group with the largest bill first."""

    name: str
    title: str
    groups: tuple[tuple[str, tuple[Row, ...]], ...]


#: Name, title and the group of a node.
_WAYS: tuple[tuple[str, str, Callable[[NodeFill], str]], ...] = (
    ("pool", "Pool", lambda fill: fill.pool or "no pool"),
    ("type", "Instance type", lambda fill: fill.instance_type or "unknown type"),
    ("zone", "Zone", lambda fill: fill.zone or "unknown zone"),
    ("capacity", "Capacity type", lambda fill: fill.capacity_type or "unknown capacity type"),
    ("none", "No groups", lambda _: "All nodes"),
)


def usages(nodes: Sequence[NodeFill]) -> tuple[Usage, ...]:
    """Every workload with what it takes, the largest part first."""
    size = {name: sum(node.allocatable.get(name, 0) for node in nodes) or 1 for name in (CPU, MEMORY)}
    taken: dict[Workload, list[Share]] = {}
    for share in chain.from_iterable(node.shares for node in nodes):
        taken.setdefault(share.workload, []).append(share)
    found = []
    for workload, shares in taken.items():
        cpu, memory = (sum(share.requests.get(name, 0) for share in shares) for name in (CPU, MEMORY))
        part = (cpu / size[CPU] + memory / size[MEMORY]) / 2
        found.append(Usage(workload, sum(share.pods for share in shares), cpu, memory, part))
    return tuple(sorted(found, key=lambda usage: (-usage.part, usage.workload)))


def rows(nodes: Iterable[NodeFill]) -> tuple[Row, ...]:
    """Equal nodes together, in the order of the first of each."""
    same: dict[tuple[object, ...], list[NodeFill]] = {}
    for fill in nodes:
        held = tuple(
            (share.workload, share.pods, share.arriving, _sorted(share.requests)) for share in fill.shares
        )
        own = (fill.state, fill.pool, fill.instance_type, fill.zone, fill.capacity_type, fill.price)
        same.setdefault((*own, _sorted(fill.allocatable), _sorted(fill.daemons), held), []).append(fill)
    return tuple(Row(number, tuple(members)) for number, members in enumerate(same.values()))


def groupings(made: Sequence[Row]) -> tuple[Grouping, ...]:
    """The ways to group rows."""
    return tuple(Grouping(name, title, _grouped(made, group)) for name, title, group in _WAYS)


def _grouped(
    made: Sequence[Row], group: Callable[[NodeFill], str]
) -> tuple[tuple[str, tuple[Row, ...]], ...]:
    members: dict[str, list[Row]] = {}
    for row in made:
        members.setdefault(group(row.fill), []).append(row)
    ordered = sorted(members.items(), key=lambda item: (-sum(row.bill for row in item[1]), item[0]))
    return tuple((name, tuple(inside)) for name, inside in ordered)


def _sorted(resources: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(resources.items()))
