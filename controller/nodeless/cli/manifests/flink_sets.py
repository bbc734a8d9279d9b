"""The pods of Flink's deployments: job managers and task managers.

Names and defaults are those of apache/flink-kubernetes-operator.
"""

from collections.abc import Mapping
from typing import Any

from nodeless.cli.manifests.jvm_sizes import mebibytes
from nodeless.cli.manifests.members import (
    Unusable,
    checked_number,
    is_kind,
    list_at,
    mapping_at,
    name_of,
    number_at,
)
from nodeless.cli.manifests.operated_pods import object_below, with_labels
from nodeless.cli.manifests.pod_templates import PodSet, ReplicasMode

_GROUP, _KIND = "flink.apache.org", "FlinkDeployment"
_MAIN = "flink-main-container"
_JOBS, _TASKS = "jobManager", "taskManager"
_SLOTS = "taskmanager.numberOfTaskSlots"
#: Memory of a process that nothing else is said of.
_MEMORY = {_JOBS: "1600m", _TASKS: "1728m"}


def is_flink(manifest: Mapping[str, Any]) -> bool:
    """Whether Flink's operator makes pods of an object."""
    return is_kind(manifest, _GROUP, _KIND)


def flink_sets(manifest: Mapping[str, Any], _mode: ReplicasMode) -> list[PodSet]:
    """The job managers and the task managers. Raises Unusable."""
    spec, name = mapping_at(manifest, "spec"), name_of(manifest)
    settings, job = (object_below(spec, "spec", member) for member in ("flinkConfiguration", "job"))
    slots = _number(settings, _SLOTS)
    leading = number_at(object_below(spec, "spec", _JOBS), "replicas", f"spec.{_JOBS}")
    tasks, remark = _task_managers(spec, settings, slots)
    if job.get("state") == "suspended":
        leading, tasks, remark = 0, 0, "its job is suspended"
    apart = spec.get("mode") == "standalone"
    workers = f"{name}-taskmanager"
    return [
        _pods(spec, _JOBS, leading, (name, name), "1", remark),
        # Job managers start them, unless they are Deployments of their own.
        _pods(spec, _TASKS, tasks, (workers, workers if apart else name), str(slots), remark),
    ]


def _task_managers(spec: Mapping[str, Any], settings: Mapping[str, Any], slots: int) -> tuple[int, str]:
    """How many there are, and what else may be."""
    holder, path = object_below(spec, "spec", _TASKS), f"spec.{_TASKS}"
    if holder.get("replicas") is not None:
        return number_at(holder, "replicas", path), ""
    if spec.get("job") is None:
        standalone = spec.get("mode") == "standalone"
        return (1, "") if standalone else (0, "its session creates task managers for its jobs")
    job = object_below(spec, "spec", "job")
    usual = _number(settings, "parallelism.default")
    parallelism = number_at(job, "parallelism", "spec.job", default=usual)
    scaled = str(_setting(settings, "job.autoscaler.enabled")).lower() == "true"
    remark = "its autoscaler may change the number of task managers" if scaled else ""
    return -(-parallelism // slots), remark


def _setting(settings: Mapping[str, Any], name: str) -> Any:
    """A setting of Flink, written as one word or as objects in objects."""
    if name in settings:
        return settings[name]
    found: Any = settings
    for step in name.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _number(settings: Mapping[str, Any], name: str) -> int:
    """A number of 1 or more, 1 unless given."""
    given, path = _setting(settings, name), f'spec.flinkConfiguration["{name}"]'
    number = 1 if given is None else checked_number(int(given) if str(given).isdecimal() else given, path)
    if not number:
        raise Unusable(path, f"{path}: 0 is too few; hint: 1 or more")
    return number


def _pods(
    spec: Mapping[str, Any], role: str, number: int, names: tuple[str, str], cpu: str, remark: str
) -> PodSet:
    """Pods of a role; `names`: theirs, and that of the Deployment that they are of."""
    path, (called, owner) = f"spec.{role}", names
    holder = object_below(spec, "spec", role)
    common, own = object_below(spec, "spec", "podTemplate"), object_below(holder, path, "podTemplate")
    pods = {
        **object_below(common, "spec.podTemplate", "spec"),
        **object_below(own, f"{path}.podTemplate", "spec"),
    }
    containers = {
        str(one.get("name")): one
        for template, where in ((common, "spec.podTemplate"), (own, f"{path}.podTemplate"))
        for one in list_at(object_below(template, where, "spec"), "containers", f"{where}.spec")
    }
    main = {"name": _MAIN, **containers.pop(_MAIN, {})}
    main["resources"] = _resources(spec, role, main.get("resources"), cpu)
    labels = {"component": role.lower(), "app": owner.removesuffix("-taskmanager")}
    metadata = {**(common.get("metadata") or {}), **(own.get("metadata") or {})}
    return PodSet(
        path="",
        template={
            "metadata": with_labels(metadata, labels),
            "spec": {**pods, "containers": [main, *containers.values()]},
        },
        number=number,
        name=called,
        owner=("apps/v1", "Deployment", owner),
        renamed=(("spec.containers[0].resources", f"{path}.resource"),),
        remark=remark,
    )


def _resources(spec: Mapping[str, Any], role: str, given: Any, cpu: str) -> dict[str, Any]:
    """The resources of a template's main container, with the processor and the memory of its role."""
    path = f"spec.{role}"
    settings = object_below(spec, "spec", "flinkConfiguration")
    resource = object_below(object_below(spec, "spec", role), path, "resource")
    memory = resource.get("memory") or _setting(settings, f"{role.lower()}.memory.process.size")
    amounts: dict[str, Any] = {
        "cpu": str(resource.get("cpu") or _setting(settings, f"kubernetes.{role.lower()}.cpu.amount") or cpu),
        "memory": f"{mebibytes(memory or _MEMORY[role], f'{path}.resource.memory', 'b')}Mi",
    }
    if resource.get("ephemeralStorage"):
        amounts["ephemeral-storage"] = f"{mebibytes(resource['ephemeralStorage'], path, 'b')}Mi"
    base = given if isinstance(given, Mapping) else {}
    return {part: {**(base.get(part) or {}), **amounts} for part in ("requests", "limits")}
