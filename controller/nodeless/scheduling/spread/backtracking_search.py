"""Dividing a batch under several limits at once: a walk from state to state that never gets stuck early.

A step puts a pod where the fewest are, among the options that every limit allows. Two limits
may lead such a walk into a dead end (the emptiest zone sells only the capacity type that is
ahead), so it goes back and tries the next best option, and remembers dead states. A state is
what limits look at: counts relative to the emptiest domain. When it comes round again, the
steps between are repeated as often as they fit, so that the work does not grow with the batch.
Where limits are far away several pods go at a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nodeless.scheduling.meter import Meter
from nodeless.scheduling.spread.sharing import ENDLESS, Limit, Option

#: States looked at before the walk is content with the longest way found.
_PATIENCE = 3000
#: Seconds for each domain and each option that a step looks at.
_LOOK = 0.25e-6

State = tuple[tuple[int, ...], ...]


@dataclass(slots=True, eq=False)
class _Frame:
    """A place on the way: its state, pods placed before it, what is left to try, and the step taken."""

    state: State
    total: int
    ahead: list[int]
    step: tuple[int, int] | None = None


@dataclass(slots=True, eq=False)
class BacktrackingSearch:
    """One division; `room` is the most pods for each option. `ordered`: the way is remembered in `steps`."""

    limits: Sequence[Limit]
    usable: Sequence[int]
    options: Sequence[Option]
    room: Sequence[int]
    meter: Meter = field(default_factory=Meter)
    ordered: bool = False
    shares: dict[int, int] = field(default_factory=dict)
    total: int = 0
    steps: list[tuple[int, int]] = field(default_factory=list)
    """The way: options and how many pods each got, one after the other."""
    _dead: set[State] = field(default_factory=set)
    _way: list[_Frame] = field(default_factory=list)
    _at: dict[State, int] = field(default_factory=dict)

    def run(self, want: int) -> dict[int, int]:
        """Pods for each option, in total `want` or as many as a walk found room for."""
        best_total, best, way = 0, dict[int, int](), list[tuple[int, int]]()
        step = _LOOK * sum(4 + 2 * len(limit.universe) + 3 * len(self.usable) for limit in self.limits)
        for _ in range(_PATIENCE):
            self.meter.spend(step)
            if self.meter.over:
                break
            if self.total > best_total:
                best_total, best, way = self.total, dict(self.shares), list(self.steps)
            if self.total == want:
                break
            state = self._state()
            if state in self._at and self._repeat(self._at[state], want):
                continue
            if not self._forward(state, want) and not self._back(want):
                break
        if best_total > self.total:
            self.steps = way
            return best
        return dict(self.shares)

    def _forward(self, state: State, want: int) -> bool:
        """One step on, if there is any that is not known to be in vain."""
        ahead = [] if state in self._dead else self._allowed()
        if not ahead:
            self._dead.add(state)
            return False
        self._at.setdefault(state, len(self._way))
        self._way.append(_Frame(state, self.total, ahead))
        self._take(want)
        return True

    def _back(self, want: int) -> bool:
        """Back to the last place with something else to try, and try that."""
        while self._way:
            frame = self._way[-1]
            if frame.step is not None:
                self._move(frame.step[0], -frame.step[1])
                if self.ordered:
                    self.steps.pop()
                frame.step = None
            if frame.ahead:
                self._take(want)
                return True
            self._dead.add(frame.state)
            self._way.pop()
            if self._at.get(frame.state) == len(self._way):
                del self._at[frame.state]
        return False

    def _take(self, want: int) -> None:
        frame = self._way[-1]
        index = frame.ahead.pop(0)
        near = min(limit.left(self.options[index], limit.most()) for limit in self.limits)
        much = min(near // 4, (want - self.total) // (4 * len(self.usable)))
        number = max(1, min(much, self.room[index] - self.shares.get(index, 0)))
        frame.step = (index, number)
        if self.ordered:
            self.steps.append(frame.step)
        self._move(index, number)

    def _repeat(self, since: int, want: int) -> bool:
        """Go round again as often as possible; no way leads back from there."""
        period = self.total - self._way[since].total
        steps: dict[int, int] = {}
        for frame in self._way[since:]:
            if frame.step is not None:
                steps[frame.step[0]] = steps.get(frame.step[0], 0) + frame.step[1]
        times = min(
            (want - self.total) // period,
            *((self.room[i] - self.shares.get(i, 0)) // number for i, number in steps.items()),
        )
        for index, number in steps.items():
            self._move(index, number * times)
        if self.ordered:
            self.steps += [frame.step for frame in self._way[since:] if frame.step is not None] * times
        self._way.clear()
        self._at.clear()
        self._dead.clear()
        return times > 0

    def _allowed(self) -> list[int]:
        # Found once: to look at every domain again for every option would take domains times options.
        limits = [(limit, limit.most()) for limit in self.limits]
        free = [
            i
            for i in self.usable
            if self.shares.get(i, 0) < self.room[i]
            and all(limit.left(self.options[i], most) > 0 for limit, most in limits)
        ]
        return sorted(free, key=lambda i: (sum(limit.held(self.options[i]) for limit in self.limits), i))

    def _move(self, index: int, number: int) -> None:
        self.shares[index] = self.shares.get(index, 0) + number
        self.total += number
        for limit in self.limits:
            limit.take(self.options[index], number)

    def _state(self) -> State:
        full = tuple(int(self.shares.get(i, 0) >= self.room[i]) for i in self.usable)
        return (full, *(self._seen_by(limit) for limit in self.limits))

    def _seen_by(self, limit: Limit) -> tuple[int, ...]:
        values = dict.fromkeys([*limit.universe, *(self.options[i][limit.at] for i in self.usable)])
        base = limit.emptiest(limit.universe) if limit.universe and limit.first_fit >= ENDLESS else 0
        return tuple(limit.counts.get(value, 0) - base for value in values if value is not None)
