"""VerticalPodAutoscalers (`autoscaling.k8s.io`): the sizes that pods of a workload are going to have."""

from dataclasses import dataclass

API_VERSION = "autoscaling.k8s.io/v1"
KIND = "VerticalPodAutoscaler"
#: The update mode in which a recommendation is shown, and never applied.
OFF = "Off"


@dataclass(frozen=True, slots=True)
class VerticalPodAutoscaler:
    """What one recommends, as far as it will be applied."""

    namespace: str
    name: str
    kind: str
    """Of its target, as `Deployment`."""
    target: str
    """Name of its target."""
    applies: bool = True
    """Whether pods get what it recommends, at the latest when they are made anew."""
    recommended: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    """By container, what each of its resources is to be, in the units of `resources`."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
