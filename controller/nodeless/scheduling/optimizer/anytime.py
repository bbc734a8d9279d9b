"""Covers of falling price: more time tries more of them, and leaves none out that less time tries.

First come greedy covers, by two kinds of values. Then rungs of a ladder, each twice as long as the one
before: on each, column generation continues where it stopped, and a dive turns what is known into whole
numbers. What is done on a rung depends on what was done before it, and not on how much time there is. So the
best plan that is found within some time is among those that are found within more.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from nodeless.scheduling.optimizer.column_generation import Search
from nodeless.scheduling.optimizer.cover import Chosen, Cover
from nodeless.scheduling.optimizer.patterns import Filler
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts

#: Seconds of the first rung. Rungs up to one of b seconds take 2 b - 1/64 together: 63/64 with six of them.
_FIRST_RUNG = 1 / 64
#: Steps of the first dive. Each further one has twice as many.
_FIRST_STEPS = 40
#: The first rung in terms of what a greedy cover takes, at least.
_COVERED = 0.5


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
        self.spent = 0.0
        """Seconds of work so far."""

    def of_use(self, effort: Effort) -> list[tuple[int, Amounts]]:
        """Configurations that are worth nearly what they cost; what that takes is taken from the effort."""
        self._search.effort = effort
        columns, self._columns = self._columns, ()
        return self._search.of_use(columns)

    def covers(self, until: float) -> Iterator[Sequence[Chosen]]:
        """What is found until so many seconds of work are spent, those of earlier calls included."""
        yield from self.greedy_covers(until)
        while not self._values and not self._ended:
            self._rung = max(self._rung, _COVERED * self._search.covered)
            if self.spent + self._rung > until:
                return
            dived = self._climb()
            if dived is not None:
                yield dived

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
                self._columns = chain(self._columns, [(one.shape, one.filling) for one in chosen])
                yield chosen

    def _climb(self) -> list[Chosen] | None:
        """One rung."""
        search = self._search
        search.effort = Effort(self._rung)
        columns, self._columns = self._columns, ()
        more = search.generate(columns)
        dived = search.dive(self._steps)
        self._ended = not more and not search.cut_short and search.finest
        self._steps *= 2
        self.spent += self._rung - search.effort.left
        self._rung *= 2
        return dived
