"""Provisioning requests: capacity for pods that are to come together (`autoscaling.x-k8s.io`)."""

from dataclasses import dataclass, field
from enum import StrEnum

from nodeless.model.conditions import Condition

API_VERSION = "autoscaling.x-k8s.io/v1"
#: The version of Cluster Autoscaler before 1.31; its objects have the same fields.
OLDER_API_VERSION = "autoscaling.x-k8s.io/v1beta1"
KIND = "ProvisioningRequest"
#: Asks whether the cluster has the room as it stands; nothing is launched.
CHECK_CAPACITY = "check-capacity.autoscaling.x-k8s.io"
#: Has what is lacking launched, for all of its pods or not at all.
ATOMIC_SCALE_UP = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
#: Annotations by which a pod says which request of its namespace it takes the room of, the older one last.
CONSUME_ANNOTATIONS = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
ACCEPTED = "Accepted"
PROVISIONED = "Provisioned"
FAILED = "Failed"
CAPACITY_REVOKED = "CapacityRevoked"
BOOKING_EXPIRED = "BookingExpired"
#: Of another instance of an autoscaler, where it is named: the request is that one's.
PROCESSOR_INSTANCE = "processorInstance"
#: "true": a check that finds no room is not repeated.
NO_RETRY = "noRetry"
#: Seconds since its creation after which a request that has no capacity fails.
VALID_UNTIL_SECONDS = "ValidUntilSeconds"


class Phase(StrEnum):
    """How far a request has come, as its conditions say it."""

    PENDING = "Pending"
    """It has no capacity yet."""
    BOOKED = "Booked"
    """Room is kept for its pods."""
    OVER = "Over"
    """It failed, or its room is not kept any more."""


@dataclass(frozen=True, slots=True)
class RequestedPods:
    """Some equal pods of a request."""

    source: str
    """Key of the `PodSource` that tells how they look."""
    count: int


@dataclass(frozen=True, slots=True)
class ProvisioningRequest:
    """What is asked for, and what was answered so far."""

    namespace: str
    name: str
    uid: str = ""
    generation: int = 0
    provisioning_class: str = ""
    pod_sets: tuple[RequestedPods, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    created_at: float = 0.0
    deletion_timestamp: float | None = None
    conditions: tuple[Condition, ...] = ()
    details: tuple[tuple[str, str], ...] = field(default=())
    """`status.provisioningClassDetails`, sorted."""
    api_version: str = API_VERSION
    """The version by which it is read, and answered."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def ours(self) -> bool:
        """Whether we are to answer it: a class that we know, and no other autoscaler is named."""
        known = self.provisioning_class in (CHECK_CAPACITY, ATOMIC_SCALE_UP)
        return known and self.deletion_timestamp is None and not dict(self.parameters).get(PROCESSOR_INSTANCE)

    @property
    def phase(self) -> Phase:
        true = {condition.type for condition in self.conditions if condition.status == "True"}
        if true & {FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED}:
            return Phase.OVER
        return Phase.BOOKED if PROVISIONED in true else Phase.PENDING

    @property
    def is_open(self) -> bool:
        """Whether it is ours and waits for capacity, or has room kept for its pods."""
        return self.ours and self.phase != Phase.OVER

    @property
    def pods(self) -> int:
        """How many pods it asks for."""
        return sum(max(0, pods.count) for pods in self.pod_sets)

    def condition(self, type_: str) -> Condition | None:
        """Its condition of a type."""
        return next((condition for condition in self.conditions if condition.type == type_), None)
