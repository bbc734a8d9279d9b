"""The kind `karpenter.sh/v1alpha5` Provisioner: which nodes may be made, for which pods, and when they go.

Only its form; defaults are in `defaulting`, rules in `provisioner_rules` and `kubelet_rules`.
"""

from typing import Annotated

from msgspec import Meta, field

from nodeless.api.metav1 import (
    Conditions,
    Definition,
    FreeForm,
    Int32,
    Int64,
    Quantities,
    RequirementDefinition,
    Strings,
    TaintDefinition,
    Time,
)


class KubeletConfiguration(Definition):
    """Settings of the kubelet on the pool's nodes."""

    cluster_dns: list[str] | None = field(default=None, name="clusterDNS")
    """Addresses of the cluster's DNS; all AMI families but AL2023 use the first one. Default: kube-dns."""
    container_runtime: str | None = None
    """Container runtime of the nodes; containerd when not given."""
    max_pods: Annotated[Int32, Meta(ge=0)] | None = None
    """Most pods that a node runs."""
    pods_per_core: Annotated[Int32, Meta(ge=0)] | None = None
    """Most pods per virtual CPU; 0 means no such limit."""
    system_reserved: Quantities | None = None
    """Resources kept for the operating system: cpu, memory, ephemeral-storage, pid."""
    kube_reserved: Quantities | None = None
    """Resources kept for Kubernetes' own processes; what is given here replaces the computed default."""
    eviction_hard: Strings | None = None
    """Signal to threshold (a quantity or a percentage) at which pods are evicted at once."""
    eviction_soft: Strings | None = None
    """Signal to threshold at which pods are evicted after a grace period."""
    eviction_soft_grace_period: Strings | None = None
    """Grace period of each signal of evictionSoft, as 1m30s."""
    eviction_max_pod_grace_period: Int32 | None = None
    """Most seconds that a pod gets to end when a soft threshold is met."""
    image_gc_high_threshold_percent: Annotated[Int32, Meta(ge=0, le=100)] | None = field(
        default=None, name="imageGCHighThresholdPercent"
    )
    """Disk usage above which unused images are deleted."""
    image_gc_low_threshold_percent: Annotated[Int32, Meta(ge=0, le=100)] | None = field(
        default=None, name="imageGCLowThresholdPercent"
    )
    """Disk usage down to which unused images are deleted."""
    cpu_cfs_quota: bool | None = field(default=None, name="cpuCFSQuota")
    """Whether CPU limits of containers are enforced."""


class ProviderRef(Definition):
    """The AWSNodeTemplate that says how the pool's nodes are made."""

    name: str
    """Name of the AWSNodeTemplate."""
    kind: str | None = None
    """Not used."""
    api_version: str | None = None
    """Not used."""


class Limits(Definition):
    """The most that all nodes of the pool may hold together."""

    resources: Quantities | None = None
    """Resource to amount; at or above it nothing more is launched."""


class Consolidation(Definition):
    """Whether nodes make room for cheaper ones."""

    enabled: bool | None = None
    """Whether nodes are removed or replaced when that lowers the price."""


class ProvisionerSpec(Definition):
    """Which nodes the pool may make, and how long they live."""

    annotations: Strings | None = None
    """Annotations of the nodes."""
    labels: Strings | None = None
    """Labels of the nodes; each is a requirement with that one value too."""
    taints: list[TaintDefinition] | None = None
    """Taints of the nodes: only pods that tolerate all of them are considered."""
    startup_taints: list[TaintDefinition] | None = None
    """Taints that something else takes off once a node is ready for work. They do not keep pods from being
    considered."""
    requirements: list[RequirementDefinition] | None = None
    """Constraints on the labels of the nodes. Defaults are added where nothing is said: linux, amd64,
    on-demand, and categories c, m and r from generation 3 on."""
    kubelet_configuration: KubeletConfiguration | None = None
    provider: FreeForm | None = None
    """How the nodes are made in AWS, inline. Members as in the spec of AWSNodeTemplate, without userData,
    amiSelector and detailedMonitoring. Prefer providerRef."""
    provider_ref: ProviderRef | None = None
    ttl_seconds_after_empty: Int64 | None = None
    """Seconds after which a node without workload pods is removed; absent: never. Not together with
    consolidation."""
    ttl_seconds_until_expired: Int64 | None = None
    """Seconds of life after which a node is replaced; absent: never."""
    limits: Limits | None = None
    weight: Annotated[Int32, Meta(ge=1, le=100)] | None = None
    """Pools of higher weight are tried first; absent counts as 0."""
    consolidation: Consolidation | None = None


class ProvisionerStatus(Definition):
    """What the pool's nodes hold now."""

    resources: Quantities | None = None
    """Sum of the capacity of the pool's nodes."""
    conditions: Conditions = None
    last_scale_time: Time | None = None
    """When a node was last added or removed."""


class Provisioner(Definition):
    """A pool: which nodes nodeless may create, for which pods, and when it removes them."""

    api_version: str | None = None
    kind: str | None = None
    metadata: FreeForm | None = None
    spec: ProvisionerSpec | None = None
    status: ProvisionerStatus | None = None
