"""What consolidation walks to: the cluster's price now and at the target, and the moves on the way."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nodeless.disruption import Step, Target, path, target
from nodeless.explain.advice.bill import is_ours
from nodeless.explain.decisions import Situation
from nodeless.explain.preference_costs import (
    NOTHING,
    Outcome,
    PreferenceCosts,
    RuleGroup,
    Trying,
    most_plans,
    priced_groups,
    rule_groups,
    without_groups,
)
from nodeless.explain.words import count, listed, price
from nodeless.model.plan import PlannedNode
from nodeless.model.snapshot import Snapshot
from nodeless.state.saving import plain


@dataclass(frozen=True, slots=True)
class ConsolidationPath:
    """A target and the path towards it."""

    target: Target
    steps: tuple[Step, ...]
    preferences: PreferenceCosts = NOTHING
    """What soft rules of pods, those that run included, cost at the target."""

    @property
    def reached(self) -> float:
        """USD an hour after the last move of the path."""
        return self.steps[-1].price if self.steps else self.target.price

    @property
    def evictions(self) -> int:
        return sum(step.command.evictions for step in self.steps)

    def lines(self) -> tuple[str, ...]:
        """For people: the figures, then a line for each command."""
        whole = self.target
        stands = "planning all movable pods again would save nothing"
        if whole.ending:
            nodes = count(len(whole.ending), "node")
            stands = f"at the target {_bought(whole.launches)} would replace {nodes}"
        commands, evictions = count(len(self.steps), "command"), count(self.evictions, "eviction")
        return (
            f"now {price(whole.price)}, target {price(whole.whole)}: {price(whole.distance)} to save",
            stands,
            f"after {commands} with {evictions}: {price(self.reached)}",
            *(f"{number}. {_step_text(step)}" for number, step in enumerate(self.steps, 1)),
            *(f"preference at the target: {line}" for line in self.preferences.lines()),
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
                    "reason": step.command.reason,
                    "ending": list(step.command.claims),
                    "launches": _counted(step.command.replacements),
                    "saving": round(step.command.saving, 6),
                    "evictions": step.command.evictions,
                    "price": round(step.price, 6),
                }
                for step in self.steps
            ],
            **({"preferences": plain(self.preferences)} if self.preferences else {}),
        }


def consolidation_path(situation: Situation, trying: Trying = Trying.NEVER) -> ConsolidationPath:
    """The target of a situation and the commands that consolidation would make.

    Args:
        situation: The cluster.
        trying: How often the target is looked for again to find what preferences cost there.
    """
    chosen = situation.disruption_policy

    def target_of(there: Situation) -> Target:
        return target(there.snapshot, there.catalog, chosen, there.now)

    def again(left_out: Sequence[RuleGroup]) -> Outcome:
        return Outcome(target_of(without_groups(situation, left_out)).whole)

    found = target_of(situation)
    preferences = NOTHING
    if trying is not Trying.NEVER:
        pods = [key for key, pod in sorted(situation.snapshot.pods.items()) if pod.occupies]
        most = None if trying is Trying.ALWAYS else most_plans(chosen.solving, len(pods))
        preferences = priced_groups(Outcome(found.whole), rule_groups(situation, pods), again, most)
    steps = path(situation.snapshot, situation.catalog, chosen, situation.now)
    return ConsolidationPath(found, steps, preferences)


def unclaimed_notes(snapshot: Snapshot) -> list[str]:
    """A line on nodes of pools that consolidation does not see, for their claims are not there."""
    unclaimed = [
        node
        for node in snapshot.nodes.values()
        if is_ours(snapshot, node) and snapshot.claim_of(node) is None
    ]
    if not unclaimed:
        return []
    return [
        f"{count(len(unclaimed), 'node')} of pools without a NodeClaim or Machine in the input: not "
        "included in the target of consolidation; hint: add kubectl get nodeclaims -o yaml"
    ]


def _step_text(step: Step) -> str:
    command = step.command
    launches = f", launch {_bought(command.replacements)}" if command.replacements else ""
    saved = f"saves {price(command.saving)} for {count(command.evictions, 'eviction')}"
    return f"end {listed(list(command.claims), 4)}{launches}: {saved}, then {price(step.price)}"


def _counted(nodes: tuple[PlannedNode, ...]) -> dict[str, int]:
    return dict(sorted(Counter(node.instance_type for node in nodes).items()))


def _bought(nodes: tuple[PlannedNode, ...]) -> str:
    kinds = [f"{number} x {name}" for name, number in _counted(nodes).items()]
    return listed(kinds, 4) if kinds else "no node"
