"""Texts made from decisions: event messages, log lines of a pass, why a node is what it is. Pure."""

from nodeless.explain.events import FAILED_SCHEDULING, NOMINATED, failed_scheduling, nominated, placed, waits
from nodeless.explain.log_messages import computed, found_pods, launching, refused, reused
from nodeless.explain.why import why

__all__ = [
    "FAILED_SCHEDULING",
    "NOMINATED",
    "computed",
    "failed_scheduling",
    "found_pods",
    "launching",
    "nominated",
    "placed",
    "refused",
    "reused",
    "waits",
    "why",
]
