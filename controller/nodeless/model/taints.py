"""Taints of nodes and pools, tolerations of pods (Kubernetes API, `core/v1`)."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from nodeless.model.labels import DISRUPTED_TAINT


class TaintEffect(StrEnum):
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A taint; `value` is empty when none is given."""

    key: str
    effect: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"

    def matches(self, other: "Taint") -> bool:
        """Same key and effect, the identity that Kubernetes uses."""
        return self.key == other.key and self.effect == other.effect


DISRUPTED = Taint(DISRUPTED_TAINT, TaintEffect.NO_SCHEDULE.value)
"""On nodes that are on their way out."""


@dataclass(frozen=True, slots=True, order=True)
class Toleration:
    """A toleration; an empty key with operator Exists tolerates everything, an empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Kubernetes' rule (`core/v1` `Toleration.ToleratesTaint`)."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.value == taint.value


def find_untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """The first taint that no toleration covers, or None."""
    return next(
        (taint for taint in taints if not any(toleration.tolerates(taint) for toleration in tolerations)),
        None,
    )
