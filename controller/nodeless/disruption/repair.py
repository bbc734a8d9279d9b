"""Nodes that are broken for longer than is tolerated, and in which order they are replaced.

A policy says which condition of a node, with which status, is tolerated for how long. Policies with a
`reason` (a regular expression on the condition's reason) are specific; exactly one policy of a condition
and status has none: it is the fallback, and speaks only where no specific one matches. The most urgent
of the policies that are overdue counts.

    overdue since = max(transition of the condition, creation of the node) + toleration
    order         = rank of the priority (dense) + time overdue / 30 min

A pool of which more than a fifth of the nodes (rounded up) is broken is left alone: then something
else is broken, and replacing nodes would make it worse.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nodeless.model.conditions import Condition
from nodeless.model.nodes import Node

#: Part of a pool's nodes beyond which none of them is replaced.
BREAKER_PERCENT = 20
#: Being overdue for so long counts as much as one rank of priority.
SECONDS_A_RANK = 1800.0


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """What is tolerated, for how long in seconds; `priority` from 0 to 100."""

    condition: str
    status: str
    toleration: float
    reason: str = ""
    """Regular expression that the whole reason must match; empty: the fallback."""
    priority: int = 0


#: What EKS's node monitoring agent and the kubelet report (AWS provider of Karpenter v1).
POLICIES = (
    RepairPolicy("Ready", "False", 1800.0),
    RepairPolicy("Ready", "Unknown", 1800.0),
    RepairPolicy("AcceleratedHardwareReady", "False", 600.0, priority=10),
    RepairPolicy("StorageReady", "False", 1800.0),
    RepairPolicy("NetworkingReady", "False", 1800.0),
    RepairPolicy("KernelReady", "False", 1800.0),
    RepairPolicy("ContainerRuntimeReady", "False", 1800.0),
)


@dataclass(frozen=True, slots=True)
class Ailment:
    """A condition of a node that is overdue, and by which policy."""

    condition: Condition
    policy: RepairPolicy
    since: float
    """When the node became overdue."""

    def __str__(self) -> str:
        state = f"{self.condition.type}={self.condition.status}"
        reason = f" ({self.condition.reason})" if self.condition.reason else ""
        return f"{state}{reason} for more than {self.policy.toleration:.0f} s"


def unhealthy(node: Node, policies: Sequence[RepairPolicy] = POLICIES) -> bool:
    """Whether a policy speaks of the node, overdue or not."""
    return any(True for _ in _matches(node, policies))


def ailment(node: Node, now: float, policies: Sequence[RepairPolicy] = POLICIES) -> Ailment | None:
    """What makes the node due for repair: of several the highest priority, then the one due for longest."""
    found = [
        Ailment(condition, policy, max(condition.last_transition_time, node.created_at) + policy.toleration)
        for condition, policy in _matches(node, policies)
    ]
    due = [each for each in found if each.since <= now]
    return min(due, key=lambda each: (-each.policy.priority, each.since), default=None)


def _matches(node: Node, policies: Sequence[RepairPolicy]) -> Iterator[tuple[Condition, RepairPolicy]]:
    for condition in node.conditions:
        some = [
            each for each in policies if (each.condition, each.status) == (condition.type, condition.status)
        ]
        specific = [each for each in some if each.reason and re.fullmatch(each.reason, condition.reason)]
        # While a specific policy matches, tolerant as it may be, the fallback is silent.
        for policy in specific or [each for each in some if not each.reason]:
            yield condition, policy


def in_order(due: Iterable[tuple[str, Ailment]], now: float) -> list[str]:
    """Names of nodes that are due, the most urgent first."""
    some = list(due)
    ranks = sorted({each.policy.priority for _, each in some})
    return [
        name
        for name, each in sorted(
            some,
            key=lambda pair: (
                -(ranks.index(pair[1].policy.priority) + (now - pair[1].since) / SECONDS_A_RANK),
                pair[0],
            ),
        )
    ]


def breaker(nodes: int, broken: int) -> bool:
    """Whether too many nodes of a pool are broken at the same time."""
    return broken > -(-nodes * BREAKER_PERCENT // 100)
