"""The parts of pods, nodes and DaemonSets that we read, as msgspec structs.

Everything else in a document is skipped without being built, which is what makes the
hot path cheap. Field names are the API's, hence their case.
"""

import msgspec

Quantities = dict[str, str | int | float]


class OwnerReference(msgspec.Struct):
    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(msgspec.Struct):
    name: str
    uid: str = ""
    namespace: str = ""
    resourceVersion: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    deletionGracePeriodSeconds: int | None = None
    finalizers: list[str] = []
    ownerReferences: list[OwnerReference] = []


class DeviceReference(msgspec.Struct):
    name: str = ""


class ResourceRequirements(msgspec.Struct):
    requests: Quantities = {}
    limits: Quantities = {}
    claims: list[DeviceReference] = []


class ContainerPort(msgspec.Struct):
    hostPort: int = 0
    containerPort: int = 0
    hostIP: str = ""
    protocol: str = "TCP"


class Container(msgspec.Struct):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    ports: list[ContainerPort] = []
    restartPolicy: str | None = None


class Expression(msgspec.Struct):
    key: str
    operator: str
    values: list[str] = []


class Selector(msgspec.Struct):
    matchLabels: dict[str, str] = {}
    matchExpressions: list[Expression] = []


class NodeSelectorTerm(msgspec.Struct):
    matchExpressions: list[Expression] = []
    matchFields: list[Expression] = []


class NodeSelector(msgspec.Struct):
    nodeSelectorTerms: list[NodeSelectorTerm] = []


class PreferredTerm(msgspec.Struct):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(msgspec.Struct):
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector | None = None
    preferredDuringSchedulingIgnoredDuringExecution: list[PreferredTerm] = []


class PodAffinityTerm(msgspec.Struct):
    topologyKey: str
    labelSelector: Selector | None = None
    namespaces: list[str] = []
    namespaceSelector: Selector | None = None
    matchLabelKeys: list[str] = []
    mismatchLabelKeys: list[str] = []


class WeightedPodAffinityTerm(msgspec.Struct):
    weight: int
    podAffinityTerm: PodAffinityTerm


class PodAffinity(msgspec.Struct):
    requiredDuringSchedulingIgnoredDuringExecution: list[PodAffinityTerm] = []
    preferredDuringSchedulingIgnoredDuringExecution: list[WeightedPodAffinityTerm] = []


class Affinity(msgspec.Struct):
    nodeAffinity: NodeAffinity | None = None
    podAffinity: PodAffinity | None = None
    podAntiAffinity: PodAffinity | None = None


class Toleration(msgspec.Struct):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class SpreadConstraint(msgspec.Struct):
    topologyKey: str
    maxSkew: int = 1
    whenUnsatisfiable: str = "DoNotSchedule"
    labelSelector: Selector | None = None
    minDomains: int | None = None
    nodeAffinityPolicy: str = "Honor"
    nodeTaintsPolicy: str = "Ignore"
    matchLabelKeys: list[str] = []


class ClaimSource(msgspec.Struct):
    claimName: str = ""


class ClaimSpec(msgspec.Struct):
    storageClassName: str | None = None
    volumeName: str = ""
    accessModes: list[str] | None = None


class ClaimTemplate(msgspec.Struct):
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)


class EphemeralSource(msgspec.Struct):
    volumeClaimTemplate: ClaimTemplate | None = None


class Volume(msgspec.Struct):
    name: str = ""
    persistentVolumeClaim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None


class PodResourceClaim(msgspec.Struct):
    name: str = ""
    resourceClaimName: str | None = None
    resourceClaimTemplateName: str | None = None


class PodSpec(msgspec.Struct):
    containers: list[Container] = []
    initContainers: list[Container] = []
    nodeName: str = ""
    nodeSelector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topologySpreadConstraints: list[SpreadConstraint] = []
    volumes: list[Volume] = []
    resourceClaims: list[PodResourceClaim] = []
    hostNetwork: bool = False
    overhead: Quantities = {}
    resources: ResourceRequirements | None = None
    priority: int = 0
    priorityClassName: str = ""
    schedulerName: str = "default-scheduler"
    terminationGracePeriodSeconds: int = 30


class PodCondition(msgspec.Struct):
    type: str
    status: str = ""
    reason: str = ""
    lastTransitionTime: str | None = None


class ContainerStatus(msgspec.Struct):
    name: str = ""
    allocatedResources: Quantities | None = None
    resources: ResourceRequirements | None = None


class ResourceClaimStatus(msgspec.Struct):
    name: str = ""
    resourceClaimName: str | None = None


class ManagedFields(msgspec.Struct):
    manager: str = ""
    subresource: str = ""
    fieldsV1: dict[str, object] = {}


class PodMetadata(Metadata):
    managedFields: msgspec.Raw = msgspec.Raw(b"null")
    """Read only where it matters who wrote a field."""


class PodStatus(msgspec.Struct):
    allocatedResources: Quantities | None = None
    resources: ResourceRequirements | None = None
    containerStatuses: list[ContainerStatus] = []
    initContainerStatuses: list[ContainerStatus] = []
    phase: str = "Pending"
    conditions: list[PodCondition] = []
    nominatedNodeName: str = ""
    startTime: str | None = None
    resourceClaimStatuses: list[ResourceClaimStatus] = []


class Pod(msgspec.Struct):
    metadata: PodMetadata
    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class OutlineSpec(msgspec.Struct):
    nodeName: str = ""
    schedulerName: str = "default-scheduler"


class OutlineStatus(msgspec.Struct):
    phase: str = "Pending"
    conditions: list[PodCondition] = []
    startTime: str | None = None


class PodOutline(msgspec.Struct):
    metadata: PodMetadata
    spec: OutlineSpec = msgspec.field(default_factory=OutlineSpec)
    status: OutlineStatus = msgspec.field(default_factory=OutlineStatus)


class TemplateMetadata(msgspec.Struct):
    labels: dict[str, str] = {}


class PodTemplate(msgspec.Struct):
    spec: PodSpec
    metadata: TemplateMetadata = msgspec.field(default_factory=TemplateMetadata)


class CapacityBufferReference(msgspec.Struct):
    name: str = ""
    kind: str = ""
    apiGroup: str = ""


class CapacityBufferSpec(msgspec.Struct):
    provisioningStrategy: str | None = None
    podTemplateRef: CapacityBufferReference | None = None
    scalableRef: CapacityBufferReference | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: Quantities = {}


class CapacityBuffer(msgspec.Struct):
    metadata: Metadata
    spec: CapacityBufferSpec = msgspec.field(default_factory=CapacityBufferSpec)


class PodSetReference(msgspec.Struct):
    name: str = ""


class RequestPodSet(msgspec.Struct):
    podTemplateRef: PodSetReference = msgspec.field(default_factory=PodSetReference)
    count: int = 0


class ProvisioningRequestSpec(msgspec.Struct):
    provisioningClassName: str = ""
    podSets: list[RequestPodSet] = []
    parameters: dict[str, str] | None = None


class ProvisioningRequest(msgspec.Struct):
    metadata: Metadata
    spec: ProvisioningRequestSpec = msgspec.field(default_factory=ProvisioningRequestSpec)


class TargetRef(msgspec.Struct):
    kind: str = ""
    name: str = ""


class UpdatePolicy(msgspec.Struct):
    updateMode: str | None = None


class VerticalPodAutoscalerSpec(msgspec.Struct):
    targetRef: TargetRef = msgspec.field(default_factory=TargetRef)
    updatePolicy: UpdatePolicy | None = None


class ContainerRecommendation(msgspec.Struct):
    containerName: str = ""
    target: Quantities | None = None


class Recommendation(msgspec.Struct):
    containerRecommendations: list[ContainerRecommendation] | None = None


class VerticalPodAutoscalerStatus(msgspec.Struct):
    recommendation: Recommendation | None = None


class VerticalPodAutoscaler(msgspec.Struct):
    metadata: Metadata
    spec: VerticalPodAutoscalerSpec = msgspec.field(default_factory=VerticalPodAutoscalerSpec)
    status: VerticalPodAutoscalerStatus | None = None


class SourceMetadata(TemplateMetadata):
    annotations: dict[str, str] = {}


class SourceTemplate(msgspec.Struct):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    metadata: SourceMetadata = msgspec.field(default_factory=SourceMetadata)


class ScalableSpec(msgspec.Struct):
    replicas: int = 1
    template: SourceTemplate = msgspec.field(default_factory=SourceTemplate)


class PodTemplateObject(msgspec.Struct):
    metadata: Metadata
    template: SourceTemplate = msgspec.field(default_factory=SourceTemplate)


class Scalable(msgspec.Struct):
    metadata: Metadata
    spec: ScalableSpec = msgspec.field(default_factory=ScalableSpec)


class Namespace(msgspec.Struct):
    metadata: Metadata


class DaemonSetSpec(msgspec.Struct):
    template: PodTemplate


class DaemonSet(msgspec.Struct):
    metadata: Metadata
    spec: DaemonSetSpec


class Taint(msgspec.Struct):
    key: str
    effect: str
    value: str = ""


class NodeSpec(msgspec.Struct):
    providerID: str = ""
    taints: list[Taint] = []
    unschedulable: bool = False


class NodeCondition(msgspec.Struct):
    type: str
    status: str = ""
    reason: str = ""
    lastTransitionTime: str | None = None


class NodeInfo(msgspec.Struct):
    bootID: str = ""


class NodeStatus(msgspec.Struct):
    capacity: Quantities = {}
    allocatable: Quantities = {}
    conditions: list[NodeCondition] = []
    nodeInfo: NodeInfo = msgspec.field(default_factory=NodeInfo)


class Node(msgspec.Struct):
    metadata: Metadata
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class PodGroupSpec(msgspec.Struct):
    minMember: int = 0


class PodGroup(msgspec.Struct):
    """A PodGroup of coscheduling (`scheduling.x-k8s.io/v1alpha1`)."""

    metadata: Metadata
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)


class JobSpec(msgspec.Struct):
    parallelism: int | None = None
    completions: int | None = None


class Job(msgspec.Struct):
    """A Job, as far as it says how many pods it has at once."""

    metadata: Metadata
    spec: JobSpec = msgspec.field(default_factory=JobSpec)


class JobTemplate(msgspec.Struct):
    spec: JobSpec = msgspec.field(default_factory=JobSpec)


class ReplicatedJob(msgspec.Struct):
    replicas: int | None = None
    template: JobTemplate = msgspec.field(default_factory=JobTemplate)
    dependsOn: list[msgspec.Raw] = []


class StartupPolicy(msgspec.Struct):
    startupPolicyOrder: str = ""


class JobSetSpec(msgspec.Struct):
    replicatedJobs: list[ReplicatedJob] = []
    startupPolicy: StartupPolicy | None = None


class JobSet(msgspec.Struct):
    """A JobSet (`jobset.x-k8s.io/v1alpha2`), as far as it says how many pods it has at once."""

    metadata: Metadata
    spec: JobSetSpec = msgspec.field(default_factory=JobSetSpec)
