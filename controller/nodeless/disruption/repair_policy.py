"""Nodes that are broken for longer than is tolerated: what is done about each, and in which order.

A policy says which condition of a node, with which status, is tolerated for how long, and whether the
node is then rebooted or replaced. Policies with a `reason` (a regular expression on the condition's
reason) are specific; exactly one policy of a condition and status has none: it is the fallback, it
replaces, and it speaks only where no specific one matches. Of several policies that are overdue
together the most disruptive action is taken, in the name of the highest priority, then of the longest
wait, and with the shortest bound that any of them sets to the drain.

    overdue since = max(transition of the condition, end of the node's last reboot) + toleration
    order         = rank of the priority (dense) + time overdue / 30 min

The transition is what the condition says, also where that is before the node was born (Karpenter v1): who
writes it there wants the node mended now. A condition that says none is as old as its node.

A pool of which more than a fifth of the nodes (rounded up) is broken is left alone: then something
else is broken, and mending nodes would make it worse.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nodeless.model.conditions import Condition
from nodeless.model.nodes import Node

#: Part of a pool's nodes beyond which none of them is mended.
BREAKER_PERCENT = 20
#: Being overdue for so long counts as much as one rank of priority.
SECONDS_A_RANK = 1800.0
REPLACE, REBOOT = "replace", "reboot"
_HIGHEST_PRIORITY = 100


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """What is tolerated, for how long in seconds; `priority` from 0 to 100."""

    condition: str
    status: str
    toleration: float
    reason: str = ""
    """Regular expression that the whole reason must match; empty: the fallback."""
    priority: int = 0
    action: str = REPLACE
    """`replace` or `reboot`."""
    grace: int | None = None
    """Seconds after which the drain is over; 0: none; None: as long as the node's claim says."""


#: NVIDIA's XID errors that a reboot clears, and those of broken hardware. What others mean is not known: they
#: are tolerated for longer (AWS provider of Karpenter 1.15).
REBOOT_XIDS = (46, 48, 54, 62, 63, 95, 109, 110, 136, 140, 143, 155, 156, 158)
FATAL_XIDS = (64, 74, 79, 119, 120)
_MINUTE = 60


def _xids(numbers: Sequence[int]) -> str:
    """A regular expression for reasons that name one of some errors, as `NvidiaXID48Error` does."""
    return rf".*XID({'|'.join(map(str, numbers))})(?![0-9]).*"


def _replacement_policy(condition: str, status: str = "False", *, priority: int = 0) -> RepairPolicy:
    return RepairPolicy(condition, status, 30.0 * _MINUTE, priority=priority, grace=10 * _MINUTE)


#: Scarce machines come first; with Karpenter all are alike.
_SCARCE = 10
#: What EKS's node monitoring agent and the kubelet report (AWS provider of Karpenter 1.15). Every drain is
#: bounded: before a reboot, what cannot be evicted by then stays, and rides it.
POLICIES = (
    _replacement_policy("Ready"),
    _replacement_policy("Ready", "Unknown"),
    RepairPolicy(
        "AcceleratedHardwareReady",
        "False",
        10.0 * _MINUTE,
        reason=_xids(REBOOT_XIDS),
        priority=_SCARCE,
        action=REBOOT,
        grace=5 * _MINUTE,
    ),
    RepairPolicy(
        "AcceleratedHardwareReady",
        "False",
        10.0 * _MINUTE,
        reason=_xids(FATAL_XIDS),
        priority=_SCARCE,
        grace=5 * _MINUTE,
    ),
    _replacement_policy("AcceleratedHardwareReady", priority=_SCARCE),
    _replacement_policy("StorageReady"),
    _replacement_policy("NetworkingReady"),
    _replacement_policy("KernelReady"),
    _replacement_policy("ContainerRuntimeReady"),
)


#: What was tolerated before 1.15, and is by the legacy rules: reasons make no difference, and no drain is
#: bounded.
LEGACY_POLICIES = (
    RepairPolicy("Ready", "False", 30.0 * _MINUTE),
    RepairPolicy("Ready", "Unknown", 30.0 * _MINUTE),
    RepairPolicy("AcceleratedHardwareReady", "False", 10.0 * _MINUTE, priority=_SCARCE),
    RepairPolicy("StorageReady", "False", 30.0 * _MINUTE),
    RepairPolicy("NetworkingReady", "False", 30.0 * _MINUTE),
    RepairPolicy("KernelReady", "False", 30.0 * _MINUTE),
    RepairPolicy("ContainerRuntimeReady", "False", 30.0 * _MINUTE),
)


def usual_policies(*, legacy: bool) -> tuple[RepairPolicy, ...]:
    """What is tolerated unless settings say otherwise."""
    return LEGACY_POLICIES if legacy else POLICIES


def misfits(policies: Sequence[RepairPolicy]) -> tuple[str, ...]:
    """Everything that is wrong with a set of policies, one sentence each; nothing when it can be used."""
    found = []
    for kind in sorted({(policy.condition, policy.status) for policy in policies}):
        fallbacks = [
            policy for policy in policies if (policy.condition, policy.status) == kind and not policy.reason
        ]
        if len(fallbacks) != 1:
            found.append(f"{kind[0]}={kind[1]} has {len(fallbacks)} policies without a reason, not one")
        elif fallbacks[0].action != REPLACE:
            found.append(f"{kind[0]}={kind[1]}: the policy without a reason must replace")
    for policy in policies:
        if not 0 <= policy.priority <= _HIGHEST_PRIORITY:
            found.append(
                f"{policy.condition}={policy.status}: priority {policy.priority} is not from 0 to 100"
            )
        if policy.action not in (REPLACE, REBOOT):
            found.append(f"{policy.condition}={policy.status}: {policy.action} is neither replace nor reboot")
        if policy.grace is not None and policy.grace < 0:
            found.append(f"{policy.condition}={policy.status}: a drain cannot end after {policy.grace} s")
        try:
            re.compile(policy.reason)
        except re.error as error:
            found.append(
                f"{policy.condition}={policy.status}: {policy.reason!r} is no regular expression: {error}"
            )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Ailment:
    """A condition of a node that is overdue, by which policy, and what mends the node."""

    condition: Condition
    policy: RepairPolicy
    since: float
    """When the node became overdue."""
    grace: int | None = None
    """The shortest bound to the drain that a policy sets which is overdue."""

    @property
    def action(self) -> str:
        return self.policy.action

    def __str__(self) -> str:
        state = f"{self.condition.type}={self.condition.status}"
        reason = f" ({self.condition.reason})" if self.condition.reason else ""
        return f"{state}{reason} for more than {self.policy.toleration:.0f} s"


def unhealthy(node: Node, policies: Sequence[RepairPolicy] = POLICIES) -> bool:
    """Whether a policy speaks of the node, overdue or not."""
    return any(True for _ in _matches(node, policies))


def ailment(
    node: Node, now: float, policies: Sequence[RepairPolicy] = POLICIES, rebooted_at: float = 0.0
) -> Ailment | None:
    """What makes the node due for repair, merged of all policies that are overdue.

    Args:
        node: The node.
        now: Seconds since the epoch.
        policies: What is tolerated.
        rebooted_at: When its last reboot was over: what it says is taken anew from then on.
    """
    due = [each for each in _ailments(node, policies, rebooted_at) if each.since <= now]
    if not due:
        return None
    worst = min(due, key=lambda each: (each.action != REPLACE, -each.policy.priority, each.since))
    grace = min((each.policy.grace for each in due if each.policy.grace is not None), default=None)
    return Ailment(worst.condition, worst.policy, worst.since, grace)


def next_due(
    node: Node, now: float, policies: Sequence[RepairPolicy] = POLICIES, rebooted_at: float = 0.0
) -> float | None:
    """When something that is tolerated now will be overdue; None: nothing is."""
    return min(
        (each.since for each in _ailments(node, policies, rebooted_at) if each.since > now), default=None
    )


def _ailments(node: Node, policies: Sequence[RepairPolicy], rebooted_at: float) -> list[Ailment]:
    """Everything that policies speak of, overdue or not."""
    return [
        Ailment(
            condition,
            policy,
            max(condition.last_transition_time or node.created_at, rebooted_at) + policy.toleration,
        )
        for condition, policy in _matches(node, policies)
    ]


def _matches(node: Node, policies: Sequence[RepairPolicy]) -> Iterator[tuple[Condition, RepairPolicy]]:
    for condition in node.conditions:
        some = [
            policy
            for policy in policies
            if (policy.condition, policy.status) == (condition.type, condition.status)
        ]
        specific = [
            policy for policy in some if policy.reason and re.fullmatch(policy.reason, condition.reason)
        ]
        # While a specific policy matches, tolerant as it may be, the fallback is silent.
        for policy in specific or [policy for policy in some if not policy.reason]:
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
