"""The pods of Ray clusters, and of RayJobs and RayServices, which have a cluster of their own.

Numbers and containers are those of KubeRay (ray-project/kuberay, `ray-operator/controllers/ray`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from nodeless.cli.manifests.members import (
    Unusable,
    checked_number,
    is_kind,
    list_at,
    managed_elsewhere,
    mapping_at,
    member_below,
    metadata_of,
    name_of,
    namespace_of,
    number_at,
    status_of,
    text_at,
)
from nodeless.cli.manifests.pod_templates import PodSet, Range, ReplicasMode
from nodeless.model.workloads import Workload

_GROUP = "ray.io"
_CONTROLLER = "ray.io/kuberay-operator"
_JOB = "RayJob"
#: Where an object describes its cluster.
_PATHS = {"RayCluster": "spec", _JOB: "spec.rayClusterSpec", "RayService": "spec.rayClusterConfig"}
_K8S_JOB, _SIDECAR = "K8sJobMode", "SidecarMode"
#: How a RayJob gives its program to the cluster.
_SUBMISSION_MODES = (_K8S_JOB, "HTTPMode", _SIDECAR, "InteractiveMode")
#: How a RayJob has ended, by its `status.jobDeploymentStatus`.
_COMPLETE, _INVALID = "Complete", "ValidationFailed"
_ENDED = (_COMPLETE, "Failed", _INVALID)
#: What waits for the end of a RayJob, unless a template says otherwise.
_SUBMITTER = {
    "name": "ray-job-submitter",
    "resources": {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "200Mi"},
    },
}
_AUTOSCALERS_AMOUNTS = {"cpu": "500m", "memory": "512Mi"}


def is_ray(manifest: Mapping[str, Any]) -> bool:
    """Whether KubeRay makes pods of an object."""
    return is_kind(manifest, _GROUP, *_PATHS)


def clusters_of(manifest: Mapping[str, Any]) -> Iterator[tuple[Workload, Workload]]:
    """Each cluster that KubeRay has made for a RayJob or a RayService, and that object.

    Pods of a dump are owned by the cluster, which the dump may be without.
    """
    status = status_of(manifest)
    if not is_ray(manifest) or not status:
        return
    holders = (status, status.get("activeServiceStatus"), status.get("pendingServiceStatus"))
    own = Workload(namespace_of(manifest), str(manifest["kind"]), str(metadata_of(manifest).get("name")))
    for holder in holders:
        name = holder.get("rayClusterName") if isinstance(holder, Mapping) else None
        if isinstance(name, str) and name:
            yield Workload(own.namespace, "RayCluster", name), own


def ray_sets(manifest: Mapping[str, Any], mode: ReplicasMode) -> list[PodSet]:
    """The head, the pods of each group of workers, and a RayJob's submitter. Raises Unusable."""
    sets = _own_sets(manifest, mode)
    remark = managed_elsewhere(mapping_at(manifest, "spec"), _CONTROLLER)
    return [replace(each, number=0, scaling="", remark=remark) for each in sets] if remark else sets


def _own_sets(manifest: Mapping[str, Any], mode: ReplicasMode) -> list[PodSet]:
    if manifest["kind"] != _JOB:
        return _cluster_sets(manifest, mode)
    submission, ended = _submission_mode(manifest), _ended(manifest)
    submitters = [] if submission != _K8S_JOB or ended else [_submitter(manifest)]
    if mapping_at(manifest, "spec").get("clusterSelector"):
        if submission == _SIDECAR:
            path = "spec.submissionMode"
            hint = f"hint: use {_K8S_JOB}, or leave out spec.clusterSelector"
            raise Unusable(path, f"{path}: {_SIDECAR} needs a cluster of the job's own; {hint}")
        return submitters
    sidecars = (_SUBMITTER,) if submission == _SIDECAR else ()
    sets = _cluster_sets(manifest, mode, sidecars)
    if ended:
        left = _left_by(mapping_at(manifest, "spec"), ended)
        why = f"the job is {ended}, {left.value} of its cluster is left"
        kept = {_Left.NOTHING: 0, _Left.HEAD: 1, _Left.ALL: len(sets)}[left]
        gone = [replace(pod_set, number=0, scaling="") for pod_set in sets[kept:]]
        sets = [replace(pod_set, remark=why) for pod_set in (*sets[:kept], *gone)]
    return [*sets, *submitters]


def _ended(manifest: Mapping[str, Any]) -> str:
    """How a RayJob of a dump has ended; empty where it has not."""
    told = status_of(manifest).get("jobDeploymentStatus")
    return told if told in _ENDED else ""


class _Left(StrEnum):
    """What a RayJob leaves of its cluster."""

    NOTHING = "nothing"
    HEAD = "the head"
    ALL = "all"


def _left_by(spec: Mapping[str, Any], ended: str) -> _Left:
    """What is left once a RayJob has ended; rules that wait for a while are taken to have waited."""
    if ended == _INVALID:
        return _Left.NOTHING
    strategy = spec.get("deletionStrategy")
    if not isinstance(strategy, Mapping):
        return _Left.NOTHING if spec.get("shutdownAfterJobFinishes") is True else _Left.ALL
    succeeded = ended == _COMPLETE
    told = {_policy(strategy.get("onSuccess" if succeeded else "onFailure"))}
    rules = strategy.get("deletionRules")
    for rule in rules if isinstance(rules, list) else ():
        condition = rule.get("condition") if isinstance(rule, Mapping) else None
        wanted = condition.get("jobStatus") if isinstance(condition, Mapping) else None
        if wanted in (None, "SUCCEEDED" if succeeded else "FAILED"):
            told.add(_policy(rule))
    if told & {"DeleteCluster", "DeleteSelf"}:
        return _Left.NOTHING
    return _Left.HEAD if "DeleteWorkers" in told else _Left.ALL


def _policy(rule: Any) -> str:
    """What a rule deletes; empty where it says nothing."""
    return str(rule.get("policy")) if isinstance(rule, Mapping) else ""


def _submission_mode(manifest: Mapping[str, Any]) -> str:
    mode = text_at(mapping_at(manifest, "spec"), "submissionMode", "spec", _K8S_JOB)
    if mode not in _SUBMISSION_MODES:
        path = "spec.submissionMode"
        raise Unusable(path, f"{path}: {mode!r} is not known; hint: one of {', '.join(_SUBMISSION_MODES)}")
    return mode


def _submitter(manifest: Mapping[str, Any]) -> PodSet:
    """The pod of the Kubernetes Job that gives a RayJob's program to the cluster."""
    spec, name, path = mapping_at(manifest, "spec"), name_of(manifest), "spec.submitterPodTemplate"
    given = spec.get("submitterPodTemplate") is not None
    template = mapping_at(manifest, path) if given else {"spec": {"containers": [_SUBMITTER]}}
    number = 0 if spec.get("suspend") is True else 1
    return PodSet(path, template, number, name, owner=("batch/v1", "Job", name))


def _cluster_sets(
    manifest: Mapping[str, Any], mode: ReplicasMode, sidecars: tuple[Mapping[str, Any], ...] = ()
) -> list[PodSet]:
    """A head with `sidecars` beside it, and the pods of each group of workers."""
    path, name = _PATHS[str(manifest["kind"])], name_of(manifest)
    cluster = mapping_at(manifest, path)
    suspended = True in (mapping_at(manifest, "spec").get("suspend"), cluster.get("suspend"))
    is_autoscaled = cluster.get("enableInTreeAutoscaling") is True
    head = f"{path}.headGroupSpec.template"
    template = mapping_at(manifest, head)
    renamed: tuple[tuple[str, str], ...] = ()
    if is_autoscaled:
        position = len(_containers(template))
        renamed = ((f"{head}.spec.containers[{position}].resources", f"{path}.autoscalerOptions.resources"),)
        sidecars = (_autoscaler(cluster, path), *sidecars)
    made = [PodSet(head, _beside(template, sidecars), int(not suspended), f"{name}-head", renamed=renamed)]
    for index, group in enumerate(list_at(cluster, "workerGroupSpecs", path)):
        place = f"{path}.workerGroupSpecs[{index}]"
        workers = _workers(group, place)
        replicas = workers.number(mode if is_autoscaled else ReplicasMode.CURRENT)
        number = checked_number(replicas * number_at(group, "numOfHosts", place), f"{place}.replicas")
        idle = suspended or group.get("suspend") is True
        label = str(group.get("groupName") or index)
        told = workers.told(replicas, "enableInTreeAutoscaling", "maxReplicas")
        scaling = f"group {label}: {told}" if is_autoscaled and not idle else ""
        template = member_below(group, place, "template")
        called = f"{name}-{label}"
        made.append(PodSet(f"{place}.template", template, 0 if idle else number, called, scaling=scaling))
    return made


def _workers(group: Mapping[str, Any], path: str) -> Range:
    """The replicas of a group of workers. Raises Unusable."""
    least = number_at(group, "minReplicas", path, default=0)
    given = number_at(group, "replicas", path, default=least)
    # The definition's own default is the largest number of 32 bits, which dumps of clusters have.
    bounded = group.get("maxReplicas") not in (None, 2**31 - 1)
    most = number_at(group, "maxReplicas", path) if bounded else None
    if most is not None and least > most:
        raise Unusable(
            f"{path}.minReplicas", f"{path}.minReplicas: {least} is more than {path}.maxReplicas: {most}"
        )
    return Range(least, given, most)


def _autoscaler(cluster: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The container that KubeRay puts beside the head of a cluster that scales itself."""
    resources: Any = {"limits": _AUTOSCALERS_AMOUNTS, "requests": _AUTOSCALERS_AMOUNTS}
    if cluster.get("autoscalerOptions") is not None:
        options = member_below(cluster, path, "autoscalerOptions")
        resources = resources if options.get("resources") is None else options["resources"]
    return {"name": "autoscaler", "resources": resources}


def _containers(template: Mapping[str, Any]) -> list[Any]:
    spec = template.get("spec")
    found = spec.get("containers") if isinstance(spec, Mapping) else None
    return found if isinstance(found, list) else []


def _beside(template: Mapping[str, Any], sidecars: tuple[Mapping[str, Any], ...]) -> Mapping[str, Any]:
    """The template with more containers; one without any keeps its fault."""
    containers = _containers(template)
    if not (containers and sidecars):
        return template
    return {**template, "spec": {**template["spec"], "containers": [*containers, *sidecars]}}
