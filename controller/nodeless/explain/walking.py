"""What consolidation walks to: the cluster's price now and at the target, and the moves on the way."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from nodeless.disruption import DisruptionPolicy, Step, Target, path, target
from nodeless.explain.decisions import Situation
from nodeless.explain.words import count, listed, price
from nodeless.model.plan import PlannedNode


@dataclass(frozen=True, slots=True)
class Walk:
    """A target and the path towards it."""

    target: Target
    steps: tuple[Step, ...]

    @property
    def reached(self) -> float:
        """USD an hour after the last move of the path."""
        return self.steps[-1].price if self.steps else self.target.price

    @property
    def evictions(self) -> int:
        return sum(step.move.evictions for step in self.steps)

    def lines(self) -> tuple[str, ...]:
        """For people: the figures, then a line for each move."""
        whole = self.target
        stands = "nothing that may move would be cheaper if it were planned anew"
        if whole.ending:
            nodes = count(len(whole.ending), "node")
            stands = f"at the target {_bought(whole.launches)} would replace {nodes}"
        moves, evictions = count(len(self.steps), "move"), count(self.evictions, "eviction")
        return (
            f"now {price(whole.price)}, target {price(whole.whole)}: {price(whole.distance)} to walk",
            stands,
            f"{moves} on the way with {evictions} to {price(self.reached)}",
            *(f"{number}. {_told(step)}" for number, step in enumerate(self.steps, 1)),
        )

    def to_json(self) -> dict[str, Any]:
        """For machines; prices in USD an hour."""
        return {
            "price": round(self.target.price, 6),
            "target": round(self.target.whole, 6),
            "distance": round(self.target.distance, 6),
            "reached": round(self.reached, 6),
            "evictions": self.evictions,
            "ending": list(self.target.ending),
            "launches": _counted(self.target.launches),
            "path": [
                {
                    "reason": step.move.reason,
                    "ending": list(step.move.claims),
                    "launches": _counted(step.move.replacements),
                    "saving": round(step.move.saving, 6),
                    "evictions": step.move.evictions,
                    "price": round(step.price, 6),
                }
                for step in self.steps
            ],
        }


def walk(situation: Situation, policy: DisruptionPolicy | None = None) -> Walk:
    """The target of a situation and the moves that consolidation would make."""
    solving = replace(situation.policy, time_box=0.0)
    chosen = replace(policy or DisruptionPolicy(), solving=solving)
    given = situation.snapshot, situation.catalog, chosen, situation.now
    return Walk(target(*given), path(*given))


def _told(step: Step) -> str:
    move = step.move
    launches = f", launch {_bought(move.replacements)}" if move.replacements else ""
    saved = f"saves {price(move.saving)} for {count(move.evictions, 'eviction')}"
    return f"end {listed(list(move.claims), 4)}{launches}: {saved}, then {price(step.price)}"


def _counted(nodes: tuple[PlannedNode, ...]) -> dict[str, int]:
    return dict(sorted(Counter(node.instance_type for node in nodes).items()))


def _bought(nodes: tuple[PlannedNode, ...]) -> str:
    kinds = [f"{number} x {name}" for name, number in _counted(nodes).items()]
    return listed(kinds, 4) if kinds else "no node"
