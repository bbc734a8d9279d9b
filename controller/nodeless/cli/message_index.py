"""What each event, condition, refusal and verdict means, and what to do: the texts of docs/messages.md.

Where a code occurs (on which kinds, as what) comes from its own enum or table; here are the texts. A test
checks that every code has a text and every text a code.
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
    "BookingExpired": "Nothing, if the pods of the request are running. Otherwise create a new request.",
    "Failed": "Read the message. Create a corrected request or a new one. Kueue does this by itself.",
    "CapacityRevoked": "Create a new request. A node may have been lost. Look at the events of the nodes.",
    "WaitingForTermination": "Nothing. If the pod still waits after 30 seconds (`nodeless.terminationWait`), it is planned without "
    "that room.",
    "Nominated": "Nothing. If the pod is still pending after a few minutes, look at the NodeClaim that the message names.",
    "FailedScheduling": "Read the message. It names one obstacle for each pool, and the smallest change that would help. Look up the code in brackets on this page. `nodeless why NAMESPACE/POD` shows the same information.",
    "FailedLaunch": "Read EC2's answer in the message. Then look up the NodeClaim's event from the same time.",
    "InsufficientCapacity": "Usually nothing. nodeless plans other capacity within seconds. If this repeats, allow more instance types, zones or capacity types in the pool.",
    "NodeDidNotHelp": "Find out why kube-scheduler rejects the node. Its own `FailedScheduling` event on the pod gives the reason. Frequent causes are taints that another agent adds to new nodes, and volumes in another zone.",
    "ResizePending": "Make room by moving the pods that the message names to other nodes. If a new pod would get the new size (with a VerticalPodAutoscaler), you can evict this pod instead. `nodeless why pod/NAME` also looks for room on other nodes ([Vertical scaling](guides/vertical-scaling.md)).",
    "Evicted": "Nothing. To keep a pod on its node, give it a PodDisruptionBudget or the annotation `karpenter.sh/do-not-disrupt`.",
    "CheckpointRequested": "Nothing, if the pod saves its work by itself. Programs that watch pods can react to the condition `nodeless.dev/CheckpointRequested` ([Long jobs](guides/long-jobs.md)).",
    "Surging": "Nothing. The new pod becomes ready before the old one is evicted.",
    "SurgeFailed": "Allow the service account of nodeless to patch Deployments in the namespace, or set `maxSurge` to at least 1 and `maxUnavailable` to 0 in the Deployment.",
    "Launched": "Nothing.",
    "LaunchFailed": "Read EC2's answer in the message. nodeless tries again. If the answer does not change, correct what it names in the node class or in the account.",
    "RegistrationFailed": "Read the console output of the instance. The most frequent causes are a node role without an access entry in the cluster, security groups that block traffic to the API server, and user data that fails.",
    "AMIAuthorizationFailure": "Have the owner of the image share it with your account, or select another image in the node class.",
    "AMINotFound": "Correct the image selection of the node class, or have the image shared with your account.",
    "AccountPendingVerification": "Wait until AWS has verified the account. For new accounts, this can take a few hours.",
    "CapacityReservationNotFound": "Correct `spec.capacityReservationSelectorTerms`.",
    "ClientTokenReused": "Delete the NodeClaim. A new NodeClaim has a new token.",
    "FleetQuotaExceeded": "Ask AWS for a higher quota for EC2 fleets in this region (Service Quotas).",
    "FreeTierIneligible": "Upgrade the account's plan, or make the pool require instance types that the free tier covers.",
    "InstanceProfileNameInvalid": "Usually nothing. EC2 knows a new instance profile after a few seconds. If this continues, create the profile, or correct its name in the node class.",
    "InsufficientFreeAddressesInSubnet": "Select more or larger subnets for this zone. In the meantime, nodeless tries other zones.",
    "InternalError": "Nothing. nodeless tries the launch again. If this continues, look at the AWS Health Dashboard.",
    "InvalidAMIID": "Correct the image ID in the node class. No image can have that ID.",
    "InstanceTypeNotFound": "Nothing. nodeless tries the launch without this instance type.",
    "LaunchTemplateNotFound": "Correct `spec.launchTemplate`. If nodeless created the launch template, it creates it again by itself.",
    "RequestLimitExceeded": "Nothing. nodeless tries the launch again, more slowly. If this continues, find out what else uses up the account's request limit.",
    "PlacementGroupNotFound": "Create the placement group, or correct `spec.placementGroupSelector`.",
    "SecurityGroupNotFound": "Correct the security group selector of the node class. In the meantime, nodeless looks up the groups again.",
    "SecurityGroupSubnetVPCMismatch": "Change the selectors of the node class so that they select subnets and security groups in one VPC.",
    "SpotQuotaExceeded": "Ask AWS for a higher quota for spot requests, or allow on-demand instances. Set `limits` on the pool to keep it below the quota.",
    "SpotSLRCreationFailed": "Create the service-linked role once: `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`.",
    "SubnetNotFound": "Correct the subnet selector of the node class. In the meantime, nodeless looks up the subnets again.",
    "UnknownInstanceType": "Delete the NodeClaim, and report the message as a bug.",
    "UserDataInvalid": "Correct `spec.userData` of the node class.",
    "UserDataSizeLimitExceeded": "Shorten `spec.userData`. EC2 allows 16 KiB, and nodeless adds its own part to yours.",
    "VCPULimitExceeded": "Ask AWS for a higher vCPU quota, or allow instance families with a separate quota. Set `limits` on the pool to keep it below the quota.",
    "NodeClassNotReady": "Look at the conditions of the node class. The one that is False names the field and what to write.",
    "Unauthorized": "The message names the call. Compare the controller's role with [the permissions](components/permissions.md). A permissions boundary or a service control policy can also deny the call.",
    "InstanceGone": "Nothing. The pods get a new node. If nobody terminated the instance, look for a spot interruption or a failed status check at that time.",
    "NodeGone": "Nothing. nodeless terminates the instance, because its kubelet does not register again. In the future, delete the NodeClaim instead of removing the finalizer of the Node.",
    "Registered": "Nothing.",
    "Initialized": "Nothing.",
    "UnregisteredTaintMissing": "If you use a custom image, change its bootstrap so that the node registers with the taint `karpenter.sh/unregistered:NoExecute`. Without the taint, pods may start before the node has its labels.",
    "FailedConsistencyCheck": "Compare the node's capacity with its instance type. Frequent causes are a device plugin that does not run, a kubelet that reserves more than planned, and a startup taint that nothing removes.",
    "Draining": "Nothing. If this continues, look for the event `FailedDraining`.",
    "FailedDraining": "The message names the pod and what blocks its eviction. Add ready replicas so that the budget allows a disruption, or delete the pod yourself. If an admission webhook or policy refuses what is asked for the pod, repair it. `terminationGracePeriod` on the pool limits how long nodeless waits.",
    "DeprovisioningTerminating": "Nothing. The message gives the reason.",
    "DisruptionTerminating": "Nothing. The message gives the reason.",
    "DisruptionStarted": 'Nothing. To stop voluntary disruption, annotate the pool with `nodeless.dev/pause-disruption: "true"`.',
    "DisruptionFailed": "Look at the events of the replacement's NodeClaim. The node stays in service, and nodeless considers it again after five minutes.",
    "DisruptionBlocked": "Nothing, if you want to keep the node. Otherwise remove what the message names, such as an annotation or a budget.",
    "InvalidDoNotDisruptAnnotation": "Write `true` or a duration such as `8h`. Any other value does not protect the pod.",
    "InvalidCheckpointGrace": "Write a duration such as `10m`. With any other value, nodeless evicts the pod without waiting.",
    "InvalidLostWork": "Write a duration such as `10h`, at most one year. With any other value, nodeless chooses between spot and on-demand by price alone.",
    "NodeRepairBlocked": "Remove what the message names, or replace the node yourself: `kubectl delete nodeclaim NAME`.",
    "RebootRequested": "Nothing.",
    "RebootIssued": "Nothing.",
    "RebootObserved": "Nothing.",
    "RebootFailed": "Nothing. nodeless replaces the node.",
    "GuardDeletionIgnored": "Nothing, if the deletion was a mistake. To tear the stack down, run `pulumi destroy`.",
    "DeprovisioningBlocked": "Nothing, if you want to keep the node. Otherwise remove what the message names.",
    "DeprovisioningLaunching": "Nothing.",
    "DeprovisioningWaitingReadiness": "Nothing.",
    "DeprovisioningWaitingDeletion": "Nothing. If this continues, look for the event `FailedDraining` on the node.",
    "GangNodesReleased": "Read the event `FailedScheduling` of the gang's pods, which says what they lack. Allow more instance types or zones in the pool, or request less. nodeless plans the gang again after a pause. `nodeless.gangTimeout` sets how long nodes wait for the complete gang.",
    "RequestNodesReleased": "Nothing, if you deleted the ProvisioningRequest. Otherwise look at its condition `Failed`. Allow more instance types or zones in the pool, or request less.",
    "DisruptionLaunching": "Nothing.",
    "DisruptionWaitingReadiness": "Nothing.",
    "DisruptionWaitingDeletion": "Nothing. If this continues, look for the event `FailedDraining` on the node.",
    "Disrupted": "Nothing now. If the pod needs more time to terminate, raise `terminationGracePeriod` on the pool.",
    "Unconsolidatable": "Nothing. `nodeless why NODE` shows the same reason with its figures.",
    "InstanceSpotInterrupted": "Nothing. nodeless drains the node at once, and its pods get new capacity. To be interrupted less often, allow more instance types.",
    "InstanceSpotRebalanceRecommendation": "Nothing. This is only a hint from EC2, and nodeless keeps the node.",
    "InstanceReservationInterrupted": "Nothing. nodeless drains the node before the reservation ends.",
    "InstanceStopping": "Find out who stops instances of the cluster. nodeless replaces the node.",
    "InstanceTerminating": "If nodeless did not terminate the instance, find out who terminates instances of the cluster. nodeless replaces the node.",
    "InstanceUnhealthy": "Nothing. nodeless replaces the node. The message gives AWS's reason.",
    "CapacityReservationExpiring": "Extend the capacity block, or allow other capacity in the pool. nodeless drains the node before the capacity block ends.",
    "NodeTerminatingOnInterruption": "Nothing. The pods get new capacity.",
    "NoCompatibleInstanceTypes": "Relax the requirements of the pool, or lower `minValues`. `nodeless validate` shows which instance types the requirements allow.",
    "OtherAutoscaler": "Make sure that only one autoscaler serves each pod. Use taints to separate the pools or node groups that the message names, fix the size of the other autoscaler's groups, or scale the other autoscaler to 0. [Migrate from Cluster Autoscaler](guides/migrate-from-cluster-autoscaler.md) and [from Karpenter](guides/migrate-from-karpenter.md) describe the steps.",
    "NotReady": "Correct what the message names in the pool or node class.",
    "WaitingOnNodeClaimTermination": "Wait until the NodeClaims that the message names are gone. If they do not terminate, look for the event `FailedDraining` on their nodes.",
    "CleanUpFailed": "Allow the call that the message names, or delete the resource in AWS yourself. nodeless tries the deletion again.",
    "Invalid": "Correct each field that the message names. `nodeless validate FILE` checks a manifest before you apply it.",
    "Quarantined": "If the message says what is wrong with the object, correct it. Otherwise report a bug. The controller's log has the traceback.",
    "InvalidSetting": "Correct the key that the message names. In the meantime, the last valid value stays in effect.",
}

#: Why a pod gets no capacity: meaning, what to do.
REFUSALS: Mapping[RefusalCode, tuple[str, str]] = {
    RefusalCode.NO_POOLS: (
        "There is neither a Provisioner nor a NodePool.",
        "Create one: [examples](../examples/README.md).",
    ),
    RefusalCode.NO_POOL_FITS: (
        "No pool can create a node for the pod, and the reason differs from pool to pool.",
        "Read the reason of the pool that should serve the pod, and look up its code on this page.",
    ),
    RefusalCode.POOL_UNAVAILABLE: (
        "The pool cannot be used now, because its node class is missing or not ready, or because AWS did not answer.",
        "Look at the conditions of the pool and of its node class.",
    ),
    RefusalCode.NO_INSTANCE_TYPES: (
        "No instance type meets the pool's own requirements.",
        "Relax the requirements of the pool. `nodeless validate` says which requirement excludes the last instance types.",
    ),
    RefusalCode.TAINT_NOT_TOLERATED: (
        "The pool's nodes have a taint that the pod does not tolerate.",
        "If the pod belongs on these nodes, add the toleration to it.",
    ),
    RefusalCode.REQUIREMENTS_CONFLICT: (
        "The pod requires node labels (by its node selector, its node affinity or the zone of a volume) that the pool excludes, or no instance type meets the requirements of both.",
        "Allow the value in the pool, or remove it from the pod. The event says which change helps.",
    ),
    RefusalCode.NO_OFFERING_AVAILABLE: (
        "Instance types match, but AWS had no capacity for them a short time ago.",
        "Usually nothing. nodeless tries these offerings again after three minutes. To avoid the wait, allow more instance types, zones or capacity types.",
    ),
    RefusalCode.HOST_PORT_TAKEN: (
        "The pod requests a host port that a DaemonSet uses on every node of the pool.",
        "Change the port of the pod or of the DaemonSet.",
    ),
    RefusalCode.INSUFFICIENT_RESOURCES: (
        "The pod requests more than the largest matching instance type has left besides its DaemonSets.",
        "Allow larger instance types in the pool, or lower the pod's requests.",
    ),
    RefusalCode.MIN_VALUES_NOT_MET: (
        "The remaining instance types have fewer distinct values than the pool's `minValues` requires.",
        "Lower `minValues`, allow more instance types, or set `nodeless.minValuesPolicy` to `BestEffort`.",
    ),
    RefusalCode.LIMITS_EXCEEDED: (
        "A new node would exceed the pool's `limits`.",
        "Raise the limit, or free capacity. `nodeless top` shows what uses it.",
    ),
    RefusalCode.CAPACITY_EXHAUSTED: (
        "Other pods of the plan use all of what the pod needs: the slots of a capacity reservation, or the free IP addresses of the subnets.",
        "Allow other capacity types, or add subnets with free IP addresses.",
    ),
    RefusalCode.POD_AFFINITY: (
        "The pod must run near other pods, and no pool can create a node where those pods run.",
        "The message names the affinity term that fails. Often the pods that it selects do not exist, or run in a zone that the pool does not offer.",
    ),
    RefusalCode.POD_ANTI_AFFINITY: (
        "The pod must not run near other pods, and one of them is in every place where the pool can create a node.",
        "Allow more zones in the pool, or make the anti-affinity preferred.",
    ),
    RefusalCode.TOPOLOGY_SPREAD: (
        "A topology spread constraint allows no zone, capacity type or other domain that the pool can provide.",
        "Allow the domains over which the pods must spread in the pool, raise `maxSkew`, or use `ScheduleAnyway`.",
    ),
    RefusalCode.INVALID_POD: (
        "nodeless cannot read the pod.",
        "Correct the field that the message names. The API server accepts some values that have no meaning.",
    ),
    RefusalCode.REQUIREMENTS_CONTRADICT: (
        "The pod contradicts itself. Its node selector and its affinity require different values of the same label.",
        "Correct the pod's template.",
    ),
    RefusalCode.MATCH_FIELDS_NOT_PLANNED: (
        "The pod's required node affinity names existing nodes with `matchFields`, so no new node can help.",
        "Use `matchExpressions` on labels.",
    ),
    RefusalCode.RESOURCE_CLAIMS_NOT_PLANNED: (
        "The pod claims devices in a way that nodeless cannot plan: a request or a constraint of a claim is of a kind that it does not know.",
        "Use requests with `exactly` or `firstAvailable`, and constraints with `matchAttribute` or `distinctAttribute`, or provide the nodes for these pods in another way.",
    ),
    RefusalCode.RESOURCE_CLAIM_NOT_FOUND: (
        "The pod names a ResourceClaim or a ResourceClaimTemplate that does not exist, or is being deleted.",
        "Create it in the pod's namespace, or correct its name in the pod's template.",
    ),
    RefusalCode.DEVICE_CLASS_NOT_FOUND: (
        "A ResourceClaim of the pod names a DeviceClass that does not exist.",
        "Install the driver of the devices. Its chart creates the DeviceClasses.",
    ),
    RefusalCode.NO_DEVICE_FITS: (
        "The pod claims or requests devices that no node publishes, and nodeless knows no instance type with such devices that the pools allow.",
        "The message names the selector that no device matches, or the number of devices that is missing. Allow instance types with such devices, or correct the ResourceClaim or the DeviceClass.",
    ),
    RefusalCode.VOLUME_UNREACHABLE: (
        "A volume of the pod is in a place where the pod must not run.",
        "Allow the pod to run in the volume's zone, or move the data.",
    ),
    RefusalCode.VOLUME_CLAIM_NOT_FOUND: (
        "The pod names a PersistentVolumeClaim that does not exist.",
        "Create the PersistentVolumeClaim, or correct its name.",
    ),
    RefusalCode.VOLUME_CLAIM_NOT_USABLE: (
        "A PersistentVolumeClaim of the pod is not bound, and a new node would not help, because the claim is lost or being deleted, or because its storage class does not wait for a node.",
        "Use a storage class with `volumeBindingMode: WaitForFirstConsumer`, or repair the PersistentVolumeClaim.",
    ),
    RefusalCode.VOLUME_CLAIM_IN_USE: (
        "A PersistentVolumeClaim of the pod has the access mode `ReadWriteOncePod`, and another pod uses it or is planned first.",
        "Wait. nodeless plans the pod once the other pod is gone. If the pods must share the volume, use the access mode `ReadWriteOnce` or `ReadWriteMany`.",
    ),
    RefusalCode.STORAGE_CLASS_NOT_FOUND: (
        "A PersistentVolumeClaim of the pod names a storage class that does not exist.",
        "Create the storage class, or correct its name.",
    ),
    RefusalCode.VOLUME_NOT_FOUND: (
        "A PersistentVolumeClaim of the pod names a volume that does not exist.",
        "Repair the PersistentVolumeClaim.",
    ),
    RefusalCode.VOLUMES_APART: (
        "The volumes of the pod are in different zones, so no node can attach all of them.",
        "Move the data into one zone.",
    ),
    RefusalCode.PLANNING_TOOK_TOO_LONG: (
        "Planning the pod takes more than its share of a pass, so nodeless plans other pods first.",
        "Simplify the pod's node affinity, pod affinity and topology spread. nodeless plans the pod again later.",
    ),
    RefusalCode.PLANNING_FAILED: (
        "Planning the pod raised an unexpected error. nodeless still plans all other pods.",
        "Report a bug with the log line, which has the traceback. nodeless plans the pod again later, or at once if it changes.",
    ),
    RefusalCode.GROUP_INCOMPLETE: (
        "The pod must run together with others, and there is not enough capacity for all of them.",
        "The message says what the other pods lack. nodeless launches nothing for only some of them.",
    ),
    RefusalCode.SET_ASIDE: (
        "nodeless set the pod aside, because planning it failed or took too long. It plans the pod again later.",
        "Look at the earlier event of the pod. If the pod changes, nodeless plans it again at once.",
    ),
}

#: Relaxed preferences: meaning, what to do.
RELAXATIONS: Mapping[RelaxationCode, tuple[str, str]] = {
    RelaxationCode.PREFERRED_NODE_AFFINITY: (
        "nodeless could not meet a preferred node affinity.",
        "Nothing, or allow such nodes in a pool.",
    ),
    RelaxationCode.PREFERRED_POD_AFFINITY: ("nodeless could not meet a preferred pod affinity.", "Nothing."),
    RelaxationCode.PREFERRED_POD_ANTI_AFFINITY: (
        "nodeless could not meet a preferred pod anti-affinity.",
        "Nothing, or allow more zones or nodes.",
    ),
    RelaxationCode.SCHEDULE_ANYWAY: (
        "nodeless could not meet a topology spread constraint with `ScheduleAnyway`.",
        "Nothing. If the pods should wait instead, use `DoNotSchedule`.",
    ),
    RelaxationCode.PREFER_NO_SCHEDULE: (
        "nodeless planned the pod on a node with a `PreferNoSchedule` taint.",
        "Nothing, or allow the pod in a pool without the taint.",
    ),
    RelaxationCode.ON_DEMAND_FOR_LOST_WORK: (
        "nodeless planned the pod on spot, although on-demand costs no more than spot together with the work that interruptions of the pod lose.",
        "Nothing. If the pod should run on demand, allow on-demand nodes for it in a pool and in its `limits`.",
    ),
    RelaxationCode.MIN_VALUES_LOWERED: (
        "nodeless lowered the pool's `minValues`, because `nodeless.minValuesPolicy` is `BestEffort`.",
        "Nothing, or allow more instance types.",
    ),
}

#: Why a node stays (`nodeless why NODE`, `nodeless top`): meaning, what to do.
VERDICTS: Mapping[VerdictCode, tuple[str, str]] = {
    VerdictCode.BREAKER: (
        "The node is unhealthy, but so are too many other nodes of the pool. nodeless stops repairs, because the cause is probably elsewhere.",
        "Look for the common cause. Replace nodes yourself, or wait until fewer nodes are unhealthy.",
    ),
    VerdictCode.BUDGET: (
        "The pool's disruption budget allows no more disruptions now.",
        "Wait, or raise the budget. `nodeless windows` shows how many disruptions it allows at what time.",
    ),
    VerdictCode.BUDGET_EXHAUSTED: (
        "A PodDisruptionBudget currently allows no eviction of a pod on the node.",
        "Add ready replicas, or relax the budget. A budget that never allows an eviction blocks the disruption of the node forever.",
    ),
    VerdictCode.CHOSEN: (
        "nodeless chose the node for disruption. It validates the command once more before it starts.",
        "Nothing.",
    ),
    VerdictCode.COMMITTED: (
        "A Reserved Instance or Savings Plan pays for the node's instance whether it runs or not, and the rest of its price is too little for a command.",
        "Nothing. If the commitment has ended or is larger than it should be, correct `nodeless.commitments`.",
    ),
    VerdictCode.CONSOLIDATION_DISABLED: (
        "The pool does not consolidate its nodes.",
        "If it should, set `consolidation.enabled` (Provisioner) or `consolidateAfter` (NodePool).",
    ),
    VerdictCode.CONSOLIDATION_FORBIDDEN: (
        "An annotation on the node prevents its consolidation.",
        "If nodeless may remove the node, delete the annotation.",
    ),
    VerdictCode.COOLING_DOWN: (
        "A replacement for the node failed a short time ago.",
        "Look at the events of the replacement's NodeClaim. nodeless considers the node again by itself.",
    ),
    VerdictCode.EVICTIONS_TOO_DEAR: (
        "The saving is smaller than the cost of the evictions (`nodeless.evictionPrice`).",
        "Nothing, or lower `nodeless.evictionPrice`.",
    ),
    VerdictCode.EXPECTING: ("nodeless planned pods on the node that have not started there yet.", "Nothing."),
    VerdictCode.FAILED: (
        "An unexpected error occurred while nodeless considered the node. It still considers all other nodes.",
        "Report a bug with the log line, which has the traceback.",
    ),
    VerdictCode.GANG_INCOMPLETE: (
        "nodeless launched the node for a gang that is not complete yet.",
        "Nothing. Once the gang is complete, the node is an ordinary node. If that takes too long (`nodeless.gangTimeout`), nodeless terminates it.",
    ),
    VerdictCode.GONE: ("The NodeClaim of the command is gone.", "Nothing."),
    VerdictCode.LEAVING: ("The node is already being removed.", "Nothing."),
    VerdictCode.NO_REPLACEMENT: (
        "nodeless should replace the node, but cannot plan a new node for its pods.",
        "The message gives the reason for the pod that has no place. Look up its code on this page.",
    ),
    VerdictCode.NODE_PROTECTED: (
        "The node has the annotation `karpenter.sh/do-not-disrupt`.",
        "If nodeless may remove the node, delete the annotation.",
    ),
    VerdictCode.NOMINATED: ("Pods are nominated for the node and are expected to start there.", "Nothing."),
    VerdictCode.NOT_BETTER: ("When nodeless validated the command, it no longer saved money.", "Nothing."),
    VerdictCode.NOT_INITIALIZED: (
        "The node is not initialized yet.",
        "If this continues, look at the condition `Initialized` of its NodeClaim.",
    ),
    VerdictCode.NOT_QUIET: (
        "Pods were added to the node or removed from it within `consolidateAfter`.",
        "Nothing, or shorten `consolidateAfter`.",
    ),
    VerdictCode.NOT_REACHED: (
        "The pass did not reach the node, or started a more valuable command first. A later pass considers the node.",
        "Nothing.",
    ),
    VerdictCode.NOT_REPAID: (
        "The node is too young. The saving of a replacement would not yet pay for the time during which both nodes run. "
        "If it will within 30 s, nodes whose pods fit on other nodes wait for it.",
        "Nothing.",
    ),
    VerdictCode.OCCUPIED: ("The node was empty, but has pods again.", "Nothing."),
    VerdictCode.ONLY_WHEN_EMPTY: (
        "The pool removes only empty nodes (`consolidationPolicy: WhenEmpty`).",
        "If nodeless may also disrupt nodes with pods, set `WhenEmptyOrUnderutilized`.",
    ),
    VerdictCode.PAUSED: (
        "The annotation `nodeless.dev/pause-disruption` pauses voluntary disruption.",
        "Remove the annotation.",
    ),
    VerdictCode.PLANNING: ("nodeless plans capacity for pending pods first.", "Nothing."),
    VerdictCode.POD_PROTECTED: (
        "A pod on the node has the annotation `karpenter.sh/do-not-disrupt` or `karpenter.sh/do-not-evict`.",
        "Remove the annotation, or give it a duration.",
    ),
    VerdictCode.POOL_UNUSABLE: (
        "The node's pool does not exist, cannot be read or is being deleted.",
        "Look at the conditions of the pool.",
    ),
    VerdictCode.PRICE_UNKNOWN: (
        "The price of the node's instance type is not known, so nodeless cannot compute a saving.",
        "Allow `pricing:GetProducts` and `ec2:DescribeSpotPriceHistory`, or set a `price` for the type with a NodeOverlay.",
    ),
    VerdictCode.REBOOTING: ("The node is being rebooted.", "Nothing."),
    VerdictCode.REPAIR_BLOCKED: (
        "The node is unhealthy, but an annotation or a pod on it prevents its repair.",
        "Remove what the message names, or replace the node yourself.",
    ),
    VerdictCode.REPLACING: ("The node replaces another node that still exists.", "Nothing."),
    VerdictCode.RESTLESS: (
        "nodeless moved pods of a workload on the node several times within the last hour, and leaves them alone for now.",
        "Nothing.",
    ),
    VerdictCode.SEVERAL_BUDGETS: (
        "A pod on the node has more than one PodDisruptionBudget, so the eviction API refuses to evict it.",
        "Remove all but one of the budgets that select the pod.",
    ),
    VerdictCode.UNBALANCED: (
        "The pool's policy is `Balanced`, and the saving is too small for the disruption that it causes.",
        "Nothing, or use `WhenEmptyOrUnderutilized`.",
    ),
    VerdictCode.UNCONSOLIDATABLE: (
        "The node's pods would not cost less anywhere else.",
        "Nothing. The message says what was tried.",
    ),
    VerdictCode.UNREADABLE: (
        "nodeless cannot read the NodeClaim.",
        "Correct the field that the message names.",
    ),
    VerdictCode.WAITING: ("nodeless is replacing another node of the pool for the same reason.", "Nothing."),
}

#: Why nodes are disrupted: meaning, what to do.
DISRUPTION: Mapping[DisruptionReason, tuple[str, str]] = {
    DisruptionReason.EXPIRED: ("The node has reached `ttlSecondsUntilExpired` or `expireAfter`.", "Nothing."),
    DisruptionReason.DRIFTED: (
        "The node no longer matches its pool or its node class.",
        "Nothing. The condition `Drifted` of its NodeClaim says what differs.",
    ),
    DisruptionReason.EMPTY: ("No pods run on the node except those of DaemonSets.", "Nothing."),
    DisruptionReason.UNDERUTILIZED: ("The node's pods cost less elsewhere.", "Nothing."),
    DisruptionReason.UNHEALTHY: (
        "A condition of the node has reported for too long that the node is unhealthy.",
        "Nothing. nodeless reboots or replaces the node. `nodeless why NODE` names the condition.",
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
    BufferReason.RESOLUTION_FAILED: (
        "nodeless cannot derive the buffer's pods.",
        "Correct the field that the message names.",
    ),
    BufferReason.FITS_EXISTING_CAPACITY: (
        "Existing nodes have enough free capacity for the buffer.",
        "Nothing.",
    ),
    BufferReason.REQUIRES_NEW_CAPACITY: (
        "The buffer needs new nodes, and nodeless launches them.",
        "Nothing. If this continues, the message says what prevents the launch.",
    ),
    BufferReason.NOT_READY_FOR_PROVISIONING: (
        "nodeless cannot provision the buffer.",
        "Look at its condition `ReadyForProvisioning`.",
    ),
    BufferReason.BUFFER_EMPTY: (
        "The buffer requests no pods.",
        "If it should, raise `spec.replicas` or `spec.percentage`.",
    ),
}


#: Reasons of a ProvisioningRequest's conditions: meaning, what to do.
REQUESTS: Mapping[RequestReason, tuple[str, str]] = {
    RequestReason.ACCEPTED: ("nodeless handles this request.", "Nothing."),
    RequestReason.POD_TEMPLATE_NOT_USABLE: (
        "A PodTemplate that the request names does not exist, or nodeless cannot read it.",
        "Create or correct it. The request waits for it until it expires.",
    ),
    RequestReason.INVALID_REQUEST: (
        "The request can never be met. The message names the field.",
        "Create a corrected request. The fields of an existing request cannot be changed.",
    ),
    RequestReason.CAPACITY_FOUND: (
        "The cluster has the capacity, and nodeless reserves it for ten minutes.",
        "Nothing.",
    ),
    RequestReason.CAPACITY_NOT_FOUND: (
        "There is not enough capacity for all pods of the request. nodeless launches nothing for only some of them.",
        "Read the message, which says what is missing. nodeless plans the request again after one to ten minutes, until it expires.",
    ),
    RequestReason.BEING_LAUNCHED: ("nodeless launches nodes for the request.", "Nothing."),
    RequestReason.PROVISIONED: (
        "There is capacity for all pods, and nodeless reserves it for ten minutes.",
        "Nothing.",
    ),
    RequestReason.LAUNCH_TOOK_TOO_LONG: (
        "Not all nodes of the request were ready within 15 minutes. nodeless removes those that were ready as empty nodes.",
        "Read the message, which says what is missing. Create a new request. Kueue does this by itself.",
    ),
    RequestReason.EXPIRED: (
        "The request got no capacity within its lifetime, which is seven days or its parameter `ValidUntilSeconds`.",
        "Read the message, which says what was missing.",
    ),
    RequestReason.BOOKING_EXPIRED: (
        "nodeless no longer reserves capacity for the request.",
        "Nothing, if its pods are running. Otherwise create a new request.",
    ),
    RequestReason.CAPACITY_REVOKED: (
        "Some of the reserved capacity has been gone for a minute, and no pod of the request had used it.",
        "Create a new request. The message says what is missing. A node may have been lost.",
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
        "The object violates a rule.",
        "Correct each field that the message names.",
    ),
    ConditionReason(
        "RuntimeValidation",
        "`ValidationSucceeded` of NodeOverlays",
        "The overlay violates a rule and has no effect.",
        "Correct each field that the message names.",
    ),
    ConditionReason(
        "Conflict",
        "`ValidationSucceeded` of NodeOverlays",
        "Another overlay with the same weight sets the same price or resource to a different value. This overlay has no effect.",
        "Give the overlays different weights, or requirements that do not overlap.",
    ),
    ConditionReason(
        "NotChecked",
        "`NodeClassReady` of pools",
        "The pool is invalid, so nodeless did not check its node class.",
        "Correct the pool.",
    ),
    ConditionReason(
        "NodeClassNotFound",
        "`NodeClassReady` of pools",
        "The node class that the pool names does not exist.",
        "Create the node class, or correct the reference to it.",
    ),
    ConditionReason(
        "NodeClassNotReady",
        "`NodeClassReady` of pools",
        "The node class is not ready.",
        "Look at its conditions.",
    ),
    ConditionReason(
        "NodeClassTerminating",
        "`NodeClassReady` of pools",
        "The node class is being deleted.",
        "Name another node class in the pool, or create it again once it is gone.",
    ),
    ConditionReason(
        "WaitingForNodes",
        "`Deleting` of pools",
        "The pool is being deleted, and waits until its nodes are gone.",
        "Wait. The event `FailedDraining` on a node says what blocks it.",
    ),
    ConditionReason(
        "NothingLaunched",
        "`NodeRegistrationHealthy` of pools",
        "No node has been launched since the pool or its node class changed.",
        _EMPTY,
    ),
    ConditionReason(
        "RegistrationFailed",
        "`NodeRegistrationHealthy` of pools",
        "In several of the last launches, the node did not join the cluster.",
        "Look at the events of the NodeClaims, the console output of an instance, and the security groups.",
    ),
    ConditionReason(
        "SubnetsNotFound",
        f"`SubnetsReady` of {_CLASS}",
        "The subnet selector matches no subnets.",
        "Add the tags that the selector requires to the subnets, or correct the selector.",
    ),
    ConditionReason(
        "SecurityGroupsNotFound",
        f"`SecurityGroupsReady` of {_CLASS}",
        "The security group selector matches no security groups.",
        "Add the tags that the selector requires to the groups, or correct the selector.",
    ),
    ConditionReason(
        "AMINotFound",
        f"`AMIsReady` of {_CLASS}",
        "The image selection matches no images.",
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
        "IAM refused to create the instance profile.",
        "Read IAM's answer in the message, and correct the cause. Or name an existing profile in `spec.instanceProfile`.",
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
        "The account has reached IAM's quota for instance profiles.",
        "Raise the quota, delete unused profiles, or name an existing one.",
    ),
    ConditionReason(
        "IamUnreachable",
        f"`InstanceProfileReady` of {_CLASS}",
        "IAM does not answer. A private VPC often cannot reach it.",
        "Give the VPC access to IAM, or name an existing profile in `spec.instanceProfile`.",
    ),
    ConditionReason(
        "Unauthorized",
        f"`Launched` of {_CLAIM}, and conditions of {_CLASS}",
        "AWS denies the call that the message names.",
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
        "AL2023 needs the service CIDR of the cluster, but EKS did not return it.",
        "Allow `eks:DescribeCluster`, or use another `spec.amiFamily`.",
    ),
    ConditionReason(
        "UserDataSizeLimitExceeded",
        f"`ValidationSucceeded` of {_CLASS}",
        "The user data is larger than EC2 allows.",
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
        "EC2 would reject the tags of the node class.",
        "Correct `spec.tags`, as the message says.",
    ),
    ConditionReason(
        "DependenciesNotReady",
        f"`ValidationSucceeded` of {_CLASS}",
        "nodeless checks launches only once it knows the images, the subnets, the security groups and the instance profile.",
        "Look at the other conditions of the node class.",
    ),
    ConditionReason(
        "Validating",
        f"`ValidationSucceeded` of {_CLASS}",
        "nodeless is checking with EC2 whether launches are allowed.",
        _EMPTY,
    ),
    ConditionReason(
        "DryRunUnanswered",
        f"`ValidationSucceeded` of {_CLASS}",
        "EC2 did not answer the dry run.",
        "Usually nothing. nodeless asks again. The setting `nodeless.disableDryRun` turns dry runs off.",
    ),
    ConditionReason(
        "CreateFleetAuthCheckFailed",
        f"`ValidationSucceeded` of {_CLASS}",
        "AWS denied a dry run of CreateFleet, so nodeless cannot launch nodes.",
        "Allow `ec2:CreateFleet` in the controller's role. Also check for a permissions boundary or a service control policy.",
    ),
    ConditionReason(
        "CreateLaunchTemplateAuthCheckFailed",
        f"`ValidationSucceeded` of {_CLASS}",
        "AWS denied a dry run of CreateLaunchTemplate.",
        "Allow `ec2:CreateLaunchTemplate` in the controller's role.",
    ),
    ConditionReason(
        "RunInstancesAuthCheckFailed",
        f"`ValidationSucceeded` of {_CLASS}",
        "AWS denied a dry run of RunInstances.",
        "Allow `ec2:RunInstances` and `iam:PassRole` for the resources that the node class selects.",
    ),
    ConditionReason(
        "CloudUnavailable",
        f"conditions of {_CLASS}",
        "AWS did not answer.",
        "Usually nothing. nodeless asks again. If this continues, look at the controller's log.",
    ),
    ConditionReason(
        "LaunchFailed",
        f"`Launched` of {_CLAIM}",
        "EC2 rejected the launch for a reason that has no code of its own.",
        "Read EC2's answer in the message. nodeless tries the launch again.",
    ),
    ConditionReason(
        "NodeNotFound",
        f"`Registered` of {_CLAIM}",
        "The instance is running, but its node has not joined the cluster.",
        "Wait for up to 15 minutes. After that, look at the event `RegistrationFailed`.",
    ),
    ConditionReason(
        "NodeNotReady",
        f"`Initialized` of {_CLAIM}",
        "The node has joined the cluster, but is not Ready.",
        "Look at the conditions of the Node. The network plugin is the most frequent cause.",
    ),
    ConditionReason(
        "StartupTaintsExist",
        f"`Initialized` of {_CLAIM}",
        "The node still has a startup taint of the pool.",
        "Look at the agent that should remove the taint.",
    ),
    ConditionReason(
        "KnownEphemeralTaintsExist",
        f"`Initialized` of {_CLAIM}",
        "The node still has a taint that Kubernetes or the cloud provider removes.",
        "Wait. If this continues, look at the cloud controller manager and the kubelet.",
    ),
    ConditionReason(
        "ResourceNotRegistered",
        f"`Initialized` of {_CLAIM}",
        "The node does not report a resource that its pods need, such as a GPU.",
        "Look at the device plugin on the node. If a DeviceClass provides the resource, look at its driver.",
    ),
    ConditionReason(
        "FailedConsistencyCheck",
        f"`ConsistentStateFound` of {_CLAIM}",
        "The node did not initialize in time, or has less capacity than planned.",
        "The event on the node says what is wrong.",
    ),
    ConditionReason(
        "NodePoolDrifted",
        f"`Drifted` of {_CLAIM}",
        "Labels, annotations, taints, kubelet settings or lifetimes of the pool have changed.",
        _EMPTY,
    ),
    ConditionReason(
        "NodeClassDrift", f"`Drifted` of {_CLAIM}", "Settings of the node class have changed.", _EMPTY
    ),
    ConditionReason(
        "RequirementsDrifted",
        f"`Drifted` of {_CLAIM}",
        "A label of the node no longer meets the pool's requirements.",
        _EMPTY,
    ),
    ConditionReason(
        "InstanceTypeNotFound",
        f"`Drifted` of {_CLAIM}",
        "The pool no longer allows the node's instance type.",
        _EMPTY,
    ),
    ConditionReason(
        "AMIDrift",
        f"`Drifted` of {_CLAIM}",
        "The node class selects another image, often a newer one.",
        "Nothing. If you want to decide yourself when nodes are replaced, pin the image in the node class.",
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
        "The node class no longer selects the node's subnet.",
        _EMPTY,
    ),
    ConditionReason(
        "CapacityReservationDrift",
        f"`Drifted` of {_CLAIM}",
        "The node class no longer selects the node's capacity reservation.",
        _EMPTY,
    ),
    ConditionReason(
        "PlacementGroupDrift",
        f"`Drifted` of {_CLAIM}",
        "The node class selects another placement group.",
        _EMPTY,
    ),
    ConditionReason(
        "NotDrifted", f"`Drifted` of {_CLAIM}", "The node had drifted, and is now up to date again.", _EMPTY
    ),
    ConditionReason(
        "ConsolidationDisabled",
        f"`Consolidatable` of {_CLAIM}",
        "The pool does not consolidate its nodes.",
        _EMPTY,
    ),
    ConditionReason(
        "NotQuiet",
        f"`Consolidatable` of {_CLAIM}",
        "Pods were added to the node or removed from it within `consolidateAfter`.",
        _EMPTY,
    ),
    ConditionReason(
        "NotDisrupted",
        f"`DisruptionReason` of {_CLAIM}",
        "nodeless canceled a disruption of the node.",
        "Look at the event `DisruptionFailed` on the node.",
    ),
    ConditionReason(
        "RebootRequested", f"`Rebooting` of {_CLAIM}", "nodeless drains the node for a reboot.", _EMPTY
    ),
    ConditionReason("RebootIssued", f"`Rebooting` of {_CLAIM}", "EC2 has accepted the reboot.", _EMPTY),
    ConditionReason(
        "RebootSucceeded", f"`Rebooting` of {_CLAIM}", "The instance has rebooted and is back.", _EMPTY
    ),
    ConditionReason(
        "Rebooting", f"`Initialized` and `Ready` of {_CLAIM}", "The instance is being rebooted.", _EMPTY
    ),
    ConditionReason(
        "Draining",
        f"`Drained` of {_CLAIM}",
        "There are still pods on the node.",
        "If this continues, look for the event `FailedDraining` on the node.",
    ),
    ConditionReason(
        "AwaitingVolumeDetachment",
        f"`VolumesDetached` of {_CLAIM}",
        "Volumes are still attached to the instance.",
        "If this continues, look at the CSI driver and at the VolumeAttachments of the node.",
    ),
    ConditionReason(
        "TerminationGracePeriodElapsed",
        f"`VolumesDetached` of {_CLAIM}",
        "The time for the drain is over. nodeless terminates the instance although volumes are attached.",
        _EMPTY,
    ),
    ConditionReason(
        "Failed",
        "`Quarantined` of NodeClaims, pools and node classes",
        "An error occurred while nodeless processed the object. nodeless continues with everything else.",
        "If the message says what is wrong with the object, correct it. Otherwise report a bug with the log line.",
    ),
    ConditionReason(
        "Succeeded",
        "`Quarantined` of NodeClaims, pools and node classes",
        "nodeless can process the object again.",
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
        ("Reason why a pod gets no node", {str(code): text for code, text in REFUSALS.items()}),
        ("Relaxed preference", {str(code): text for code, text in RELAXATIONS.items()}),
        ("Disruption status of a node", {str(code): text for code, text in VERDICTS.items()}),
        ("Reason for a disruption", {str(code): text for code, text in DISRUPTION.items()}),
        ("Condition of a CapacityBuffer", {str(code): text for code, text in BUFFERS.items()}),
        ("Condition of a ProvisioningRequest", {str(code): text for code, text in REQUESTS.items()}),
    )
    for where, table in tables:
        for code, (meaning, remedy) in table.items():
            yield Entry(code, where, meaning, remedy)
