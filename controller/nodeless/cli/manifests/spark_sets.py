"""The pods of Spark applications: a driver and its executors.

Requests are those of Spark's pods (apache/spark, `resource-managers/kubernetes`), defaults those of
kubeflow/spark-operator.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeless.cli.manifests.jvm_sizes import mebibytes
from nodeless.cli.manifests.members import (
    Unusable,
    checked_number,
    is_kind,
    list_at,
    mapping_at,
    member_below,
    name_of,
    number_at,
    status_of,
)
from nodeless.cli.manifests.operated_pods import members_of, object_below, with_labels
from nodeless.cli.manifests.pod_templates import PodSet, Range, ReplicasMode

_GROUP = "sparkoperator.k8s.io"
#: Where an object describes the application.
_PATHS = {"SparkApplication": "spec", "ScheduledSparkApplication": "spec.template"}
APP_NAME = "sparkoperator.k8s.io/app-name"
_ENDED = ("COMPLETED", "FAILED")
#: What a process needs besides its heap: MiB at least, and shares of the heap by language.
_LEAST_OVERHEAD, _OVERHEAD, _OVERHEAD_OF_INTERPRETERS = 384, 0.1, 0.4
_INTERPRETED = ("Python", "R")


def is_spark(manifest: Mapping[str, Any]) -> bool:
    """Whether Spark's operator makes pods of an object."""
    return is_kind(manifest, _GROUP, *_PATHS)


def spark_sets(manifest: Mapping[str, Any], mode: ReplicasMode) -> list[PodSet]:
    """The driver and the executors; of a scheduled application, those of its next run. Raises Unusable."""
    path = _PATHS[manifest["kind"]]
    spec, outer = mapping_at(manifest, path), mapping_at(manifest, "spec")
    application = _Application(spec, path, name_of(manifest), object_below(spec, path, "sparkConf"))
    state = _state(manifest)
    remark = f"it is {state}" if state in _ENDED else ""
    idle = bool(remark) or outer.get("suspend") is True or spec.get("suspend") is True
    number, scaling = application.executors(mode)
    return [
        application.pods("driver", 0 if idle else 1, "", remark),
        application.pods("executor", 0 if idle else number, "" if idle else scaling, remark),
    ]


def _state(manifest: Mapping[str, Any]) -> Any:
    told = status_of(manifest).get("applicationState")
    return told.get("state") if isinstance(told, Mapping) else None


@dataclass(frozen=True, slots=True)
class _Application:
    spec: Mapping[str, Any]
    path: str
    name: str
    conf: Mapping[str, Any]

    def executors(self, mode: ReplicasMode) -> tuple[int, str]:
        """How many there are, and within which range where Spark decides it."""
        holder, path = object_below(self.spec, self.path, "executor"), f"{self.path}.executor"
        dynamic, at = (
            object_below(self.spec, self.path, "dynamicAllocation"),
            f"{self.path}.dynamicAllocation",
        )
        instances = self._instances(holder, path)
        if dynamic.get("enabled") is not True:
            return (1 if instances is None else instances), ""
        least = number_at(dynamic, "minExecutors", at, default=0)
        initial = number_at(dynamic, "initialExecutors", at, default=least)
        most = None if dynamic.get("maxExecutors") is None else number_at(dynamic, "maxExecutors", at)
        if most is not None and least > most:
            raise Unusable(at, f"{at}: minExecutors {least} is more than maxExecutors {most}")
        scaled = Range(least, max(initial, instances or 0), most)
        number = scaled.number(mode)
        return number, scaled.told(number, "its dynamic allocation", "maxExecutors", "executor")

    def _instances(self, holder: Mapping[str, Any], path: str) -> int | None:
        if holder.get("instances") is not None:
            return number_at(holder, "instances", path)
        given = self.conf.get("spark.executor.instances")
        if given is None:
            return None
        where = f'{self.path}.sparkConf["spark.executor.instances"]'
        return checked_number(int(given) if str(given).isdecimal() else given, where)

    def pods(self, role: str, number: int, scaling: str, remark: str) -> PodSet:
        """The pods of a role."""
        path = f"{self.path}.{role}"
        holder = object_below(self.spec, self.path, role)
        template = object_below(holder, path, "template")
        base = dict(object_below(template, f"{path}.template", "spec"))
        members, renamed = members_of(
            holder, path, ("affinity", "hostNetwork", "priorityClassName", "tolerations")
        )
        selected = {
            **object_below(self.spec, self.path, "nodeSelector"),
            **object_below(holder, path, "nodeSelector"),
        }
        first, *others = list_at(base, "containers", f"{path}.template.spec") or [{}]
        container = {
            "name": f"spark-kubernetes-{role}",
            **first,
            "resources": self._resources(role, holder, path),
        }
        labels = object_below(holder, path, "labels")
        metadata = with_labels(template.get("metadata"), {**labels, "spark-role": role, APP_NAME: self.name})
        spec = {
            **base,
            **members,
            **({"nodeSelector": selected} if selected else {}),
            "containers": [container, *others, *list_at(holder, "sidecars", path)],
        }
        made = {"metadata": metadata, "spec": spec}
        called = f"{self.name}-{'driver' if role == 'driver' else 'exec'}"
        resources = ("spec.containers[0].resources", path)
        return PodSet("", made, number, called, renamed=(*renamed, resources), scaling=scaling, remark=remark)

    def _resources(self, role: str, holder: Mapping[str, Any], path: str) -> dict[str, Any]:
        cpu = self._first(holder, "coreRequest", f"spark.kubernetes.{role}.request.cores")
        if cpu is None:
            cpu = self._first(holder, "cores", f"spark.{role}.cores")
        amounts: dict[str, Any] = {
            "cpu": "1" if cpu is None else str(cpu),
            "memory": f"{self._memory(role, holder, path)}Mi",
        }
        gpus: dict[str, Any] = {}
        if holder.get("gpu") is not None:
            gpu = member_below(holder, path, "gpu")
            gpus = {str(gpu.get("name")): gpu.get("quantity")}
        return {"requests": {**amounts, **gpus}, "limits": {"memory": amounts["memory"], **gpus}}

    def _memory(self, role: str, holder: Mapping[str, Any], path: str) -> int:
        """MiB of a pod: the heap, and what the process needs besides."""
        given = self._first(holder, "memory", f"spark.{role}.memory")
        heap = mebibytes("1g" if given is None else given, f"{path}.memory", "m")
        more = self._first(holder, "memoryOverhead", f"spark.{role}.memoryOverhead")
        if more is not None:
            return heap + mebibytes(more, f"{path}.memoryOverhead", "m")
        interpreted = self.spec.get("type") in _INTERPRETED
        share = _OVERHEAD_OF_INTERPRETERS if interpreted else _OVERHEAD
        factor = self._first(self.spec, "memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor")
        try:
            share = share if factor is None else float(factor)
        except (TypeError, ValueError):
            where = f"{self.path}.memoryOverheadFactor"
            raise Unusable(where, f"{where}: {factor!r} is not a number; hint: 0.1 is a tenth") from None
        return heap + max(int(heap * share), _LEAST_OVERHEAD)

    def _first(self, holder: Mapping[str, Any], member: str, setting: str) -> Any:
        """A member, or else the setting of Spark that is the same."""
        given = holder.get(member)
        return self.conf.get(setting) if given is None else given
