"""How many nodes of a pool may be disrupted at the same time (v1 `disruption.budgets`).

allowed = min over the budgets that apply now and name the reason (or none);
a percentage counts the pool's initialized nodes and is rounded up;
remaining = allowed - nodes that are on their way out, not Ready or being rebooted, never below 0.

A node is on its way out from when its replacement is written on, marked yet or not.
Nodes whose instance is ending already count neither way.
"""

from dataclasses import dataclass

from nodeless.disruption.schedules import LONGEST_WAIT, parse_schedule
from nodeless.model.disruption import DisruptionReason
from nodeless.model.nodes import INITIALIZED_CONDITION, INSTANCE_TERMINATING, REBOOTING, Node, NodeClaim
from nodeless.model.numbers import whole_number
from nodeless.model.pools import Budget, Pool
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.eligibility import leaving
from nodeless.state.usage import pool_members

#: Stands for no limit.
UNLIMITED = 2**31
#: A node that has begun to leave is drained by then, as a rule; one that is not is not waited for.
DRAINS_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a pool's budgets leave for one reason."""

    nodes: int
    allowed: int
    disrupted: int
    soon_gone: int = 0
    """Those of the disrupted nodes that began to leave a short while ago."""
    unready: int = 0
    """Those of the disrupted nodes that are only not Ready."""

    @property
    def remaining(self) -> int:
        return max(self.allowed - self.disrupted, 0)

    @property
    def soon_remaining(self) -> int:
        """What is left once the nodes that began to leave a short while ago are gone.

        Commands wait anyway: what a budget holds for some seconds waits meanwhile, and not after them.
        """
        return max(self.allowed - self.disrupted + self.soon_gone, 0)

    def __str__(self) -> str:
        limit, state = f"{self.disrupted} of at most {self.allowed}", state_of(self.unready)
        return f"{limit} nodes are {state} at the moment ({self.nodes} in the pool)"


def state_of(unready: int) -> str:
    """What nodes are that use up a budget, when so many of them are only not Ready."""
    return "disrupted or not Ready" if unready else "disrupted"


def active(budget: Budget, now: float) -> bool:
    """Whether a budget applies: always without a schedule, else for its duration after each strike."""
    if not budget.schedule:
        return True
    try:
        since = parse_schedule(budget.schedule).next(now - min(budget.duration or 0, LONGEST_WAIT))
    except (ValueError, KeyError):
        return True
    return since is not None and since <= now


def limit(budget: Budget, nodes: int) -> int:
    """The number that a budget allows in a pool of so many nodes; 0 for one that cannot be read."""
    text = budget.nodes
    number = whole_number(text.removesuffix("%"), UNLIMITED)
    if number is None:
        return 0
    return -(-nodes * number // 100) if text.endswith("%") else number


def allowed_disruptions(pool: Pool, reason: DisruptionReason, nodes: int, now: float) -> int:
    """The strictest of the budgets that apply."""
    return min(
        (
            limit(budget, nodes)
            for budget in pool.budgets
            if (not budget.reasons or reason in budget.reasons) and active(budget, now)
        ),
        default=UNLIMITED,
    )


def allowance(snapshot: Snapshot, pool: Pool, reason: DisruptionReason, now: float) -> Allowance:
    """What the pool's budgets leave now."""
    counted = [(claim, node) for claim, node in pool_members(snapshot, pool) if _counts(claim, node)]
    replaced = {old for claim in snapshot.claims.values() for old in claim.replaces}
    staying = [node for claim, node in counted if claim.name not in replaced and not _away(claim, node)]
    # Nodes that are not Ready are what repair is for: they must not use up its own budget.
    repairs = reason == DisruptionReason.UNHEALTHY
    unready = 0 if repairs else sum(node is not None and not node.ready for node in staying)
    disrupted = len(counted) - len(staying) + unready
    soon_gone = sum(_began_to_leave(claim, now) for claim, _ in counted)
    allowed = allowed_disruptions(pool, reason, len(counted), now)
    return Allowance(len(counted), allowed, disrupted, soon_gone, unready)


def _began_to_leave(claim: NodeClaim, now: float) -> bool:
    """Whether a claim was deleted a short while ago."""
    since = claim.deletion_timestamp
    return since is not None and now - since < DRAINS_WITHIN


def _counts(claim: NodeClaim, node: Node | None) -> bool:
    if node is None or claim.is_true(INSTANCE_TERMINATING):
        return False
    return node.initialized or claim.is_true(INITIALIZED_CONDITION) or claim.is_true(REBOOTING)


def _away(claim: NodeClaim, node: Node | None) -> bool:
    return leaving(node, claim) or claim.is_true(REBOOTING)
