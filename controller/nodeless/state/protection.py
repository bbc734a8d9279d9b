"""Pods that asked not to be disturbed."""

from nodeless.api.times import format_time, parse_go_duration
from nodeless.model.labels import DO_NOT_DISRUPT, DO_NOT_EVICT
from nodeless.model.pods import Pod


def protection(pod: Pod, now: float) -> str:
    """The annotation that protects a pod at a time, and until when; empty: none does.

    As `karpenter.sh/do-not-disrupt=10m, until 2026-01-02T03:04:05Z`.

    `karpenter.sh/do-not-disrupt` is `true`, or a time counted from the pod's start. A pod that has not
    started yet counts as protected; a value that is neither protects nothing (Karpenter's rules). The time is
    a Go duration.
    """
    if pod.annotations.get(DO_NOT_EVICT) == "true":
        return f"{DO_NOT_EVICT}=true"
    value = pod.annotations.get(DO_NOT_DISRUPT, "")
    if value == "true":
        return f"{DO_NOT_DISRUPT}={value}"
    span = _span(value)
    if span is None:
        return ""
    if pod.started_at is None:
        return f"{DO_NOT_DISRUPT}={value}, from its start on, which is still to come"
    until = pod.started_at + span
    return f"{DO_NOT_DISRUPT}={value}, until {format_time(until)}" if now < until else ""


def protected_until(pod: Pod) -> float | None:
    """When the deadline of a pod's `karpenter.sh/do-not-disrupt` is, in seconds since the epoch.

    None: it has none, or it has not started yet.
    """
    span = _span(pod.annotations.get(DO_NOT_DISRUPT, ""))
    return None if span is None or pod.started_at is None else pod.started_at + span


def unreadable_protection(pod: Pod) -> str | None:
    """The value of a pod's `karpenter.sh/do-not-disrupt` that says neither yes nor no nor for how long."""
    value = pod.annotations.get(DO_NOT_DISRUPT)
    if value is None or value in ("true", "false") or _span(value) is not None:
        return None
    return value


def _span(text: str) -> float | None:
    """Seconds of a duration; None for what is none, and for no time at all."""
    try:
        span = parse_go_duration(text)
    except ValueError:
        return None
    return span if span > 0 else None
