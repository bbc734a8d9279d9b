"""The pod of a run of a Tekton task: a container for each step.

Names and the sharing of resources are those of tektoncd/pipeline.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodeless.cli.manifests.documents import Document
from nodeless.cli.manifests.members import (
    has_condition,
    is_kind,
    key_of,
    list_at,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
)
from nodeless.cli.manifests.operated_pods import members_of, object_below
from nodeless.cli.manifests.pod_templates import PodSet, ReplicasMode

_GROUP, _RUN, _TASK = "tekton.dev", "TaskRun", "Task"
_TASK_PATH = "spec.taskSpec"


def is_task_run(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is a run of a task whose steps are known."""
    spec = manifest.get("spec")
    known = isinstance(spec, Mapping) and isinstance(spec.get("taskSpec"), Mapping)
    return known and is_kind(manifest, _GROUP, _RUN)


def with_tasks(given: Sequence[tuple[Document, dict[str, Any]]]) -> list[tuple[Document, dict[str, Any]]]:
    """The objects, runs with the steps of the tasks that they name, where these are there."""
    tasks = {
        key_of(manifest): manifest.get("spec") for _, manifest in given if is_kind(manifest, _GROUP, _TASK)
    }
    return [(document, _with_task(manifest, tasks)) for document, manifest in given]


def _with_task(manifest: dict[str, Any], tasks: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    spec = manifest.get("spec")
    named = spec.get("taskRef") if isinstance(spec, Mapping) and is_kind(manifest, _GROUP, _RUN) else None
    if (
        not isinstance(named, Mapping)
        or not isinstance(spec, Mapping)
        or named.get("kind") not in (None, _TASK)
    ):
        return manifest
    task = tasks.get((namespace_of(manifest), str(named.get("name"))))
    return manifest if task is None else {**manifest, "spec": {**spec, "taskSpec": task}}


def task_run_sets(manifest: Mapping[str, Any], _mode: ReplicasMode) -> list[PodSet]:
    """The pod of a run, none of one that has ended. Raises Unusable."""
    spec, task = mapping_at(manifest, "spec"), mapping_at(manifest, _TASK_PATH)
    template = object_below(spec, "spec", "podTemplate")
    members, renamed = members_of(template, "spec.podTemplate")
    own = [*list_at(task, "volumes", _TASK_PATH), *_workspaces(spec), *(members.get("volumes") or [])]
    containers: list[dict[str, Any]] = []
    places: list[tuple[str, str]] = []
    for container, place in _containers(spec, task):
        places.append((f"spec.containers[{len(containers)}].resources", place))
        containers.append(container)
    pod = {**members, "containers": containers, **({"volumes": own} if own else {})}
    remark = "it has ended" if _has_ended(manifest) else ""
    number = 0 if remark or spec.get("status") else 1
    made = {"metadata": {"labels": metadata_of(manifest).get("labels") or {}}, "spec": pod}
    return [PodSet("", made, number, f"{name_of(manifest)}-pod", renamed=(*renamed, *places), remark=remark)]


def _containers(spec: Mapping[str, Any], task: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Each container with the place of its resources; the steps run in turns, side by side in one pod."""
    usual, _ = _resources(object_below(task, _TASK_PATH, "stepTemplate"), f"{_TASK_PATH}.stepTemplate")
    whole = object_below(spec, "spec", "computeResources")
    for member, prefix, changes in (("steps", "step", "stepSpecs"), ("sidecars", "sidecar", "sidecarSpecs")):
        changed = {str(one.get("name")): one for one in list_at(spec, changes, "spec")}
        for index, part in enumerate(list_at(task, member, _TASK_PATH)):
            name = str(part.get("name") or f"unnamed-{index}")
            resources, place = _resources(part, f"{_TASK_PATH}.{member}[{index}]")
            if member == "steps":
                resources = resources or usual
            resources = (
                object_below(changed.get(name, {}), f"spec.{changes}", "computeResources") or resources
            )
            if whole and member == "steps":
                # Of a run as a whole: the steps have equal shares of it.
                resources, place = (whole if index == 0 else {}), "spec.computeResources"
            yield {"name": f"{prefix}-{name}", "resources": resources}, place


def _resources(part: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
    """The resources of a step, which v1beta1 calls so, and where they are."""
    member = "resources" if part.get("computeResources") is None else "computeResources"
    return object_below(part, path, member), f"{path}.{member}"


def _workspaces(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The volumes of workspaces that are volume claims."""
    for index, workspace in enumerate(list_at(spec, "workspaces", "spec")):
        name = f"ws-{index}"
        if workspace.get("persistentVolumeClaim") is not None:
            yield {"name": name, "persistentVolumeClaim": workspace["persistentVolumeClaim"]}
        elif workspace.get("volumeClaimTemplate") is not None:
            yield {"name": name, "ephemeral": {"volumeClaimTemplate": workspace["volumeClaimTemplate"]}}


def _has_ended(manifest: Mapping[str, Any]) -> bool:
    return has_condition(manifest, "Succeeded", statuses=("True", "False"))
