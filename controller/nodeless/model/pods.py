"""Pods, as far as capacity and lifecycle depend on them.

Pods of one workload share everything that matters for placement: that part is a
`PodShape`, hashable, one instance per distinct shape, so that solvers work on
classes of pods instead of single pods.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nodeless.model.lost_work import LostWork
from nodeless.model.requirements import Requirement
from nodeless.model.taints import Toleration


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A `metav1.LabelSelector`; requirements as (key, operator, values)."""

    match_labels: tuple[tuple[str, str], ...] = ()
    match_expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    def label_keys(self) -> Iterator[str]:
        """The label keys that it looks at."""
        yield from (key for key, _ in self.match_labels)
        yield from (key for key, _, _ in self.match_expressions)


@dataclass(frozen=True, slots=True)
class TopologySpreadConstraint:
    topology_key: str
    max_skew: int
    when_unsatisfiable: str
    selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """One (anti-)affinity term; `weight` None means required."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    weight: int | None = None


@dataclass(frozen=True, slots=True)
class HostPort:
    ip: str
    port: int
    protocol: str


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """The expressions of one node affinity term (all must hold), and whether it looks at fields as well."""

    expressions: tuple[Requirement, ...]
    match_fields: bool = False
    fields: tuple[Requirement, ...] = ()
    """What it asks of the node's name (`labels.NODE_NAME`), the one field that there is."""


@dataclass(frozen=True, slots=True, order=True)
class PodResourceClaim:
    """A claim on devices of a pod: a ResourceClaim, or the template of one that is made for it."""

    name: str
    claim: str = ""
    template: str = ""

    def __str__(self) -> str:
        if self.claim:
            return f"{self.name} (ResourceClaim {self.claim})"
        return f"{self.name} (ResourceClaimTemplate {self.template})" if self.template else self.name


@dataclass(frozen=True, slots=True)
class PodShape:
    """Everything about a pod that decides where it can run; equal shapes are interchangeable.

    `requests` holds (resource, amount) sorted by name, with one unit of `pods`, computed by Kubernetes'
    rules (init containers, sidecars, overhead, pod-level resources).
    """

    requests: tuple[tuple[str, int], ...]
    node_selector: tuple[tuple[str, str], ...] = ()
    required_terms: tuple[NodeSelectorTerm, ...] = ()
    preferred_terms: tuple[tuple[int, NodeSelectorTerm], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    spread: tuple[TopologySpreadConstraint, ...] = ()
    affinity: tuple[PodAffinityTerm, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    claims: tuple[str, ...] = ()
    """Names of the persistent volume claims that it mounts, in its namespace."""
    ephemeral_volumes: tuple[tuple[str, str | None], ...] = ()
    """(volume, storage class) of generic ephemeral volumes, each with a claim named `<pod>-<volume>`."""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    """Its claims on devices (dynamic resource allocation); looked up, they are requests and terms."""
    shared_volumes: tuple[tuple[str, str], ...] = ()
    """(claim, resource) of claims that others mount too, not in `requests`; known once they are looked up."""
    volume_terms: tuple[NodeSelectorTerm, ...] = ()
    """Alternatives: where all its volumes can be reached; known once its claims are looked up."""
    device_terms: tuple[NodeSelectorTerm, ...] = ()
    """Alternatives: where its devices are; known once its claims on them are looked up."""
    lost_work: LostWork | None = None
    """What an interruption loses, where its annotation says so; known once a pass looks at it."""
    invalid: str = ""
    """Why what it asks for cannot be read; then nothing else is known of it."""
    placeholder: bool = False
    """It stands for a pod that may come (capacity buffers): it gets its place after all others."""


@dataclass(frozen=True, slots=True)
class Owner:
    api_version: str
    kind: str
    name: str
    uid: str = ""
    controller: bool = False


_TERMINAL = ("Succeeded", "Failed")
#: Condition of a pod that asked for time to save its work (`nodeless.dev/checkpoint-grace`), once it began.
CHECKPOINT_REQUESTED = "nodeless.dev/CheckpointRequested"


@dataclass(frozen=True, slots=True)
class PendingResize:
    """A resize in place that a pod's node has not granted; amounts are of the whole pod, as in its shape."""

    reason: str
    """`Deferred`: there is no room now; `Infeasible`: the node can never hold it."""
    wanted: tuple[tuple[str, int], ...]
    granted: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod. `key` (`namespace/name`) identifies it in a snapshot, `uid` through time."""

    uid: str
    namespace: str
    name: str
    shape: PodShape
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Only the annotations that we act on."""
    node_name: str = ""
    nominated_node_name: str = ""
    """Where others than we expect it: kube-scheduler after a preemption, or while it binds."""
    expected_node_name: str = ""
    """Where we told kube-scheduler that it is expected (`status.nominatedNodeName`, written by us)."""
    phase: str = "Pending"
    unschedulable: bool = False
    """The scheduler said so: condition PodScheduled has the reason Unschedulable."""
    ready: bool = False
    ready_at: float | None = None
    """When it became ready, or ceased to be; None: not known."""
    owners: tuple[Owner, ...] = ()
    priority: int = 0
    priority_class: str = ""
    scheduler_name: str = "default-scheduler"
    created_at: float = 0.0
    started_at: float | None = None
    """When its kubelet accepted it (`status.startTime`); None: not yet."""
    deletion_timestamp: float | None = None
    """End of its grace period: Kubernetes' `metadata.deletionTimestamp`."""
    grace_period_seconds: int = 30
    generated_claims: tuple[tuple[str, str], ...] = ()
    """(claim as the pod calls it, name of the ResourceClaim that was made for it)."""
    extended_parts: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Extended resources that several of its containers request, each in the parts for which devices would be
    allocated apart; sorted."""
    checkpoint_requested_at: float | None = None
    """When we told it to save its work, as its condition says; read only where it asked for that."""
    resize: PendingResize | None = None
    """The resize of it that waits for room on its node."""
    container_requests: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    """What each container and sidecar requests, by name; read only where VerticalPodAutoscalers count."""
    least_requests: tuple[tuple[str, int], ...] = ()
    """What it requests however little its containers and sidecars do: by its init containers, as a whole, and
    as overhead; sorted by resource. Shown, never planned with."""
    mirror: bool = False
    limits: tuple[tuple[str, int], ...] = ()
    """Sum of what its containers are limited to, sorted by resource; shown, never planned with."""
    program: str = ""
    """Which other autoscaler runs in it (`neighbors`), by its image; empty for any other pod."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def requests(self) -> dict[str, int]:
        return dict(self.shape.requests)

    @property
    def terminal(self) -> bool:
        return self.phase in _TERMINAL

    @property
    def owned_by_daemon_set(self) -> bool:
        return any(
            owner.kind == "DaemonSet" and owner.api_version.startswith("apps/") for owner in self.owners
        )

    @property
    def owned_by_node(self) -> bool:
        return self.mirror or any(owner.kind == "Node" and owner.api_version == "v1" for owner in self.owners)

    @property
    def provisionable(self) -> bool:
        """Whether new capacity could help: pending, refused by the scheduler, no daemon and no static pod."""
        return (
            not self.node_name
            and not self.nominated_node_name
            and self.unschedulable
            and self.deletion_timestamp is None
            and self.phase not in _TERMINAL
            and not (self.owners and self.owned_by_daemon_set)
            and not ((self.owners or self.mirror) and self.owned_by_node)
        )

    @property
    def reschedulable(self) -> bool:
        """Whether it, or what takes its place, needs a place elsewhere when its node ends.

        A member of a StatefulSet that terminates does: its successor comes only once it is gone.
        """
        return self.occupies and (self.deletion_timestamp is None or self._of_stateful_set)

    @property
    def _of_stateful_set(self) -> bool:
        return any(
            owner.kind == "StatefulSet" and owner.api_version.startswith("apps/") for owner in self.owners
        )

    @property
    def bulk(self) -> float:
        """How large it is, to compare pods by: its cores, and a core for each 4 GiB, as machines have."""
        asked = dict(self.shape.requests)
        return asked.get("cpu", 0) / 1000 + asked.get("memory", 0) / (4 * 2**30)

    @property
    def occupies(self) -> bool:
        """Whether it keeps a node from being empty: neither finished, nor a daemon's, nor static."""
        return not (self.terminal or self.owned_by_daemon_set or self.owned_by_node)


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet and the shape of the pod that it puts on every node that it selects."""

    uid: str
    namespace: str
    name: str
    shape: PodShape
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Labels of its pods."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
