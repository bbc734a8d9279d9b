"""Pods by their workloads: who is concerned, and by how many pods."""

from collections.abc import Iterable

from nodeless.explain.words import listed
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of


def workloads_of(snapshot: Snapshot, pods: Iterable[str]) -> tuple[tuple[Workload, int], ...]:
    """The workloads of pods, by key, each with how many of these are its own."""
    counts: dict[Workload, int] = {}
    for key in pods:
        workload = workload_of(snapshot.pods[key])
        counts[workload] = counts.get(workload, 0) + 1
    return tuple(sorted(counts.items()))


def holding(workloads: tuple[tuple[Workload, int], ...], shown: int = 3) -> str:
    """`12 x web, 3 x api, debug and 2 others`."""
    return listed([f"{number} x {one.name}" if number > 1 else one.name for one, number in workloads], shown)
