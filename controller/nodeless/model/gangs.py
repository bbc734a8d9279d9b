"""How many pods an object asks to run together: a PodGroup, a Job or a JobSet."""

from dataclasses import dataclass

POD_GROUP, JOB, JOB_SET = "PodGroup", "Job", "JobSet"


@dataclass(frozen=True, slots=True)
class GangSize:
    """What an object says of the gang that its pods are. `key` identifies it in a snapshot."""

    kind: str
    namespace: str
    name: str
    size: int
    """How many pods must have a place together; 0: see `problem`."""
    problem: str = ""
    """Why its pods cannot be a gang."""

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"
