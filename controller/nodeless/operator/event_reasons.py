"""The reasons of our events: what each means, on which objects it occurs, and how often it may be written.

The reasons are Karpenter's where Karpenter has one, so that alerts keep working. An equal event is written
once in two minutes unless a line says otherwise.
"""

from dataclasses import dataclass

from nodeless.model.instructions import PublishEvent

DEDUPLICATION_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class EventRule:
    """One line of the table."""

    reason: str
    type: str
    kinds: tuple[str, ...]
    meaning: str
    silent_seconds: float = DEDUPLICATION_SECONDS
    """An equal event within this time is not written."""
    by_message: bool = True
    """Whether events with other messages are other events."""
    per_second: float = 0.0
    """Rate of all events of the reason together; 0: not limited."""
    burst: int = 0


#: Kinds of objects that an event may be about, with their API versions.
API_VERSIONS = {
    "ConfigMap": "v1",
    "Pod": "v1",
    "Node": "v1",
    "NodeClaim": "karpenter.sh/v1",
    "Provisioner": "karpenter.sh/v1alpha5",
    "AWSNodeTemplate": "karpenter.k8s.aws/v1alpha1",
    "NodePool": "karpenter.sh/v1",
    "EC2NodeClass": "karpenter.k8s.aws/v1",
    "NodeOverlay": "karpenter.sh/v1alpha1",
    "Namespace": "v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "PodTemplate": "v1",
    "CapacityBuffer": "autoscaling.x-k8s.io/v1beta1",
    "ProvisioningRequest": "autoscaling.x-k8s.io/v1",
    "VerticalPodAutoscaler": "autoscaling.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "PersistentVolumeClaim": "v1",
    "PersistentVolume": "v1",
    "StorageClass": "storage.k8s.io/v1",
    "VolumeAttachment": "storage.k8s.io/v1",
    "CSINode": "storage.k8s.io/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceClaimTemplate": "resource.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "DeviceClass": "resource.k8s.io/v1",
}
EVENT_KINDS = tuple(API_VERSIONS)

_BOTH = ("Node", "NodeClaim")
_POD, _NODE, _CLAIM = ("Pod",), ("Node",), ("NodeClaim",)
#: Why EC2 refused a launch, as the cloud's module of refusals has it.
_REFUSED_LAUNCHES = {
    "AMIAuthorizationFailure": "An image of the node class is not shared with the account",
    "AMINotFound": "An image of the node class does not exist, or is not shared with the account",
    "AccountPendingVerification": "AWS has not verified the account yet",
    "CapacityReservationNotFound": "A capacity reservation of the node class does not exist",
    "ClientTokenReused": "EC2 has already seen the client token of this NodeClaim in a different request",
    "FleetQuotaExceeded": "The account's quota for EC2 fleets is used up",
    "FreeTierIneligible": "The account's plan allows only instance types of the free tier",
    "InstanceProfileNameInvalid": "The instance profile does not exist",
    "InsufficientFreeAddressesInSubnet": "A subnet has no free IP addresses",
    "InternalError": "AWS had an internal error",
    "InvalidAMIID": "The node class names an image ID that cannot exist",
    "InstanceTypeNotFound": "The region no longer offers the instance type",
    "LaunchTemplateNotFound": "The launch template does not exist",
    "RequestLimitExceeded": "EC2 throttles the requests for launches",
    "PlacementGroupNotFound": "The placement group does not exist",
    "SecurityGroupNotFound": "A security group does not exist",
    "SecurityGroupSubnetVPCMismatch": "The subnets and security groups are in different VPCs",
    "SpotQuotaExceeded": "The account's quota for spot requests is used up",
    "SpotSLRCreationFailed": "The account has no service-linked role for spot instances",
    "SubnetNotFound": "A subnet does not exist",
    "UnknownInstanceType": "EC2 launched an instance type that nodeless did not request",
    "UserDataInvalid": "EC2 rejects the user data",
    "UserDataSizeLimitExceeded": "The user data is larger than EC2 allows",
    "VCPULimitExceeded": "The account's vCPU quota is used up",
}
#: Of moves under way: what, meaning, seconds for which an equal one is held back.
_MOVES = (
    ("Launching", "nodeless launched this node to replace others", 3600.0),
    (
        "WaitingReadiness",
        "The nodes that this node replaces are kept until it is initialized",
        DEDUPLICATION_SECONDS,
    ),
    ("WaitingDeletion", "The node is being removed, because its replacement is ready", DEDUPLICATION_SECONDS),
)
_CLASS = ("EC2NodeClass",)
_REQUEST = ("ProvisioningRequest",)
_POOL = ("Provisioner", "NodePool", "AWSNodeTemplate", "EC2NodeClass")

EVENT_RULES: tuple[EventRule, ...] = (
    EventRule(
        "Nominated",
        "Normal",
        _POD,
        "The pod is expected to run on the node or NodeClaim that the message names",
        by_message=False,
        per_second=5,
        burst=10,
    ),
    EventRule(
        "FailedScheduling",
        "Warning",
        _POD,
        "No pool can create a node for the pod. The message says why for each pool",
    ),
    EventRule(
        "WaitingForTermination",
        "Normal",
        _POD,
        "The pod is expected to run on the node that the message names, once pods have terminated there",
        by_message=False,
        per_second=5,
        burst=10,
    ),
    EventRule("FailedLaunch", "Warning", _POD, "The launch for the pod failed. nodeless tries it again"),
    EventRule(
        "InsufficientCapacity",
        "Warning",
        _POD,
        "AWS has no capacity for what the launch requested. nodeless plans the pod again",
    ),
    EventRule(
        "NodeDidNotHelp",
        "Warning",
        _POD,
        "A node was launched for the pod, but kube-scheduler did not bind the pod to it",
    ),
    EventRule(
        "ResizePending",
        "Warning",
        _POD,
        "The pod waits for its in-place resize. The message says what its node lacks, and what would make "
        "room",
        silent_seconds=3600.0,
    ),
    EventRule("Evicted", "Normal", _POD, "The eviction was accepted", by_message=False),
    EventRule(
        "CheckpointRequested",
        "Normal",
        _POD,
        "The pod gets time to save its work before it is evicted. The message says when nodeless evicts it",
        silent_seconds=7200.0,
        by_message=False,
    ),
    EventRule(
        "Surging",
        "Normal",
        _POD,
        "nodeless restarts the pod's Deployment so that a new pod starts before this one is evicted",
    ),
    EventRule(
        "SurgeFailed",
        "Warning",
        _POD,
        "nodeless could not start a new pod first, and evicts this one. The message says why",
    ),
    EventRule(
        "GangNodesReleased",
        "Warning",
        ("Pod", "NodeClaim"),
        "nodeless terminates nodes that it launched for a gang, because the gang was not complete in time. "
        "The message says what was missing",
    ),
    EventRule(
        "RequestNodesReleased",
        "Warning",
        _CLAIM,
        "nodeless terminates an empty node that it launched for a ProvisioningRequest, because the request "
        "failed or was deleted",
    ),
    EventRule("Launched", "Normal", _CLAIM, "The instance of the NodeClaim was launched"),
    EventRule("LaunchFailed", "Warning", _CLAIM, "The launch failed, or there was no instance in time"),
    EventRule(
        "RegistrationFailed",
        "Warning",
        _CLAIM,
        "The node did not join the cluster in time. nodeless deletes the NodeClaim",
    ),
    *(EventRule(reason, "Warning", _CLAIM, meaning) for reason, meaning in _REFUSED_LAUNCHES.items()),
    EventRule("NodeClassNotReady", "Warning", _CLAIM, "The node class of the NodeClaim cannot be used"),
    EventRule("Unauthorized", "Warning", _CLAIM, "AWS authentication or authorization failed"),
    EventRule(
        "InstanceGone",
        "Warning",
        _CLAIM,
        "The instance was terminated, although its NodeClaim was not deleted",
    ),
    EventRule(
        "NodeGone", "Warning", _CLAIM, "The Node object is gone, although its NodeClaim was not deleted"
    ),
    EventRule("Registered", "Normal", _NODE, "The node has joined the cluster, and nodeless has labeled it"),
    EventRule("Initialized", "Normal", _NODE, "The node is initialized and fully usable"),
    EventRule(
        "UnregisteredTaintMissing",
        "Warning",
        _NODE,
        "The node started without the taint `karpenter.sh/unregistered`",
    ),
    EventRule(
        "FailedConsistencyCheck",
        "Warning",
        _NODE,
        "The node did not initialize in time, or has less capacity than its instance type promises. The "
        "message says what is wrong",
        silent_seconds=590.0,
    ),
    EventRule(
        "Draining",
        "Normal",
        _NODE,
        "nodeless drains the node. The message names the pods that are still on it",
    ),
    EventRule("FailedDraining", "Warning", _NODE, "A pod cannot be evicted. The message says what blocks it"),
    EventRule(
        "DeprovisioningTerminating",
        "Normal",
        _NODE,
        "nodeless terminates a node of a Provisioner. The message says why",
    ),
    EventRule("DisruptionTerminating", "Normal", _BOTH, "nodeless terminates the node. The message says why"),
    EventRule(
        "DisruptionStarted",
        "Normal",
        _NODE,
        "nodeless replaces or terminates the node. The message gives the reason and the saving",
    ),
    EventRule("DisruptionFailed", "Warning", _NODE, "A replacement failed, so nodeless keeps the node"),
    EventRule(
        "DisruptionBlocked",
        "Normal",
        _NODE,
        "A node of a NodePool cannot be disrupted. The message says what blocks it",
        silent_seconds=900.0,
    ),
    EventRule(
        "InvalidDoNotDisruptAnnotation",
        "Warning",
        _POD,
        "The pod's annotation `karpenter.sh/do-not-disrupt` is neither `true` nor a duration, so it does not "
        "protect the pod",
        silent_seconds=900.0,
    ),
    EventRule(
        "InvalidCheckpointGrace",
        "Warning",
        _POD,
        "The pod's annotation `nodeless.dev/checkpoint-grace` is not a duration, so the pod gets no time to "
        "save its work",
        silent_seconds=900.0,
    ),
    EventRule(
        "InvalidLostWork",
        "Warning",
        _POD,
        "The pod's annotation `nodeless.dev/lost-work` is not a duration, or is longer than a year, so "
        "nodeless ignores it",
        silent_seconds=900.0,
    ),
    EventRule(
        "NodeRepairBlocked",
        "Normal",
        _NODE,
        "nodeless can neither reboot nor replace an unhealthy node. The message says what blocks it",
        silent_seconds=900.0,
    ),
    EventRule(
        "RebootRequested",
        "Normal",
        _NODE,
        "nodeless drains an unhealthy node for a reboot. The message says why",
    ),
    EventRule("RebootIssued", "Normal", _NODE, "EC2 has accepted the request to reboot the instance"),
    EventRule("RebootObserved", "Normal", _NODE, "The instance has rebooted, and its node is Ready again"),
    EventRule(
        "RebootFailed",
        "Warning",
        _NODE,
        "The instance did not come back from its reboot in time. nodeless terminates the node",
    ),
    EventRule(
        "GuardDeletionIgnored",
        "Warning",
        ("ConfigMap",),
        "The teardown guard was deleted while the stack still holds its capacity. nodeless terminates no "
        "nodes",
    ),
    EventRule(
        "DeprovisioningBlocked",
        "Normal",
        _NODE,
        "A node of a Provisioner cannot be terminated. The message says what blocks it",
    ),
    *(
        EventRule(f"{generation}{what}", "Normal", _NODE, meaning, silent, by_message=False)
        for generation in ("Deprovisioning", "Disruption")
        for what, meaning, silent in _MOVES
    ),
    EventRule(
        "Disrupted",
        "Normal",
        _POD,
        "nodeless deleted the pod despite its PodDisruptionBudgets, because the time for the drain was over",
    ),
    EventRule(
        "Unconsolidatable",
        "Normal",
        _NODE,
        "The node cannot be consolidated. The message says why",
        silent_seconds=900.0,
        by_message=False,
    ),
    EventRule("InstanceSpotInterrupted", "Warning", _BOTH, "EC2 reclaims the spot instance"),
    EventRule(
        "InstanceSpotRebalanceRecommendation",
        "Normal",
        _BOTH,
        "EC2 reports that the spot instance is now more likely to be interrupted",
    ),
    EventRule(
        "InstanceReservationInterrupted", "Warning", _BOTH, "The capacity reservation of the instance ends"
    ),
    EventRule("InstanceStopping", "Warning", _BOTH, "The instance is being stopped"),
    EventRule("InstanceTerminating", "Warning", _BOTH, "The instance is being terminated"),
    EventRule(
        "InstanceUnhealthy",
        "Warning",
        _BOTH,
        "AWS has scheduled maintenance for the instance, or the instance fails its status checks",
    ),
    EventRule("CapacityReservationExpiring", "Warning", _CLAIM, "The capacity block of the node ends"),
    EventRule(
        "NodeTerminatingOnInterruption",
        "Warning",
        _BOTH,
        "nodeless terminates the node because of an interruption message",
    ),
    EventRule(
        "NoCompatibleInstanceTypes",
        "Warning",
        ("NodePool",),
        "No instance type meets the pool's requirements, or too few do for its `minValues`",
        silent_seconds=60.0,
    ),
    EventRule(
        "OtherAutoscaler",
        "Warning",
        ("Provisioner", "NodePool"),
        "Another autoscaler in the cluster can also launch nodes for pods of this pool. The message names it",
        silent_seconds=3500.0,
    ),
    EventRule(
        "Provisioned",
        "Normal",
        _REQUEST,
        "There is capacity for all pods of the request, and nodeless reserves it",
    ),
    EventRule("BookingExpired", "Normal", _REQUEST, "nodeless no longer reserves capacity for the request"),
    EventRule("Failed", "Warning", _REQUEST, "The request gets no capacity. The message says why"),
    EventRule("CapacityRevoked", "Warning", _REQUEST, "Capacity that was reserved for the request is gone"),
    EventRule("NotReady", "Warning", _POOL, "The object cannot be used. The message says why"),
    EventRule(
        "WaitingOnNodeClaimTermination",
        "Normal",
        _CLASS,
        "The node class is being deleted, and waits for the NodeClaims that the message names",
    ),
    EventRule(
        "CleanUpFailed",
        "Warning",
        _CLASS,
        "nodeless could not delete what it had created in AWS for a deleted node class",
    ),
    EventRule(
        "Invalid", "Warning", (*_POOL, *_CLAIM), "The object violates a rule. The message names each field"
    ),
    EventRule(
        "Quarantined",
        "Warning",
        EVENT_KINDS,
        "nodeless cannot read or process the object. It sets the object aside and continues with everything "
        "else",
        silent_seconds=900.0,
    ),
    EventRule("InvalidSetting", "Warning", ("ConfigMap",), "A setting is invalid. The message names its key"),
)
_BY_REASON = {rule.reason: rule for rule in EVENT_RULES}


def undeclared_reason(event: PublishEvent) -> str:
    """How an event contradicts the table; empty when it does not."""
    rule = _BY_REASON.get(event.reason)
    if rule is None:
        return f"reason {event.reason} is not in the table of events"
    if event.type != rule.type:
        return f"{event.reason} is of type {rule.type}, not {event.type}"
    if event.kind not in rule.kinds:
        return f"{event.reason} is for {' or '.join(rule.kinds)}, not for {event.kind}"
    return ""


def rule_of(reason: str) -> EventRule:
    """The line of a reason; for one that is not in the table, what holds for all."""
    return _BY_REASON.get(reason) or EventRule(reason, "", (), "")
