"""Pods that were left over although there may be room: all pods anew, by an integer program (`program`).

Any order in which classes are served leaves somebody out somewhere: limits make a knapsack of it, and pods
that must share nodes, or keep off each other, a puzzle. Where few pods wait, the program says who goes where.
Its answer is carried out pod by pod with everything that is counted in any other plan, so what the program
knows nothing of (domains other than nodes, scarce addresses, minValues) holds all the same: a pod that is not
let in where it was meant is placed like any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nodeless.model.requirements import Requirement
from nodeless.scheduling.first_fit.asking import Places, adders_of, held_by, offers_for, question
from nodeless.scheduling.first_fit.asking_domains import DomainRules, in_domain
from nodeless.scheduling.first_fit.offers import Offer
from nodeless.scheduling.first_fit.ordering import Left, Placed, place_left
from nodeless.scheduling.first_fit.program import MOST_SEARCHED, MOST_VARIABLES, Answer, answer, size_of
from nodeless.scheduling.meter import Shares
from nodeless.scheduling.pods.classes import Mask, PodClass

#: Pods up to which who goes where is worked out for all at once: so that more have a place, or that as many
#: have one for less.
_MOST_PODS, _MOST_PODS_FOR_LESS = 60, 18
#: Seconds for a program, for each of its variables, and for each simplex iteration; that of so many variables
#: takes twice as long.
_PROGRAM, _VARIABLE, _ITERATION, _TWICE = 5e-3, 10e-6, 50e-6, 500


def assigned(
    where: Places,
    ordered: Sequence[PodClass],
    left: Left,
    placements: Mapping[str, str],
    shares: Shares,
    *,
    more: bool,
    domains: bool = False,
) -> Placed | None:
    """Who goes where when fewer are left than now, for as little as that costs; None where that is not known.

    Args:
        where: The places.
        ordered: All classes, in the order in which they are served.
        left: Who has no place so far.
        placements: Who is on which slot so far; those who are expected there stay.
        shares: Who may take how long.
        more: Whether fewer must be left; else as many may.
        domains: Whether it is said who is in which zone or other domain, too; then None where no rule asks.
    """
    if sum(len(pods.pods) for pods in ordered) > (_MOST_PODS if more else _MOST_PODS_FOR_LESS):
        return None
    rules = None
    if domains:
        rules = DomainRules(where.topology, where.existing.slots, ordered, adders_of(ordered))
        if not rules.values:
            return None
    offers = offers_for(where, ordered, rules)
    asked = question(where, ordered, offers, left, placements, rules, more=more)
    size, meter = size_of(asked), shares.meter
    meter.spend(_PROGRAM + _VARIABLE * size)
    if size > (MOST_VARIABLES if more else MOST_SEARCHED):
        return None
    found, iterations = answer(asked)
    meter.spend(_ITERATION * (1 + size / _TWICE) * iterations)
    if found is None:
        return None
    within = [
        [in_domain(key, value) for key, value in each.items()] if at is not None else []
        for at, each in zip(found.offers, found.domains, strict=True)
    ]
    made = [offers[at] if at is not None else None for at in found.offers]
    return _Carrying(where, ordered, made, within).out(found, shares)


@dataclass(slots=True, eq=False)
class _Meant:
    """Pods of a class that go to one place."""

    pods: PodClass
    place: int
    keys: list[str]


@dataclass(slots=True, eq=False)
class _Carrying:
    """An answer that is being carried out."""

    where: Places
    ordered: Sequence[PodClass]
    offers: Sequence[Offer | None]
    """What each new node is."""
    within: Sequence[Sequence[Requirement]]
    """The domains that each must be in."""
    placements: dict[str, str] = field(default_factory=dict)
    _opened: dict[int, int] = field(default_factory=dict)
    """By place, the node that was opened for it."""

    def out(self, found: Answer, shares: Shares) -> Placed:
        """Everybody where the answer says, as far as the rules let them; the others where they may be."""
        waiting = {pods: list(pods.pods) for pods in self.ordered}
        meant = [
            _Meant(self.ordered[one], place, self._keys(waiting[self.ordered[one]], place, number))
            for one, place, number in self._tasks(found)
        ]
        types = self._types(found)
        for pods in self.ordered:
            self.where.targets.begin(pods)
        progress = True
        while progress:
            before = sum(len(one.keys) for one in meant)
            for one in meant:
                if one.keys and shares.begin(one.pods):
                    one.keys = self._place(one, types)
                    shares.end(one.pods)
            progress = 0 < sum(len(one.keys) for one in meant) < before
        for one in meant:
            waiting[one.pods] += one.keys
        left: Left = [(pods, keys) for pods, keys in waiting.items() if keys]
        return place_left(left, self.where.existing, self.where.packing, shares, self.placements)

    @property
    def _slots(self) -> Sequence[str]:
        return self.where.existing.names

    def _tasks(self, found: Answer) -> list[tuple[int, int, int]]:
        """Class, place and number: where a group begins first, then as classes are served."""
        begun = set(np.flatnonzero(found.begins.any(axis=0)).tolist())
        tasks = [
            (int(one), int(place), int(found.pods[one, place]))
            for one, place in zip(*np.nonzero(found.pods), strict=True)
        ]
        return sorted(tasks, key=lambda task: (task[1] not in begun, task[:2]))

    def _keys(self, waiting: list[str], place: int, number: int) -> list[str]:
        """So many of the waiting pods for a place; first those expected there, last those elsewhere."""
        name = self._slots[place] if place < len(self._slots) else None
        places, slots = self.where.places, set(self._slots)

        def rank(key: str) -> int:
            return 1 if places.get(key) not in slots else 0 if places[key] == name else 2

        taken = sorted(waiting, key=rank)[:number]
        for key in taken:
            waiting.remove(key)
        return taken

    def _types(self, found: Answer) -> dict[int, Mask]:
        """By place, the types that hold all who are meant for it and charge no more than what was chosen."""
        types: dict[int, Mask] = {}
        for node, offer in enumerate(self.offers):
            place = len(self._slots) + node
            numbers = found.pods[:, place]
            if offer is None or not numbers.any():
                continue
            table = offer.table
            some = [self.ordered[one] for one in np.flatnonzero(numbers).tolist()]
            used = sum(
                (
                    pods.requests * number + pods.attaching()
                    for pods, number in zip(some, numbers[numbers > 0], strict=True)
                ),
                np.zeros_like(table.room[0]),
            )
            types[place] = (
                (held_by(table, some) > 0).all(axis=0)
                & (table.room >= used).all(axis=1)
                & (table.limited <= table.limited[offer.row]).all(axis=1)
            )
        return types

    def _place(self, one: _Meant, types: Mapping[int, Mask]) -> list[str]:
        """Put pods where they are meant to be; those that are not let in."""
        if one.place < len(self._slots):
            name = self._slots[one.place]
            kept = self.where.existing.keep(one.pods, dict.fromkeys(one.keys, name))
            self.placements.update(kept)
            return [key for key in one.keys if key not in kept]
        offer = self.offers[one.place - len(self._slots)]
        if offer is None:
            return one.keys
        packing, keys, within = self.where.packing, one.keys, self.within[one.place - len(self._slots)]
        if one.place not in self._opened:
            opened = len(packing.nodes)
            if not packing.open(one.pods, keys[0], offer.table, types[one.place], within):
                return keys
            self._opened[one.place], keys = opened, keys[1:]
        return list(packing.place_on(one.pods, keys, self._opened[one.place], within))
