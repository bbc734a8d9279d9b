"""Pods of one template of an object, and which number of them is planned where an autoscaler decides it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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
        renamed: (path in the template, path in the object) of a member that stands elsewhere.
        scaling: Within which range their operator scales them, for the notes of a plan; empty: it does not.
    """

    path: str
    template: Mapping[str, Any]
    number: int
    name: str
    volume_claims: tuple[Mapping[str, Any], ...] = ()
    left_out: str = ""
    owner: tuple[str, str, str] | None = None
    renamed: tuple[str, str] = ("", "")
    scaling: str = ""
