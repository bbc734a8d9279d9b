"""The pods that workloads make, as if the API server had accepted them and no node had room."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from nodeless.kube import documents
from nodeless.kube.decoding import decode_pod
from nodeless.model.pods import DaemonSet, Owner, Pod
from nodeless.model.quantity import QuantityError
from nodeless.model.resources import parse_resources

DEFAULT_NAMESPACE = "default"
#: More replicas than any cluster has nodes for: a slip of the finger.
MOST_REPLICAS = 1_000_000


class _Template(msgspec.Struct):
    spec: documents.PodSpec
    metadata: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a workload kind keeps its pod template and the number of its pods."""

    api_version: str
    template: tuple[str, ...]
    replicas: str | None


KINDS = {
    "Deployment": Kind("apps/v1", ("spec", "template"), "replicas"),
    "ReplicaSet": Kind("apps/v1", ("spec", "template"), "replicas"),
    "StatefulSet": Kind("apps/v1", ("spec", "template"), "replicas"),
    "ReplicationController": Kind("v1", ("spec", "template"), "replicas"),
    "Job": Kind("batch/v1", ("spec", "template"), "parallelism"),
    "CronJob": Kind("batch/v1", ("spec", "jobTemplate", "spec", "template"), "parallelism"),
    "DaemonSet": Kind("apps/v1", ("spec", "template"), None),
}


class Unusable(ValueError):
    """A workload that cannot be read; `path` is the member at fault."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def pods_of(manifest: Mapping[str, Any]) -> Iterator[Pod]:
    """The pods of a workload, pending and refused by the scheduler. Raises Unusable."""
    kind, metadata = manifest["kind"], _metadata(manifest)
    namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE)
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    if not name:
        raise Unusable("metadata", "metadata.name: is required")
    number = _number(manifest, KINDS[kind])
    made = _pod(manifest, KINDS[kind], namespace, name)
    owner = Owner(KINDS[kind].api_version, kind, name, uid=f"{kind}/{namespace}/{name}", controller=True)
    for ordinal in range(number):
        key = f"{name}-{ordinal}"
        yield replace(made, name=key, uid=f"{namespace}/{key}", owners=(owner,))


def daemon_set_of(manifest: Mapping[str, Any]) -> DaemonSet:
    """The DaemonSet of a manifest. Raises Unusable."""
    metadata = _metadata(manifest)
    namespace, name = str(metadata.get("namespace") or DEFAULT_NAMESPACE), str(metadata.get("name") or "")
    shape = _pod(manifest, KINDS["DaemonSet"], namespace, name).shape
    return DaemonSet(f"DaemonSet/{namespace}/{name}", namespace, name, shape)


def pod_of(manifest: Mapping[str, Any]) -> Pod:
    """A pod as the cluster would have it; without a node, the scheduler has refused it. Raises Unusable."""
    metadata = {"namespace": DEFAULT_NAMESPACE, **_metadata(manifest)}
    metadata.setdefault("name", metadata.get("generateName"))
    pod = _decoded({**manifest, "metadata": metadata}, "")
    pending = not pod.node_name and pod.phase == "Pending"
    return replace(pod, uid=pod.uid or pod.key, unschedulable=pod.unschedulable or pending)


def _pod(manifest: Mapping[str, Any], kind: Kind, namespace: str, name: str) -> Pod:
    template: Any = manifest
    for step in kind.template:
        template = template.get(step) if isinstance(template, Mapping) else None
    path = ".".join(kind.template)
    if not isinstance(template, Mapping):
        raise Unusable(path, f"{path}: is required")
    inner = template.get("metadata")
    own: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    spec = _without_templates(manifest, template.get("spec"))
    document = {
        "metadata": {**own, "name": name, "namespace": namespace},
        "spec": spec,
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    }
    return _decoded(document, path)


def _without_templates(manifest: Mapping[str, Any], spec: Any) -> Any:
    """A StatefulSet's own volumes are made where its pods come up: they bind nothing.

    One with the name of a volume of the pod template takes its place, as Kubernetes' controller has it.
    """
    templates = (manifest.get("spec") or {}).get("volumeClaimTemplates") or ()
    if not templates or not isinstance(spec, Mapping):
        return spec
    volumes = [
        {
            "name": _metadata(template).get("name", ""),
            "ephemeral": {"volumeClaimTemplate": {"spec": _claim(template)}},
        }
        for template in templates
        if isinstance(template, Mapping)
    ]
    names, given = {volume["name"] for volume in volumes}, spec.get("volumes") or []
    if not isinstance(given, list):
        return spec
    kept = [volume for volume in given if not (isinstance(volume, Mapping) and volume.get("name") in names)]
    return {**spec, "volumes": [*kept, *volumes]}


def _claim(template: Mapping[str, Any]) -> dict[str, Any]:
    spec = template.get("spec")
    name = spec.get("storageClassName") if isinstance(spec, Mapping) else None
    return {} if name is None else {"storageClassName": name}


def _decoded(document: Mapping[str, Any], path: str) -> Pod:
    _check_amounts(document.get("spec"), f"{path}.spec" if path else "spec")
    try:
        pod = decode_pod(msgspec.json.encode(document))
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        inner = where.rstrip("`").lstrip(".") if where else ""
        place = f"{path}.{inner}" if path and inner.startswith("spec") else inner or path
        raise Unusable(place, f"{place}: {message[0].lower()}{message[1:]}" if place else message) from None
    except (ValueError, IndexError) as error:
        place = f"{path}.spec" if path else "spec"
        raise Unusable(place, f"{place}: {error}") from None
    if pod.shape.invalid:
        place = f"{path}.spec" if path else "spec"
        raise Unusable(place, f"{place}: {pod.shape.invalid}")
    return pod


def _check_amounts(spec: Any, path: str) -> None:
    """The decoder keeps a pod with unusable amounts, for the cluster has it; a file can be mended.

    Raises:
        Unusable: An amount is none.
    """
    for member in ("containers", "initContainers"):
        containers = spec.get(member) if isinstance(spec, Mapping) else None
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            resources = container.get("resources") if isinstance(container, Mapping) else None
            for listed in ("requests", "limits"):
                amounts = resources.get(listed) if isinstance(resources, Mapping) else None
                for name, amount in amounts.items() if isinstance(amounts, Mapping) else ():
                    try:
                        parse_resources({name: amount})
                    except (QuantityError, TypeError) as error:
                        place = f"{path}.{member}[{index}].resources.{listed}.{name}"
                        raise Unusable(place, f"{place}: {error}") from None


def _number(manifest: Mapping[str, Any], kind: Kind) -> int:
    holder: Any = manifest
    for step in kind.template[:-1]:
        holder = holder.get(step) if isinstance(holder, Mapping) else None
    path = ".".join((*kind.template[:-1], kind.replicas or ""))
    if not isinstance(holder, Mapping):
        raise Unusable(path, f"{'.'.join(kind.template[:-1])}: is required")
    if (manifest.get("spec") or {}).get("suspend") is True:
        return 0
    number = 1 if holder.get(kind.replicas or "") is None else holder[kind.replicas or ""]
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MOST_REPLICAS:
        raise Unusable(path, f"{path}: {number!r} is no number of pods; hint: 0 to {MOST_REPLICAS}")
    completions = holder.get("completions")
    return min(number, completions) if isinstance(completions, int) else number


def _metadata(manifest: Mapping[str, Any]) -> dict[str, Any]:
    metadata = manifest.get("metadata")
    return dict(metadata) if isinstance(metadata, Mapping) else {}
