"""What would help refused pods, looked for once for each kind of refusal and then remembered.

Pods that stay refused are planned again every ten seconds; the search costs some ten solves, so
that only new refusals are searched, a few in a pass, and none where a solve takes long. It has a task of
its own: pods that come meanwhile are planned without waiting for it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from nodeless.explain.decisions import Situation
from nodeless.model.plan import Plan, Refusal
from nodeless.operator.logs import logger
from nodeless.scheduling.diagnostics.changes import Trial
from nodeless.scheduling.diagnostics.counterfactual import remedies
from nodeless.scheduling.faults import one_line

#: Longest solve, in seconds, after which help is looked for.
_SHORT_SOLVE = 0.25
_NEW_IN_A_PASS = 2
_TRIES = 8
#: Seconds of work in which each try must do: pods that need more get no advice.
_DEADLINE = 0.25
_REMEMBERED = 1000
#: Passes that may wait for advice: what they refuse is planned again every ten seconds.
_WAITING = 4
Say = Callable[[Refusal, Sequence[str]], object]
"""Tells a refused pod why, and what would help."""


class Advisor:
    """Remembers what helps."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[str, ...]] = {}
        self._asked: deque[tuple[Situation, Plan, float]] = deque(maxlen=_WAITING)
        self._waiting = asyncio.Event()
        self._log = logger("provisioner")

    def ask(self, situation: Situation, plan: Plan, seconds: float) -> None:
        """Have those told whom a plan refuses; how long its solve took."""
        if plan.refusals:
            self._asked.append((situation, plan, seconds))
            self._waiting.set()

    async def run(self, say: Say) -> None:
        """Tell refused pods until cancelled."""
        while True:
            await self._waiting.wait()
            self._waiting.clear()
            while self._asked:
                await self._tell(*self._asked.popleft(), say)

    async def _tell(self, situation: Situation, plan: Plan, seconds: float, say: Say) -> None:
        try:
            helping = await self.lines(situation, plan, seconds)
        except Exception as error:
            self._log.error(f"suggestions for unschedulable pods could not be computed: {one_line(error)}")
            helping = {}
        for refusal in plan.refusals:
            say(refusal, helping.get(refusal.pod, ()))

    async def lines(self, situation: Situation, plan: Plan, seconds: float) -> Mapping[str, tuple[str, ...]]:
        """What would help each refused pod, by its key.

        Args:
            situation: What was planned.
            plan: The plan with the refusals.
            seconds: How long its solve took.
        """
        groups: dict[object, list[Refusal]] = {}
        for refusal in plan.refusals:
            shape = situation.snapshot.pods[refusal.pod].shape
            groups.setdefault((replace(refusal, pod=""), shape), []).append(refusal)
        new = [key for key in groups if key not in self._known]
        for key in new[:_NEW_IN_A_PASS] if seconds <= _SHORT_SOLVE else ():
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = await asyncio.to_thread(_remedies, situation, groups[key])
        return {
            refusal.pod: self._known[key]
            for key, members in groups.items()
            if key in self._known
            for refusal in members
        }


def _remedies(situation: Situation, refusals: Sequence[Refusal]) -> tuple[str, ...]:
    trial = Trial(situation.snapshot, situation.catalog)
    policy = replace(situation.policy, deadline=_DEADLINE)
    found = remedies(trial, policy, refusals, tries=_TRIES)
    return tuple(str(remedy) for remedy in found)
