"""Which workload a pod belongs to, as people call it."""

from collections.abc import Iterable
from dataclasses import dataclass

from nodeless.model.pods import Pod

_HASH = "pod-template-hash"
#: Kinds by the names that kubectl takes for them, besides their own.
_NAMES = {
    "AWSNodeTemplate": (),
    "CronJob": ("cj",),
    "DaemonSet": ("ds",),
    "Deployment": ("deploy",),
    "EC2NodeClass": ("ec2nc", "ec2ncs", "ec2nodeclasses"),
    "Job": (),
    "Node": ("no",),
    "NodeClaim": (),
    "NodeOverlay": ("overlay", "overlays"),
    "NodePool": (),
    "Pod": ("po",),
    "Provisioner": (),
    "ReplicaSet": ("rs",),
    "ReplicationController": ("rc",),
    "StatefulSet": ("sts",),
}
_KINDS = {name: kind for kind, short in _NAMES.items() for name in (kind.lower(), f"{kind.lower()}s", *short)}


@dataclass(frozen=True, slots=True, order=True)
class Workload:
    """What made a pod: a controller, or the pod itself when it stands alone."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.kind})"


def kind_called(name: str) -> str:
    """The kind that a name means as kubectl takes it: `deploy`, `nodepools`; itself if none is known."""
    return _KINDS.get(name.lower(), name)


def with_kind_called(name: str) -> str:
    """`NodePool/general` for `nodepool/general`; what has no kind as it is."""
    kind, slash, plain = name.rpartition("/")
    return f"{kind_called(kind)}{slash}{plain}"


def workloads_called(pods: Iterable[Pod], text: str, namespace: str = "") -> dict[Workload, list[Pod]]:
    """The workloads that `NAME`, `KIND/NAME` or `NAMESPACE/KIND/NAME` means, with their pods.

    Args:
        pods: All of them.
        text: What they are called.
        namespace: Of a text that names none; empty: any.
    """
    parts = text.split("/")
    kind = kind_called(parts[-2]) if len(parts) > 1 else ""
    namespace = parts[-3] if len(parts) > 2 else namespace
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
