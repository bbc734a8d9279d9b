"""Which pods the objects of operators make: how many, of which template.

Every object with a pod template at `spec.template` and a number at `spec.replicas` is read like a Deployment,
whatever its kind (an Argo Rollout, a CloneSet). Operators whose objects have another form are read here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nodeless.cli.manifests.members import (
    Unusable,
    checked_number,
    group_of,
    list_at,
    mapping_at,
    member_below,
    name_of,
    number_at,
)
from nodeless.cli.manifests.pod_templates import PodSet, ReplicasMode
from nodeless.cli.manifests.ray_clusters import is_ray, ray_sets

_SPEC, _TEMPLATE = "spec", "spec.template"
#: Members of a Prometheus or an Alertmanager that its pods have as they are.
_POD_MEMBERS = (
    "affinity",
    "hostNetwork",
    "initContainers",
    "nodeSelector",
    "priorityClassName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
)
_RELOADER = "config-reloader"


def is_shaped(manifest: Mapping[str, Any]) -> bool:
    """Whether an object has a pod template with containers where a Deployment has it."""
    found: Any = manifest
    for step in ("spec", "template", "spec"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return isinstance(found, Mapping) and isinstance(found.get("containers"), list)


def is_operated(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is of an operator that is known here."""
    return is_ray(manifest) or (group_of(manifest), manifest.get("kind")) in _OPERATED


def operated_sets(manifest: Mapping[str, Any], mode: ReplicasMode) -> list[PodSet]:
    """The pods of an object of a known operator, `mode` of those that it scales itself. Raises Unusable."""
    if is_ray(manifest):
        return ray_sets(manifest, mode)
    return _OPERATED[group_of(manifest), str(manifest["kind"])](manifest)


def shaped_sets(manifest: Mapping[str, Any]) -> list[PodSet]:
    """The pods of an object with a template like a Deployment's. Raises Unusable."""
    spec = mapping_at(manifest, _SPEC)
    claims = tuple(list_at(spec, "volumeClaimTemplates", _SPEC))
    template = mapping_at(manifest, _TEMPLATE)
    return [PodSet(_TEMPLATE, template, number_at(spec, "replicas", _SPEC), name_of(manifest), claims)]


def _prometheus(manifest: Mapping[str, Any]) -> list[PodSet]:
    """A StatefulSet of `replicas` pods for each shard."""
    shards = number_at(mapping_at(manifest, _SPEC), "shards", _SPEC)
    name = f"prometheus-{name_of(manifest)}"
    names = [name if shard == 0 else f"{name}-shard-{shard}" for shard in range(shards)]
    return [_monitoring(manifest, "prometheus", shard) for shard in names]


def _alertmanager(manifest: Mapping[str, Any]) -> list[PodSet]:
    return [_monitoring(manifest, "alertmanager", f"alertmanager-{name_of(manifest)}")]


def _monitoring(manifest: Mapping[str, Any], container: str, name: str) -> PodSet:
    spec = mapping_at(manifest, _SPEC)
    more = [
        added
        for added in list_at(spec, "containers", _SPEC)
        if added.get("name") not in (container, _RELOADER)
    ]
    main = {"name": container, "resources": spec.get("resources") or {}}
    pod = {member: spec[member] for member in _POD_MEMBERS if member in spec}
    metadata = spec.get("podMetadata")
    claims: tuple[Mapping[str, Any], ...] = ()
    if spec.get("storage") is not None and mapping_at(manifest, "spec.storage").get("volumeClaimTemplate"):
        claim = mapping_at(manifest, "spec.storage.volumeClaimTemplate")
        claims = ({"metadata": {"name": f"{name}-db"}, "spec": claim.get("spec")},)
    number = 0 if spec.get("paused") is True else number_at(spec, "replicas", _SPEC)
    return PodSet(
        path="",
        template={
            "metadata": metadata if isinstance(metadata, Mapping) else {},
            "spec": {**pod, "containers": [*more, main]},
        },
        number=number,
        name=name,
        volume_claims=claims,
        left_out=f"without the operator's container {_RELOADER}",
        owner=("apps/v1", "StatefulSet", name),
        renamed=(f"spec.containers[{len(more)}].resources", "spec.resources"),
    )


def _job_set(manifest: Mapping[str, Any]) -> list[PodSet]:
    """Of each replicated Job, `replicas` Jobs of `parallelism` pods."""
    spec, made = mapping_at(manifest, _SPEC), []
    for index, jobs in enumerate(list_at(spec, "replicatedJobs", _SPEC)):
        path = f"spec.replicatedJobs[{index}]"
        job = member_below(jobs, path, "template.spec")
        pods = number_at(job, "parallelism", f"{path}.template.spec")
        pods = min(pods, number_at(job, "completions", f"{path}.template.spec", default=pods))
        number = checked_number(number_at(jobs, "replicas", path) * pods, f"{path}.replicas")
        template = member_below(jobs, path, "template.spec.template")
        name = f"{name_of(manifest)}-{jobs.get('name') or index}"
        number = 0 if spec.get("suspend") is True else number
        made.append(PodSet(f"{path}.template.spec.template", template, number, name))
    return made


def _leader_worker_set(manifest: Mapping[str, Any]) -> list[PodSet]:
    """`replicas` groups of `size` pods, one of them the leader."""
    path = "spec.leaderWorkerTemplate"
    both, name = mapping_at(manifest, path), name_of(manifest)
    groups = number_at(mapping_at(manifest, _SPEC), "replicas", _SPEC)
    size = number_at(both, "size", path)
    if not size:
        raise Unusable(f"{path}.size", f"{path}.size: 0 is too few; hint: a group has a leader")
    workers = checked_number(groups * (size - 1), f"{path}.size")
    worker = mapping_at(manifest, f"{path}.workerTemplate")
    leading = f"{path}.{'leaderTemplate' if both.get('leaderTemplate') is not None else 'workerTemplate'}"
    return [
        PodSet(leading, mapping_at(manifest, leading), groups, name),
        PodSet(f"{path}.workerTemplate", worker, workers, f"{name}-worker"),
    ]


_OPERATED: dict[tuple[str, str], Callable[[Mapping[str, Any]], list[PodSet]]] = {
    ("monitoring.coreos.com", "Prometheus"): _prometheus,
    ("monitoring.coreos.com", "Alertmanager"): _alertmanager,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
}
