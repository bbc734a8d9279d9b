"""Who is served when pods that must share nodes were left over: their whole group, node after node.

Classes in their order fill few nodes with the pods that others must be beside, and leave those others no
room. Here one pod that leads a group gets a node of its own, its followers come at once, then the next one,
as long as any follower waits.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nodeless.model.labels import HOSTNAME
from nodeless.scheduling.pods.classes import Amounts, PodClass
from nodeless.scheduling.pods.rules import TopologyGroup

#: Steps from pods to those whom they follow that are gone in one pass: a tenth of a second.
_MOST_STEPS = 300_000
#: Turns of groups that are made: more groups than that wait for their classes' own turns.
_MOST_TURNS = 20_000


@dataclass(frozen=True, slots=True)
class Turn:
    """Room is looked for, for pods of one class."""

    pods: PodClass
    most: int | None = None
    """Only for so many of them; None: all that wait."""
    fresh: bool = False
    """Only on a new node that nobody is on, or on room that is there for one of the followers as well."""
    joining: bool = False
    """Where `fresh`: rather on room that is there for any follower than on a node that takes more of them."""
    followers: tuple[PodClass, ...] = ()
    """Where given: only while any pod of these waits."""
    there: bool = False
    """Only on room that is there already, or on its way."""
    sparing: tuple[PodClass, ...] = ()
    """Of that room, what pods of these classes could use comes last."""


def plainly(ordered: Sequence[PodClass]) -> list[Turn]:
    """Each class once, with all its pods."""
    return [Turn(pods) for pods in ordered]


def by_group_once(ordered: Sequence[PodClass], left: Collection[PodClass]) -> list[Turn]:
    """One node for each group of pods that were left over, then each class once."""
    return by_group(ordered, left, once=True)


def by_group_of_one_leader(ordered: Sequence[PodClass], left: Collection[PodClass]) -> list[Turn]:
    """One node for each group of pods that were left over, led by one pod, then each class once."""
    return by_group(ordered, left, once=True, alone=True)


def by_group(
    ordered: Sequence[PodClass],
    left: Collection[PodClass],
    *,
    once: bool = False,
    alone: bool = False,
) -> list[Turn]:
    """The groups of pods that were left over first, then each class once.

    `once`: each group on one node; `alone`: one pod leads it, also of those that must be with their like.
    """
    leaders = _leaders(ordered)
    turns: list[Turn] = []
    for pods in ordered:
        if pods not in left or not leaders.get(pods) or len(turns) > _MOST_TURNS:
            continue
        group = _group(pods, leaders)
        followers = tuple(one for one in ordered if one in group and _led(leaders, one))
        for root in ordered:
            if root in group and not _led(leaders, root):
                most = None if _wants_itself(root) and not alone else 1
                for _ in range(1 if once or most is None else len(root.pods)):
                    turns.append(Turn(root, most, fresh=True, followers=followers or (root,)))
                    turns += [Turn(one) for one in followers]
    return [*turns, *plainly(ordered)]


def ahead_of_others(ordered: Sequence[PodClass], left: Collection[PodClass]) -> list[Turn]:
    """The pods that were left over first, with those whom they must be beside; then each class."""
    leaders = _leaders(ordered)
    wanted: set[PodClass] = set()
    for pods in left:
        wanted |= _group(pods, leaders)
    return [*plainly([pods for pods in ordered if pods in wanted]), *plainly(ordered)]


def on_what_is_there(classes: Sequence[PodClass]) -> list[Turn]:
    """Each class once, where there is room for it already."""
    return [Turn(pods, there=True) for pods in classes]


def with_leaders_on_what_is_there(classes: Sequence[PodClass], ordered: Sequence[PodClass]) -> list[Turn]:
    """Each class once on room that is there, those whom it must be near before it, where it could not go."""
    leaders = _leaders(ordered, any_key=True)
    ahead: dict[PodClass, None] = {}
    for pods in classes:
        group = _group(pods, leaders)
        ahead.update(dict.fromkeys(one for one in ordered if one in group and one not in classes))
    sparing = tuple(classes)
    return [*(Turn(pods, there=True, sparing=sparing) for pods in ahead), *on_what_is_there(classes)]


def smallest_first(ordered: Sequence[PodClass], _: Collection[PodClass]) -> list[Turn]:
    """Each class once, in the opposite order: of what limits leave, small pods can share more."""
    return plainly(ordered[::-1])


def smallest_first_on_new_nodes(ordered: Sequence[PodClass], _: Collection[PodClass]) -> list[Turn]:
    """Each class on what is there, in its order; then those that are left on new nodes, small ones first."""
    return [*on_what_is_there(ordered), *plainly(ordered[::-1])]


def apart_from_those_left(ordered: Sequence[PodClass], left: Collection[PodClass]) -> list[Turn]:
    """Each class once; pods that keep off those which were left over go on new nodes where nobody else is."""
    shut = {topology_group: pods for pods in left for topology_group in pods.hard_rules.closing()}
    apart = [
        any(shut.get(topology_group, pods) is not pods for topology_group in pods.adds) for pods in ordered
    ]
    turns = [Turn(pods, fresh=alone) for pods, alone in zip(ordered, apart, strict=True)]
    return [*turns, *plainly(ordered)]


def _leaders(ordered: Sequence[PodClass], *, any_key: bool = False) -> Mapping[PodClass, frozenset[PodClass]]:
    """For each class those that may have the pods which it must share a node (`any_key`: a domain) with."""
    adders: dict[TopologyGroup, list[PodClass]] = {}
    for pods in ordered:
        for topology_group in pods.adds:
            adders.setdefault(topology_group, []).append(pods)
    return {
        pods: frozenset(
            other
            for rule in pods.hard_rules.affinity
            for topology_group in rule.topology_groups
            if any_key or topology_group.key == HOSTNAME
            for other in adders.get(topology_group, ())
        )
        for pods in ordered
        if pods.hard_rules.affinity
    }


def followers_of(ordered: Sequence[PodClass]) -> Mapping[PodClass, frozenset[PodClass]]:
    """For each class that others must share nodes with: those, and whoever follows them in turn.

    Not of classes beyond a bound: who follows whom only helps to leave room.
    """
    leaders = {pods: some - {pods} for pods, some in _leaders(ordered).items() if not _wants_itself(pods)}
    result: dict[PodClass, set[PodClass]] = {}
    steps = _MOST_STEPS
    for pods in leaders:
        group = _group(pods, leaders)
        steps -= sum(1 + len(leaders.get(one, ())) for one in group)
        if steps < 0:
            break
        for leader in group - {pods}:
            result.setdefault(leader, set()).add(pods)
    return {leader: frozenset(some) for leader, some in result.items()}


def room_beside(
    pods: PodClass, listed: Sequence[PodClass], waiting: Mapping[PodClass, Sequence[str]]
) -> list[Amounts]:
    """What followers that wait ask for: all of them, and the share of one of the leading pods."""
    if not listed:
        return []
    ahead = len(waiting[pods])
    most = [min(len(waiting[one]), _most_on_a_node(one)) for one in listed]
    share = [min(some, -(-len(waiting[one]) // ahead)) for one, some in zip(listed, most, strict=True)]
    nothing = np.int64(0) * pods.requests
    return [
        sum((one.requests * some for one, some in zip(listed, numbers, strict=True)), nothing)
        for numbers in (most, share)
    ]


def _most_on_a_node(pods: PodClass) -> int:
    """How many of a class may share a node, requests and what others ask for apart."""
    apart = pods.shape.host_ports or any(rule.counts_itself for rule in pods.hard_rules.anti_affinity)
    return 1 if apart else len(pods.pods)


def room_for_one_each(pods: PodClass, listed: Sequence[PodClass]) -> list[Amounts]:
    """What one follower of each class asks for, then of half of the classes, and so on."""
    numbers = [len(listed) >> step for step in range(len(listed).bit_length())]
    return [sum((one.requests for one in listed[:some]), np.int64(0) * pods.requests) for some in numbers]


def _led(leaders: Mapping[PodClass, frozenset[PodClass]], pods: PodClass) -> bool:
    """Whether a class waits for another."""
    return bool(leaders.get(pods, frozenset()) - {pods}) and not _wants_itself(pods)


def _wants_itself(pods: PodClass) -> bool:
    return any(rule.counts_itself for rule in pods.hard_rules.affinity)


def _group(pods: PodClass, leaders: Mapping[PodClass, frozenset[PodClass]]) -> set[PodClass]:
    """A class, those whom it follows, and whom those follow."""
    group: set[PodClass] = set()
    pending = [pods]
    while pending:
        one = pending.pop()
        if one not in group:
            group.add(one)
            pending.extend(leaders.get(one, ()))
    return group


def served(turns: Iterable[Turn], waiting: Mapping[PodClass, Sequence[str]]) -> Iterator[Turn]:
    """The turns that are of use while they are taken; `waiting` changes meanwhile."""
    for turn in turns:
        if waiting[turn.pods] and (not turn.followers or any(waiting[one] for one in turn.followers)):
            yield turn
