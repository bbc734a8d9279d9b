"""Which workload a pod belongs to, as people call it."""

from collections.abc import Iterable
from dataclasses import dataclass

from nodeless.model.pods import Pod

_HASH = "pod-template-hash"
#: Short names as kubectl has them.
SHORT_NAMES = {
    "deploy": "Deployment",
    "deployment": "Deployment",
    "deployments": "Deployment",
    "rs": "ReplicaSet",
    "replicaset": "ReplicaSet",
    "sts": "StatefulSet",
    "statefulset": "StatefulSet",
    "ds": "DaemonSet",
    "daemonset": "DaemonSet",
    "job": "Job",
    "jobs": "Job",
    "cj": "CronJob",
    "cronjob": "CronJob",
    "po": "Pod",
    "pod": "Pod",
    "pods": "Pod",
}


@dataclass(frozen=True, slots=True, order=True)
class Workload:
    """What made a pod: a controller, or the pod itself when it stands alone."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.kind})"


def workloads_called(pods: Iterable[Pod], text: str) -> dict[Workload, list[Pod]]:
    """The workloads that `NAME`, `KIND/NAME` or `NAMESPACE/KIND/NAME` means, with their pods."""
    parts = text.split("/")
    kind = SHORT_NAMES.get(parts[-2].lower(), parts[-2]) if len(parts) > 1 else ""
    namespace = parts[-3] if len(parts) > 2 else ""
    found: dict[Workload, list[Pod]] = {}
    for pod in pods:
        workload = workload_of(pod)
        if (
            workload.name == parts[-1]
            and kind in ("", workload.kind)
            and namespace in ("", workload.namespace)
        ):
            found.setdefault(workload, []).append(pod)
    return found


def workload_of(pod: Pod) -> Workload:
    """A Deployment's pods belong to it, though a ReplicaSet made them; pods without owner to themselves."""
    owner = next((owner for owner in pod.owners if owner.controller), None) or next(iter(pod.owners), None)
    if owner is None:
        return Workload(pod.namespace, "Pod", pod.name)
    suffix = pod.labels.get(_HASH)
    if owner.kind == "ReplicaSet" and suffix and owner.name.endswith(f"-{suffix}"):
        return Workload(pod.namespace, "Deployment", owner.name.removesuffix(f"-{suffix}"))
    return Workload(pod.namespace, owner.kind, owner.name)
