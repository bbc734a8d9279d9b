"""What each event, condition, refusal and verdict means, and what to do: the texts of docs/messages.md.

Where a code occurs (on which kinds, as what) comes from its own enum or table; here are the words. A test
holds that no code is missing and none is left that is gone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodeless.controllers.provisioning.request_answers import RequestReason
from nodeless.model.disruption import DisruptionReason, VerdictCode
from nodeless.model.plan import RefusalCode, RelaxationCode
from nodeless.operator.event_reasons import EVENT_RULES
from nodeless.scheduling.pods.buffers import BufferReason

#: Reason of an event: what to do. The meaning is that of its rule.
EVENT_REMEDIES: Mapping[str, str] = {
    "Provisioned": "Nothing.",
    "BookingExpired": "Nothing, if the pods of the request run. Otherwise create a new request.",
    "Failed": "See the message. Create a corrected request, or a new one, as Kueue does by itself.",
    "CapacityRevoked": "Create a new request. A node may have been lost: see the events of nodes.",
    "Nominated": "Nothing. If the pod is still pending after a few minutes, look at the NodeClaim that the message names.",
    "FailedScheduling": "Read the message: it names one obstacle for each pool, and the smallest change that would help. Look up the code in brackets on this page. `nodeless why NAMESPACE/POD` shows the same at once.",
    "FailedLaunch": "The message has EC2's answer. Look up the event of the same moment on the NodeClaim.",
    "InsufficientCapacity": "Usually nothing: other capacity is planned within seconds. If it repeats, allow more instance types, zones or capacity types in the pool.",
    "NodeDidNotHelp": "Look at why kube-scheduler refuses the node: its own `FailedScheduling` event on the pod says so. Frequent causes are taints that another agent adds to new nodes, and volumes in another zone.",
    "ResizePending": "Let the pods that the message names leave, or evict the pod where its successor gets the new size (a VerticalPodAutoscaler). `nodeless why pod/NAME` looks for room on other nodes, too ([Vertical scaling](guides/vertical-scaling.md)).",
    "Evicted": "Nothing. To keep a pod where it is, give it a PodDisruptionBudget or the annotation `karpenter.sh/do-not-disrupt`.",
    "CheckpointRequested": "Nothing, if the pod saves its work by itself. Whatever watches pods sees the condition `nodeless.dev/CheckpointRequested` ([Long jobs](guides/long-jobs.md)).",
    "Surging": "Nothing. The new pod becomes ready before the old one is evicted.",
    "SurgeFailed": "Allow the service account of nodeless to patch Deployments in the namespace, or set `maxSurge` to at least 1 and `maxUnavailable` to 0 in the Deployment.",
    "Launched": "Nothing.",
    "LaunchFailed": "Read EC2's answer in the message. nodeless tries again; if the answer stays the same, correct what it names in the node class or in the account.",
    "RegistrationFailed": "Read the instance's console output. Most often the node role has no access entry in the cluster, the security groups block the way to the API server, or user data fails.",
    "AMIAuthorizationFailure": "Have the owner of the image share it with your account, or select another image in the node class.",
    "AMINotFound": "Correct the image selection of the node class, or have the image shared with your account.",
    "AccountPendingVerification": "Wait for AWS to verify the account. New accounts get this answer for up to a few hours.",
    "CapacityReservationNotFound": "Correct `spec.capacityReservationSelectorTerms`.",
    "ClientTokenReused": "Delete the NodeClaim. A new one gets a name, and so a token, of its own.",
    "FleetQuotaExceeded": "Ask AWS for a higher quota of EC2 fleets in this region (Service Quotas).",
    "FreeTierIneligible": "Upgrade the account's plan, or let the pool require instance types that the free tier covers.",
    "InstanceProfileNameInvalid": "Usually nothing: EC2 knows a new instance profile after some seconds. If it lasts, create the profile or correct its name in the node class.",
    "InsufficientFreeAddressesInSubnet": "Select more or larger subnets for this zone. Other zones are tried meanwhile.",
    "InternalError": "Nothing: the launch is tried again. If it lasts, look at the AWS Health Dashboard.",
    "InvalidAMIID": "Correct the image ID in the node class: no image can have the one that it names.",
    "InstanceTypeNotFound": "Nothing: the launch is tried without the type.",
    "LaunchTemplateNotFound": "Correct `spec.launchTemplate`. A launch template that nodeless made is made again without your help.",
    "RequestLimitExceeded": "Nothing: the launch is tried again, more slowly. If it lasts, find what else uses up the account's request limit.",
    "PlacementGroupNotFound": "Create the placement group, or correct `spec.placementGroupSelector`.",
    "SecurityGroupNotFound": "Correct the security group selector of the node class. Groups are looked up again meanwhile.",
    "SecurityGroupSubnetVPCMismatch": "Make the selectors of the node class choose subnets and security groups of one VPC.",
    "SpotQuotaExceeded": "Ask AWS for a higher quota of spot requests, or allow on-demand. Limits on the pool keep it below the quota.",
    "SpotSLRCreationFailed": "Create the service-linked role once: `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`.",
    "SubnetNotFound": "Correct the subnet selector of the node class. Subnets are looked up again meanwhile.",
    "UnknownInstanceType": "Delete the NodeClaim, and report what the message says: EC2 launched a type that was not in the request.",
    "UserDataInvalid": "Correct `spec.userData` of the node class.",
    "UserDataSizeLimitExceeded": "Shorten `spec.userData`. EC2 accepts 16 KiB, of which nodeless' own part takes some.",
    "VCPULimitExceeded": "Ask AWS for a higher vCPU quota, or allow instance families that have a quota of their own. Limits on the pool keep it below the quota.",
    "NodeClassNotReady": "Look at the conditions of the node class: the one that is False names the field and what to write.",
    "Unauthorized": "The message names the call. Compare the controller's role with [the permissions](components/permissions.md); a permissions boundary or a service control policy can deny it as well.",
    "InstanceGone": "Nothing: pods get a new node. If nobody terminated the instance, look for a spot interruption or a failed status check at that time.",
    "NodeGone": "Nothing: the instance is terminated, as a kubelet does not register again. Delete NodeClaims instead of removing the finalizers of Nodes.",
    "Registered": "Nothing.",
    "Initialized": "Nothing.",
    "UnregisteredTaintMissing": "Make the bootstrap of a custom image register the node with the taint `karpenter.sh/unregistered:NoExecute`. Without it, pods may start before the node has its labels.",
    "FailedConsistencyCheck": "Compare the node's capacity with its instance type: a device plugin that does not run, or a kubelet that reserves more than planned.",
    "Draining": "Nothing, unless it lasts: then see `FailedDraining`.",
    "FailedDraining": "The message names the pod and what blocks its eviction. Make the budget allow a disruption (more ready replicas), or delete the pod yourself. `terminationGracePeriod` on the pool bounds the wait.",
    "DeprovisioningTerminating": "Nothing. The message has the reason.",
    "DisruptionTerminating": "Nothing. The message has the reason.",
    "DisruptionStarted": 'Nothing. To stop voluntary disruption, annotate the pool with `nodeless.dev/pause-disruption: "true"`.',
    "DisruptionFailed": "Look at the events of the replacement's NodeClaim. The node stays in service, and is considered again after five minutes.",
    "DisruptionBlocked": "Nothing, if you want the node to stay. Otherwise remove what the message names, such as an annotation or a budget.",
    "InvalidDoNotDisruptAnnotation": "Write `true` or a duration such as `8h`. With any other value the pod has no protection.",
    "InvalidCheckpointGrace": "Write a duration such as `10m`. With any other value the pod is evicted without a grace.",
    "InvalidLostWork": "Write a duration such as `10h`, a year at most. With any other value spot and on-demand are chosen by their prices alone.",
    "NodeRepairBlocked": "Remove what the message names, or replace the node yourself: `kubectl delete nodeclaim NAME`.",
    "RebootRequested": "Nothing.",
    "RebootIssued": "Nothing.",
    "RebootObserved": "Nothing.",
    "RebootFailed": "Nothing: the node is replaced.",
    "GuardDeletionIgnored": "Nothing, if the deletion was a mistake. To tear the stack down, run `pulumi destroy`.",
    "DeprovisioningBlocked": "Nothing, if you want the node to stay. Otherwise remove what the message names.",
    "DeprovisioningLaunching": "Nothing.",
    "DeprovisioningWaitingReadiness": "Nothing.",
    "DeprovisioningWaitingDeletion": "Nothing, unless it lasts: then see `FailedDraining` on the node.",
    "GangNodesReleased": "See what its pods lack in their event `FailedScheduling`: allow the pool more types or zones, or ask for less. The gang is planned again after a pause. `nodeless.gangTimeout` says how long nodes wait for a whole gang.",
    "RequestNodesReleased": "Nothing, if the ProvisioningRequest was deleted on purpose. Otherwise see its condition `Failed`: allow the pool more types or zones, or ask for less.",
    "DisruptionLaunching": "Nothing.",
    "DisruptionWaitingReadiness": "Nothing.",
    "DisruptionWaitingDeletion": "Nothing, unless it lasts: then see `FailedDraining` on the node.",
    "Disrupted": "Nothing now. Raise `terminationGracePeriod` on the pool if the pod needs longer to leave.",
    "Unconsolidatable": "Nothing. `nodeless why NODE` has the same reason with its figures.",
    "InstanceSpotInterrupted": "Nothing: the node is drained at once, and its pods get new capacity. Allow more types to be interrupted less often.",
    "InstanceSpotRebalanceRecommendation": "Nothing: it is a hint by EC2, and the node stays.",
    "InstanceReservationInterrupted": "Nothing: the node is drained before the reservation ends.",
    "InstanceStopping": "Find out who stops instances of the cluster. nodeless replaces the node.",
    "InstanceTerminating": "Find out who terminates instances of the cluster, if it was not nodeless. The node is replaced.",
    "InstanceUnhealthy": "Nothing: the node is replaced. The message has AWS's reason.",
    "CapacityReservationExpiring": "Extend the capacity block, or let the pool use other capacity: the node is drained before the end.",
    "NodeTerminatingOnInterruption": "Nothing: pods get new capacity.",
    "NoCompatibleInstanceTypes": "Loosen the requirements of the pool, or lower `minValues`. `nodeless validate` shows what the requirements leave.",
    "OtherAutoscaler": "Let one autoscaler serve each pod: set the pools or groups that the message names apart by taints, hold the groups of the other one at one size, or scale it to 0. [Migrate from Cluster Autoscaler](guides/migrate-from-cluster-autoscaler.md) and [from Karpenter](guides/migrate-from-karpenter.md) have the steps.",
    "NotReady": "Correct what the message names in the pool or node class.",
    "WaitingOnNodeClaimTermination": "Wait for the NodeClaims that the message names, or see why they do not end: `FailedDraining` on their nodes.",
    "CleanUpFailed": "Allow the call that the message names, or delete the resource in AWS yourself. The deletion is tried again.",
    "Invalid": "Correct each field that the message names. `nodeless validate FILE` checks a manifest before you apply it.",
    "Quarantined": "Correct the object, if the message says what is wrong with it. Otherwise report it: the log of the controller has the traceback.",
    "InvalidSetting": "Correct the key that the message names. The last valid value stays in force meanwhile.",
}

#: Why a pod gets no capacity: meaning, what to do.
REFUSALS: Mapping[RefusalCode, tuple[str, str]] = {
    RefusalCode.NO_POOLS: (
        "No Provisioner and no NodePool exists.",
        "Create one: [examples](../examples/README.md).",
    ),
    RefusalCode.NO_POOL_FITS: (
        "No pool can make a node for the pod, and the pools have different reasons.",
        "Read the reason of the pool that should serve the pod, and look up its code.",
    ),
    RefusalCode.POOL_UNAVAILABLE: (
        "The pool cannot be used now: its node class is missing or not ready, or AWS did not answer.",
        "Look at the conditions of the pool and of its node class.",
    ),
    RefusalCode.NO_INSTANCE_TYPES: (
        "No instance type meets the pool's own requirements.",
        "Loosen the requirements of the pool. `nodeless validate` says which requirement leaves none.",
    ),
    RefusalCode.TAINT_NOT_TOLERATED: (
        "The pool's nodes have a taint that the pod does not tolerate.",
        "Add the toleration to the pod, if it belongs on these nodes.",
    ),
    RefusalCode.REQUIREMENTS_CONFLICT: (
        "What the pod asks of node labels (node selector, node affinity, zone of a volume) contradicts the pool, or no instance type meets both.",
        "Allow the value in the pool, or drop it from the pod. The event says which change helps.",
    ),
    RefusalCode.NO_OFFERING_AVAILABLE: (
        "Instance types match, but what AWS sells of them was sold out a short time ago.",
        "Usually nothing: sold-out offerings are tried again after three minutes. Allow more types, zones or capacity types.",
    ),
    RefusalCode.HOST_PORT_TAKEN: (
        "The pod asks for a host port that a DaemonSet uses on every node of the pool.",
        "Change the port of one of the two.",
    ),
    RefusalCode.INSUFFICIENT_RESOURCES: (
        "The pod is larger than what the largest matching instance type has left beside its DaemonSets.",
        "Allow larger instance types in the pool, or lower the pod's requests.",
    ),
    RefusalCode.MIN_VALUES_NOT_MET: (
        "Fewer distinct values are left than `minValues` of the pool demands.",
        "Lower `minValues`, allow more types, or set `nodeless.minValuesPolicy` to `BestEffort`.",
    ),
    RefusalCode.LIMITS_EXCEEDED: (
        "A new node would exceed the pool's `limits`.",
        "Raise the limit, or free capacity: `nodeless top` shows what uses it.",
    ),
    RefusalCode.CAPACITY_EXHAUSTED: (
        "What the pod needs is used up within the plan: slots of a capacity reservation, or free addresses of subnets.",
        "Allow other capacity types, or add subnets with free addresses.",
    ),
    RefusalCode.POD_AFFINITY: (
        "The pod must run beside other pods, and no node can be made where these run.",
        "Read which affinity term fails. Often the pods that it names do not exist, or run in another zone than the pool offers.",
    ),
    RefusalCode.POD_ANTI_AFFINITY: (
        "The pod must keep away from other pods, and every place that the pool can make has one of them.",
        "Allow more zones in the pool, or make the anti-affinity preferred.",
    ),
    RefusalCode.TOPOLOGY_SPREAD: (
        "A topology spread constraint leaves no zone, capacity type or other domain that the pool can provide.",
        "Let the pool provide the domains over which the pods must spread, raise `maxSkew`, or use `ScheduleAnyway`.",
    ),
    RefusalCode.INVALID_POD: (
        "The pod cannot be read.",
        "The message names the field. The API server accepts some values that have no meaning.",
    ),
    RefusalCode.REQUIREMENTS_CONTRADICT: (
        "The pod contradicts itself: its node selector and its affinity ask for different values of one label.",
        "Correct the pod's template.",
    ),
    RefusalCode.MATCH_FIELDS_NOT_PLANNED: (
        "The pod's required node affinity names existing nodes by `matchFields`, so no new node can help.",
        "Use `matchExpressions` on labels.",
    ),
    RefusalCode.RESOURCE_CLAIMS_NOT_PLANNED: (
        "The pod claims devices in a way that nodeless does not plan: a part of a device's capacity, or a constraint that asks devices to differ.",
        "Claim whole devices, or provide the nodes for these pods otherwise.",
    ),
    RefusalCode.RESOURCE_CLAIM_NOT_FOUND: (
        "The pod names a ResourceClaim or a ResourceClaimTemplate that does not exist, or is being deleted.",
        "Create it in the pod's namespace, or correct its name in the pod's template.",
    ),
    RefusalCode.DEVICE_CLASS_NOT_FOUND: (
        "A claim of the pod names a DeviceClass that does not exist.",
        "Install the driver of the devices: its chart brings its classes.",
    ),
    RefusalCode.NO_DEVICE_FITS: (
        "No instance type that the pools allow is known to have the devices that the pod claims, or that serve what it requests, and no node publishes them.",
        "The message names the selector that no device meets, or the number. Allow instance types with such devices, or correct the claim, or the DeviceClass.",
    ),
    RefusalCode.VOLUME_UNREACHABLE: (
        "A volume of the pod is in a place where the pod is not allowed to run.",
        "Let the pod run in the volume's zone, or move the data.",
    ),
    RefusalCode.VOLUME_CLAIM_NOT_FOUND: (
        "The pod names a PersistentVolumeClaim that does not exist.",
        "Create the claim, or correct its name.",
    ),
    RefusalCode.VOLUME_CLAIM_NOT_USABLE: (
        "A PersistentVolumeClaim of the pod is not bound, and a node would not help: it is lost, being deleted, or its storage class does not wait for a node.",
        "Use a storage class with `volumeBindingMode: WaitForFirstConsumer`, or repair the claim.",
    ),
    RefusalCode.VOLUME_CLAIM_IN_USE: (
        "A PersistentVolumeClaim of the pod has the access mode `ReadWriteOncePod`, and another pod uses it, or is planned first.",
        "The pod is planned once the other one is gone. Where pods are to share the volume, use the access mode `ReadWriteOnce` or `ReadWriteMany`.",
    ),
    RefusalCode.STORAGE_CLASS_NOT_FOUND: (
        "A PersistentVolumeClaim of the pod names a storage class that does not exist.",
        "Create the storage class, or correct its name.",
    ),
    RefusalCode.VOLUME_NOT_FOUND: (
        "A PersistentVolumeClaim of the pod names a volume that does not exist.",
        "Repair the claim.",
    ),
    RefusalCode.VOLUMES_APART: (
        "The volumes of the pod are in different zones, so no node reaches all of them.",
        "Move the data into one zone.",
    ),
    RefusalCode.PLANNING_TOOK_TOO_LONG: (
        "Planning the pod takes more than its share of a pass; the pods of others come first.",
        "Ask for less in node affinity, pod affinity and topology spread. The pod is tried again.",
    ),
    RefusalCode.PLANNING_FAILED: (
        "Planning the pod raised an unexpected error. All other pods are planned.",
        "Report it with the log line, which has the traceback. The pod is tried again, at once when it changes.",
    ),
    RefusalCode.GROUP_INCOMPLETE: (
        "The pod is to run together with others, and not all of them can have a place.",
        "The message names what the others lack; nothing is launched for a part of them.",
    ),
    RefusalCode.SET_ASIDE: (
        "The pod was set aside after planning it failed or took too long, and waits for its next turn.",
        "See the earlier event of the pod. A change of the pod brings it back at once.",
    ),
}

#: Preferences left out of a plan: meaning, what to do.
RELAXATIONS: Mapping[RelaxationCode, tuple[str, str]] = {
    RelaxationCode.PREFERRED_NODE_AFFINITY: (
        "A preferred node affinity could not be met.",
        "Nothing, or let a pool make such nodes.",
    ),
    RelaxationCode.PREFERRED_POD_AFFINITY: ("A preferred pod affinity could not be met.", "Nothing."),
    RelaxationCode.PREFERRED_POD_ANTI_AFFINITY: (
        "A preferred pod anti-affinity could not be met.",
        "Nothing, or allow more zones or nodes.",
    ),
    RelaxationCode.SCHEDULE_ANYWAY: (
        "A topology spread constraint with `ScheduleAnyway` could not be met.",
        "Nothing, or use `DoNotSchedule` if the pods should rather wait.",
    ),
    RelaxationCode.PREFER_NO_SCHEDULE: (
        "The pod is planned on nodes with a `PreferNoSchedule` taint.",
        "Nothing, or let another pool serve the pod.",
    ),
    RelaxationCode.ON_DEMAND_FOR_LOST_WORK: (
        "The pod is planned on spot, though on-demand is no dearer than spot with the work that interruptions "
        "of the pod lose.",
        "Nothing, or let a pool and its limits make on-demand nodes for it.",
    ),
    RelaxationCode.MIN_VALUES_LOWERED: (
        "`minValues` of the pool was lowered, as `nodeless.minValuesPolicy` is `BestEffort`.",
        "Nothing, or allow more instance types.",
    ),
}

#: Why a node stays (`nodeless why NODE`, `nodeless top`): meaning, what to do.
VERDICTS: Mapping[VerdictCode, tuple[str, str]] = {
    VerdictCode.BREAKER: (
        "The node is broken, but so are too many of the pool's nodes: repair stops, since the cause is probably elsewhere.",
        "Look for the common cause. Replace nodes yourself, or wait until fewer are broken.",
    ),
    VerdictCode.BUDGET: (
        "The pool's disruption budget allows no more disruptions now.",
        "Wait, or raise the budget. `nodeless windows` shows when it allows how many.",
    ),
    VerdictCode.BUDGET_EXHAUSTED: (
        "A PodDisruptionBudget allows no eviction of a pod on the node now.",
        "Make more replicas ready, or loosen the budget. A budget that never allows an eviction keeps the node for ever.",
    ),
    VerdictCode.CHOSEN: (
        "The node has been chosen for disruption; the command is checked once more before it starts.",
        "Nothing.",
    ),
    VerdictCode.CONSOLIDATION_DISABLED: (
        "The pool does not consolidate.",
        "Set `consolidation.enabled` (Provisioner) or `consolidateAfter` (NodePool) if it should.",
    ),
    VerdictCode.CONSOLIDATION_FORBIDDEN: (
        "An annotation on the node forbids its consolidation.",
        "Remove the annotation if the node may go.",
    ),
    VerdictCode.COOLING_DOWN: (
        "A replacement for the node failed a short time ago.",
        "See the events of the replacement's NodeClaim. The node is considered again by itself.",
    ),
    VerdictCode.EVICTIONS_TOO_DEAR: (
        "The saving is smaller than what the evictions count as (`nodeless.evictionPrice`).",
        "Nothing, or lower `nodeless.evictionPrice`.",
    ),
    VerdictCode.EXPECTING: ("Pods are planned onto the node and have not started there yet.", "Nothing."),
    VerdictCode.FAILED: (
        "Looking at the node raised an unexpected error. All other nodes are considered.",
        "Report it with the log line, which has the traceback.",
    ),
    VerdictCode.GANG_INCOMPLETE: (
        "The node was launched for a gang that is not whole yet.",
        "Nothing: it is an ordinary node once the gang is whole, and is released when that takes too long (`nodeless.gangTimeout`).",
    ),
    VerdictCode.GONE: ("The NodeClaim of a command is gone.", "Nothing."),
    VerdictCode.LEAVING: ("The node is being removed already.", "Nothing."),
    VerdictCode.NO_REPLACEMENT: (
        "The node should be replaced, but no new node can be planned for its pods.",
        "The message has the reason of the pod that cannot be placed; look up its code.",
    ),
    VerdictCode.NODE_PROTECTED: (
        "The node has the annotation `karpenter.sh/do-not-disrupt`.",
        "Remove the annotation if the node may go.",
    ),
    VerdictCode.NOMINATED: ("Pods are expected on the node.", "Nothing."),
    VerdictCode.NOT_BETTER: ("A second look found that the command does not pay any more.", "Nothing."),
    VerdictCode.NOT_INITIALIZED: (
        "The node is not initialized yet.",
        "See the condition `Initialized` of its NodeClaim if this lasts.",
    ),
    VerdictCode.NOT_QUIET: (
        "Pods came or left within `consolidateAfter`.",
        "Nothing, or shorten `consolidateAfter`.",
    ),
    VerdictCode.NOT_REACHED: (
        "The pass did not come to the node, or makes a command first that is worth more. Its turn is in a later one.",
        "Nothing.",
    ),
    VerdictCode.NOT_REPAID: (
        "The node is too young: a replacement would not have repaid the time for which both run.",
        "Nothing.",
    ),
    VerdictCode.OCCUPIED: ("The node was empty and has pods again.", "Nothing."),
    VerdictCode.ONLY_WHEN_EMPTY: (
        "The pool ends only empty nodes (`consolidationPolicy: WhenEmpty`).",
        "Set `WhenEmptyOrUnderutilized` if occupied nodes may be replaced, too.",
    ),
    VerdictCode.PAUSED: (
        "Voluntary disruption is paused by the annotation `nodeless.dev/pause-disruption`.",
        "Remove the annotation.",
    ),
    VerdictCode.PLANNING: ("Capacity for pending pods is planned first.", "Nothing."),
    VerdictCode.POD_PROTECTED: (
        "A pod on the node has `karpenter.sh/do-not-disrupt` or `karpenter.sh/do-not-evict`.",
        "Remove the annotation, or give it a duration.",
    ),
    VerdictCode.POOL_UNUSABLE: (
        "The node's pool does not exist, cannot be read or is being deleted.",
        "Look at the conditions of the pool.",
    ),
    VerdictCode.PRICE_UNKNOWN: (
        "The price of the node's instance type is not known, so no saving can be computed.",
        "Allow `pricing:GetProducts` and `ec2:DescribeSpotPriceHistory`, or give the type a `price` by a NodeOverlay.",
    ),
    VerdictCode.REBOOTING: ("The node is being rebooted.", "Nothing."),
    VerdictCode.REPAIR_BLOCKED: (
        "The node is broken, but an annotation or a pod on it forbids its repair.",
        "Remove what the message names, or replace the node yourself.",
    ),
    VerdictCode.REPLACING: ("The node is the replacement of another one that is still there.", "Nothing."),
    VerdictCode.RESTLESS: (
        "Pods of a workload on the node were moved several times within the last hour, and rest now.",
        "Nothing.",
    ),
    VerdictCode.SEVERAL_BUDGETS: (
        "A pod on the node has more than one PodDisruptionBudget; the eviction API refuses to evict it.",
        "Leave one budget that selects the pod.",
    ),
    VerdictCode.UNBALANCED: (
        "The pool's policy is `Balanced`, and the saving is small for the disruption.",
        "Nothing, or use `WhenEmptyOrUnderutilized`.",
    ),
    VerdictCode.UNCONSOLIDATABLE: (
        "Its pods fit nowhere else for less.",
        "Nothing. The message says what was tried.",
    ),
    VerdictCode.UNREADABLE: ("The NodeClaim cannot be read.", "The message names the field."),
    VerdictCode.WAITING: ("Another node of the pool is being replaced for the same reason.", "Nothing."),
}

#: Why nodes are disrupted: meaning, what to do.
DISRUPTION: Mapping[DisruptionReason, tuple[str, str]] = {
    DisruptionReason.EXPIRED: ("The node has reached `ttlSecondsUntilExpired` or `expireAfter`.", "Nothing."),
    DisruptionReason.DRIFTED: (
        "The node is no longer as its pool and node class want it.",
        "Nothing. The condition `Drifted` of its NodeClaim says what differs.",
    ),
    DisruptionReason.EMPTY: ("No pods but those of DaemonSets run on the node.", "Nothing."),
    DisruptionReason.UNDERUTILIZED: ("The node's pods fit elsewhere for less.", "Nothing."),
    DisruptionReason.UNHEALTHY: (
        "A condition of the node says that it is broken, for longer than is tolerated.",
        "Nothing: it is rebooted or replaced. `nodeless why NODE` names the condition.",
    ),
}

#: Reasons of a CapacityBuffer's conditions: meaning, what to do.
BUFFERS: Mapping[BufferReason, tuple[str, str]] = {
    BufferReason.RESOLVED: ("The buffer's pod template is known.", "Nothing."),
    BufferReason.POD_TEMPLATE_NOT_FOUND: (
        "The PodTemplate that the buffer names does not exist.",
        "Create it, or correct `spec.podTemplateRef`.",
    ),
    BufferReason.SCALABLE_REF_NOT_FOUND: (
        "The workload that the buffer names does not exist.",
        "Create it, or correct `spec.scalableRef`.",
    ),
    BufferReason.RESOLUTION_FAILED: ("The buffer's pods cannot be derived.", "The message names the field."),
    BufferReason.FITS_EXISTING_CAPACITY: ("Existing nodes have room for the buffer.", "Nothing."),
    BufferReason.REQUIRES_NEW_CAPACITY: (
        "Nodes are being launched for the buffer.",
        "Nothing, unless it lasts: the message names what keeps them from being launched.",
    ),
    BufferReason.NOT_READY_FOR_PROVISIONING: (
        "The buffer cannot be provisioned.",
        "See its condition `ReadyForProvisioning`.",
    ),
    BufferReason.BUFFER_EMPTY: (
        "The buffer asks for no pods.",
        "Raise `spec.replicas` or `spec.percentage` if it should.",
    ),
}


#: Reasons of a ProvisioningRequest's conditions: meaning, what to do.
REQUESTS: Mapping[RequestReason, tuple[str, str]] = {
    RequestReason.ACCEPTED: ("The request is one that nodeless answers.", "Nothing."),
    RequestReason.POD_TEMPLATE_NOT_USABLE: (
        "A PodTemplate that the request names does not exist or cannot be read.",
        "Create or correct it: the request waits for it until it expires.",
    ),
    RequestReason.INVALID_REQUEST: (
        "The request can never be met; the message names the field.",
        "Create a corrected request: the fields of one cannot be changed.",
    ),
    RequestReason.CAPACITY_FOUND: ("The cluster has the room, and it is kept for ten minutes.", "Nothing."),
    RequestReason.CAPACITY_NOT_FOUND: (
        "Not all pods of the request can have a place; nothing is launched for a part of them.",
        "The message says what is missing. It is planned again after one to ten minutes, until it expires.",
    ),
    RequestReason.BEING_LAUNCHED: ("Nodes are launched for the request.", "Nothing."),
    RequestReason.PROVISIONED: ("Room for all pods is there, and is kept for ten minutes.", "Nothing."),
    RequestReason.LAUNCH_TOOK_TOO_LONG: (
        "Not all nodes of the request were ready in 15 minutes; those that were are removed as empty.",
        "The message says what is missing. Create a new request, as Kueue does by itself.",
    ),
    RequestReason.EXPIRED: (
        "The request had no capacity in its time: seven days, or its parameter `ValidUntilSeconds`.",
        "The message says what was missing.",
    ),
    RequestReason.BOOKING_EXPIRED: (
        "Room for the request is not kept any more.",
        "Nothing, if its pods run. Otherwise create a new request.",
    ),
    RequestReason.CAPACITY_REVOKED: (
        "A part of the room that was kept is gone for a minute, and no pod had come to use it.",
        "Create a new request. The message says what is missing: a node may have been lost.",
    ),
}


@dataclass(frozen=True, slots=True)
class ConditionReason:
    """A reason that a condition of our objects may have."""

    reason: str
    on: str
    """Conditions and kinds, in words."""
    meaning: str
    remedy: str


_CLASS = "node classes"
_CLAIM = "NodeClaim"
_EMPTY = "Nothing."

#: Reasons of conditions that are neither the condition's own name (it holds) nor `TYPEFalse`, `TYPEUnknown` (of Ready).
CONDITION_REASONS: tuple[ConditionReason, ...] = (
    ConditionReason(
        "Invalid",
        f"`ValidationSucceeded` of pools and {_CLASS}",
        "The object breaks a rule.",
        "Correct each field that the message names.",
    ),
    ConditionReason(
        "RuntimeValidation",
        "`ValidationSucceeded` of NodeOverlays",
        "The overlay breaks a rule and has no effect.",
        "Correct each field that the message names.",
    ),
    ConditionReason(
        "Conflict",
        "`ValidationSucceeded` of NodeOverlays",
        "Another overlay of the same weight says something else of the same; this one has no effect.",
        "Give the two different weights, or requirements that do not overlap.",
    ),
    ConditionReason(
        "NotChecked",
        "`NodeClassReady` of pools",
        "The pool is invalid, so its node class was not looked at.",
        "Correct the pool.",
    ),
    ConditionReason(
        "NodeClassNotFound",
        "`NodeClassReady` of pools",
        "The node class that the pool names does not exist.",
        "Create it, or correct the reference.",
    ),
    ConditionReason(
        "NodeClassNotReady",
        "`NodeClassReady` of pools",
        "The node class is not ready.",
        "Look at its conditions.",
    ),
    ConditionReason(
        "WaitingForNodes",
        "`Deleting` of pools",
        "The pool is being deleted and waits for its nodes to end.",
        "Wait. `FailedDraining` on a node says what keeps it.",
    ),
    ConditionReason(
        "NothingLaunched",
        "`NodeRegistrationHealthy` of pools",
        "No node was launched since the pool or its class changed.",
        _EMPTY,
    ),
    ConditionReason(
        "RegistrationFailed",
        "`NodeRegistrationHealthy` of pools",
        "Several of the last launches ended without a node that joined.",
        "Look at the events of the NodeClaims, the console output of an instance, and the security groups.",
    ),
    ConditionReason(
        "SubnetsNotFound",
        f"`SubnetsReady` of {_CLASS}",
        "The subnet selector matches nothing.",
        "Tag the subnets as the selector asks, or correct it.",
    ),
    ConditionReason(
        "SecurityGroupsNotFound",
        f"`SecurityGroupsReady` of {_CLASS}",
        "The security group selector matches nothing.",
        "Tag the groups as the selector asks, or correct it.",
    ),
    ConditionReason(
        "AMINotFound",
        f"`AMIsReady` of {_CLASS}",
        "The image selection matches nothing.",
        "Correct the selector or alias, or have the image shared with your account.",
    ),
    ConditionReason(
        "NotFound",
        f"conditions of {_CLASS}",
        "What the field in the message selects does not exist.",
        "Correct the field.",
    ),
    ConditionReason(
        "InstanceProfileNotFound",
        f"`InstanceProfileReady` of {_CLASS}",
        "The class names neither a role nor an instance profile, and there is no default.",
        "Set `spec.role` or `spec.instanceProfile`, or `aws.defaultInstanceProfile`.",
    ),
    ConditionReason(
        "InstanceProfileFailed",
        f"`InstanceProfileReady` of {_CLASS}",
        "IAM refused to make the instance profile.",
        "The message has IAM's answer. Or name an existing profile in `spec.instanceProfile`.",
    ),
    ConditionReason(
        "RoleNotFound",
        f"`InstanceProfileReady` of {_CLASS}",
        "The role in `spec.role` does not exist.",
        "Create the role, or correct its name.",
    ),
    ConditionReason(
        "QuotaExceeded",
        f"`InstanceProfileReady` of {_CLASS}",
        "The account has as many instance profiles as IAM allows.",
        "Raise the quota, delete unused profiles, or name an existing one.",
    ),
    ConditionReason(
        "IamUnreachable",
        f"`InstanceProfileReady` of {_CLASS}",
        "IAM does not answer. In a private VPC there is often no way to it.",
        "Give the VPC a way to IAM, or name an existing profile in `spec.instanceProfile`.",
    ),
    ConditionReason(
        "Unauthorized",
        f"`Launched` of {_CLAIM}, and conditions of {_CLASS}",
        "AWS refuses the call that the message names.",
        "Compare the controller's role with [the permissions](components/permissions.md).",
    ),
    ConditionReason(
        "PlacementGroupNotFound",
        f"`PlacementGroupReady` of {_CLASS}",
        "The placement group does not exist.",
        "Create it, or correct `spec.placementGroupSelector`.",
    ),
    ConditionReason(
        "ClusterCIDRResolutionFailed",
        f"`ValidationSucceeded` of {_CLASS}",
        "AL2023 needs the service CIDR of the cluster, and EKS did not return it.",
        "Allow `eks:DescribeCluster`, or use another `spec.amiFamily`.",
    ),
    ConditionReason(
        "UserDataSizeLimitExceeded",
        f"`ValidationSucceeded` of {_CLASS}",
        "The user data is longer than EC2 takes.",
        "Shorten `spec.userData`.",
    ),
    ConditionReason(
        "UserDataInvalid",
        f"`ValidationSucceeded` of {_CLASS}",
        "The user data cannot be used.",
        "Correct `spec.userData`, as the message says.",
    ),
    ConditionReason(
        "TagValidationFailed",
        f"`ValidationSucceeded` of {_CLASS}",
        "EC2 would refuse the tags of the class.",
        "Correct `spec.tags`, as the message says.",
    ),
    ConditionReason(
        "DependenciesNotReady",
        f"`ValidationSucceeded` of {_CLASS}",
        "Launches are checked once images, subnets, groups and profile are known.",
        "Look at the other conditions of the class.",
    ),
    ConditionReason(
        "Validating",
        f"`ValidationSucceeded` of {_CLASS}",
        "EC2 is being asked whether launches are allowed.",
        _EMPTY,
    ),
    ConditionReason(
        "DryRunUnanswered",
        f"`ValidationSucceeded` of {_CLASS}",
        "EC2 did not answer the dry run.",
        "Usually nothing: it is asked again. `nodeless.disableDryRun` turns dry runs off.",
    ),
    ConditionReason(
        "CreateFleetAuthCheckFailed",
        f"`ValidationSucceeded` of {_CLASS}",
        "A dry run of CreateFleet was refused: no node can be launched.",
        "Allow `ec2:CreateFleet` in the controller's role; look for a permissions boundary or service control policy.",
    ),
    ConditionReason(
        "CreateLaunchTemplateAuthCheckFailed",
        f"`ValidationSucceeded` of {_CLASS}",
        "A dry run of CreateLaunchTemplate was refused.",
        "Allow `ec2:CreateLaunchTemplate` in the controller's role.",
    ),
    ConditionReason(
        "RunInstancesAuthCheckFailed",
        f"`ValidationSucceeded` of {_CLASS}",
        "A dry run of RunInstances was refused.",
        "Allow `ec2:RunInstances` and `iam:PassRole` on what the class selects.",
    ),
    ConditionReason(
        "CloudUnavailable",
        f"conditions of {_CLASS}",
        "AWS gave no answer.",
        "Usually nothing: it is asked again. If it lasts, look at the controller's log.",
    ),
    ConditionReason(
        "LaunchFailed",
        f"`Launched` of {_CLAIM}",
        "EC2 refused the launch for a reason that has no name of its own.",
        "The message has EC2's answer. The launch is tried again.",
    ),
    ConditionReason(
        "NodeNotFound",
        f"`Registered` of {_CLAIM}",
        "The instance runs and its node has not joined.",
        "Wait for up to 15 minutes; then see the event `RegistrationFailed`.",
    ),
    ConditionReason(
        "NodeNotReady",
        f"`Initialized` of {_CLAIM}",
        "The node has joined and is not Ready.",
        "Look at the conditions of the Node. The network plugin is the most frequent cause.",
    ),
    ConditionReason(
        "StartupTaintsExist",
        f"`Initialized` of {_CLAIM}",
        "A startup taint of the pool is still on the node.",
        "Look at the agent that should remove the taint.",
    ),
    ConditionReason(
        "KnownEphemeralTaintsExist",
        f"`Initialized` of {_CLAIM}",
        "A taint that Kubernetes or the cloud removes is still on the node.",
        "Wait. If it lasts, look at the cloud controller manager and the kubelet.",
    ),
    ConditionReason(
        "ResourceNotRegistered",
        f"`Initialized` of {_CLAIM}",
        "The node does not report a resource that its pods need, such as a GPU.",
        "Look at the device plugin on the node, or at the driver, where a DeviceClass serves the resource.",
    ),
    ConditionReason(
        "FailedConsistencyCheck",
        f"`ConsistentStateFound` of {_CLAIM}",
        "The node is smaller than what was planned.",
        "The event on the node says what it lacks.",
    ),
    ConditionReason(
        "NodePoolDrifted",
        f"`Drifted` of {_CLAIM}",
        "Labels, annotations, taints, kubelet settings or life spans of the pool have changed.",
        _EMPTY,
    ),
    ConditionReason(
        "NodeClassDrift", f"`Drifted` of {_CLAIM}", "Settings of the node class have changed.", _EMPTY
    ),
    ConditionReason(
        "RequirementsDrifted",
        f"`Drifted` of {_CLAIM}",
        "A label of the node does not meet the pool's requirements any more.",
        _EMPTY,
    ),
    ConditionReason(
        "InstanceTypeNotFound",
        f"`Drifted` of {_CLAIM}",
        "The pool cannot have the node's instance type any more.",
        _EMPTY,
    ),
    ConditionReason(
        "AMIDrift",
        f"`Drifted` of {_CLAIM}",
        "The node class selects another image, often a newer one.",
        "Nothing. Pin the image in the node class to decide yourself when nodes are replaced.",
    ),
    ConditionReason(
        "SecurityGroupDrift",
        f"`Drifted` of {_CLAIM}",
        "The node class selects other security groups.",
        _EMPTY,
    ),
    ConditionReason(
        "SubnetDrift",
        f"`Drifted` of {_CLAIM}",
        "The node class does not select the node's subnet any more.",
        _EMPTY,
    ),
    ConditionReason(
        "CapacityReservationDrift",
        f"`Drifted` of {_CLAIM}",
        "The node class does not select the node's capacity reservation any more.",
        _EMPTY,
    ),
    ConditionReason(
        "PlacementGroupDrift",
        f"`Drifted` of {_CLAIM}",
        "The node class selects another placement group.",
        _EMPTY,
    ),
    ConditionReason(
        "NotDrifted", f"`Drifted` of {_CLAIM}", "The node had drifted and is up to date again.", _EMPTY
    ),
    ConditionReason(
        "ConsolidationDisabled", f"`Consolidatable` of {_CLAIM}", "The pool does not consolidate.", _EMPTY
    ),
    ConditionReason(
        "NotQuiet", f"`Consolidatable` of {_CLAIM}", "Pods came or left within `consolidateAfter`.", _EMPTY
    ),
    ConditionReason(
        "NotDisrupted",
        f"`DisruptionReason` of {_CLAIM}",
        "A disruption of the node was called off.",
        "See the event `DisruptionFailed` on the node.",
    ),
    ConditionReason(
        "RebootRequested", f"`Rebooting` of {_CLAIM}", "The node is drained for a reboot.", _EMPTY
    ),
    ConditionReason("RebootIssued", f"`Rebooting` of {_CLAIM}", "EC2 has accepted the reboot.", _EMPTY),
    ConditionReason("RebootSucceeded", f"`Rebooting` of {_CLAIM}", "The machine is back.", _EMPTY),
    ConditionReason(
        "Rebooting", f"`Initialized` and `Ready` of {_CLAIM}", "The machine is being rebooted.", _EMPTY
    ),
    ConditionReason(
        "Draining",
        f"`Drained` of {_CLAIM}",
        "Pods are still on the node.",
        "See `FailedDraining` on the node if this lasts.",
    ),
    ConditionReason(
        "AwaitingVolumeDetachment",
        f"`VolumesDetached` of {_CLAIM}",
        "Volumes are still attached to the instance.",
        "If this lasts, look at the CSI driver and at the VolumeAttachments of the node.",
    ),
    ConditionReason(
        "TerminationGracePeriodElapsed",
        f"`VolumesDetached` of {_CLAIM}",
        "The time for the drain is over; the instance ends with volumes attached.",
        _EMPTY,
    ),
    ConditionReason(
        "Failed",
        "`Quarantined` of NodeClaims, pools and node classes",
        "Handling the object raised an error. Everything else goes on.",
        "Correct the object, if the message says what is wrong with it. Otherwise report it with the log line.",
    ),
    ConditionReason(
        "Succeeded",
        "`Quarantined` of NodeClaims, pools and node classes",
        "The object could be handled again.",
        _EMPTY,
    ),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One meaning of a code at one place."""

    code: str
    where: str
    meaning: str
    remedy: str


def entries() -> Iterator[Entry]:
    """Every meaning of every code, in no order."""
    for rule in EVENT_RULES:
        where = f"Event ({rule.type}) on {', '.join(rule.kinds)}"
        if len(rule.kinds) > 6:
            where = f"Event ({rule.type}) on any object"
        yield Entry(rule.reason, where, f"{rule.meaning}.", EVENT_REMEDIES[rule.reason])
    for reason in CONDITION_REASONS:
        several = reason.on.startswith("conditions")
        where = reason.on.capitalize() if several else f"Condition {reason.on}"
        yield Entry(reason.reason, where, reason.meaning, reason.remedy)
    tables: tuple[tuple[str, Mapping[str, tuple[str, str]]], ...] = (
        ("Refusal of a pod", {str(code): text for code, text in REFUSALS.items()}),
        ("Preference left out of a plan", {str(code): text for code, text in RELAXATIONS.items()}),
        ("Verdict on a node", {str(code): text for code, text in VERDICTS.items()}),
        ("Reason of a disruption", {str(code): text for code, text in DISRUPTION.items()}),
        ("Condition of a CapacityBuffer", {str(code): text for code, text in BUFFERS.items()}),
        ("Condition of a ProvisioningRequest", {str(code): text for code, text in REQUESTS.items()}),
    )
    for where, table in tables:
        for code, (meaning, remedy) in table.items():
            yield Entry(code, where, meaning, remedy)
