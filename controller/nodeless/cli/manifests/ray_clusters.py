"""The pods of Ray clusters, and of RayJobs and RayServices, which have a cluster of their own.

Numbers and containers are those of KubeRay (ray-project/kuberay, `ray-operator/controllers/ray`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
    text_at,
)
from nodeless.cli.manifests.pod_templates import PodSet, ReplicasMode
from nodeless.explain.words import count

_GROUP = "ray.io"
_JOB = "RayJob"
#: Where an object describes its cluster.
_PATHS = {"RayCluster": "spec", _JOB: "spec.rayClusterSpec", "RayService": "spec.rayClusterConfig"}
_K8S_JOB, _SIDECAR = "K8sJobMode", "SidecarMode"
#: How a RayJob gives its program to the cluster.
_SUBMISSION_MODES = (_K8S_JOB, "HTTPMode", _SIDECAR, "InteractiveMode")
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
    return group_of(manifest) == _GROUP and manifest.get("kind") in _PATHS


def ray_sets(manifest: Mapping[str, Any], mode: ReplicasMode) -> list[PodSet]:
    """The head, the pods of each group of workers, and a RayJob's submitter. Raises Unusable."""
    if manifest["kind"] != _JOB:
        return _cluster_sets(manifest, mode)
    submission = _submission_mode(manifest)
    submitters = [_submitter(manifest)] if submission == _K8S_JOB else []
    if mapping_at(manifest, "spec").get("clusterSelector"):
        if submission == _SIDECAR:
            path = "spec.submissionMode"
            hint = f"hint: use {_K8S_JOB}, or leave out spec.clusterSelector"
            raise Unusable(path, f"{path}: {_SIDECAR} needs a cluster of the job's own; {hint}")
        return submitters
    sidecars = (_SUBMITTER,) if submission == _SIDECAR else ()
    return [*_cluster_sets(manifest, mode, sidecars), *submitters]


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
    template, renamed = mapping_at(manifest, head), ("", "")
    if is_autoscaled:
        position = len(_containers(template))
        renamed = (f"{head}.spec.containers[{position}].resources", f"{path}.autoscalerOptions.resources")
        sidecars = (_autoscaler(cluster, path), *sidecars)
    made = [PodSet(head, _beside(template, sidecars), int(not suspended), f"{name}-head", renamed=renamed)]
    for index, group in enumerate(list_at(cluster, "workerGroupSpecs", path)):
        place = f"{path}.workerGroupSpecs[{index}]"
        workers = _Workers.of(group, place)
        replicas = workers.number(mode if is_autoscaled else ReplicasMode.CURRENT)
        number = checked_number(replicas * number_at(group, "numOfHosts", place), f"{place}.replicas")
        idle = suspended or group.get("suspend") is True
        label = str(group.get("groupName") or index)
        scaling = f"group {label}: {workers.told(replicas)}" if is_autoscaled and not idle else ""
        template = member_below(group, place, "template")
        called = f"{name}-{label}"
        made.append(PodSet(f"{place}.template", template, 0 if idle else number, called, scaling=scaling))
    return made


@dataclass(frozen=True, slots=True)
class _Workers:
    """The replicas of a group of workers; without a most there is no bound."""

    least: int
    given: int
    most: int | None

    @classmethod
    def of(cls, group: Mapping[str, Any], path: str) -> "_Workers":
        """What a group says. Raises Unusable."""
        least = number_at(group, "minReplicas", path, default=0)
        given = number_at(group, "replicas", path, default=least)
        # The definition's own default is the largest number of 32 bits, which dumps of clusters have.
        bounded = group.get("maxReplicas") not in (None, 2**31 - 1)
        most = number_at(group, "maxReplicas", path) if bounded else None
        if most is not None and least > most:
            raise Unusable(
                f"{path}.minReplicas", f"{path}.minReplicas: {least} is more than {path}.maxReplicas: {most}"
            )
        return cls(least, given, most)

    def number(self, mode: ReplicasMode) -> int:
        """The replicas that are planned."""
        if mode is ReplicasMode.MIN:
            return self.least
        if mode is ReplicasMode.MAX and self.most is not None:
            return self.most
        raised = max(self.given, self.least)
        return raised if self.most is None else min(raised, self.most)

    def told(self, replicas: int) -> str:
        """What is planned, of which range."""
        planned = f"planned with {count(replicas, 'replica')}"
        if self.most is None:
            return f"{planned}, of {self.least} or more (enableInTreeAutoscaling without maxReplicas)"
        return f"{planned}, of {self.least} to {self.most} (enableInTreeAutoscaling)"


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
