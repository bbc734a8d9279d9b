"""What to do, in the imperative: what `launch` and `nodeclaim` give, and `controllers.executor` carries out.

Every instruction names its cause (`claim:default-abcde`, `pass:17`), so that an object can
tell its story. Carrying one out twice does no harm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeless.model.nodes import Condition, Node, NodeClaim
from nodeless.model.pools import NodeClass, Reference
from nodeless.model.taints import Taint


@dataclass(frozen=True, slots=True)
class CreateClaim:
    """Write the NodeClaim object; one that exists already under the name is fine."""

    cause: str
    claim: NodeClaim


@dataclass(frozen=True, slots=True)
class LaunchInstance:
    """Ask the cloud for the claim's instance; the claim's name is the idempotency token."""

    cause: str
    claim: NodeClaim


@dataclass(frozen=True, slots=True)
class UpdateClaimStatus:
    """Set conditions and, where given, other status fields of a claim."""

    cause: str
    name: str
    conditions: tuple[Condition, ...] = ()
    node_name: str | None = None
    last_pod_event: float | None = None


@dataclass(frozen=True, slots=True)
class AnnotateClaim:
    """Merge annotations into a claim; None removes one."""

    cause: str
    name: str
    annotations: Mapping[str, str | None] = field(hash=False)


@dataclass(frozen=True, slots=True)
class LabelClaim:
    """Merge labels into a claim; None removes one."""

    cause: str
    name: str
    labels: Mapping[str, str | None] = field(hash=False)


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    cause: str
    kind: str
    name: str
    finalizer: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    cause: str
    kind: str
    name: str
    finalizer: str
    uid: str = ""
    """Of the object that is meant: another one may have come under its name. Empty: any."""


@dataclass(frozen=True, slots=True)
class UpdateNode:
    """Merge labels and annotations (None removes one); set the whole taint list when it is given."""

    cause: str
    name: str
    labels: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] | None = None
    taints_before: tuple[Taint, ...] = ()
    """The taints that `taints` was made of: they are set only while the node still has these."""
    unschedulable: bool | None = None
    add_finalizer: str | None = None
    owner_claim: NodeClaim | None = None
    stage: str = ""
    """What this means in the node's story; logged once it is done."""


def set_taints(cause: str, node: Node, taints: tuple[Taint, ...], stage: str) -> UpdateNode:
    """Set the taints of a node, as long as it has those that it is seen with."""
    return UpdateNode(cause, node.name, taints=taints, taints_before=node.taints, stage=stage)


@dataclass(frozen=True, slots=True)
class DeleteNode:
    """Delete the Node, with the uid as precondition where it is given."""

    cause: str
    name: str
    reason: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Delete the NodeClaim (its finalizer then drains and terminates). `reason` as in the metrics' label."""

    cause: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Through the eviction API, with the uid as precondition."""

    cause: str
    namespace: str
    name: str
    uid: str
    node_name: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Past disruption budgets, because the time for its drain is over; with the uid as precondition."""

    cause: str
    namespace: str
    name: str
    uid: str
    grace_seconds: int
    node_name: str


@dataclass(frozen=True, slots=True)
class RequestCheckpoint:
    """Tell a pod to save its work, as it is to be evicted; once a pod. Times: seconds since the epoch."""

    cause: str
    namespace: str
    name: str
    uid: str
    node_name: str
    began: float
    """When the drain of its node began: another drain is another request."""
    at: float
    """The moment from which its grace counts; kept on the pod."""
    until: float
    """When it will be evicted."""


@dataclass(frozen=True, slots=True)
class RestartDeployment:
    """Have a Deployment bring up the successor of one of its pods before the pod leaves; once a pod."""

    cause: str
    namespace: str
    deployment: str
    pod: str
    pod_uid: str
    node_name: str


@dataclass(frozen=True, slots=True)
class TerminateInstance:
    """End a claim's instance and watch it go; without an id, every instance that carries the claim's tag."""

    cause: str
    claim_name: str
    instance_id: str = ""


@dataclass(frozen=True, slots=True)
class RebootInstance:
    """Start a claim's instance anew, in place; whether it came back shows in its node's boot id."""

    cause: str
    claim_name: str
    instance_id: str


@dataclass(frozen=True, slots=True)
class CheckInstance:
    """Find out whether a claim's instance still lives, without doing anything to it."""

    cause: str
    claim_name: str
    instance_id: str


@dataclass(frozen=True, slots=True)
class TerminateEverything:
    """End every instance of this cluster, claimed or not; what follows waits until none lives."""

    cause: str


@dataclass(frozen=True, slots=True)
class DeletePool:
    """Delete a pool object that a stack's teardown must not leave behind."""

    cause: str
    pool: Reference


@dataclass(frozen=True, slots=True)
class DeleteLaunchTemplates:
    """Delete every launch template that was made for this cluster."""

    cause: str


@dataclass(frozen=True, slots=True)
class CleanUpNodeClass:
    """Delete what was made in the cloud for a node class alone: instance profiles, launch templates."""

    cause: str
    node_class: NodeClass


@dataclass(frozen=True, slots=True)
class DeleteInstanceProfiles:
    """Delete every instance profile that was made for a node class of this cluster."""

    cause: str


@dataclass(frozen=True, slots=True)
class ReleaseGuard:
    """Take the finalizer off the teardown guard: everything that it guarded is gone."""

    cause: str


@dataclass(frozen=True, slots=True)
class PublishEvent:
    """A Kubernetes event on an object; `type` is Normal or Warning, `namespace` empty for cluster scope."""

    cause: str
    kind: str
    name: str
    type: str
    reason: str
    message: str
    namespace: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class ReportFailedCheck:
    """A consistency check that a node fails: Karpenter's FailedInit, NodeShape or Termination."""

    cause: str
    check: str
    node: str
    message: str
    uid: str = ""


Instruction = (
    CreateClaim
    | LaunchInstance
    | UpdateClaimStatus
    | AnnotateClaim
    | LabelClaim
    | AddFinalizer
    | RemoveFinalizer
    | UpdateNode
    | DeleteNode
    | DeleteClaim
    | EvictPod
    | DeletePod
    | RequestCheckpoint
    | RestartDeployment
    | TerminateInstance
    | RebootInstance
    | CheckInstance
    | TerminateEverything
    | DeletePool
    | DeleteLaunchTemplates
    | CleanUpNodeClass
    | DeleteInstanceProfiles
    | ReleaseGuard
    | PublishEvent
    | ReportFailedCheck
)
