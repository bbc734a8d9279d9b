"""Warnings of the cloud about instances: what is about to happen to them, and to which."""

from dataclasses import dataclass
from enum import StrEnum


class InterruptionKind(StrEnum):
    """What a warning says; the values are those of Karpenter's metrics (label `message_type`)."""

    SPOT_INTERRUPTION = "SpotInterruptionKind"
    REBALANCE_RECOMMENDATION = "RebalanceRecommendationKind"
    SCHEDULED_CHANGE = "ScheduledChangeKind"
    STATE_CHANGE = "StateChangeKind"
    RESERVATION_INTERRUPTION = "CapacityReservationInterruptionKind"
    IMPAIRED = "InstanceStatusKind"
    """The cloud's own checks of the instance have failed for a while."""
    NONE = "NoOpKind"
    """Nothing that concerns us: another message, or one that cannot be read (`problem` says why)."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """One warning. `handle` is what the cloud takes to forget it; the same warning may come twice."""

    kind: InterruptionKind
    instance_ids: tuple[str, ...] = ()
    state: str = ""
    """The state that a STATE_CHANGE leads to, in EC2's words."""
    sent_at: float | None = None
    """Seconds since the epoch; None when the message does not say."""
    problem: str = ""
    handle: str = ""
