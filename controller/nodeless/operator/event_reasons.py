"""The reasons of our events: what each means, on what it stands, and how often it may be said.

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


#: Kinds of objects on which an event may stand, with their API versions.
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
    "ClientTokenReused": "EC2 takes the claim for one that asked for something else",
    "FleetQuotaExceeded": "The account's quota of fleets is used up",
    "FreeTierIneligible": "The account's plan allows free types only",
    "InstanceProfileNameInvalid": "The instance profile does not exist",
    "InsufficientFreeAddressesInSubnet": "A subnet has no addresses left",
    "InternalError": "AWS failed on its side",
    "InvalidAMIID": "The node class names an image ID that cannot exist",
    "InstanceTypeNotFound": "The region does not sell the type any more",
    "LaunchTemplateNotFound": "The launch template does not exist",
    "RequestLimitExceeded": "EC2 throttles launches",
    "PlacementGroupNotFound": "The placement group does not exist",
    "SecurityGroupNotFound": "A security group does not exist",
    "SecurityGroupSubnetVPCMismatch": "Subnets and security groups are of several VPCs",
    "SpotQuotaExceeded": "The account's quota of spot requests is used up",
    "SpotSLRCreationFailed": "The account has no role for spot",
    "SubnetNotFound": "A subnet does not exist",
    "UnknownInstanceType": "EC2 launched a type that was not asked for",
    "UserDataInvalid": "EC2 refuses the user data",
    "UserDataSizeLimitExceeded": "The user data is longer than EC2 takes",
    "VCPULimitExceeded": "The account's quota of vCPUs is used up",
}
#: Of moves under way: what, meaning, seconds for which an equal one is held back.
_MOVES = (
    ("Launching", "The node is made to replace others", 3600.0),
    ("WaitingReadiness", "What the node replaces stays until it is initialized", DEDUPLICATION_SECONDS),
    ("WaitingDeletion", "The node is being removed; its replacement is ready", DEDUPLICATION_SECONDS),
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
        "No node can be made for the pod; the message says why, pool by pool",
    ),
    EventRule("FailedLaunch", "Warning", _POD, "The launch meant for the pod failed; it is tried again"),
    EventRule("InsufficientCapacity", "Warning", _POD, "What the launch asked for is sold out; planned anew"),
    EventRule("NodeDidNotHelp", "Warning", _POD, "A node came, and the pod was not scheduled there"),
    EventRule(
        "ResizePending",
        "Warning",
        _POD,
        "Its resize in place waits; the message says what its node lacks, and what would let it grow",
        silent_seconds=3600.0,
    ),
    EventRule("Evicted", "Normal", _POD, "The eviction was accepted", by_message=False),
    EventRule(
        "CheckpointRequested",
        "Normal",
        _POD,
        "The pod asked for time to save its work before an eviction; the message says when it is evicted",
        silent_seconds=7200.0,
        by_message=False,
    ),
    EventRule("Surging", "Normal", _POD, "Its Deployment is restarted, so that a successor comes first"),
    EventRule(
        "SurgeFailed",
        "Warning",
        _POD,
        "No successor could be started first; the message says why, and the pod is evicted",
    ),
    EventRule(
        "GangNodesReleased",
        "Warning",
        ("Pod", "NodeClaim"),
        "Nodes that were launched for a gang end, for it was not whole in time; the message says what lacked",
    ),
    EventRule(
        "RequestNodesReleased",
        "Warning",
        _CLAIM,
        "A node that was launched for a ProvisioningRequest ends empty, for the request failed or is gone",
    ),
    EventRule("Launched", "Normal", _CLAIM, "The instance of the NodeClaim was launched"),
    EventRule("LaunchFailed", "Warning", _CLAIM, "The launch failed, or there was no instance in time"),
    EventRule(
        "RegistrationFailed", "Warning", _CLAIM, "The node has not joined in time; the NodeClaim is deleted"
    ),
    *(EventRule(reason, "Warning", _CLAIM, meaning) for reason, meaning in _REFUSED_LAUNCHES.items()),
    EventRule("NodeClassNotReady", "Warning", _CLAIM, "The node class of the claim cannot be used"),
    EventRule("Unauthorized", "Warning", _CLAIM, "Authentication or authorization failed in AWS"),
    EventRule(
        "InstanceGone", "Warning", _CLAIM, "The instance has ended though its NodeClaim was not deleted"
    ),
    EventRule("NodeGone", "Warning", _CLAIM, "The Node object is gone though its NodeClaim was not deleted"),
    EventRule("Registered", "Normal", _NODE, "The node has joined and is labeled"),
    EventRule("Initialized", "Normal", _NODE, "The node can be used in full"),
    EventRule("UnregisteredTaintMissing", "Warning", _NODE, "The node started without its taint"),
    EventRule(
        "FailedConsistencyCheck",
        "Warning",
        _NODE,
        "The node has less than its instance type promises; the message says what it lacks",
        silent_seconds=590.0,
    ),
    EventRule(
        "Draining",
        "Normal",
        _NODE,
        "The node is being drained; the message names the pods that are still on it",
    ),
    EventRule("FailedDraining", "Warning", _NODE, "A pod cannot be evicted; the message says what blocks it"),
    EventRule(
        "DeprovisioningTerminating",
        "Normal",
        _NODE,
        "A Provisioner's node is being terminated; the message says why",
    ),
    EventRule("DisruptionTerminating", "Normal", _BOTH, "The node is being terminated; the message says why"),
    EventRule(
        "DisruptionStarted",
        "Normal",
        _NODE,
        "The node is being replaced or terminated; the message has the reason and the saving",
    ),
    EventRule("DisruptionFailed", "Warning", _NODE, "A replacement failed; the node stays"),
    EventRule(
        "DisruptionBlocked",
        "Normal",
        _NODE,
        "A NodePool's node cannot be disrupted; the message says what blocks it",
        silent_seconds=900.0,
    ),
    EventRule(
        "InvalidDoNotDisruptAnnotation",
        "Warning",
        _POD,
        "The pod's `karpenter.sh/do-not-disrupt` is neither `true` nor a duration, and protects nothing",
        silent_seconds=900.0,
    ),
    EventRule(
        "InvalidCheckpointGrace",
        "Warning",
        _POD,
        "The pod's `nodeless.dev/checkpoint-grace` is no duration: it gets no time to save its work",
        silent_seconds=900.0,
    ),
    EventRule(
        "InvalidLostWork",
        "Warning",
        _POD,
        "The pod's `nodeless.dev/lost-work` is no duration, or is longer than a year: it is ignored",
        silent_seconds=900.0,
    ),
    EventRule(
        "NodeRepairBlocked",
        "Normal",
        _NODE,
        "A broken node can be neither rebooted nor replaced; the message says what blocks it",
        silent_seconds=900.0,
    ),
    EventRule(
        "RebootRequested",
        "Normal",
        _NODE,
        "A broken node is being drained for a reboot; the message says why",
    ),
    EventRule("RebootIssued", "Normal", _NODE, "EC2 has taken the request for the reboot"),
    EventRule("RebootObserved", "Normal", _NODE, "The machine is back from its reboot and Ready"),
    EventRule("RebootFailed", "Warning", _NODE, "The machine did not come back in time; the node is ended"),
    EventRule(
        "GuardDeletionIgnored",
        "Warning",
        ("ConfigMap",),
        "The teardown guard was deleted while the stack holds its capacity: no node is ended",
    ),
    EventRule(
        "DeprovisioningBlocked",
        "Normal",
        _NODE,
        "A Provisioner's node cannot be terminated; the message says what blocks it",
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
        "The pod was deleted in spite of its budgets: the time for the drain was over",
    ),
    EventRule(
        "Unconsolidatable",
        "Normal",
        _NODE,
        "The node cannot be consolidated; the message says why",
        silent_seconds=900.0,
        by_message=False,
    ),
    EventRule("InstanceSpotInterrupted", "Warning", _BOTH, "EC2 takes the spot instance back"),
    EventRule("InstanceSpotRebalanceRecommendation", "Normal", _BOTH, "Interruption has become likelier"),
    EventRule("InstanceReservationInterrupted", "Warning", _BOTH, "The capacity reservation ends"),
    EventRule("InstanceStopping", "Warning", _BOTH, "The instance is being stopped"),
    EventRule("InstanceTerminating", "Warning", _BOTH, "The instance is ending"),
    EventRule(
        "InstanceUnhealthy",
        "Warning",
        _BOTH,
        "AWS has scheduled maintenance, or the instance fails its checks",
    ),
    EventRule("CapacityReservationExpiring", "Warning", _CLAIM, "The capacity block ends"),
    EventRule("NodeTerminatingOnInterruption", "Warning", _BOTH, "The node is ended because of a message"),
    EventRule(
        "NoCompatibleInstanceTypes",
        "Warning",
        ("NodePool",),
        "No instance type meets the pool's requirements, or too few do for its minValues",
        silent_seconds=60.0,
    ),
    EventRule(
        "OtherAutoscaler",
        "Warning",
        ("Provisioner", "NodePool"),
        "Another autoscaler of the cluster can take pods of the pool, too; the message names it",
        silent_seconds=3500.0,
    ),
    EventRule("Provisioned", "Normal", _REQUEST, "Room for all pods of the request is there, and is kept"),
    EventRule("BookingExpired", "Normal", _REQUEST, "Room for the request is not kept any more"),
    EventRule("Failed", "Warning", _REQUEST, "The request gets no capacity; the message says why"),
    EventRule("CapacityRevoked", "Warning", _REQUEST, "Room that was kept for the request is gone"),
    EventRule("NotReady", "Warning", _POOL, "The object cannot be used; the message says why"),
    EventRule(
        "WaitingOnNodeClaimTermination",
        "Normal",
        _CLASS,
        "The node class is being deleted, and waits for the NodeClaims that the message names",
    ),
    EventRule(
        "CleanUpFailed", "Warning", _CLASS, "What nodeless made for a deleted node class could not be deleted"
    ),
    EventRule(
        "Invalid", "Warning", (*_POOL, *_CLAIM), "The object breaks a rule; the message names each field"
    ),
    EventRule(
        "Quarantined",
        "Warning",
        EVENT_KINDS,
        "The object cannot be read or handled; it is set aside, and everything else goes on",
        silent_seconds=900.0,
    ),
    EventRule(
        "InvalidSetting", "Warning", ("ConfigMap",), "A setting cannot be used; the message names its key"
    ),
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
