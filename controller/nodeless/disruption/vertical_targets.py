"""Room for what VerticalPodAutoscalers recommend: running pods count with the size that they will have.

A pod counts with what it requests and, container by container, with what its autoscaler's target is above
that. So a node that is consolidated gets a replacement that its pods can grow on, and nodes that take pods
keep room for those that run there. A target below the request changes nothing: the pod may never shrink.
One that no instance type of any pool can hold does not count either: no node could be replaced for it. Pods
that wait are planned with what they request, as kube-scheduler places them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import cast

from immutables import Map

from nodeless.model.identity import Identity
from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.pods import Pod, PodShape
from nodeless.model.resources import Resources, fits
from nodeless.model.snapshot import Snapshot
from nodeless.model.vertical_autoscaling import VerticalPodAutoscaler
from nodeless.model.workloads import Workload, workload_of

_Growth = tuple[tuple[str, int], ...]


def with_vertical_targets(snapshot: Snapshot, catalog: Catalog) -> Snapshot:
    """The cluster with its running pods as large as their autoscalers want them."""
    if not snapshot.vertical_autoscalers:
        return snapshot
    types = (catalog[key] for key in sorted(catalog))
    return replace(snapshot, pods=_grow_pods(Identity(snapshot.pods, snapshot.vertical_autoscalers, *types)))


@lru_cache(maxsize=2)
def _grow_pods(of: Identity) -> Map[str, Pod]:
    """The very same pods for the very same cluster: what searches found in it stays right."""
    pods: Map[str, Pod]
    autoscalers: Map[str, VerticalPodAutoscaler]
    pods, autoscalers, *catalog = of.objects  # type: ignore[assignment]
    sizes = _sizes(cast("list[tuple[InstanceType, ...]]", catalog))
    by_workload: dict[Workload, VerticalPodAutoscaler] = {}
    for _, autoscaler in sorted(autoscalers.items()):
        if autoscaler.applies and autoscaler.recommended:
            target = Workload(autoscaler.namespace, autoscaler.kind, autoscaler.target)
            by_workload.setdefault(target, autoscaler)
    namespaces = {workload.namespace for workload in by_workload}
    shapes: dict[tuple[PodShape, _Growth], PodShape] = {}
    after = pods.mutate()
    for key, pod in pods.items():
        if pod.namespace not in namespaces or not pod.node_name or not pod.occupies:
            continue
        found = by_workload.get(workload_of(pod))
        growth = _growth(pod, found) if found is not None else ()
        if growth:
            memo = (pod.shape, growth)
            if memo not in shapes:
                shapes[memo] = _larger(pod.shape, dict(growth), sizes)
            after[key] = replace(pod, shape=shapes[memo])
    return after.finish()


def _growth(pod: Pod, autoscaler: VerticalPodAutoscaler) -> _Growth:
    """How much more than it requests a pod is going to have."""
    wanted = dict(autoscaler.recommended)
    growth: dict[str, int] = {}
    for name, requests in pod.container_requests:
        asked = dict(requests)
        for resource, amount in wanted.get(name, ()):
            growth[resource] = growth.get(resource, 0) + max(amount - asked.get(resource, 0), 0)
    return tuple(sorted((resource, amount) for resource, amount in growth.items() if amount))


def _sizes(catalog: Iterable[tuple[InstanceType, ...]]) -> list[Resources]:
    """What nodes of all types have for pods."""
    # Pools often share their types.
    distinct = {Identity(types): types for types in catalog}.values()
    return [instance_type.allocatable for types in distinct for instance_type in types]


def _larger(shape: PodShape, growth: Mapping[str, int], sizes: Iterable[Resources]) -> PodShape:
    """The shape with more of some resources; itself where no node would hold that."""
    requests = dict(shape.requests)
    for resource, amount in growth.items():
        requests[resource] = requests.get(resource, 0) + amount
    if not any(fits(requests, size) for size in sizes):
        return shape
    return replace(shape, requests=tuple(sorted(requests.items())))
