"""Pods that asked not to be disturbed."""

from nodeless.api.times import parse_life_span
from nodeless.model.labels import DO_NOT_DISRUPT, DO_NOT_EVICT
from nodeless.model.pods import Pod


def protection(pod: Pod, now: float) -> str:
    """The annotation that protects a pod at a time, as `karpenter.sh/do-not-disrupt=10m`; empty: none does.

    `karpenter.sh/do-not-disrupt` is `true`, or a time counted from the pod's start. A pod that has not
    started yet counts as protected; a value that is neither protects nothing (Karpenter's rules).
    """
    if pod.annotations.get(DO_NOT_EVICT) == "true":
        return f"{DO_NOT_EVICT}=true"
    value = pod.annotations.get(DO_NOT_DISRUPT, "")
    if value == "true" or (value and _within(pod, value, now)):
        return f"{DO_NOT_DISRUPT}={value}"
    return ""


def unreadable_protection(pod: Pod) -> str | None:
    """The value of a pod's `karpenter.sh/do-not-disrupt` that says neither yes nor no nor for how long."""
    value = pod.annotations.get(DO_NOT_DISRUPT)
    if value is None or value in ("true", "false") or _span(value) is not None:
        return None
    return value


def _within(pod: Pod, text: str, now: float) -> bool:
    span = _span(text)
    return span is not None and (pod.started_at is None or now < pod.started_at + span)


def _span(text: str) -> int | None:
    """Seconds of a duration; None for what is none, and for no time at all."""
    try:
        return parse_life_span(text) or None
    except ValueError:
        return None
