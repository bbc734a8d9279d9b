"""Pods that wait stay where earlier passes expect them, before anything else is placed.

The plan that put them together found an order in which rules let in all of them. Here nobody is moved, so an
order is looked for in which each is let in where it is expected: those that shut others out (they count
against the spread of those, or keep them off) wait for these; where that leads nowhere those come first whom
others must be near, few at a time: others may be let in beside one of them, and not beside all. Rules may
also let some in only after pods whose turn comes later: those are tried again as soon as a pod is placed that
counts for them, before their room goes to others, and before pods that are alike change places.

Rules that count pods of other workloads can be such that this finds no order, and yet there is one. Then
`order_to_keep` looks for it: those that stayed out come as early as they can, the others follow one by one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from nodeless.model.labels import HOSTNAME
from nodeless.scheduling.first_fit.filling import Existing
from nodeless.scheduling.meter import Shares
from nodeless.scheduling.pods.classes import PodClass
from nodeless.scheduling.pods.rules import TopologyGroup

#: The part of a box in which rounds begin that keep pods where they are expected.
_PART = 0.25
#: Seconds to see whether a pod is where it is expected, what a class counts for, and to keep a single pod.
_LOOK, _TALLY, _KEEP = 0.1e-6, 0.5e-6, 60e-6
#: How many orders are tried, for how many pods at most: each of them is let in by itself.
_TRIES, _FEW = 8, 400

Step = tuple[PodClass, Sequence[str]]
"""Pods of a class that are kept at once."""


@dataclass(slots=True, eq=False)
class Keeping:
    """Pods that are expected somewhere, and those of them that are there."""

    existing: Existing
    places: Mapping[str, str]
    """Pod key to the name of a slot; slots that are not there count for nothing."""
    placements: dict[str, str]
    """Where pods are; those that stay are added."""
    shares: Shares
    order: Sequence[Step] = ()
    """The steps that are made first."""
    steps: list[Step] = field(default_factory=list)
    """Those that were made, in their order."""
    _names: frozenset[str] = field(init=False)
    """The slots that are there."""
    _end: float = field(init=False)
    """Each round may let in a single pod: none begins when rounds have taken their part of the box."""
    _steps: dict[PodClass, int] = field(default_factory=dict)
    """How many pods of a class were kept at a time that others wait for and are shut out by."""
    _kept_off: dict[TopologyGroup, list[PodClass]] = field(default_factory=dict)
    """Classes with pods that are not let in yet where they are expected, by what their rules count."""

    def __post_init__(self) -> None:
        self._names = frozenset(self.existing.names)
        self._end = self.shares.meter.spent + _PART * self.shares.box

    def begin(self, classes: Iterable[PodClass]) -> None:
        """Keep what may be kept before anything is placed."""
        classes = list(classes)
        for pods, keys in self.order:
            self._keep(pods, keys)
        self._keep_the_first(classes)
        waiting = self._waiting(classes) if self.places else []
        while waiting and self._time_left and self._in_order(waiting):
            waiting = self._waiting(waiting)
        while waiting and self._time_left and self._keep_all(waiting):
            waiting = self._waiting(waiting)
        for pods in waiting:
            for topology_group in dict.fromkeys(pods.hard_rules.topology_groups()):
                self._kept_off.setdefault(topology_group, []).append(pods)

    def one_by_one(self, classes: Sequence[PodClass], ahead: Sequence[PodClass], chance: Random) -> None:
        """Keep pods by themselves in an order of chance, those of some classes ahead of each of them."""
        self._keep_the_first(classes)
        ordinary = [pods for pods in classes if pods not in ahead]
        free = [pods for pods in ordinary if not (pods.hard_rules or pods.adds)]
        self._keep_all(free)
        singles = [(pods, key) for pods in ordinary for key in self._missing(pods)]
        chance.shuffle(singles)
        progress = True
        while progress and self._time_left:
            progress = self._keep_all(ahead)
            for pods, key in list(singles):
                self.shares.meter.spend(_KEEP * (1 + len(ahead)))
                if self._time_left and self._keep(pods, [key]):
                    singles.remove((pods, key))
                    progress = True
                    while self._time_left and self._keep_all(ahead):
                        pass

    def displaced_classes(self, classes: Iterable[PodClass]) -> list[PodClass]:
        """The classes of which some pod is not where it is expected."""
        return [
            pods
            for pods in classes
            if any(
                (place := self.places.get(key)) in self._names and self.placements.get(key) != place
                for key in pods.pods
            )
        ]

    def after(self, placed: PodClass, waiting: Mapping[PodClass, Sequence[str]]) -> list[PodClass]:
        """Keep pods that some of a class let in, and so on; the classes of which some pod was kept.

        Args:
            placed: The class of which some pod has got its place.
            waiting: The pods that have none yet, here or on new nodes.
        """
        changed: dict[PodClass, None] = {}
        pending = [placed] if self._kept_off else []
        while pending:
            adds = pending.pop().adds
            for pods in dict.fromkeys(
                one for topology_group in adds for one in self._kept_off.get(topology_group, ())
            ):
                if self._time_left and self._keep(pods, waiting[pods]):
                    changed[pods] = None
                    pending.append(pods)
        return list(changed)

    def others(self, pods: PodClass, keys: Sequence[str]) -> list[str]:
        """Those of a class's pods that are expected nowhere, where others of it are kept off for now."""
        if not any(pods in some for some in self._kept_off.values()):
            return []
        return [key for key in keys if self.places.get(key) not in self._names]

    def _keep_the_first(self, classes: Sequence[PodClass]) -> None:
        """Keep pods that are expected on a node where nobody else is whom they must be near.

        Only the first of a group may begin there, before others of it are anywhere.
        """
        for pods in classes if self.places else ():
            if not self._time_left:
                return
            for rule in pods.hard_rules.affinity:
                groups = {each for each in rule.topology_groups if each.key == HOSTNAME}
                if rule.counts_itself and groups:
                    self.shares.meter.spend(_LOOK * sum(len(other.pods) for other in classes))
                    joined = {
                        self.places.get(key)
                        for other in classes
                        if other is not pods and not groups.isdisjoint(other.adds)
                        for key in other.pods
                    }
                    alone = [key for key in self._missing(pods) if self.places[key] not in joined]
                    if joined and alone:
                        self._keep(pods, alone)

    @property
    def _time_left(self) -> bool:
        return self.shares.meter.spent <= self._end

    def _waiting(self, classes: Iterable[PodClass]) -> list[PodClass]:
        """The classes of which some pod is expected on a slot and not there."""
        return [pods for pods in classes if any(True for _ in self._missing(pods))]

    def _in_order(self, waiting: Sequence[PodClass]) -> bool:
        """A round for those that shut nobody out, or one class that others wait for; whether any stays."""
        shut = Counter(
            topology_group for pods in waiting for topology_group in set(pods.hard_rules.closing())
        )
        self.shares.meter.spend(_TALLY * sum(1 + len(pods.adds) for pods in waiting))
        held = {pods for pods in waiting if shut and _shuts_others(pods, shut)}
        if self._keep_all(pods for pods in waiting if pods not in held):
            return True
        wanted = {
            topology_group
            for pods in waiting
            for rule in pods.hard_rules.affinity
            for topology_group in rule.topology_groups
        }
        leaders = [pods for pods in waiting if pods in held and not wanted.isdisjoint(pods.adds)]
        # Who must be near pods like itself may begin anywhere, but no more once there are others of them.
        leaders.sort(key=lambda pods: not any(rule.counts_itself for rule in pods.hard_rules.affinity))
        return any(self._keep(pods, self._next_few(pods)) or self._keep(pods) for pods in leaders)

    def _next_few(self, pods: PodClass) -> list[str]:
        """One pod that is expected somewhere, then two, four and so on: others may need just so many."""
        number = self._steps[pods] = 2 * self._steps.get(pods, 0) or 1
        return list(islice(self._missing(pods), number))

    def _missing(self, pods: PodClass) -> Iterator[str]:
        """Those of a class's pods that are expected on a slot and not there."""
        return (
            key for key in pods.pods if key not in self.placements and self.places.get(key) in self._names
        )

    def _keep_all(self, classes: Iterable[PodClass]) -> bool:
        return sum(map(self._keep, classes)) > 0

    def _keep(self, pods: PodClass, among: Sequence[str] | None = None) -> bool:
        keys = pods.pods if among is None else among
        self.shares.meter.spend(_LOOK * len(keys))
        places = {key: self.places[key] for key in keys if key in self.places}
        kept = self.existing.keep(pods, places, without=self.placements)
        self.placements.update(kept)
        if kept:
            self.steps.append((pods, tuple(kept)))
        return bool(kept)


def _shuts_others(pods: PodClass, shut: Mapping[TopologyGroup, int]) -> bool:
    """Whether pods of a class close domains to some of so many classes, by what closes them."""
    own = set(pods.hard_rules.closing())
    return any(shut.get(topology_group, 0) > (topology_group in own) for topology_group in pods.adds)


def order_to_keep(
    start: Callable[[], Existing],
    classes: Sequence[PodClass],
    places: Mapping[str, str],
    shares: Shares,
    displaced: Sequence[PodClass],
) -> Sequence[Step]:
    """Steps in which rules let in all pods where they are expected, or more of them than in other orders.

    No steps where too many pods are expected somewhere to try. Those that an order keeps out come first in
    the next one.

    Args:
        start: Makes the room that is there, with nothing kept on it.
        classes: Of all pods.
        places: Where pods are expected.
        shares: Who may take how long.
        displaced: Classes of which some pod stayed out.
    """
    if sum(key in places for pods in classes for key in pods.pods) > _FEW:
        return ()
    ahead, best, most = list(displaced), list[Step](), 0
    end = shares.meter.spent + _PART * shares.box
    for number in range(_TRIES):
        keeping = Keeping(start(), places, {}, shares)
        keeping.one_by_one(classes, ahead, Random(number))  # noqa: S311 - the same order in each run
        if len(keeping.placements) > most:
            best, most = keeping.steps, len(keeping.placements)
        out = keeping.displaced_classes(classes)
        if not out or shares.meter.spent > end:
            break
        ahead = list(dict.fromkeys([*out, *ahead]))
    return best
