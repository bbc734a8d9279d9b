"""Events about pods, as kubelets and schedulers write them."""

from typing import Any

from localenv.kubelets.clock import micro_timestamp
from localenv.kubelets.objects import Pod
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring, persist


async def publish_warning(
    api: AsyncKubernetesApi, pod: Pod, reason: str, message: str, *, component: str, action: str
) -> None:
    """Write one warning about a pod; a namespace that is gone is no fault."""
    event: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{pod.metadata.name}.", "namespace": pod.metadata.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.metadata.namespace,
            "name": pod.metadata.name,
            "uid": pod.metadata.uid,
        },
        "type": "Warning",
        "reason": reason,
        "message": message,
        "reportingComponent": component,
        "reportingInstance": component,
        "action": action,
        "eventTime": micro_timestamp(),
    }
    path = f"/api/v1/namespaces/{pod.metadata.namespace}/events"
    await persist(lambda: ignoring(api.create(event, path=path), 403, 404))
