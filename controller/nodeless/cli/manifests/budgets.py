"""How many evictions a PodDisruptionBudget of manifests allows, which its status says in a cluster only."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nodeless.cli.manifests.members import (
    Unusable,
    is_kind,
    mapping_at,
    metadata_of,
    namespace_of,
    status_of,
)
from nodeless.model.disruption import PodDisruptionBudget
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.selecting import selects

_LOWER, _UPPER = "minAvailable", "maxUnavailable"


def is_uncounted(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is a budget of which no cluster has counted the pods."""
    counted = "disruptionsAllowed" in status_of(manifest)
    return is_kind(manifest, "policy", "PodDisruptionBudget") and not counted


def counted_budget(manifest: Mapping[str, Any], snapshot: Snapshot) -> PodDisruptionBudget | None:
    """The budget with what it allows for the pods of a snapshot, which run all. Raises Unusable."""
    name = metadata_of(manifest).get("name")
    budget = snapshot.disruption_budgets.get(f"{namespace_of(manifest)}/{name}")
    if budget is None:
        return None
    selected = [
        pod
        for pod in snapshot.pods.values()
        if pod.namespace == budget.namespace and pod.occupies and selects(budget.selector, pod.labels)
    ]
    running = sum(1 for pod in selected if pod.node_name)
    spec = mapping_at(manifest, "spec")
    if spec.get(_UPPER) is not None:
        needed = len(selected) - _scaled(spec, _UPPER, len(selected))
    elif spec.get(_LOWER) is not None:
        needed = _scaled(spec, _LOWER, len(selected))
    else:
        needed = 0
    # Pods of manifests say nothing of their health: all count as Ready.
    allowed = max(running - max(needed, 0), 0)
    return replace(budget, disruptions_allowed=allowed, always_evicts_unhealthy=False)


def _scaled(spec: Mapping[str, Any], member: str, pods: int) -> int:
    """A number of pods, or a share of them, rounded up as the control plane does."""
    found, path = spec[member], f"spec.{member}"
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return found
    if isinstance(found, str) and found.endswith("%") and found[:-1].isascii() and found[:-1].isdigit():
        return math.ceil(int(found[:-1]) * pods / 100)
    raise Unusable(path, f"{path}: {found!r} is not a number of pods; hint: a whole number, or 50%")
