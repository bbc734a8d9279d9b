"""Covers of falling price: more time tries more of them, and leaves none out that less time tries.

First come greedy covers, by two kinds of values. Then rungs of a ladder, each twice as long as the one
before: on each, column generation continues where it stopped, and a dive turns what is known into whole
numbers; so does an integer program, where nodes are few. Where column generation finds nothing new, larger
programs and dives that round up other nodes have the rest of the time. What is done depends on what was done
before it, and not on how much time there is. So the best plan that is found within some time is among those
that are found within more.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from nodeless.scheduling.optimizer.column_generation import Search
from nodeless.scheduling.optimizer.cover import Chosen, Cover, cost_of
from nodeless.scheduling.optimizer.patterns import Filler
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts

#: Seconds of the first rung. Rungs up to one of b seconds take 2 b - 1/64 together: 63/64 with six of them.
_FIRST_RUNG = 1 / 64
#: Steps of the first dive. Each further one has twice as many.
_FIRST_STEPS = 40
#: The first rung in terms of what a greedy cover takes, at least.
_COVERED = 0.5
#: The part of a rung that has to be within the time; else up to half of the time would not be used.
_MOSTLY = 0.85
#: Nodes and items up to which an integer program looks for whole numbers. With more items a round of cuts
#: takes too long.
_FEW_NODES, _FEW_ITEMS = 60, 25
#: Of how many configurations it does so after each rung, and in which part of the rung's time.
_FEW_COLUMNS, _WHOLE = 150, 0.2
#: Configurations and seconds of the programs that follow once no new configurations are found.
_PROGRAMS = ((300, 0.25), (600, 0.25), (600, 1.0))
#: The last dives end when so many in a row have found nothing cheaper. One may take so many times as long as
#: the last one before them did, or as a dive takes at least, in seconds.
_IN_VAIN, _DIVES, _LEAST_DIVE = 6, 1.5, 1e-3
#: What a dive takes together with the making of its program, in terms of what is counted of it.
_MADE = 2.0
#: By how much, as a share, two covers of the same nodes may differ in what they cost.
_ROUNDING = 1e-9


class AnytimeSearch:
    """One search that goes on as long as it is asked to."""

    def __init__(self, cover: Cover, filler: Filler, seeds: Iterable[tuple[int, Amounts]]) -> None:
        self._cover = cover
        self._search = Search(cover, filler)
        # Where nothing but greedy covers is made, the seeds are never made.
        self._columns = seeds
        self._values = [cover.worth, cover.even_worth]
        self._rung = _FIRST_RUNG
        self._steps = _FIRST_STEPS
        self._ended = False
        self._programs = list(_PROGRAMS)
        self._turn = self._in_vain = 0
        self._longest = 0.0
        # Of the cheapest cover so far.
        self._least, self._nodes = np.inf, 0
        self.spent = 0.0
        """Seconds of work so far."""

    def of_use(self, effort: Effort) -> list[tuple[int, Amounts]]:
        """Configurations that are worth nearly what they cost; what that takes is taken from the effort."""
        self._search.effort = effort
        columns, self._columns = self._columns, ()
        return self._search.of_use(columns)

    def covers(self, until: float, *, further: bool = False) -> Iterator[Sequence[Chosen]]:
        """What is found until so many seconds of work are spent, those of earlier calls included.

        Args:
            until: The seconds.
            further: Whether time that is left where no new configurations are found any more is used, too.
        """
        yield from self.greedy_covers(until)
        while not self._values and not self._ended:
            self._rung = max(self._rung, _COVERED * self._search.covered)
            if self.spent + _MOSTLY * self._rung > until:
                return
            yield from self._climb()
        if further and self._ended:
            yield from self._further_covers(until)

    def _further_covers(self, until: float) -> Iterator[list[Chosen]]:
        while self._programs and self.spent + self._programs[0][1] <= until:
            yield from self._whole(*self._programs.pop(0))
        while not self._programs and self._in_vain < _IN_VAIN:
            if self.spent + _MADE * self._longest > until:
                return
            yield from self._dive_otherwise()

    def greedy_covers(
        self, until: float, *, hopeful: bool = True, below: float = np.inf
    ) -> Iterator[Sequence[Chosen]]:
        """Greedy covers alone; the other arguments are those of `Search.greedy`."""
        cover, search = self._cover, self._search
        while self._values and self.spent < until:
            search.effort = Effort(until - self.spent)
            before = search.effort.left
            chosen = search.greedy(cover.needed, cover.caps, self._values[0], hopeful=hopeful, below=below)
            self.spent += before - search.effort.left
            if chosen is None and search.effort.left <= 0:
                return
            del self._values[0]
            if chosen is not None:
                self._improves(chosen)
                self._columns = chain(self._columns, [(one.shape, one.filling) for one in chosen])
                yield chosen

    def _climb(self) -> Iterator[list[Chosen]]:
        """One rung."""
        search = self._search
        search.effort = Effort(self._rung)
        columns, self._columns = self._columns, ()
        more = search.generate(columns)
        before = search.effort.left
        dived = search.dive(self._steps)
        self._longest = _DIVES * max(_LEAST_DIVE, before - search.effort.left)
        self.spent += self._rung - search.effort.left
        if dived is not None:
            self._improves(dived)
            yield dived
        self._ended = not more and not search.cut_short and search.finest
        yield from self._whole(_FEW_COLUMNS, _WHOLE * self._rung)
        self._steps *= 2
        self._rung *= 2

    def _whole(self, columns: int, seconds: float) -> Iterator[list[Chosen]]:
        """Whole numbers of the configurations of most use by an integer program, where nodes are few."""
        if self._nodes > _FEW_NODES or len(self._cover.needed) > _FEW_ITEMS:
            return
        search = self._search
        search.effort = Effort(seconds)
        chosen = search.whole(columns, self._least)
        self.spent += seconds - search.effort.left
        if chosen is not None and self._improves(chosen):
            yield chosen

    def _dive_otherwise(self) -> Iterator[list[Chosen]]:
        """A dive that rounds up other nodes than those before, with the same configurations."""
        search = self._search
        search.effort = Effort(self._longest)
        self._turn += 1
        dived = search.dive(self._steps, self._turn)
        self.spent += _MADE * max(_LEAST_DIVE, self._longest - search.effort.left)
        self._in_vain += 1
        if dived is not None and self._improves(dived):
            self._in_vain = 0
            yield dived

    def _improves(self, chosen: Sequence[Chosen]) -> bool:
        """Whether this is the cheapest so far, which is remembered."""
        cost = cost_of(self._cover, chosen)
        if cost >= self._least * (1 - _ROUNDING):
            return False
        self._least = cost
        self._nodes = sum(one.times for one in chosen if not self._cover.standing[one.shape])
        return True
