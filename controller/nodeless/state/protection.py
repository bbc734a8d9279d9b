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


def _within(pod: Pod, text: str, now: float) -> bool:
    try:
        span = parse_life_span(text)
    except ValueError:
        return False
    return span is not None and (pod.started_at is None or now < pod.started_at + span)
