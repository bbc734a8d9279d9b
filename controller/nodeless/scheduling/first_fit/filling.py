"""Pods onto room that exists, as many of a class at once as fit.

A class takes the nodes that satisfy what it requires in the order of their score, then in
the order of use. The score is the scheduler's: the sum of the weights of preferred terms that
hold, and below that the number of PreferNoSchedule taints that are not tolerated. So preferences
order the nodes that exist but never keep a pod off one: kube-scheduler would not either.
Rules between pods that are required hold on every node; `topology` says how many each domain
takes.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nodeless.model.requirements import Requirement
from nodeless.model.taints import Taint, Toleration, find_untolerated
from nodeless.scheduling.capacity.existing import Slot
from nodeless.scheduling.capacity.pool_table import prefers_only
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass, how_many, ports_conflict
from nodeless.scheduling.pods.constraints import PodRequirements
from nodeless.scheduling.spread.sharing import Option
from nodeless.scheduling.topology.tracking import Topology

#: Seconds for a slot that is looked at, one that an expression is new to, and a mask that is known.
_LOOK, _SLOT, _MASK = 0.3e-6, 0.8e-6, 2e-6
#: Seconds for each host port.
_PORT = 0.6e-6


@dataclass(frozen=True, slots=True, eq=False)
class RoomByDomain:
    """Slots with room for a class by the domains that they are in, while no other class is placed."""

    pods: PodClass
    keys: tuple[str, ...]
    """The topology keys of the domains."""
    counts: Amounts
    """How many of the class each slot still takes."""
    slots: Mapping[Option, list[int]]
    """Those with room, best score first."""
    left: dict[Option, int]
    """How many of the class each domain still takes."""


class Existing:
    """The slots of a solve and what is left on them."""

    def __init__(
        self, slots: Sequence[Slot], resources: int, topology: Topology, meter: Meter | None = None
    ) -> None:
        self._meter = meter or Meter()
        self._slots = tuple(slots)
        self._index = {slot.name: index for index, slot in enumerate(slots)}
        self._topology = topology
        self._free: Amounts = np.array([slot.free for slot in slots], dtype=np.int64)
        self._free = self._free.reshape(len(slots), resources)
        self._ports = [list(slot.ports) for slot in slots]
        self._held = [slot.held for slot in slots]
        self._holds: dict[Requirement, Mask] = {}
        self._tolerated: dict[tuple[Toleration, ...], tuple[Mask, Amounts]] = {}
        self._asked: dict[PodRequirements, Mask] = {}
        self._options: dict[tuple[str, ...], list[Option | None]] = {}
        #: While pods are kept where they are expected: how many more of them each slot may take.
        self._expected: Amounts | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The slots, in the order of use."""
        return tuple(slot.name for slot in self._slots)

    @property
    def slots(self) -> Sequence[Slot]:
        """The slots themselves, in the same order."""
        return self._slots

    @property
    def free(self) -> Amounts:
        """What is left on each slot; a copy."""
        return self._free.copy()

    def accepts(self, pods: PodClass, *, include_prefer_no_schedule: bool = False) -> Mask:
        """The slots that meet what a class requires; PreferNoSchedule taints only where they are included."""
        tolerated, unwelcome = self._taints(pods.shape.tolerations)
        accepted: Mask = tolerated & (include_prefer_no_schedule | (unwelcome == 0)) & self._required(pods)
        return accepted

    def without(self, expressions: Sequence[Requirement]) -> set[str]:
        """The slots on which not all of the expressions hold, by name."""
        return {self._slots[index].name for index in np.flatnonzero(~self._all(expressions))}

    def unwelcome(self, tolerations: tuple[Toleration, ...]) -> dict[Taint, set[str]]:
        """The PreferNoSchedule taints that are not tolerated, each with its slots by name."""
        found: dict[Taint, set[str]] = {}
        _, unwelcome = self._taints(tolerations)
        for index in np.flatnonzero(unwelcome):
            slot = self._slots[index]
            for taint in slot.taints:
                if prefers_only(taint) and find_untolerated((taint,), tolerations) is not None:
                    found.setdefault(taint, set()).add(slot.name)
        return found

    def fill(
        self,
        pods: PodClass,
        waiting: Sequence[str],
        *,
        least: int = 0,
        beside: Sequence[Amounts] = (),
        followers: Sequence[PodClass] = (),
        only_beside: bool = False,
        beside_any: bool = False,
        sparing: Sequence[PodClass] = (),
    ) -> dict[str, str]:
        """Pod key to slot name for as many of the waiting pods as fit, in their order.

        The first pods of a group that must stay together only go where at least so many fit, or all that
        wait, or where new nodes may take the others. Slots that accept the `followers`, who must be beside
        these pods, come first; of those slots with room for what they will ask for `beside` them, those for
        the first amount before those for the next. `only_beside`: no others; `beside_any`: none without room
        for one pod of any of the followers. Slots with room for pods of the classes of `sparing` come last.
        """
        if not self._slots or not waiting:
            return {}
        list_candidates = partial(
            self._candidates,
            pods,
            beside,
            followers,
            only_beside=only_beside,
            beside_any=beside_any,
            sparing=sparing,
        )
        counts, order = list_candidates()
        rules = pods.hard_rules
        if not rules:
            return self._take(pods, waiting, order, counts, len(waiting))
        placed: dict[str, str] = {}
        while len(placed) < len(waiting) and not self._meter.over:
            left = waiting[len(placed) :]
            seed = self._topology.counters.bootstraps(rules)
            taken = self._fill_by_rules(pods, left, order, counts, (seed, least))
            if not taken:
                break
            placed.update(taken)
            counts, order = list_candidates()
        return placed

    def holds(self, pods: PodClass) -> Amounts:
        """How many pods of a class each slot takes, spread and affinity apart."""
        if not self._slots:
            return np.zeros(0, dtype=np.int64)
        counts: Amounts = np.where(self._lets_in(pods), how_many(self._free_for(pods), pods.requests), 0)
        return counts

    def shared_with(self, pods: PodClass, others: Iterable[PodClass]) -> list[PodClass]:
        """Those of other classes that some slot would take which also takes pods of this one."""
        accepted = self.accepts(pods, include_prefer_no_schedule=True)
        return [
            other
            for other in others
            if bool((accepted & self.accepts(other, include_prefer_no_schedule=True)).any())
        ]

    def room_by_domain(self, pods: PodClass, keys: tuple[str, ...]) -> RoomByDomain:
        """The room that is left for a class whose pods are spread over domains of some keys."""
        rules, slots = pods.hard_rules, dict[Option, list[int]]()
        counts, order = self._candidates(pods, (), (), only_beside=False, beside_any=False, sparing=())
        limit = self._topology.counters.on_slots(rules)
        counts = counts if limit is None else np.minimum(counts, limit)
        options = self.options_of(keys)
        self._meter.spend(_SLOT * len(order))
        for index in order:
            option = options[index]
            if option is not None and counts[index] > 0:
                slots.setdefault(option, []).append(index)
        left = {option: int(counts[some].sum()) for option, some in slots.items()}
        return RoomByDomain(pods, keys, counts, slots, left)

    def fill_domains(
        self, room: RoomByDomain, options: Iterable[Option], waiting: Sequence[str]
    ) -> dict[str, str]:
        """Pod key to slot name for as many of the waiting pods as fit in domains that their rules allow."""
        placed: dict[str, str] = {}
        for option in options:
            indices = room.slots.get(option, [])
            while indices and len(placed) < len(waiting):
                index = indices[0]
                taken = self._take(room.pods, waiting[len(placed) :], [index], room.counts, len(waiting))
                placed.update(taken)
                room.counts[index] -= len(taken)
                room.left[option] -= len(taken)
                if not room.counts[index]:
                    indices.pop(0)
        return placed

    def adopt(self, pods: PodClass, placements: Mapping[str, str]) -> None:
        """Count the pods of a class that were placed on slots, by pod key."""
        for name, number in Counter(placements[key] for key in pods.pods if key in placements).items():
            index = self._index[name]
            self._charge(pods, index, number)
            self._ports[index].extend(pods.shape.host_ports)
            self._topology.count_on_slot(pods.adds, index, number)

    def keep(
        self, pods: PodClass, places: Mapping[str, str], *, without: Container[str] = ()
    ) -> dict[str, str]:
        """Pod key to slot name for as many of a class as still fit where they are expected.

        Args:
            pods: The class.
            places: Pod key to slot name for pods of any class; slots that are not there count for nothing.
            without: Pods that have their places already.
        """
        waiting = [key for key in pods.pods if places.get(key) in self._index and key not in without]
        if not waiting:
            return {}
        expected: Amounts = np.zeros(len(self._slots), dtype=np.int64)
        by_slot: dict[str, list[str]] = {}
        for key in waiting:
            expected[self._index[places[key]]] += 1
            by_slot.setdefault(places[key], []).append(key)
        self._expected = expected
        try:
            filled = self.fill(pods, waiting)
        finally:
            self._expected = None
        # The pods of a class are alike: each slot keeps its own.
        taken = Counter(filled.values())
        return {key: name for name, keys in by_slot.items() for key in keys[: taken[name]]}

    def _fill_by_rules(
        self,
        pods: PodClass,
        waiting: Sequence[str],
        order: Sequence[int],
        counts: Amounts,
        seed: tuple[bool, int],
    ) -> dict[str, str]:
        """One division of the waiting pods among domains."""
        rules, topology = pods.hard_rules, self._topology
        first, least = seed
        limit = topology.counters.on_slots(rules)
        if limit is not None:
            counts = np.minimum(counts, limit)
        keys = topology.keys_of(rules)
        slot_options = self.options_of(keys)
        self._meter.spend(_SLOT * len(order))
        members: dict[Option, list[int]] = {}
        for index in order:
            option = slot_options[index]
            if option is not None and counts[index] > 0:
                members.setdefault(option, []).append(index)
        if first:
            return self._seed(pods, waiting, members, counts, least)
        options = sorted(members, key=repr)
        room = [int(min(len(waiting), counts[members[option]].sum())) for option in options]
        placed: dict[str, str] = {}
        for chosen, number in topology.shares(rules, keys, options, room, len(waiting)):
            allowed = {options[i] for i in chosen}
            slots = [index for index in order if slot_options[index] in allowed]
            placed.update(self._take(pods, waiting[len(placed) :], slots, counts, number))
        return placed

    def _seed(
        self,
        pods: PodClass,
        waiting: Sequence[str],
        members: dict[Option, list[int]],
        counts: Amounts,
        least: int,
    ) -> dict[str, str]:
        """The first pod of a group, where most of the others can follow."""
        topology, rules = self._topology, pods.hard_rules
        keys = topology.keys_of(rules)
        usable = [
            option
            for option in sorted(members, key=repr)
            if not self._meter.over and topology.shares(rules, keys, [option], [1], 1)
        ]
        together = topology.together_on_host(rules)
        starts: list[tuple[int, list[int]]] = []
        for option in usable:
            grows = not together and topology.launchable(keys, option)
            for slots in [[index] for index in members[option]] if together else [members[option]]:
                room = min(len(waiting), int(counts[slots].sum()))
                if grows or room >= min(least, len(waiting)):
                    starts.append((room, slots))
        if not starts:
            return {}
        _, slots = max(starts, key=lambda start: start[0])
        return self._take(pods, waiting, slots, counts, 1)

    def _take(
        self, pods: PodClass, waiting: Sequence[str], slots: Sequence[int], counts: Amounts, want: int
    ) -> dict[str, str]:
        """Put at most `want` of the waiting pods on slots, in order."""
        placed: dict[str, str] = {}
        want = min(want, len(waiting))
        for index in slots:
            if len(placed) == want:
                break
            count = min(int(counts[index]), want - len(placed))
            if count == 0:
                continue
            self._charge(pods, index, count)
            if self._expected is not None:
                self._expected[index] -= count
            self._ports[index].extend(pods.shape.host_ports)
            self._topology.count_on_slot(pods.adds, index, count)
            for key in waiting[len(placed) : len(placed) + count]:
                placed[key] = self._slots[index].name
        return placed

    def _candidates(
        self,
        pods: PodClass,
        beside: Sequence[Amounts],
        followers: Sequence[PodClass],
        *,
        only_beside: bool,
        beside_any: bool,
        sparing: Sequence[PodClass],
    ) -> tuple[Amounts, Sequence[int]]:
        """How many of a class each slot holds, rules apart; and the slots with room, best score first."""
        self._meter.spend(_LOOK * len(self._slots))
        counts = how_many(self._free_for(pods), pods.requests)
        tolerated, unwelcome = self._taints(pods.shape.tolerations)
        counts[~(tolerated & self._required(pods))] = 0
        if self._expected is not None:
            counts = np.minimum(counts, self._expected)
        ports = pods.shape.host_ports
        if ports:
            for index in np.flatnonzero(counts):
                self._meter.spend(_PORT * (len(ports) + len(self._ports[index])))
                free = not (self._meter.over or ports_conflict(ports, self._ports[index]))
                counts[index] = int(free)
        cramped = np.full(len(self._slots), len(beside), dtype=np.int64)
        for level, amount in reversed(list(enumerate(beside))):
            cramped[(self._free >= pods.requests + amount).all(axis=1)] = level
        roomy = np.zeros(len(self._slots), dtype=np.bool_)
        for other in followers:
            lets_in = self._lets_in(other)
            cramped[~lets_in] += 1 + len(beside)
            roomy |= lets_in & (self._free >= pods.requests + other.requests).all(axis=1)
        if only_beside:
            counts[cramped >= len(beside)] = 0
        if beside_any:
            counts[~roomy] = 0
        for other in sparing:
            room = (self._free_for(other) >= other.requests).all(axis=1)
            cramped[self._lets_in(other) & room] += 1
        return counts, self._ranked(pods, counts, unwelcome, cramped)

    def _lets_in(self, pods: PodClass) -> Mask:
        """The slots from which neither requirements nor ports nor pods there keep a class off, room apart."""
        self._meter.spend(_LOOK * len(self._slots))
        mask: Mask = self.accepts(pods, include_prefer_no_schedule=True) & self._ports_free(pods)
        apart = replace(pods.hard_rules, spread=(), affinity=())
        limit = self._topology.counters.on_slots(apart) if apart else None
        return mask if limit is None else mask & (limit > 0)

    def _ports_free(self, pods: PodClass) -> Mask:
        """The slots on which no port is taken that a class asks for."""
        free = np.ones(len(self._slots), dtype=np.bool_)
        ports = pods.shape.host_ports
        for index, taken in enumerate(self._ports if ports else ()):
            self._meter.spend(_PORT * (len(ports) + len(taken)))
            free[index] = not (self._meter.over or ports_conflict(ports, taken))
        return free

    def _free_for(self, pods: PodClass) -> Amounts:
        """What is left on each slot once the volumes are attached that a class shares with others."""
        if not pods.shared or not self._slots:
            return self._free
        return self._free - np.array([pods.attaching(held) for held in self._held], dtype=np.int64)

    def _charge(self, pods: PodClass, index: int, number: int) -> None:
        self._free[index] -= pods.requests * number
        if pods.shared:
            self._free[index] -= pods.attaching(self._held[index])
            self._held[index] = self._held[index] | {key for key, _ in pods.shared}

    def _ranked(self, pods: PodClass, counts: Amounts, unwelcome: Amounts, cramped: Amounts) -> Sequence[int]:
        """The slots with room, best score first."""
        score = np.zeros(len(self._slots), dtype=np.int64)
        for weight, expressions in pods.demand.preferred:
            if self._meter.over:
                break
            self._meter.spend(_MASK * (1 + len(expressions)))
            score += weight * self._all(expressions)
        candidates = np.flatnonzero(counts)
        order = np.lexsort((candidates, unwelcome[candidates], -score[candidates], cramped[candidates]))
        return [int(index) for index in candidates[order]]

    def options_of(self, keys: tuple[str, ...]) -> Sequence[Option | None]:
        """The domains of each slot, None where one is not certain."""
        if keys not in self._options:
            self._options[keys] = [self._topology.option_of(slot, keys) for slot in self._slots]
        return self._options[keys]

    def _required(self, pods: PodClass) -> Mask:
        demand = pods.demand_of_slots
        known = self._asked.get(demand)
        if known is not None or not self._slots:
            return np.zeros(0, dtype=np.bool_) if known is None else known
        mask = np.zeros(len(self._slots), dtype=np.bool_)
        for node_requirements in demand.required:
            if self._meter.over:
                break
            self._meter.spend(_MASK * (1 + len(node_requirements.expressions)))
            mask |= self._all(node_requirements.expressions)
        else:
            self._asked[demand] = mask
        return mask

    def _all(self, expressions: Sequence[Requirement]) -> Mask:
        mask = np.ones(len(self._slots), dtype=np.bool_)
        for expression in expressions:
            mask &= self._memo(expression)
        return mask

    def _memo(self, expression: Requirement) -> Mask:
        mask = self._holds.get(expression)
        if mask is None:
            self._meter.spend(_SLOT * len(self._slots))
            mask = self._evaluate(lambda slot: slot.satisfies(expression))
            self._holds[expression] = mask
        return mask

    def _evaluate(self, holds: Callable[[Slot], bool]) -> Mask:
        return np.fromiter((holds(slot) for slot in self._slots), dtype=np.bool_, count=len(self._slots))

    def _taints(self, tolerations: tuple[Toleration, ...]) -> tuple[Mask, Amounts]:
        """Which slots' taints are tolerated, and how many PreferNoSchedule taints are not."""
        known = self._tolerated.get(tolerations)
        if known is None:
            verdicts: dict[tuple[Taint, ...], tuple[bool, int]] = {}
            for slot in self._slots:
                if slot.taints not in verdicts:
                    verdicts[slot.taints] = _verdict(slot.taints, tolerations)
            pairs = [verdicts[slot.taints] for slot in self._slots]
            known = self._tolerated[tolerations] = (
                np.array([tolerated for tolerated, _ in pairs], dtype=np.bool_),
                np.array([unwelcome for _, unwelcome in pairs], dtype=np.int64),
            )
        return known


def _verdict(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> tuple[bool, int]:
    hard = [taint for taint in taints if not prefers_only(taint)]
    soft = [taint for taint in taints if prefers_only(taint)]
    unwelcome = sum(find_untolerated((taint,), tolerations) is not None for taint in soft)
    return find_untolerated(hard, tolerations) is None, unwelcome
