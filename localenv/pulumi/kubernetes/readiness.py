"""What the real Kubernetes provider waits for before an object counts as made, by kind.

A rule says what is still missing, or None. Kinds without one are ready when the API server has taken them.

Source: pulumi/pulumi-kubernetes v4, `awaiters` in `provider/pkg/await/awaiters.go` and the files beside it.
ServiceAccounts are waited for before Kubernetes 1.24 alone. For the endpoints of an Ingress the provider
waits until ten seconds brought no change, or for a minute where none were seen; here for a minute of its age.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from localenv.kubernetes import KubernetesApi, Object
from localenv.pulumi.resources import ResourceFailed

#: Seconds after which endpoints of an Ingress that were not seen are not waited for any more.
_SETTLED_SECONDS = 60.0

Rule = Callable[[KubernetesApi, Object], str | None]


def _definition(api: KubernetesApi, obj: Object) -> str | None:
    conditions = _conditions(obj)
    refused = conditions.get("NamesAccepted", {})
    if refused.get("status") == "False":
        raise ResourceFailed(f"names of {obj['metadata']['name']} are refused: {refused.get('message')}")
    if conditions.get("Established", {}).get("status") == "True":
        return None
    return f"CustomResourceDefinition {obj['metadata']['name']} is not established"


def _deployment(api: KubernetesApi, obj: Object) -> str | None:
    status, wanted = obj.get("status") or {}, obj["spec"].get("replicas", 1)
    counts = [status.get(key, 0) for key in ("updatedReplicas", "availableReplicas", "replicas")]
    if _has_observed(obj) and all(count == wanted for count in counts):
        return None
    line = f"{_name_of(obj)}: {status.get('availableReplicas', 0)} of {wanted} replicas available"
    reasons = [
        f"{condition['type']}: {condition.get('message', '')}"
        for condition in _conditions(obj).values()
        if condition["status"] == ("True" if condition["type"] == "ReplicaFailure" else "False")
    ]
    return "; ".join([line, *reasons, *_pod_reasons(api, obj)])


def _pod_reasons(api: KubernetesApi, deployment: Object) -> list[str]:
    """Why the pods are not ready, each reason once."""
    labels = deployment["spec"]["selector"].get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    path = api.path("v1", "Pod", deployment["metadata"]["namespace"])
    reasons: dict[str, None] = {}
    for pod in api.list(path, label_selector=selector):
        status = pod.get("status") or {}
        for condition in status.get("conditions") or []:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                reasons[str(condition.get("message", "pod is not scheduled"))] = None
        for container in status.get("containerStatuses") or []:
            waiting = container.get("state", {}).get("waiting") or {}
            if waiting:
                reasons[
                    f"{container['name']}: {waiting.get('reason')} {waiting.get('message', '')}".strip()
                ] = None
    return list(reasons)


def _daemon_set(api: KubernetesApi, obj: Object) -> str | None:
    status = obj.get("status") or {}
    wanted = status.get("desiredNumberScheduled", 0)
    counts = [status.get(key, 0) for key in ("updatedNumberScheduled", "numberAvailable")]
    if _has_observed(obj) and all(count == wanted for count in counts):
        return None
    return f"{_name_of(obj)}: {status.get('numberAvailable', 0)} of {wanted} pods available"


def _stateful_set(api: KubernetesApi, obj: Object) -> str | None:
    status, wanted = obj.get("status") or {}, obj["spec"].get("replicas", 1)
    counts = [status.get(key, 0) for key in ("updatedReplicas", "readyReplicas")]
    if _has_observed(obj) and all(count == wanted for count in counts):
        return None
    return f"{_name_of(obj)}: {status.get('readyReplicas', 0)} of {wanted} replicas ready"


def _job(api: KubernetesApi, obj: Object) -> str | None:
    conditions = _conditions(obj)
    if conditions.get("Failed", {}).get("status") == "True":
        raise ResourceFailed(f"{_name_of(obj)} failed: {conditions['Failed'].get('message', '')}")
    if conditions.get("Complete", {}).get("status") == "True":
        return None
    return f"{_name_of(obj)} is not complete"


def _pod(api: KubernetesApi, obj: Object) -> str | None:
    if (obj.get("status") or {}).get("phase") == "Succeeded":
        return None
    ready = _conditions(obj).get("Ready", {})
    return (
        None if ready.get("status") == "True" else f"{_name_of(obj)} is not ready: {ready.get('message', '')}"
    )


def _service(api: KubernetesApi, obj: Object) -> str | None:
    """Pods behind it, and an address where somebody outside has to give one."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName" or not spec.get("selector"):
        return None
    if spec.get("clusterIP") != "None" and not _has_endpoints(api, obj):
        return f"{_name_of(obj)} has no ready endpoints"
    given = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    if spec.get("type") == "LoadBalancer" and not given:
        return f"{_name_of(obj)} has no address"
    return None


def _has_endpoints(api: KubernetesApi, service: Object) -> bool:
    metadata = service["metadata"]
    path = api.path("discovery.k8s.io/v1", "EndpointSlice", metadata["namespace"])
    slices = api.list(path, label_selector=f"kubernetes.io/service-name={metadata['name']}")
    return any(
        (endpoint.get("conditions") or {}).get("ready") is not False
        for each in slices
        for endpoint in each.get("endpoints") or []
    )


def _volume(api: KubernetesApi, obj: Object) -> str | None:
    phase = (obj.get("status") or {}).get("phase", "Pending")
    if phase in ("Available", "Bound"):
        return None
    return f"PersistentVolume {obj['metadata']['name']} is {phase}"


def _volume_claim(api: KubernetesApi, obj: Object) -> str | None:
    """Bound; where its class waits for a pod, it is Pending that is waited for."""
    phase = (obj.get("status") or {}).get("phase", "")
    name = obj["spec"].get("storageClassName")
    found = api.find(f"/apis/storage.k8s.io/v1/storageclasses/{name}") if name else None
    waits = (found or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
    if phase == ("Pending" if waits else "Bound"):
        return None
    return f"{_name_of(obj)} is {phase or 'not looked at yet'}"


def _replication_controller(api: KubernetesApi, obj: Object) -> str | None:
    """Kubernetes leaves the count out where it is 0, so that none is ever seen for no replicas."""
    wanted = obj["spec"].get("replicas")
    available = (obj.get("status") or {}).get("availableReplicas")
    if available is not None and available == wanted:
        return None
    return f"{_name_of(obj)}: {available or 0} of {wanted} replicas available"


def _quota(api: KubernetesApi, obj: Object) -> str | None:
    if obj["spec"].get("hard") and obj["spec"]["hard"] == (obj.get("status") or {}).get("hard"):
        return None
    return f"{_name_of(obj)} is not in force"


def _secret(api: KubernetesApi, obj: Object) -> str | None:
    """Others than tokens of service accounts bring their data along."""
    if obj.get("type") != "kubernetes.io/service-account-token" or obj.get("data"):
        return None
    return f"{_name_of(obj)} has no token"


def _ingress(api: KubernetesApi, obj: Object) -> str | None:
    """Endpoints of every service that a path names, and an address."""
    namespace = obj["metadata"]["namespace"]
    born = datetime.fromisoformat(obj["metadata"]["creationTimestamp"])
    if (datetime.now(UTC) - born).total_seconds() < _SETTLED_SECONDS:
        services = {one["metadata"]["name"]: one for one in api.list(api.path("v1", "Service", namespace))}
        known = {one["metadata"]["name"] for one in api.list(api.path("v1", "Endpoints", namespace))}
        for name in _services_of(obj):
            external = services.get(name, {}).get("spec", {}).get("type") == "ExternalName"
            if name not in known and not external:
                return f"{_name_of(obj)}: service {name} has no endpoints"
    if ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress"):
        return None
    return f"{_name_of(obj)} has no address"


def _services_of(ingress: Object) -> list[str]:
    return [
        path["backend"]["service"]["name"]
        for rule in ingress["spec"].get("rules") or []
        for path in (rule.get("http") or {}).get("paths") or []
        if path["backend"].get("service")
    ]


def _has_observed(obj: Object) -> bool:
    return int((obj.get("status") or {}).get("observedGeneration", 0)) >= int(obj["metadata"]["generation"])


def _name_of(obj: Object) -> str:
    return f"{obj['kind']} {obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _conditions(obj: Object) -> Mapping[str, Mapping[str, Any]]:
    return {condition["type"]: condition for condition in (obj.get("status") or {}).get("conditions") or []}


READY: Final[Mapping[str, Rule]] = {
    "CustomResourceDefinition": _definition,
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "Ingress": _ingress,
    "Job": _job,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _volume_claim,
    "Pod": _pod,
    "ReplicationController": _replication_controller,
    "ResourceQuota": _quota,
    "Secret": _secret,
    "Service": _service,
    "StatefulSet": _stateful_set,
}

#: Seconds that the provider waits for these kinds, whatever timeout a resource is given.
FIXED_SECONDS: Final[Mapping[str, float]] = {
    "PersistentVolume": 300.0,
    "PersistentVolumeClaim": 300.0,
    "ReplicationController": 600.0,
    "ResourceQuota": 60.0,
    "Secret": 5.0,
}
