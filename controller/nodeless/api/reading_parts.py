"""Manifests to the model: parts that several kinds have."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nodeless.api.ec2_kubelet import Ec2Kubelet
from nodeless.api.metav1 import ConditionDefinition, Quantity, RequirementDefinition, TaintDefinition
from nodeless.api.provisioner import KubeletConfiguration
from nodeless.api.requirements_v1 import RequirementV1
from nodeless.api.times import parse_time
from nodeless.model.conditions import Condition
from nodeless.model.pools import Kubelet
from nodeless.model.requirements import Requirement
from nodeless.model.taints import Taint


def read_requirement(requirement: RequirementDefinition) -> Requirement:
    min_values = requirement.min_values if isinstance(requirement, RequirementV1) else None
    return Requirement.of(requirement.key, requirement.operator, requirement.values or (), min_values)


def read_taints(taints: Iterable[TaintDefinition] | None) -> tuple[Taint, ...]:
    return tuple(Taint(taint.key, taint.effect, taint.value or "") for taint in taints or ())


def read_conditions(conditions: Iterable[ConditionDefinition] | None) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=condition.type,
            status=condition.status,
            reason=condition.reason or "",
            message=condition.message or "",
            last_transition_time=parse_time(condition.last_transition_time)
            if condition.last_transition_time
            else 0.0,
            observed_generation=condition.observed_generation or 0,
        )
        for condition in conditions or ()
    )


def conditions_of(manifest: Mapping[str, Any]) -> tuple[Condition, ...]:
    """The conditions of an object that is otherwise not readable; none when they are not either."""
    status = manifest.get("status")
    try:
        listed = msgspec.convert((status or {}).get("conditions") or [], list[ConditionDefinition])
        return read_conditions(listed)
    except (msgspec.ValidationError, ValueError, AttributeError):
        return ()


def read_kubelet(kubelet: KubeletConfiguration | Ec2Kubelet | None) -> Kubelet:
    if kubelet is None:
        return Kubelet()
    return Kubelet(
        cluster_dns=tuple(kubelet.cluster_dns or ()),
        container_runtime=kubelet.container_runtime if isinstance(kubelet, KubeletConfiguration) else None,
        max_pods=kubelet.max_pods,
        pods_per_core=kubelet.pods_per_core,
        system_reserved=_as_spelled(kubelet.system_reserved),
        kube_reserved=_as_spelled(kubelet.kube_reserved),
        eviction_hard=_as_spelled(kubelet.eviction_hard),
        eviction_soft=_as_spelled(kubelet.eviction_soft),
        eviction_soft_grace_period=_as_spelled(kubelet.eviction_soft_grace_period),
        eviction_max_pod_grace_period=kubelet.eviction_max_pod_grace_period,
        image_gc_high_threshold_percent=kubelet.image_gc_high_threshold_percent,
        image_gc_low_threshold_percent=kubelet.image_gc_low_threshold_percent,
        cpu_cfs_quota=kubelet.cpu_cfs_quota,
    )


def _as_spelled(values: Mapping[str, Quantity] | Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in sorted((values or {}).items()))
