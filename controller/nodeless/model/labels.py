"""Names that users, dashboards and tools depend on, spelled once.

Karpenter's names, both API generations (spec of v0.27.3 and of v1), and Kubernetes' own.
"""

#: Characters of a label's value (Kubernetes).
LONGEST_LABEL_VALUE = 63

ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
WINDOWS_BUILD = "node.kubernetes.io/windows-build"

#: The field of a node that a node affinity term's matchFields may name; no label.
NODE_NAME = "metadata.name"

CORE_GROUP = "karpenter.sh"
AWS_GROUP = "karpenter.k8s.aws"

CAPACITY_TYPE = "karpenter.sh/capacity-type"
SPOT = "spot"
ON_DEMAND = "on-demand"
RESERVED = "reserved"

PROVISIONER_NAME = "karpenter.sh/provisioner-name"
NODE_POOL = "karpenter.sh/nodepool"
NODE_CLAIM = "karpenter.sh/nodeclaim"
REGISTERED = "karpenter.sh/registered"
INITIALIZED = "karpenter.sh/initialized"

MIN_VALUES_RELAXED = "karpenter.sh/nodeclaim-min-values-relaxed"
PRICE_OVERLAY_APPLIED = "karpenter.sh/price-overlay-applied"
CAPACITY_OVERLAY_APPLIED = "karpenter.sh/capacity-overlay-applied"
EMPTINESS_TIMESTAMP = "karpenter.sh/emptiness-timestamp"
DO_NOT_EVICT = "karpenter.sh/do-not-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
DO_NOT_CONSOLIDATE = "karpenter.sh/do-not-consolidate"
VOLUNTARY_DISRUPTION = "karpenter.sh/voluntary-disruption"
TERMINATION_TIMESTAMP = "karpenter.sh/nodeclaim-termination-timestamp"
NODE_POOL_HASH = "karpenter.sh/nodepool-hash"
NODE_POOL_HASH_VERSION = "karpenter.sh/nodepool-hash-version"
NODE_CLASS_HASH = "karpenter.k8s.aws/ec2nodeclass-hash"
NODE_CLASS_HASH_VERSION = "karpenter.k8s.aws/ec2nodeclass-hash-version"
#: On claims whose instance bears the tags that only its node can tell (Karpenter v1).
INSTANCE_TAGGED = "karpenter.k8s.aws/tagged"
CLUSTER_NAME_TAGGED = "compatibility.karpenter.k8s.aws/cluster-name-tagged"
#: On claims: the instance profile that their instance was launched with.
INSTANCE_PROFILE = "karpenter.k8s.aws/instance-profile-name"
DO_NOT_SYNC_TAINTS = "karpenter.sh/do-not-sync-taints"
POD_DISRUPTION_COST = "karpenter.sh/disruption-cost"
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
PLANNED_BECAUSE = "nodeless.dev/planned-because"
#: The pods that a node was planned for, as short digests of their uids (`solve.pods.expected`).
PLANNED_PODS = "nodeless.dev/planned-pods"
#: On pods that run together or not at all: how many they are.
GANG_SIZE = "nodeless.dev/gang-size"
#: On a NodeClaim: its node is launched with EFA interfaces, for pods that claim them as devices.
EFA_DEVICES = "nodeless.dev/efa-devices"
#: On a NodeOverlay: the devices that nodes of its types will publish (`api.devices_annotation`).
DEVICES = "nodeless.dev/devices"
#: On the same: the label of nodes of which all of them have one value.
GANG_TOPOLOGY = "nodeless.dev/gang-topology"
#: A size that says: as many as what owns them has.
OF_OWNER = "owner"
#: On claims: the gangs for which they were launched, with commas between, until these are whole.
LAUNCHED_FOR_GANG = "nodeless.dev/launched-for-gang"
#: On claims: the provisioning requests for which they were launched, with commas between, until these have
#: their capacity or are over.
LAUNCHED_FOR_REQUEST = "nodeless.dev/launched-for-request"
#: Label of Jobs and JobSets whose pods are a gang.
GANG = "nodeless.dev/gang"
#: On the pods of a LeaderWorkerSet, by its controller: how many one group of it has.
LEADER_WORKER_SIZE = "leaderworkerset.sigs.k8s.io/size"
#: Under this name the API server keeps which fields of an object we wrote.
FIELD_MANAGER = "nodeless"
REPLACES = "nodeless.dev/replaces"
REPLACEMENTS = "nodeless.dev/replacements"
REPLACED_BY = "nodeless.dev/replaced-by"
DISRUPTION_REASON_ANNOTATION = "nodeless.dev/disruption-reason"
DO_NOT_REPAIR = "karpenter.sh/do-not-repair"
OWNER = "nodeless.dev/owner"
PAUSE = "nodeless.dev/pause-disruption"
NOT_BEFORE = "nodeless.dev/disruption-not-before"
DRAIN_GRACE = "nodeless.dev/drain-grace"
REBOOTED_FROM = "karpenter.sh/reboot-pre-boot-id"
REBOOTS = "nodeless.dev/reboots"
SURGE = "nodeless.dev/surge"
#: On pods: how long they need to save their work before an eviction, as `10m`.
CHECKPOINT_GRACE = "nodeless.dev/checkpoint-grace"
#: On pods: how much work an interruption of theirs loses on average, as `10h`.
LOST_WORK = "nodeless.dev/lost-work"
#: On claims: when their instance ends whatever we do (spot interruption, end of a capacity block).
INSTANCE_ENDS = "nodeless.dev/instance-ends"
SURGED_FOR = "nodeless.dev/surged-for"
LAUNCH_GROUP = "nodeless.dev/launch-group"
LAUNCH_GROUP_SIZE = "nodeless.dev/launch-group-size"
COMPATIBILITY_PROVIDER = "compatibility.karpenter.sh/provider"
EXCLUDE_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"

UNREGISTERED_TAINT = "karpenter.sh/unregistered"
DISRUPTED_TAINT = "karpenter.sh/disrupted"
REBOOTING_TAINT = "karpenter.sh/rebooting"
TERMINATION_FINALIZER = "karpenter.sh/termination"
NODE_CLASS_FINALIZER = "karpenter.k8s.aws/termination"
TEARDOWN_FINALIZER = "nodeless.dev/teardown"
#: Of the teardown guard and of the holds of stacks: `guard`, `hold`.
TEARDOWN_LABEL = "nodeless.dev/teardown"
#: On the guard: how long a drain may take while the stack is destroyed, as `600s`.
TEARDOWN_DRAIN = "nodeless.dev/teardown-drain"

CLUSTER_TAG_PREFIX = "kubernetes.io/cluster/"
#: How EKS marks nodes that it makes itself: Fargate's, each for one pod, and those of its Auto Mode.
COMPUTE_TYPE = "eks.amazonaws.com/compute-type"
FARGATE, AUTO_MODE = "fargate", "auto"
#: Of nodes of managed node groups, instead of Karpenter's: ON_DEMAND, SPOT or CAPACITY_BLOCK.
EKS_CAPACITY_TYPE = "eks.amazonaws.com/capacityType"
CLUSTER_NAME_TAG = "eks:eks-cluster-name"
MANAGED_TEMPLATE_TAG = "karpenter.k8s.aws/cluster"

INSTANCE_CATEGORY = "karpenter.k8s.aws/instance-category"
INSTANCE_GENERATION = "karpenter.k8s.aws/instance-generation"
INSTANCE_FAMILY = "karpenter.k8s.aws/instance-family"
INSTANCE_SIZE = "karpenter.k8s.aws/instance-size"
INSTANCE_CPU = "karpenter.k8s.aws/instance-cpu"
INSTANCE_MEMORY = "karpenter.k8s.aws/instance-memory"
INSTANCE_NETWORK_BANDWIDTH = "karpenter.k8s.aws/instance-network-bandwidth"
INSTANCE_PODS = "karpenter.k8s.aws/instance-pods"
INSTANCE_HYPERVISOR = "karpenter.k8s.aws/instance-hypervisor"
INSTANCE_ENCRYPTION_IN_TRANSIT = "karpenter.k8s.aws/instance-encryption-in-transit-supported"
INSTANCE_LOCAL_NVME = "karpenter.k8s.aws/instance-local-nvme"
INSTANCE_GPU_NAME = "karpenter.k8s.aws/instance-gpu-name"
INSTANCE_GPU_MANUFACTURER = "karpenter.k8s.aws/instance-gpu-manufacturer"
INSTANCE_GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count"
INSTANCE_GPU_MEMORY = "karpenter.k8s.aws/instance-gpu-memory"
INSTANCE_ACCELERATOR_NAME = "karpenter.k8s.aws/instance-accelerator-name"
INSTANCE_ACCELERATOR_MANUFACTURER = "karpenter.k8s.aws/instance-accelerator-manufacturer"
INSTANCE_ACCELERATOR_COUNT = "karpenter.k8s.aws/instance-accelerator-count"
INSTANCE_ACCELERATOR_MEMORY = "karpenter.k8s.aws/instance-accelerator-memory"
INSTANCE_CPU_MANUFACTURER = "karpenter.k8s.aws/instance-cpu-manufacturer"
INSTANCE_CPU_CLOCK = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz"
INSTANCE_EBS_BANDWIDTH = "karpenter.k8s.aws/instance-ebs-bandwidth"
INSTANCE_FLEX = "karpenter.k8s.aws/instance-capability-flex"
EC2_NODE_CLASS_NAME = "karpenter.k8s.aws/ec2nodeclass"
INSTANCE_AMI_ID = "karpenter.k8s.aws/instance-ami-id"
INSTANCE_TENANCY = "karpenter.k8s.aws/instance-tenancy"
CAPACITY_RESERVATION_ID = "karpenter.k8s.aws/capacity-reservation-id"
CAPACITY_RESERVATION_TYPE = "karpenter.k8s.aws/capacity-reservation-type"
CAPACITY_RESERVATION_INTERRUPTIBLE = "karpenter.k8s.aws/capacity-reservation-interruptible"
PLACEMENT_GROUP_ID = "karpenter.k8s.aws/placement-group-id"
PLACEMENT_GROUP_PARTITION = "karpenter.k8s.aws/placement-group-partition"
ZONE_ID = "topology.k8s.aws/zone-id"

#: Labels of a node that is bought from a reservation; others bear none of them.
RESERVATION_LABELS = (
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
)
TENANCIES = ("default", "dedicated")

#: Keys whose values the provider resolves: a pod or a pool may ask for them, and a
#: pool need not define them (scheduling treats an absent one as "any value").
WELL_KNOWN = frozenset(
    {
        PROVISIONER_NAME,
        NODE_POOL,
        CAPACITY_TYPE,
        ZONE,
        REGION,
        INSTANCE_TYPE,
        ARCH,
        OS,
        INSTANCE_CATEGORY,
        INSTANCE_GENERATION,
        INSTANCE_FAMILY,
        INSTANCE_SIZE,
        INSTANCE_CPU,
        INSTANCE_MEMORY,
        INSTANCE_NETWORK_BANDWIDTH,
        INSTANCE_PODS,
        INSTANCE_HYPERVISOR,
        INSTANCE_ENCRYPTION_IN_TRANSIT,
        INSTANCE_LOCAL_NVME,
        INSTANCE_GPU_NAME,
        INSTANCE_GPU_MANUFACTURER,
        INSTANCE_GPU_COUNT,
        INSTANCE_GPU_MEMORY,
        INSTANCE_ACCELERATOR_NAME,
        INSTANCE_ACCELERATOR_MANUFACTURER,
        INSTANCE_ACCELERATOR_COUNT,
        INSTANCE_ACCELERATOR_MEMORY,
        *RESERVATION_LABELS,
        INSTANCE_TENANCY,
        PLACEMENT_GROUP_ID,
        PLACEMENT_GROUP_PARTITION,
        INSTANCE_CPU_MANUFACTURER,
        INSTANCE_CPU_CLOCK,
        INSTANCE_EBS_BANDWIDTH,
        INSTANCE_FLEX,
        WINDOWS_BUILD,
        ZONE_ID,
    }
)

#: Older spellings that mean a well-known key.
ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "topology.ebs.csi.aws.com/zone": ZONE,
}


def canonical_key(key: str) -> str:
    """The key that an accepted alias stands for; any other key is returned as it is."""
    return ALIASES.get(key, key)
