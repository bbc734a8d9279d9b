"""Why a node was, or was not, disrupted: one reason with the figures."""

from dataclasses import dataclass

from nodeless.api.times import format_time
from nodeless.disruption import disrupt
from nodeless.explain.decisions import Situation
from nodeless.model.nodes import DISRUPTION_REASON, NodeClaim
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.draining import pods_saving_work


@dataclass(frozen=True, slots=True)
class Judgment:
    """The one reason: a stable `code` (a verdict's or a command's), and a sentence with the figures."""

    disrupted: bool
    code: str
    message: str

    def __str__(self) -> str:
        return f"{'is' if self.disrupted else 'is not'} disrupted: {self.message} [{self.code}]"


def judged(situation: Situation, name: str) -> Judgment | None:
    """Why the node of that name (or the claim's of that name) is disrupted or not.

    None: it is no node of ours, or the claim has none yet. What stands on the claim already counts before
    what would be decided now.
    """
    snapshot = situation.snapshot
    claim = _claim_of(snapshot, name)
    if claim is None:
        return None
    condition = claim.condition(DISRUPTION_REASON)
    if condition is not None and condition.status == "True":
        return Judgment(True, condition.reason, condition.message or "it was decided earlier")
    decisions = disrupt(snapshot, situation.catalog, situation.disruption_policy, situation.now)
    for command in decisions.commands:
        if claim.name in command.claims:
            return Judgment(True, command.reason, command.message)
    verdict = decisions.verdicts.get(claim.name)
    if verdict is None:
        return Judgment(False, "NotNeeded", "another command goes first in this round")
    return Judgment(False, verdict.code, verdict.message)


def saving_work(snapshot: Snapshot, claim: NodeClaim, now: float, key: str = "") -> tuple[str, ...]:
    """Which pods of a claim's node, or that of a key alone, save their work before they are evicted."""
    node = snapshot.node_of(claim)
    if node is None:
        return ()
    found = pods_saving_work(claim, node, snapshot.pods_on(node.name), now)
    return tuple(
        f"pod {name} may save its work until {format_time(until)}"
        for name, until in sorted(found.items())
        if key in ("", name)
    )


def _claim_of(snapshot: Snapshot, name: str) -> NodeClaim | None:
    node = snapshot.nodes.get(name)
    return snapshot.claim_of(node) if node is not None else snapshot.claims.get(name)
