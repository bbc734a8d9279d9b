"""What of the manifests a plan leaves out, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodeless.cli.manifests.members import group_of

_OURS = ".k8s.io"
_SPONSORED = ".x-k8s.io"
_GROUPS = ("", "apps", "autoscaling", "batch", "extensions", "policy")
_NO_PODS = "no pods come of them"
_UNKNOWN = "whether pods come of them is not known; hint: add the workloads that their operator makes"
#: Kinds of Kubernetes that may change a plan, and are not read.
_CHANGING = {
    "ResourceQuota": "their limits are not applied",
    "MutatingWebhookConfiguration": "what webhooks change in pods is not known",
    "MutatingAdmissionPolicy": "what they change in pods is not known",
    "VerticalPodAutoscaler": "requests are taken from the manifests",
}


@dataclass(frozen=True, slots=True)
class Skipped:
    """An object that is left out.

    Attributes:
        place: `FILE:LINE:COL`.
        subject: Kind and name.
        kind: The kind, with its group where that is none of Kubernetes' own.
        reason: Why.
        matters: Whether a plan might be another with it.
    """

    place: str
    subject: str
    kind: str
    reason: str
    matters: bool = True


def skipped_kind(manifest: Mapping[str, Any], place: str, subject: str) -> Skipped:
    """An object of a kind that is not read."""
    kind, group = str(manifest["kind"]), group_of(manifest)
    if group in _GROUPS or (group.endswith(_OURS) and not group.endswith(_SPONSORED)):
        reason = _CHANGING.get(kind)
        return Skipped(place, subject, kind, reason or _NO_PODS, matters=reason is not None)
    return Skipped(place, subject, f"{kind} of {group}", _UNKNOWN)


def skipped_lines(skipped: Iterable[Skipped]) -> Iterator[str]:
    """One line for each reason, with the kinds and how many there are."""
    kinds: dict[tuple[bool, str], Counter[str]] = {}
    for one in skipped:
        kinds.setdefault((one.matters, one.reason), Counter())[one.kind] += 1
    for (_, reason), counted in sorted(kinds.items()):
        named = ", ".join(f"{kind} ({number})" for kind, number in sorted(counted.items()))
        yield f"ignored: {named}: {reason}"
