"""The search for a cheaper set of nodes: column generation, then whole numbers.

1. Prices of resources give first values of pods (`resource_prices`). Fillings that are best at
   these values, a greedy cover and the nodes of the plan to beat are the first configurations.
2. `master` weighs the configurations against each other, its duals are new values of the pods,
   `patterns` finds fillings that are worth more than they cost at these values, and so on until
   none is found or the effort is spent. Where none is found, `exchanges` improves those that came closest,
   and `knapsacks` finds the best ones; where those are not worth their cost or it takes too long, the shapes
   that came closest are filled by values that are a little off.
3. Whole numbers by diving, in a program of its own with the configurations that are of most use: what
   the program takes at least once is bought, else what it takes most nearly once. Configurations that
   hold more pods than are left, or do not stay within limits any more, are dropped, new fillings are found
   for what is left, and the program is solved again.
4. Pods that remain when the effort ends are covered greedily, by value for money.

`anytime` says how long each of these takes.

This module only counts pods; `repacking` turns the result into nodes and checks it.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.optimizer.cover import Chosen, Cover
from nodeless.scheduling.optimizer.exchanges import Exchanges
from nodeless.scheduling.optimizer.knapsacks import Knapsacks
from nodeless.scheduling.optimizer.master import Master
from nodeless.scheduling.optimizer.patterns import Filler, Values, multiplicity
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.pods.matmul import matmul

#: A filling must be worth so much more than it costs, as a share, to become a column.
_GAIN = 1e-6
#: Rounds of column generation at most, and the share of the effort that they may take.
_ROUNDS, _GENERATION = 80, 0.55
#: How much of the last values is kept in the smoothed ones.
_SMOOTH = 0.6
#: The part of the effort for new configurations that a round of exact pricing may take.
_EXACT = 0.3
#: Configurations that a dive begins with; where there are more, only the nodes of what it finds are kept.
_DIVING = 1000
#: Simplex iterations that the program takes when it is solved first, for each row.
_FIRST_ITERATIONS = 10
#: The part of what it costs that a configuration of use is worth at least.
_CLOSE_TO_COST = 0.98
#: What costs no more, in dollars an hour, costs nothing.
_FREE = 1e-9
#: Shapes whose fillings are improved by exchanges, and so many new ones of which are few.
_EXCHANGED, _FEW_FOUND = 24, 3
#: Items beyond which greedy fillings leave little room, and those of the last nodes are not improved.
_EXCHANGED_ITEMS = 100
#: Rounds in a row that may find nothing.
_STALLED = 12
#: Rounds of new fillings in a step of a dive.
_FRESH = 2
#: What the greedy cover of the rest of a dive may take however little is left, in terms of what that of all
#: pods took.
_LAST = 10.0
#: The part of a node that is rounded up to one before larger parts, where its shape is scarce; and the share
#: of its cost that a node of such a shape pays for limits at least.
_TAKEN, _RENT = 0.01, 1e-6
#: By how much a part of a node counts less than it is at most, in turns that round up other nodes.
_OTHERWISE = 0.8
#: The share of its cost that the remains of a dropped configuration must be worth.
_REMAINS = 0.8


class Search:
    """One search; deterministic, and bounded by its effort, which the caller may renew at any time."""

    def __init__(self, cover: Cover, filler: Filler) -> None:
        self._cover = cover
        self._filler = filler
        self.effort = Effort(0.0)
        self._shape: list[int] = []
        self._filling: list[Amounts] = []
        self._known: set[tuple[int, bytes]] = set()
        self._dropped: set[int] = set()
        self._size = len(cover.needed) + len(cover.caps)
        dearest = float(cover.cost.max(initial=0.0)) + float(cover.worth.max(initial=0.0))
        self._master = Master(cover.needed, cover.caps, dearest)
        self.covered = 0.0
        """Seconds of work that the first greedy cover took."""
        self.cut_short = False
        """Whether effort was missing in the last dive."""
        self.finest = False
        """Whether the last dive rounded one node at a time."""
        self._generated = False
        self._refining = False
        self._rows = cover.likely
        self._steady = cover.worth
        #: What the last filling of each shape was worth in terms of what it costs.
        self._reached = np.zeros(len(cover.shapes))
        self.values: Values = cover.worth
        """The last values of the pods."""
        #: What the caps cost at these.
        self._rents = np.zeros(len(cover.caps))
        self._hosts = filler.hosts
        self._exchanges = Exchanges(cover.shapes, cover.requests, filler.hosts)
        self._knapsacks: Knapsacks | None = None
        #: What they took the last time; more where that was not enough.
        self._exact_seconds = 0.0

    def greedy(
        self,
        left: Amounts,
        caps: Values,
        values: Values,
        *,
        hopeful: bool = True,
        below: float = np.inf,
    ) -> list[Chosen] | None:
        """Cover what is left by buying again and again what gives most value for money.

        Args:
            left: Pods of each item.
            caps: What is left of the caps.
            values: Of one pod of each item.
            hopeful: Go on as long as there is effort, however much more it may take.
            below: Give up when the nodes, with what the rest is worth, count this much; the rest is likely
                to cost more than it is worth.

        Returns:
            What was bought; None when some pods find no place, or the effort is spent or will not suffice.
        """
        cover = self._cover
        whole, effort = float(matmul(left, values)), self.effort.left
        left, caps = left.copy(), caps.copy()
        values = np.maximum(values, 1e-12)
        chosen: list[Chosen] = []
        cost = 0.0
        few = False
        while left.any():
            if cost + float(matmul(left, values)) > below:
                return None
            spent, covered = effort - self.effort.left, whole - float(matmul(left, values))
            if not hopeful and spent > _TRIAL * effort:
                lots = _LOTS * np.count_nonzero(self._cover.needed)
                if spent * whole > _HOPE * effort * covered or spent * lots > effort * len(chosen):
                    return None
            if self.effort.left <= 0:
                return None
            few = few or self._nodes(left, values) < _FEW
            rows = self._open(caps, None if few else cover.likely)
            alike = max(1, int(self._nodes(left, values) / _BULK))
            lot = self._lot(left, values, alike) if alike > 1 else left
            rows, fillings = self._promising(values, lot, rows, quick=alike > 1)
            # Where nodes limit pods, fillings that are worth more leave those that fit nowhere else.
            if alike == 1 and not self._hosts.count and len(left) <= _EXCHANGED_ITEMS:
                fillings = self._exchange(fillings, values, left, rows)
            worth = matmul(fillings, values)
            if not worth.any():
                if few:
                    return None
                few = True
                continue
            if self._use_standing(rows, fillings, worth, left, caps, chosen):
                continue
            ratio = worth / np.maximum(cover.cost[rows], 1e-9)
            best = int(np.lexsort((-worth, -np.round(ratio / ratio.max(), 9)))[0])
            shape = int(rows[best])
            times = self._times(shape, fillings[best], left, caps)
            chosen.append(Chosen(shape, fillings[best], times))
            cost += float(cover.cost[shape]) * times
            left -= fillings[best] * times
            self._take(shape, times, caps)
        self.covered = self.covered or effort - self.effort.left
        return chosen

    def _lot(self, left: Amounts, values: Values, alike: int) -> Amounts:
        """The pods of one of so many nodes that are alike, of the items of which most is left."""
        lot: Amounts = -(-left // alike)
        most = int(_BULK_ITEMS * np.sqrt(np.count_nonzero(lot)))
        lot[np.argsort(-(left * values), kind="stable")[most:]] = 0
        return lot

    def _promising(
        self, values: Values, left: Amounts, rows: NDArray[np.intp], *, quick: bool
    ) -> tuple[NDArray[np.intp], Amounts]:
        """Fillings of the shapes that may give most value for money; the others need not be filled.

        Shapes are filled in the order of what they promise at most, and those are left out that promise
        less than another one gives.
        """
        cost = np.maximum(self._cover.cost[rows], 1e-9)
        promise = self._cover.at_most(values, left, rows) / cost
        self.effort.spend_estimating(len(rows) * len(left))
        order = np.argsort(-promise, kind="stable")
        fillings: Amounts = np.zeros((len(rows), len(left)), dtype=np.int64)
        done, reached = 0, 0.0
        while done < len(rows) and promise[order[done]] * (1 + _ROUNDING) >= reached:
            some = np.sort(order[done : 2 * done + _FIRST])
            fillings[some] = self._fill(values, left, rows[some], quick=quick)
            reached = max(reached, float((matmul(fillings[some], values) / cost[some]).max()))
            done += len(some)
        tried = np.sort(order[:done])
        return rows[tried], fillings[tried]

    def _nodes(self, left: Amounts, values: Values) -> float:
        """About how many nodes of the dearest likely shape are needed for what is left."""
        dearest = float(self._cover.cost[self._cover.likely].max(initial=0.0))
        return float(matmul(left, values)) / dearest if dearest > 0 else 0.0

    def _use_standing(
        self,
        rows: NDArray[np.intp],
        fillings: Amounts,
        worth: Values,
        left: Amounts,
        caps: Values,
        chosen: list[Chosen],
    ) -> bool:
        """Fill existing nodes, the fullest first, as far as the fillings hold for what is left."""
        standing = [index for index in np.argsort(-worth, kind="stable") if self._cover.standing[rows[index]]]
        before = len(chosen)
        for index in standing:
            shape, filling = int(rows[index]), fillings[index]
            if worth[index] > 0 and (filling <= left).all():
                chosen.append(Chosen(shape, filling, 1))
                left -= filling
                self._take(shape, 1, caps)
        return len(chosen) > before

    def generate(self, seeds: Iterable[tuple[int, Amounts]]) -> bool:
        """Find the configurations that matter, beginning with the seeds, or go on with it.

        Returns:
            Whether there may be more to find.
        """
        cover, effort = self._cover, self.effort
        self._add(seeds)
        if not self._generated:
            self._generated = True
            nothing = np.zeros(len(cover.caps))
            self._price(cover.worth, nothing, cover.needed, np.arange(len(cover.shapes)), every=True)
        enough = effort.left * (1 - _GENERATION)
        stalled = 0
        for turn in range(_ROUNDS):
            if effort.left <= enough:
                return True
            if stalled > _STALLED:
                return False
            _, self.values, rents = self._solve(grown=True)
            self._steady = _SMOOTH * self._steady + (1 - _SMOOTH) * self.values
            found = 0 if self._refining else self._price_greedily(rents)
            if not found:
                found = self._refine(rents, turn, stalled, _EXACT * (effort.left - enough))
                self._refining = True
            stalled = 0 if found else stalled + 1
        return True

    def _price_greedily(self, rents: Values) -> int:
        """Add greedy fillings at the last values and at the smoothed ones; how many were new."""
        return sum(
            self._price(values, rents, self._cover.needed, self._rows)
            for values in (self.values, self._steady)
        )

    def _refine(self, rents: Values, turn: int, stalled: int, most: float) -> int:
        """Add fillings better than greedy ones; how many were new. Programs may take `most` seconds."""
        self._rows = np.arange(len(self._cover.shapes))
        values, needed = self.values, self._cover.needed
        closest = np.argsort(-self._reached, kind="stable")[:_EXCHANGED]
        found = self._price(values, rents, needed, closest, at=values, exchanged=True)
        found = found or self._price(values, rents, needed, self._rows)
        if found < _FEW_FOUND:
            found += self._price_exactly(rents, most)
        return found or self._price_widely(rents, turn, stalled)

    def of_use(self, more: Iterable[tuple[int, Amounts]]) -> list[tuple[int, Amounts]]:
        """Configurations that are worth nearly what they cost; `more`: further ones to look at.

        None where the program was never solved and there is too little effort to do so now.
        """
        if not self._generated and self.effort.iterations(self._size) < _FIRST_ITERATIONS * self._size:
            return []
        self._add(more)
        nearest = self._nearest()
        # Existing nodes that have room to spare cost nothing, and what is there is worth nothing.
        rents = self._cover.rent(self._rents, range(len(self._cover.shapes)))
        spare = self._cover.standing & (rents <= _FREE)
        return [
            (shape, filling) for shape, filling, lost in nearest if lost <= 1 - _CLOSE_TO_COST or spare[shape]
        ]

    def dive(self, steps: int, turn: int = 0) -> list[Chosen] | None:
        """Whole numbers of nodes; None when some pods find no place.

        Args:
            steps: In about so many, parts of nodes are rounded up.
            turn: Other turns than the first round up other nodes.
        """
        # A program with many configurations takes long to solve, and most of those that a dive finds are of
        # use for what is left then only.
        own = self._with_nearest(_DIVING)
        chosen = own._dive(steps, turn)
        self.cut_short, self.finest = own.cut_short, own.finest
        self._add((one.shape, one.filling) for one in chosen or ())
        if len(self._shape) < _DIVING:
            self._add(zip(own._shape, own._filling, strict=True))
        return chosen

    def whole(self, most: int, below: float) -> list[Chosen] | None:
        """The cheapest whole numbers of some configurations, by an integer program.

        Args:
            most: So many configurations: those that are of most use.
            below: What the nodes must cost less than.

        Returns:
            The nodes; None where none were found with the effort.
        """
        own = self._with_nearest(most)
        if not own._shape:
            return None
        taken, seconds = own._master.whole(self.effort.left, below)
        self.effort.left -= seconds
        if taken is None:
            return None
        left, chosen = self._cover.needed.copy(), []
        for column in np.repeat(np.arange(len(taken)), taken).tolist():
            pods = np.minimum(own._filling[column], left)
            left -= pods
            chosen.append(Chosen(own._shape[column], pods, 1))
        return None if left.any() else chosen

    def _with_nearest(self, most: int) -> "Search":
        """A search with so many configurations, those that are of most use; it has the same effort."""
        own = Search(self._cover, self._filler)
        own.effort, own.covered, own.values = self.effort, self.covered, self.values
        own._add((shape, filling) for shape, filling, _ in self._nearest()[:most])
        return own

    def _nearest(self) -> list[tuple[int, Amounts, float]]:
        """The configurations, and what they cost beyond what they are worth as a share, the best first."""
        if not self._shape:
            return []
        _, self.values, self._rents = self._solve(grown=True)
        cover, shapes = self._cover, np.array(self._shape, dtype=np.intp)
        price = np.maximum(cover.cost + cover.rent(self._rents, range(len(cover.shapes))), _FREE)[shapes]
        lost = 1 - matmul(np.array(self._filling), self.values) / price
        order = np.argsort(lost, kind="stable").tolist()
        return [(self._shape[column], self._filling[column], float(lost[column])) for column in order]

    def _dive(self, steps: int, turn: int) -> list[Chosen] | None:
        cover = self._cover
        left, caps = cover.needed.copy(), cover.caps.copy()
        self.finest = True
        chosen: list[Chosen] = []
        whole, step = float(matmul(left, cover.worth)), 0.0
        while left.any() and self.effort.left > step:
            before = self.effort.left
            taken, rents = self._solve_for(left, caps)
            bought = self._buy(taken, self._scarce(rents), left, caps, steps, turn)
            if not bought:
                break
            chosen += bought
            self._master.needs(left, caps)
            self._drop_too_large(left, caps)
            step = max(step, before - self.effort.left)
        self.cut_short = bool(left.any())
        rest = self._rest(left, caps, self._completion(left, whole))
        return None if rest is None else [*chosen, *rest]

    def _rest(self, left: Amounts, caps: Values, least: float) -> list[Chosen] | None:
        """A greedy cover of what is left, for which there is so much effort at least."""
        ending = self.effort
        self.effort = Effort(max(ending.left, least))
        before = self.effort.left
        rest = self.greedy(left, caps, np.maximum(self.values, 0.05 * self._cover.worth))
        ending.left -= before - self.effort.left
        self.effort = ending
        return rest

    def _completion(self, left: Amounts, whole: float) -> float:
        """Effort that the greedy cover of the rest may need: what all took, by the share that is left."""
        share = float(matmul(left, self._cover.worth)) / whole if whole > 0 else 1.0
        return self.covered * (_LAST + share)

    def _solve_for(self, left: Amounts, caps: Values) -> tuple[Values, Values]:
        """What is taken, and what the caps cost, with new fillings for what is left."""
        taken, values, rents = self._solve()
        rows = self._open(caps, None)
        for _ in range(_FRESH):
            if self.effort.left <= 0 or not self._price(values, rents, left, rows):
                break
            taken, values, rents = self._solve(grown=True)
        self.values = values
        return taken, rents

    def _drop_too_large(self, left: Amounts, caps: Values) -> None:
        """Configurations with more pods, or of more, than are left promise too much.

        Of those with more pods the remains take their place.
        """
        fillings = np.array(self._filling)
        closed = ~np.isin(self._shape, self._open(caps, None))
        large = [
            int(column)
            for column in np.flatnonzero((fillings > left).any(axis=1) | closed)
            if int(column) not in self._dropped
        ]
        self._dropped.update(large)
        self._master.drop(large)
        rests = np.minimum(fillings[large], left)
        shapes = [self._shape[column] for column in large]
        valuable = matmul(rests, self.values) > _REMAINS * self._cover.cost[shapes]
        valuable &= rests.any(axis=1) & ~closed[large]
        self._add((shapes[index], rests[index]) for index in np.flatnonzero(valuable))

    def _scarce(self, rents: Values) -> Mask:
        """The shapes of new nodes that use up what there is too little of."""
        new = np.flatnonzero(~self._cover.standing)
        scarce: Mask = np.zeros(len(self._cover.shapes), dtype=np.bool_)
        scarce[new] = self._cover.rent(rents, new) > _RENT * np.maximum(self._cover.cost[new], 1e-9)
        return scarce

    def _buy(
        self, taken: Values, scarce: Mask, left: Amounts, caps: Values, steps: int, turn: int
    ) -> list[Chosen]:
        """Buy what is taken at least once; if there is nothing, what is taken most nearly once.

        Of parts of nodes, those of scarce shapes come first. Last, none of them might fit any more into what
        is left of a limit, which would be lost.
        """
        chosen: list[Chosen] = []
        whole = np.flatnonzero(taken >= 1 - 1e-6)
        for column in whole[np.argsort(-taken[whole], kind="stable")]:
            self._buy_one(int(column), int(taken[column] + 1e-6), left, caps, chosen)
        if chosen:
            return chosen
        share = max(1, int(taken.sum() / steps))
        self.finest = self.finest and share == 1
        first = scarce[self._shape] & (taken > _TAKEN)
        number = np.arange(1, len(taken) + 1) * turn
        inclined = taken * (1 - _OTHERWISE * (number * _GOLDEN % 1.0))
        for column in np.lexsort((-inclined, ~first))[:share]:
            if taken[column] > 1e-6:
                self._buy_one(int(column), 1, left, caps, chosen)
        return chosen

    def _buy_one(self, column: int, times: int, left: Amounts, caps: Values, chosen: list[Chosen]) -> None:
        shape, filling = self._shape[column], self._filling[column]
        times = min(times, self._times(shape, filling, left, caps))
        if times:
            chosen.append(Chosen(shape, filling, times))
            left -= filling * times
            self._take(shape, times, caps)

    def _solve(self, *, grown: bool = False) -> tuple[Values, Values, Values]:
        """Solve the program; `grown`: only columns were added since the last time."""
        before = self._master.iterations
        result = self._master.solve(self.effort.iterations(self._size), grown=grown)
        self.effort.spend_solving(self._master.iterations - before, self._size, self._master.columns)
        return result

    def _fill(self, values: Values, left: Amounts, rows: NDArray[np.intp], *, quick: bool = False) -> Amounts:
        """Fillings of the shapes; empty for those that the effort no longer suffices for."""
        fillings: Amounts = np.zeros((len(rows), len(left)), dtype=np.int64)
        block = self._filler.at_once(left)
        for start in range(0, len(rows), block):
            if self.effort.left <= 0:
                break
            steps, elements = self._filler.steps, self._filler.elements
            some = slice(start, start + block)
            own = values if values.ndim == 1 else values[some]
            fillings[some] = self._filler.best(own, left, rows[some], quick=quick)
            self.effort.spend_filling(self._filler.steps - steps, self._filler.elements - elements)
        return fillings

    def _price(
        self,
        values: Values,
        rents: Values,
        left: Amounts,
        rows: NDArray[np.intp],
        *,
        at: Values | None = None,
        every: bool = False,
        exchanged: bool = False,
    ) -> int:
        """Add the fillings that are worth more than they cost; returns how many were new.

        Args:
            values: Of one pod of each item, for the choice of fillings.
            rents: What the caps cost.
            left: The most pods of each item.
            rows: The shapes to fill.
            at: The values by which fillings are judged; None: the same, and it is remembered what they reach.
            every: Add them all.
            exchanged: Improve them by exchanges.
        """
        cover = self._cover
        fillings = self._fill(values, left, rows)
        if exchanged:
            fillings = self._exchange(fillings, values, left, rows)
        price = cover.cost[rows] + cover.rent(rents, rows)
        worth = matmul(fillings, values if at is None else at)
        gain = worth - price
        if at is None:
            self._reached[rows] = worth / np.maximum(price, 1e-9)
        worth_it = fillings.any(axis=1) if every else gain > _GAIN * np.maximum(price, 1e-3)
        return self._add((int(rows[index]), fillings[index]) for index in np.flatnonzero(worth_it))

    def _exchange(self, fillings: Amounts, values: Values, left: Amounts, rows: NDArray[np.intp]) -> Amounts:
        """The fillings, improved; what that takes is taken from the effort."""
        exchanges = self._exchanges
        steps, elements = exchanges.steps, exchanges.elements
        improved = exchanges.improved(fillings, values, left, rows)
        self.effort.spend_exchanging(exchanges.steps - steps, exchanges.elements - elements)
        return improved

    def _price_exactly(self, rents: Values, most: float) -> int:
        """Add the fillings that are worth the most, where so many seconds suffice; how many were new."""
        if self._exact_seconds > most:
            return 0
        self._knapsacks = self._knapsacks or Knapsacks(self._cover, self._hosts)
        effort = Effort(most)
        # Greedy fillings of existing nodes are nearly as good.
        priced = self._knapsacks.price(self.values, rents, effort, existing=False)
        spent = most - effort.left
        self.effort.left -= spent
        self._exact_seconds = spent if priced.settled else 2 * spent
        return self._add(priced.fillings)

    def _price_widely(self, rents: Values, turn: int, stalled: int) -> int:
        """Add fillings of the shapes that came closest, chosen by values that are a little off.

        A greedy filling misses many that are worth more than they cost; another one finds some of them. The
        longer nothing is found, the more the values are off.
        """
        cover = self._cover
        close = np.argsort(-self._reached, kind="stable")[:_CLOSE]
        often = int(np.clip(_SHAKEN // (len(close) * len(cover.needed)), 1, _MOST_SHAKEN))
        rows = np.repeat(close, often)
        number = np.arange(1, len(cover.needed) + 1)
        turns = turn * len(rows) + np.arange(1, len(rows) + 1)[:, None]
        off = (number * turns * _GOLDEN + number * number * turns * _PLASTIC) % 1.0
        values = self.values * (1 + min(_SHAKE * (1 + stalled), _MOST_SHAKE) * (2 * off - 1))
        return self._price(values, rents, cover.needed, rows, at=self.values)

    def _add(self, found: Iterable[tuple[int, Amounts]]) -> int:
        shapes, fillings = [], []
        for shape, filling in found:
            memo = (shape, filling.tobytes())
            if memo not in self._known:
                self._known.add(memo)
                shapes.append(shape)
                fillings.append(filling)
        if shapes:
            self._shape += shapes
            self._filling += fillings
            cover = self._cover
            self._master.add(cover.cost[shapes], np.array(fillings), [cover.uses[shape] for shape in shapes])
        return len(shapes)

    def _open(self, caps: Values | None, rows: NDArray[np.intp] | None) -> NDArray[np.intp]:
        """The shapes, or some of them, of which one more node stays within the caps."""
        candidates = np.arange(len(self._cover.shapes)) if rows is None else rows
        if caps is None or not len(caps):
            return candidates
        fits = [self._fits(int(shape), caps) for shape in candidates]
        return candidates[np.array(fits, dtype=np.bool_)]

    def _times(self, shape: int, filling: Amounts, left: Amounts, caps: Values) -> int:
        times = multiplicity(filling, left)
        for row, amount in self._cover.uses[shape].items():
            times = min(times, int(caps[row] / amount + 1e-9))
        return times

    def _fits(self, shape: int, caps: Values) -> bool:
        return all(amount <= caps[row] + 1e-9 for row, amount in self._cover.uses[shape].items())

    def _take(self, shape: int, times: int, caps: Values) -> None:
        for row, amount in self._cover.uses[shape].items():
            caps[row] -= amount * times


#: The fractions of two ratios whose multiples are spread evenly, for what is to differ without chance.
_GOLDEN, _PLASTIC = 0.6180339887498949, 0.7548776662466927
#: By how much values are shaken at first, and at most; of how many shapes, how often each, and for how many
#: items in all.
_SHAKE, _MOST_SHAKE, _CLOSE, _MOST_SHAKEN, _SHAKEN = 0.04, 0.5, 12, 16, 6000
#: When what is left is worth so many nodes, all shapes are looked at.
_FEW = 4.0
#: Shapes that a greedy cover fills at first, and how far rounding may hide that two are equally good.
_FIRST, _ROUNDING = 8, 1e-8
#: When this share of the effort is spent, a greedy cover is given up that would need so many times all of it.
#: It takes so many lots for each class at least.
_TRIAL, _HOPE, _LOTS = 1 / 6, 2.0, 0.25
#: A greedy cover is bought in about so many lots at first: each class is divided among them. For a lot so
#: many times the root of how many classes are left are looked at, those of which most is left.
_BULK, _BULK_ITEMS = 4.0, 5.0
