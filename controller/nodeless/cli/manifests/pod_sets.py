"""Which pods the objects of operators make: how many, of which template.

Every object with a pod template at `spec.template` and a number at `spec.replicas` is read like a Deployment,
whatever its kind (an Argo Rollout, a CloneSet). Operators whose objects have another form are read here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nodeless.cli.manifests.database_sets import database_sets, is_database
from nodeless.cli.manifests.flink_sets import flink_sets, is_flink
from nodeless.cli.manifests.kafka_sets import is_kafka, kafka_sets
from nodeless.cli.manifests.members import (
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
    number_at,
    status_of,
)
from nodeless.cli.manifests.pod_templates import PodSet, ReplicasMode
from nodeless.cli.manifests.ray_clusters import is_ray, ray_sets
from nodeless.cli.manifests.scaled_sets import scaled_sets, scales_itself
from nodeless.cli.manifests.spark_sets import is_spark, spark_sets
from nodeless.cli.manifests.task_runs import is_task_run, task_run_sets
from nodeless.model.labels import GANG_SIZE, LEADER_WORKER_SIZE
from nodeless.scheduling.pods.gangs import LEADER_WORKER_GROUP

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
#: Groups of a LeaderWorkerSet that are told apart, as gangs are, at most.
_MOST_GANGS = 1_000
_RELOADER, _THANOS = "config-reloader", "thanos-sidecar"
_MONITORING, _AGENT = "monitoring.coreos.com", "PrometheusAgent"
#: What the operator requests for Alertmanagers and ThanosRulers that do not say it.
_LEAST_MEMORY = {"memory": "200Mi"}
_NOTHING: Mapping[str, str] = {}
#: Groups of whose workloads one pod comes where they say no number.
_ONE_BY_DEFAULT = ("", "apps", "apps.kruise.io", "apps.openshift.io", "argoproj.io", "extensions")
_TRAINING_KINDS = ("JAXJob", "MPIJob", "MXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
_TRAINING_OPERATOR = "kubeflow.org/training-operator"
_VOLCANO_OVER = ("Aborted", "Completed", "Failed", "Terminated")
_JOB_SET_CONTROLLER = "jobset.sigs.k8s.io/jobset-controller"


def is_shaped(manifest: Mapping[str, Any]) -> bool:
    """Whether an object has a pod template with containers where a Deployment has it."""
    found: Any = manifest
    for step in ("spec", "template", "spec"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return isinstance(found, Mapping) and isinstance(found.get("containers"), list)


def is_operated(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is of an operator that is known here."""
    return _reader_of(manifest) is not None


def operated_sets(manifest: Mapping[str, Any], mode: ReplicasMode) -> list[PodSet]:
    """The pods of an object of a known operator, `mode` of those that it scales itself. Raises Unusable."""
    read = _reader_of(manifest)
    if read is None:
        raise Unusable("kind", f"kind: {manifest.get('kind')!r} does not belong to a known operator")
    return read(manifest, mode)


def _reader_of(
    manifest: Mapping[str, Any],
) -> Callable[[Mapping[str, Any], ReplicasMode], list[PodSet]] | None:
    read = _OPERATED.get((group_of(manifest), str(manifest.get("kind"))))
    if read is not None:
        return lambda given, _mode: read(given)
    return next((sets for is_its, sets in _FAMILIES if is_its(manifest)), None)


def shaped_sets(manifest: Mapping[str, Any]) -> list[PodSet]:
    """The pods of an object with a template like a Deployment's. Raises Unusable."""
    spec = mapping_at(manifest, _SPEC)
    claims = tuple(list_at(spec, "volumeClaimTemplates", _SPEC))
    template = mapping_at(manifest, _TEMPLATE)
    told = "replicas" in spec or group_of(manifest) in _ONE_BY_DEFAULT
    remark = "" if told else "it has no spec.replicas; its operator may create another number"
    number = number_at(spec, "replicas", _SPEC)
    return [PodSet(_TEMPLATE, template, number, name_of(manifest), claims, remark=remark)]


def _prometheus(manifest: Mapping[str, Any]) -> list[PodSet]:
    """A StatefulSet of `replicas` pods for each shard."""
    shards = number_at(mapping_at(manifest, _SPEC), "shards", _SPEC)
    names = [_shard_name(manifest, shard) for shard in range(shards)]
    return [_monitoring(manifest, "prometheus", shard) for shard in names]


def _shard_name(manifest: Mapping[str, Any], shard: int = 0) -> str:
    prefix = "prom-agent" if manifest["kind"] == _AGENT else "prometheus"
    return f"{prefix}-{name_of(manifest)}{f'-shard-{shard}' if shard else ''}"


def _alertmanager(manifest: Mapping[str, Any]) -> list[PodSet]:
    return [_monitoring(manifest, "alertmanager", f"alertmanager-{name_of(manifest)}", _LEAST_MEMORY)]


def _thanos_ruler(manifest: Mapping[str, Any]) -> list[PodSet]:
    return [_monitoring(manifest, "thanos-ruler", f"thanos-ruler-{name_of(manifest)}", _LEAST_MEMORY)]


def is_agent_of_nodes(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is a PrometheusAgent that has a pod on every node."""
    spec = manifest.get("spec")
    agent = (group_of(manifest), manifest.get("kind")) == (_MONITORING, _AGENT)
    return agent and isinstance(spec, Mapping) and spec.get("mode") == "DaemonSet"


def agent_of_nodes(manifest: Mapping[str, Any]) -> PodSet:
    """The pod that such an agent has on every node. Raises Unusable."""
    return _monitoring(manifest, "prometheus", _shard_name(manifest))


def _monitoring(
    manifest: Mapping[str, Any], container: str, name: str, defaults: Mapping[str, str] = _NOTHING
) -> PodSet:
    """Pods of Prometheus' operator, whose `containers` change its own where they have their names.

    `defaults`: what is requested where the object does not say it.
    """
    spec = mapping_at(manifest, _SPEC)
    given = list_at(spec, "containers", _SPEC)
    own = {container: _resources(spec, _SPEC)}
    if spec.get("thanos") is not None and manifest["kind"] == "Prometheus":
        own[_THANOS] = _resources(member_below(spec, _SPEC, "thanos"), "spec.thanos")
    requests = own[container].get("requests") or {}
    if isinstance(requests, Mapping):
        own[container] = {**own[container], "requests": {**defaults, **requests}}
    patches = {str(patch.get("name")): patch for patch in given}
    more = [patch for patch in given if str(patch.get("name")) not in own]
    reloads = any(patch.get("name") == _RELOADER and patch.get("resources") for patch in more)
    containers = [
        {"name": called, "resources": _patched(resources, patches.get(called))}
        for called, resources in own.items()
    ]
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
            "spec": {**pod, "containers": [*more, *containers]},
        },
        number=number,
        name=name,
        volume_claims=claims,
        left_out="" if reloads else f"without the operator's container {_RELOADER}",
        owner=("apps/v1", "StatefulSet", name),
        renamed=((f"spec.containers[{len(more)}].resources", "spec.resources"),),
    )


def _resources(holder: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    return {} if holder.get("resources") is None else member_below(holder, path, "resources")


def _patched(resources: Mapping[str, Any], patch: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The resources of a container with those that another of its name gives it."""
    given = _resources(patch or {}, f"{_SPEC}.containers")
    merged = dict(resources)
    for listed in ("limits", "requests"):
        ours, theirs = resources.get(listed) or {}, given.get(listed) or {}
        if theirs:
            both = isinstance(ours, Mapping) and isinstance(theirs, Mapping)
            merged[listed] = {**ours, **theirs} if both else theirs
    return merged


def _job_set(manifest: Mapping[str, Any]) -> list[PodSet]:
    """Of each replicated Job, `replicas` Jobs of `parallelism` pods, without the Jobs that have succeeded."""
    spec, made = mapping_at(manifest, _SPEC), []
    remark = managed_elsewhere(spec, _JOB_SET_CONTROLLER)
    if has_condition(manifest, "Completed", "Failed"):
        remark = "it has ended"
    for index, jobs in enumerate(list_at(spec, "replicatedJobs", _SPEC)):
        path = f"spec.replicatedJobs[{index}]"
        job = member_below(jobs, path, "template.spec")
        pods = number_at(job, "parallelism", f"{path}.template.spec")
        pods = min(pods, number_at(job, "completions", f"{path}.template.spec", default=pods))
        number = checked_number(number_at(jobs, "replicas", path) * pods, f"{path}.replicas")
        template = member_below(jobs, path, "template.spec.template")
        name = f"{name_of(manifest)}-{jobs.get('name') or index}"
        number = max(number - _succeeded_jobs(manifest, jobs.get("name")) * pods, 0)
        number = 0 if remark or spec.get("suspend") is True else number
        made.append(PodSet(f"{path}.template.spec.template", template, number, name, remark=remark))
    return made


def _succeeded_jobs(manifest: Mapping[str, Any], name: Any) -> int:
    """How many of a replicated Job of a dump have succeeded."""
    told = status_of(manifest).get("replicatedJobsStatus")
    for one in told if isinstance(told, list) else ():
        if isinstance(one, Mapping) and one.get("name") == name and isinstance(one.get("succeeded"), int):
            return max(int(one["succeeded"]), 0)
    return 0


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
    leader = mapping_at(manifest, leading)
    if groups <= _MOST_GANGS and any(_is_in_gang(template) for template in (leader, worker)):
        return [
            PodSet(at, _as_member(template, f"{name}-{group}", size), number, f"{name}-{group}{ending}")
            for group in range(groups)
            for at, template, number, ending in (
                (leading, leader, 1, ""),
                (f"{path}.workerTemplate", worker, size - 1, "-worker"),
            )
        ]
    return [
        PodSet(leading, leader, groups, name),
        PodSet(f"{path}.workerTemplate", worker, workers, f"{name}-worker"),
    ]


def _is_in_gang(template: Mapping[str, Any]) -> bool:
    annotations = metadata_of(template).get("annotations")
    return isinstance(annotations, Mapping) and GANG_SIZE in annotations


def _as_member(template: Mapping[str, Any], group: str, size: int) -> Mapping[str, Any]:
    """The template with what the controller of LeaderWorkerSets writes on the pods of one group."""
    metadata = metadata_of(template)
    for member, key, value in (
        ("labels", LEADER_WORKER_GROUP, group),
        ("annotations", LEADER_WORKER_SIZE, str(size)),
    ):
        given = metadata.get(member)
        metadata[member] = {**(given if isinstance(given, Mapping) else {}), key: value}
    return {**template, "metadata": metadata}


def _training(manifest: Mapping[str, Any]) -> list[PodSet]:
    """Kubeflow's jobs: `replicas` pods for each role, of a member such as `pytorchReplicaSpecs`."""
    spec, name = mapping_at(manifest, _SPEC), name_of(manifest)
    policy = spec.get("runPolicy")
    policy = policy if isinstance(policy, Mapping) else {}
    remark = managed_elsewhere(policy, _TRAINING_OPERATOR)
    if has_condition(manifest, "Succeeded", "Failed"):
        remark = "it has ended"
    idle = bool(remark) or policy.get("suspend") is True
    made = []
    for member in spec:
        for role in mapping_at(spec, member) if member.endswith("ReplicaSpecs") else ():
            path = f"{_SPEC}.{member}.{role}"
            group = mapping_at(manifest, path)
            number = number_at(group, "replicas", path)
            template = member_below(group, path, "template")
            called = f"{name}-{role.lower()}"
            made.append(PodSet(f"{path}.template", template, 0 if idle else number, called, remark=remark))
    if not made:
        raise Unusable(_SPEC, f"{_SPEC}: has no member ...ReplicaSpecs with roles; hint: each has a template")
    return made


def _volcano_job(manifest: Mapping[str, Any]) -> list[PodSet]:
    """Volcano's Job: `replicas` pods of each of its tasks."""
    made, spec = [], mapping_at(manifest, _SPEC)
    state = status_of(manifest).get("state")
    phase = state.get("phase") if isinstance(state, Mapping) else None
    remark = f"it is {phase}" if phase in _VOLCANO_OVER else ""
    for index, task in enumerate(list_at(spec, "tasks", _SPEC)):
        path = f"{_SPEC}.tasks[{index}]"
        number = 0 if remark else number_at(task, "replicas", path)
        template = member_below(task, path, "template")
        called = f"{name_of(manifest)}-{task.get('name') or index}"
        made.append(PodSet(f"{path}.template", template, number, called, remark=remark))
    return made


_OPERATED: dict[tuple[str, str], Callable[[Mapping[str, Any]], list[PodSet]]] = {
    (_MONITORING, "Prometheus"): _prometheus,
    (_MONITORING, _AGENT): _prometheus,
    (_MONITORING, "Alertmanager"): _alertmanager,
    (_MONITORING, "ThanosRuler"): _thanos_ruler,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
    ("batch.volcano.sh", "Job"): _volcano_job,
    **{("kubeflow.org", kind): _training for kind in _TRAINING_KINDS},
}
#: Operators whose objects have a module of their own: which those are, and their pods.
_FAMILIES = (
    (is_ray, ray_sets),
    (scales_itself, scaled_sets),
    (is_database, database_sets),
    (is_kafka, kafka_sets),
    (is_spark, spark_sets),
    (is_flink, flink_sets),
    (is_task_run, task_run_sets),
)
