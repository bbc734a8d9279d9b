"""The pods that workloads make, as if the API server had accepted them and no node had room."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from nodeless.cli.manifests.admission import Admission
from nodeless.cli.manifests.members import (
    DEFAULT_NAMESPACE,
    Unusable,
    checked_number,
    group_of,
    has_condition,
    list_at,
    managed_elsewhere,
    mapping_at,
    member_below,
    metadata_of,
    name_of,
    namespace_of,
    number_at,
    status_of,
)
from nodeless.cli.manifests.pod_rules import check_pod_spec, with_defaults_told
from nodeless.cli.manifests.pod_sets import (
    agent_of_nodes,
    is_agent_of_nodes,
    is_operated,
    is_shaped,
    operated_sets,
    shaped_sets,
)
from nodeless.cli.manifests.pod_templates import PodSet, ReplicasMode
from nodeless.kube.decoding import decode_pod
from nodeless.model.pods import DaemonSet, Owner, Pod

#: Groups of Kubernetes' own workloads; the empty one also stands for no group given.
_GROUPS = ("", "apps", "batch", "extensions")


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a workload kind keeps its pod template and the number of its pods."""

    api_version: str
    holder: str
    replicas: str


KINDS = {
    "Deployment": Kind("apps/v1", "spec", "replicas"),
    "ReplicaSet": Kind("apps/v1", "spec", "replicas"),
    "StatefulSet": Kind("apps/v1", "spec", "replicas"),
    "ReplicationController": Kind("v1", "spec", "replicas"),
    "Job": Kind("batch/v1", "spec", "parallelism"),
    "CronJob": Kind("batch/v1", "spec.jobTemplate.spec", "parallelism"),
}
_DAEMON_SET = "DaemonSet"
#: Conditions of a Job that starts no pod more.
_ENDING = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
_JOB_CONTROLLER = "kubernetes.io/job-controller"


def is_daemon_set(manifest: Mapping[str, Any]) -> bool:
    """Whether an object puts a pod on every node; other groups have kinds of that name, too."""
    if is_agent_of_nodes(manifest):
        return True
    return manifest.get("kind") == _DAEMON_SET and (group_of(manifest) in _GROUPS or is_shaped(manifest))


def is_workload(manifest: Mapping[str, Any]) -> bool:
    """Whether pods come of an object, other than one for each node."""
    if is_daemon_set(manifest) or manifest.get("kind") == "Pod":
        return False
    return _is_own(manifest) or is_operated(manifest) or is_shaped(manifest)


def is_scalable(manifest: Mapping[str, Any]) -> bool:
    """Whether a workload has its number of pods, or of groups of them, at `spec.replicas`."""
    if _is_own(manifest):
        return KINDS[manifest["kind"]].replicas == "replicas"
    return is_shaped(manifest) or manifest.get("kind") == "LeaderWorkerSet"


def pod_sets_of(manifest: Mapping[str, Any], mode: ReplicasMode = ReplicasMode.CURRENT) -> list[PodSet]:
    """The pods of a workload by template; `mode` is for those that its operator scales. Raises Unusable."""
    if is_operated(manifest):
        return operated_sets(manifest, mode)
    return _own_sets(manifest) if _is_own(manifest) else shaped_sets(manifest)


def pods_of(
    manifest: Mapping[str, Any],
    pod_sets: Iterable[PodSet],
    admission: Admission,
    claims: Collection[str] = frozenset(),
) -> Iterator[Pod]:
    """The pods of a workload's sets, pending and refused by the scheduler. Raises Unusable.

    `claims`: keys of the persistent volume claims that are there; one that is a pod's own is not made anew.
    """
    kind, namespace = str(manifest["kind"]), namespace_of(manifest)
    api_version = KINDS[kind].api_version if _is_own(manifest) else str(manifest.get("apiVersion") or "")
    for pod_set in pod_sets:
        made = _pod(pod_set, namespace, admission)
        version, owning, name = pod_set.owner or (api_version, kind, name_of(manifest))
        owner = Owner(version, owning, name, uid=f"{owning}/{namespace}/{name}", controller=True)
        for ordinal in range(pod_set.first, pod_set.first + pod_set.number):
            key = f"{pod_set.name}-{ordinal}"
            pod = replace(made, name=key, uid=f"{namespace}/{key}", owners=(owner,))
            yield _with_own_claims(pod, pod_set, claims) if claims and pod_set.volume_claims else pod


def _with_own_claims(pod: Pod, pod_set: PodSet, claims: Collection[str]) -> Pod:
    """The pod with the claims of its name that are there, in the place of volumes that would be made."""
    volumes = [metadata_of(template).get("name") for template in pod_set.volume_claims]
    named = {volume: f"{volume}-{pod.name}" for volume in volumes}
    own = {volume: claim for volume, claim in named.items() if f"{pod.namespace}/{claim}" in claims}
    if not own:
        return pod
    made = tuple(pair for pair in pod.shape.ephemeral_volumes if pair[0] not in own)
    shape = replace(pod.shape, claims=(*pod.shape.claims, *own.values()), ephemeral_volumes=made)
    return replace(pod, shape=shape)


def daemon_set_of(manifest: Mapping[str, Any], admission: Admission) -> DaemonSet:
    """The DaemonSet of a manifest. Raises Unusable."""
    namespace, name = namespace_of(manifest), str(metadata_of(manifest).get("name") or "")
    if is_agent_of_nodes(manifest):
        template = agent_of_nodes(manifest)
        name = template.name
    else:
        template = PodSet("spec.template", mapping_at(manifest, "spec.template"), 1, name)
    made = _pod(template, namespace, admission)
    return DaemonSet(f"DaemonSet/{namespace}/{name}", namespace, name, made.shape, made.labels)


def pod_of(manifest: Mapping[str, Any], admission: Admission) -> Pod:
    """A pod as the cluster would have it; without a node, the scheduler has refused it. Raises Unusable."""
    metadata = {"namespace": DEFAULT_NAMESPACE, **metadata_of(manifest)}
    metadata.setdefault("name", metadata.get("generateName"))
    spec = manifest.get("spec")
    # The API server has admitted a pod that it gave a uid, or that runs.
    if not metadata.get("uid") and not (isinstance(spec, Mapping) and spec.get("nodeName")):
        spec = admission.admit(str(metadata["namespace"]), spec)
    try:
        pod = _decoded({**manifest, "metadata": metadata, "spec": spec}, "")
    except Unusable as error:
        raise with_defaults_told(error, manifest.get("spec")) from None
    pending = not pod.node_name and pod.phase == "Pending" and not gates_of(spec)
    return replace(pod, uid=pod.uid or pod.key, unschedulable=pod.unschedulable or pending)


def gates_of(spec: Any) -> list[str]:
    """The scheduling gates of a pod, which the scheduler does not look at until they are gone."""
    gates = spec.get("schedulingGates") if isinstance(spec, Mapping) else None
    listed = gates if isinstance(gates, list) else []
    return [str(gate.get("name")) for gate in listed if isinstance(gate, Mapping)]


def _is_own(manifest: Mapping[str, Any]) -> bool:
    return manifest.get("kind") in KINDS and group_of(manifest) in _GROUPS


def _own_sets(manifest: Mapping[str, Any]) -> list[PodSet]:
    """The pods of one of Kubernetes' own workloads."""
    kind, name = KINDS[manifest["kind"]], name_of(manifest)
    holder, spec = mapping_at(manifest, kind.holder), mapping_at(manifest, "spec")
    number = holder.get(kind.replicas)
    number = 1 if number is None else checked_number(number, f"{kind.holder}.{kind.replicas}")
    if kind.replicas == "parallelism":
        number = min(number, _left(manifest, holder, f"{kind.holder}.completions", number))
    path = f"{kind.holder}.template"
    claims = tuple(list_at(spec, "volumeClaimTemplates", "spec"))
    # A CronJob may be suspended itself, or make Jobs that are.
    suspended = spec.get("suspend") is True or holder.get("suspend") is True
    remark = managed_elsewhere(holder, _JOB_CONTROLLER) if kind.replicas == "parallelism" else ""
    number = 0 if suspended or remark else number
    given = spec.get("ordinals") is not None and manifest["kind"] == "StatefulSet"
    first = number_at(member_below(spec, "spec", "ordinals"), "start", "spec.ordinals", 0) if given else 0
    return [PodSet(path, mapping_at(manifest, path), number, name, claims, first=first, remark=remark)]


def _left(manifest: Mapping[str, Any], holder: Mapping[str, Any], path: str, parallelism: int) -> int:
    """How many pods a Job may have at once until it is complete; one of a dump may have succeeded in part.

    One without completions starts no pod more once the first has succeeded. Raises Unusable.
    """
    completions = holder.get("completions")
    left = parallelism if completions is None else checked_number(completions, path)
    if manifest["kind"] != "Job":
        return left
    if has_condition(manifest, *_ENDING):
        return 0
    succeeded = status_of(manifest).get("succeeded")
    if isinstance(succeeded, bool) or not isinstance(succeeded, int) or succeeded <= 0:
        return left
    return 0 if completions is None else max(left - succeeded, 0)


def _pod(pod_set: PodSet, namespace: str, admission: Admission) -> Pod:
    own = metadata_of(pod_set.template)
    reason = "SchedulingGated" if gates_of(pod_set.template.get("spec")) else "Unschedulable"
    document = {
        "metadata": {**own, "name": pod_set.name, "namespace": namespace},
        "spec": admission.admit(namespace, _with_claims(pod_set)),
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason}]},
    }
    try:
        return _decoded(document, pod_set.path)
    except Unusable as error:
        error = with_defaults_told(error, pod_set.template.get("spec"))
        raise _at_its_place(error, pod_set.renamed) from None


def _at_its_place(error: Unusable, renamed: Iterable[tuple[str, str]]) -> Unusable:
    """The faults with the path that the object has where the template has another."""
    pairs = tuple(renamed)
    others = [_at_its_place(other, pairs) for other in error.others]
    for inner, outer in pairs:
        if error.path.startswith(inner):
            return Unusable(error.path.replace(inner, outer, 1), str(error).replace(inner, outer), others)
    return Unusable(error.path, str(error), others)


def _with_claims(pod_set: PodSet) -> Any:
    """A StatefulSet's own volumes are made where its pods come up, so they bind nothing before.

    One with the name of a volume of the pod template takes its place, as Kubernetes' controller has it.
    """
    spec = pod_set.template.get("spec")
    if not pod_set.volume_claims or not isinstance(spec, Mapping):
        return spec
    volumes = [
        {
            "name": metadata_of(template).get("name", ""),
            "ephemeral": {"volumeClaimTemplate": {"spec": _claim(template)}},
        }
        for template in pod_set.volume_claims
    ]
    names, given = [volume["name"] for volume in volumes], spec.get("volumes") or []
    if not isinstance(given, list):
        return spec
    kept = [volume for volume in given if not (isinstance(volume, Mapping) and volume.get("name") in names)]
    return {**spec, "volumes": [*kept, *volumes]}


def _claim(template: Mapping[str, Any]) -> dict[str, Any]:
    spec = template.get("spec")
    name = spec.get("storageClassName") if isinstance(spec, Mapping) else None
    return {} if name is None else {"storageClassName": name}


def _decoded(document: Mapping[str, Any], path: str) -> Pod:
    check_pod_spec(document.get("spec"), f"{path}.spec" if path else "spec")
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
