"""The fields of Kubernetes objects that kubelets read, decoded straight from the watch's bytes.

Executed pods read their whole document; these structs keep thousands of simulated ones small and cheap.
"""

import re
from datetime import datetime

import msgspec

from localenv.kubelets.quantities import Resources, maximum, parse_resources, total
from localenv.kubernetes.reflector import Metadata

#: The image whose one program waits for ever.
_PAUSE = re.compile(r"(^|/)pause(:|@|$)")


class Requests(msgspec.Struct, gc=False):
    """A container's resources."""

    requests: dict[str, str] = {}


class Exec(msgspec.Struct, gc=False):
    """A command of a hook."""

    command: list[str] = []


class Sleep(msgspec.Struct, gc=False):
    """A hook that waits."""

    seconds: int = 0


class Handler(msgspec.Struct, gc=False):
    """What is done at a moment of a container's life."""

    exec: Exec | None = None
    sleep: Sleep | None = None


class Lifecycle(msgspec.Struct, gc=False):
    """A container's hooks."""

    preStop: Handler | None = None  # noqa: N815 - the API's name


class Probe(msgspec.Struct, gc=False):
    """A check of a container, as far as it asks the network."""

    httpGet: dict[str, object] | None = None  # noqa: N815 - the API's name
    tcpSocket: dict[str, object] | None = None  # noqa: N815 - the API's name
    grpc: dict[str, object] | None = None


class Container(msgspec.Struct, gc=False):
    """A container of a pod."""

    name: str
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    lifecycle: Lifecycle | None = None
    readinessProbe: Probe | None = None  # noqa: N815 - the API's name
    resources: Requests = msgspec.field(default_factory=Requests)
    restartPolicy: str | None = None  # noqa: N815 - the API's name

    @property
    def gets_ready(self) -> bool:
        """Whether its readiness probe succeeds: `pause` listens nowhere."""
        asked = self.readinessProbe
        if asked is None or _PAUSE.search(self.image) is None:
            return True
        return all(each is None for each in (asked.httpGet, asked.tcpSocket, asked.grpc))


class PodSpec(msgspec.Struct, gc=False):
    """A pod's specification."""

    containers: list[Container] = []
    initContainers: list[Container] = []  # noqa: N815 - the API's name
    nodeName: str = ""  # noqa: N815 - the API's name
    schedulerName: str = ""  # noqa: N815 - the API's name
    hostNetwork: bool = False  # noqa: N815 - the API's name
    overhead: dict[str, str] = {}
    resourceClaims: list[object] = []  # noqa: N815 - the API's name
    restartPolicy: str = "Always"  # noqa: N815 - the API's name


class Condition(msgspec.Struct, gc=False):
    """A condition of a pod or a node."""

    type: str
    status: str = ""
    reason: str | None = None


class ContainerStatus(msgspec.Struct, gc=False):
    """How a container is."""

    name: str
    ready: bool = False
    restartCount: int = 0  # noqa: N815 - the API's name


#: Of pods that hold no resources any more.
ENDED_PHASES = frozenset({"Succeeded", "Failed"})


class ServedRequest(msgspec.Struct, gc=False):
    """A container's request for an extended resource that devices serve."""

    containerName: str = ""  # noqa: N815 - the API's name
    resourceName: str = ""  # noqa: N815 - the API's name


class ExtendedResourceClaim(msgspec.Struct, gc=False):
    """The claim that kube-scheduler has made for a pod's extended resources."""

    resourceClaimName: str = ""  # noqa: N815 - the API's name
    requestMappings: list[ServedRequest] = []  # noqa: N815 - the API's name


class PodStatus(msgspec.Struct, gc=False):
    """A pod's status."""

    extendedResourceClaimStatus: ExtendedResourceClaim | None = None  # noqa: N815 - the API's name
    phase: str = "Pending"
    podIP: str = ""  # noqa: N815 - the API's name
    startTime: datetime | None = None  # noqa: N815 - the API's name
    conditions: list[Condition] = []
    containerStatuses: list[ContainerStatus] = []  # noqa: N815 - the API's name


class Pod(msgspec.Struct, gc=False):
    """A pod."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def path(self) -> str:
        """Where the API server keeps it."""
        return f"/api/v1/namespaces/{self.metadata.namespace}/pods/{self.metadata.name}"

    @property
    def ended(self) -> bool:
        """Whether it holds no resources any more."""
        return self.status.phase in ENDED_PHASES

    @property
    def doubted(self) -> bool:
        """Whether somebody says that it is not ready though all its containers are."""
        ready = any(
            condition.type == "Ready" and condition.status == "True" for condition in self.status.conditions
        )
        containers = self.status.containerStatuses
        whole = bool(containers) and all(container.ready for container in containers)
        return self.status.phase == "Running" and whole and not ready

    @property
    def claims_devices(self) -> bool:
        """Whether devices have to be ready for it."""
        return bool(self.spec.resourceClaims) or self.status.extendedResourceClaimStatus is not None

    def requests_of(self, container: Container) -> Resources:
        """Return what a container requests, without what devices serve of it (KEP-5004)."""
        requests = parse_resources(container.resources.requests)
        claim = self.status.extendedResourceClaimStatus
        for served in claim.requestMappings if claim is not None else ():
            if served.containerName == container.name:
                requests.pop(served.resourceName, None)
        return requests

    @property
    def restarts(self) -> int:
        """The most restarts of any of its containers."""
        return max(
            (container_status.restartCount for container_status in self.status.containerStatuses), default=0
        )


class NodeSpec(msgspec.Struct, gc=False):
    """A node's specification."""

    providerID: str = ""  # noqa: N815 - the API's name


class NodeStatus(msgspec.Struct, gc=False):
    """A node's status."""

    allocatable: dict[str, str] = {}
    conditions: list[Condition] = []


class Node(msgspec.Struct, gc=False):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class ServiceAccount(msgspec.Struct, gc=False):
    """A service account."""

    metadata: Metadata


def pod_requests(pod: Pod) -> Resources:
    """Return what a pod holds of its node: its containers' sum, at least each init container, and one pod.

    Init containers that restart always (sidecars) count with the containers; the largest of the others counts
    beside the sidecars started before it, as in `k8s.io/component-helpers/resource`.
    """
    sidecars: Resources = {}
    starting: list[Resources] = []
    for container in pod.spec.initContainers:
        requests = pod.requests_of(container)
        if container.restartPolicy == "Always":
            sidecars = total([sidecars, requests])
            starting.append(sidecars)
        else:
            starting.append(total([sidecars, requests]))
    running = total([sidecars, *(pod.requests_of(container) for container in pod.spec.containers)])
    return total(
        [
            maximum([running, *starting]),
            parse_resources(pod.spec.overhead),
            {"pods": parse_resources({"n": 1})["n"]},
        ]
    )
