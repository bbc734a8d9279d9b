"""What would help refused pods, looked for once for each kind of refusal and then remembered.

Pods that stay refused are planned again every ten seconds; the search costs some ten solves, so
that only new refusals are searched, a few in a pass, and none where a solve takes long.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nodeless.explain.decisions import Situation
from nodeless.model.plan import Plan, Refusal
from nodeless.solve.reasons.changes import Trial
from nodeless.solve.reasons.counterfactual import remedies

#: Longest solve, in seconds, after which help is looked for.
_SHORT_SOLVE = 0.25
_NEW_IN_A_PASS = 2
_TRIES = 8
#: Seconds of work in which each try must do: pods that need more get no advice.
_DEADLINE = 0.25
_REMEMBERED = 1000


class Advisor:
    """Remembers what helps."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[str, ...]] = {}

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
            self._known[key] = await asyncio.to_thread(_found, situation, groups[key])
        return {
            refusal.pod: self._known[key]
            for key, members in groups.items()
            if key in self._known
            for refusal in members
        }


def _found(situation: Situation, refusals: Sequence[Refusal]) -> tuple[str, ...]:
    trial = Trial(situation.snapshot, situation.catalog)
    policy = replace(situation.policy, deadline=_DEADLINE)
    found = remedies(trial, policy, situation.now, refusals, tries=_TRIES)
    return tuple(str(remedy) for remedy in found)
