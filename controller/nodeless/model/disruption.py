"""What limits disruption, and commands: nodes to terminate, with what takes their place."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nodeless.model.plan import PlannedNode
from nodeless.model.pods import LabelSelector, Pod


class DisruptionReason(StrEnum):
    """Why nodes are disrupted, as budgets and metrics know it."""

    EXPIRED = "Expired"
    DRIFTED = "Drifted"
    EMPTY = "Empty"
    UNDERUTILIZED = "Underutilized"
    UNHEALTHY = "Unhealthy"


class VerdictCode(StrEnum):
    """Why a claim is not disrupted, or a command was dropped; stable, for metrics and `nodeless why`.

    `FAILED`: looking at the claim raised something that was not foreseen.
    `NOT_REACHED`: the pass did not come to the node, or makes a command first that is worth more; it has its
    turn in a later one.
    """

    BREAKER = "Breaker"
    BUDGET = "Budget"
    BUDGET_EXHAUSTED = "BudgetExhausted"
    CHOSEN = "Chosen"
    COMMITTED = "Committed"
    CONSOLIDATION_DISABLED = "ConsolidationDisabled"
    CONSOLIDATION_FORBIDDEN = "ConsolidationForbidden"
    COOLING_DOWN = "CoolingDown"
    EVICTIONS_TOO_DEAR = "EvictionsTooDear"
    EXPECTING = "Expecting"
    FAILED = "Failed"
    GANG_INCOMPLETE = "GangIncomplete"
    GONE = "Gone"
    LEAVING = "Leaving"
    NO_REPLACEMENT = "NoReplacement"
    NODE_PROTECTED = "NodeProtected"
    NOMINATED = "Nominated"
    NOT_BETTER = "NotBetter"
    NOT_INITIALIZED = "NotInitialized"
    NOT_QUIET = "NotQuiet"
    NOT_REACHED = "NotReached"
    NOT_REPAID = "NotRepaid"
    OCCUPIED = "Occupied"
    ONLY_WHEN_EMPTY = "OnlyWhenEmpty"
    PAUSED = "Paused"
    PLANNING = "Planning"
    POD_PROTECTED = "PodProtected"
    POOL_UNUSABLE = "PoolUnusable"
    PRICE_UNKNOWN = "PriceUnknown"
    REBOOTING = "Rebooting"
    REPAIR_BLOCKED = "RepairBlocked"
    REPLACING = "Replacing"
    RESTLESS = "Restless"
    SEVERAL_BUDGETS = "SeveralBudgets"
    UNBALANCED = "Unbalanced"
    UNCONSOLIDATABLE = "Unconsolidatable"
    UNREADABLE = "Unreadable"
    WAITING = "Waiting"


@dataclass(frozen=True, slots=True)
class PodDisruptionBudget:
    """A `policy/v1` PodDisruptionBudget, as the control plane counts it."""

    namespace: str
    name: str
    selector: LabelSelector | None
    disruptions_allowed: int = 0
    always_evicts_unhealthy: bool = False
    """Whether pods that are not Ready may leave at any time (`unhealthyPodEvictionPolicy: AlwaysAllow`)."""
    fully_blocking: bool = False
    """Whether it says that no pod may ever be missing, however many there are (`maxUnavailable: 0`)."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def refuses(self, pod: Pod) -> bool:
        """Whether it keeps a pod that it selects from being evicted now."""
        return self.disruptions_allowed < 1 and self._counts(pod)

    def never_allows(self, pod: Pod) -> bool:
        """Whether it keeps a pod that it selects from being evicted for as long as it stays as it is."""
        return self.fully_blocking and self._counts(pod)

    def _counts(self, pod: Pod) -> bool:
        return pod.ready or not self.always_evicts_unhealthy


@dataclass(frozen=True, slots=True)
class Command:
    """Claims that end together; their replacements must be ready before."""

    reason: DisruptionReason
    claims: tuple[str, ...]
    """Names of the claims that end, sorted."""
    replacements: tuple[PlannedNode, ...] = ()
    price_before: float = 0.0
    """US dollars an hour of the claims that end."""
    price_after: float = 0.0
    """The most, in US dollars an hour, that the replacements can cost."""
    evictions: int = 0
    """Pods that have to move."""
    message: str = ""
    reboots: bool = False
    """Whether the machines are started anew in place instead of ending."""
    drain_grace: int | None = None
    """Seconds after which the drain is over, whatever is left; None: as long as the claim says."""

    @property
    def action(self) -> str:
        if self.reboots:
            return "reboot"
        return "replace" if self.replacements else "delete"

    @property
    def saving(self) -> float:
        return self.price_before - self.price_after


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a claim is not disrupted: a code, and one sentence with the figures."""

    code: VerdictCode
    message: str


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of one pass."""

    commands: tuple[Command, ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict, hash=False)
    """By claim name, for every claim that is in no command."""
    held: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Empty nodes that only a budget keeps: claim name to US dollars an hour."""
    again_at: float = math.inf
    """When time alone makes a command worth it that was looked at and refused (seconds since the epoch)."""
    faults: Mapping[str, Exception] = field(default_factory=dict, hash=False, compare=False)
    """By claim name what was raised when the claim was looked at."""
