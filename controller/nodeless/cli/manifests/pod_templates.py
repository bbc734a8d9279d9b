"""Pods of one template of an object, and which number of them is planned where an autoscaler decides it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from nodeless.explain.words import count


class ReplicasMode(StrEnum):
    """Which number of pods of an autoscaled workload is planned."""

    MIN = "min"
    CURRENT = "current"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one template.

    Attributes:
        path: Where the template is in the object.
        template: The pod template.
        number: How many pods are made of it.
        name: What their names begin with.
        volume_claims: The object's volume claim templates, each of which every pod has as a volume.
        left_out: What the real pods have besides, for the notes of a plan.
        owner: (API version, kind, name) of what owns them, where it is not the object itself.
        renamed: (path in the template, path in the object) of members that stand elsewhere.
        scaling: Within which range their operator scales them, for the notes of a plan; empty: it does not.
        first: The ordinal in the name of the first pod.
        remark: Why there are other pods than the object asks for, for the notes of a plan.
    """

    path: str
    template: Mapping[str, Any]
    number: int
    name: str
    volume_claims: tuple[Mapping[str, Any], ...] = ()
    left_out: str = ""
    owner: tuple[str, str, str] | None = None
    renamed: tuple[tuple[str, str], ...] = ()
    scaling: str = ""
    first: int = 0
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Range:
    """How many there may be of something that its operator scales; without a most there is no bound."""

    least: int
    given: int
    most: int | None

    def number(self, mode: ReplicasMode) -> int:
        """How many are planned."""
        if mode is ReplicasMode.MIN:
            return self.least
        if mode is ReplicasMode.MAX and self.most is not None:
            return self.most
        raised = max(self.given, self.least)
        return raised if self.most is None else min(raised, self.most)

    def told(self, planned: int, by: str, bound: str, one: str = "replica") -> str:
        """What is planned, of which range; `by`: what scales it, `bound`: the member that would bound it."""
        text = f"planned with {count(planned, one)}"
        if self.most is None:
            return f"{text}, of {self.least} or more ({by} without {bound})"
        return f"{text}, of {self.least} to {self.most} ({by})"
