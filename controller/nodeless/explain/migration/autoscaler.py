"""The flags of Cluster Autoscaler, as far as pools have a counterpart of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from nodeless.explain.migration.ledger import Ledger

PRIORITIES = "cluster-autoscaler-priority-expander"
#: Keys of taints that the autoscaler by itself expects to be removed from new nodes.
_STARTUP_PREFIXES = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)
#: What agents of networks and volumes remove from a node when they run there.
_AGENT_STARTS = "/agent-not-ready"
_LARGEST_WEIGHT = 100
_STARTUP_TAINTS = "NodePool spec.template.spec.startupTaints"
_OWN = "configures only the autoscaler's own process"
_CHEAPEST = "nodeless launches what costs least for all pending pods together"
_CONSOLIDATION = "consolidation compares prices and asks whether pods fit elsewhere, not how full a node is"
_TRIES = "a launch whose node does not register is replaced after 15 minutes"
_BUDGETS = "the pool's disruption budget limits how many nodes go at once; hint: spec.disruption.budgets"
_OWN_FLAGS = (
    "address",
    "cloud-config",
    "cloud-provider",
    "kubeconfig",
    "kubernetes",
    "leader-elect",
    "log",
    "logtostderr",
    "namespace",
    "profiling",
    "regional",
    "scan-interval",
    "stderrthreshold",
    "user-agent",
    "v",
    "vmodule",
    "write-status-configmap",
    "status-config-map-name",
    "aws-use-static-instance-list",
    "record-duplicated-events",
    "emit-per-nodegroup-metrics",
    "alsologtostderr",
    "kube-client",
    "cordon-node-before-terminating",
    "clusterapi",
    "feature-gates",
    "max-inactivity",
    "max-failing-time",
    "logging-format",
)
_REASONS: dict[str, tuple[str, bool]] = {
    "balance-similar-node-groups": (
        "nodes are launched in the zones that pods require; hint: spread pods by "
        "topologySpreadConstraints on the zone",
        True,
    ),
    "balancing-ignore-label": ("there are no groups to balance", False),
    "balancing-label": ("there are no groups to balance", False),
    "scale-down-utilization-threshold": (_CONSOLIDATION, True),
    "scale-down-gpu-utilization-threshold": (_CONSOLIDATION, True),
    "scale-down-delay-after-add": ("consolidateAfter starts again with each change of a node's pods", True),
    "scale-down-delay-after-delete": (
        "removing a node does not delay the next one; budgets limit them",
        True,
    ),
    "scale-down-delay-after-failure": (
        "nodeless waits by itself before it tries a failed command again",
        False,
    ),
    "scale-down-unready-time": ("nodes that are not ready are repaired after 30 minutes", True),
    "scale-down-unready-enabled": ("nodes that are not ready are repaired after 30 minutes", True),
    "scale-down-candidates-pool-ratio": ("nodeless considers all nodes", False),
    "scale-down-candidates-pool-min-count": ("nodeless considers all nodes", False),
    "scale-down-non-empty-candidates-count": ("nodeless considers all nodes", False),
    "max-node-provision-time": (_TRIES, False),
    "max-empty-bulk-delete": (_BUDGETS, True),
    "max-scale-down-parallelism": (_BUDGETS, True),
    "max-drain-parallelism": (_BUDGETS, True),
    "max-graceful-termination-sec": (
        "pods have their whole grace period; terminationGracePeriod of a pool would override budgets of pods",
        True,
    ),
    "max-pod-eviction-time": ("evictions are tried until they succeed", False),
    "max-nodes-total": (
        "each pool has its own limits; hint: divide the value among the pools' spec.limits",
        True,
    ),
    "cores-total": (
        "each pool has its own limits; hint: divide the value among the pools' spec.limits",
        True,
    ),
    "memory-total": (
        "each pool has its own limits; hint: divide the value among the pools' spec.limits",
        True,
    ),
    "gpu-total": ("each pool has its own limits; hint: divide the value among the pools' spec.limits", True),
    "max-total-unready-percentage": ("launches continue even if many nodes are not ready", True),
    "ok-total-unready-count": ("launches continue even if many nodes are not ready", True),
    "new-pod-scale-up-delay": (
        "pods are planned after a second without new pods, or after ten seconds at most",
        True,
    ),
    "unremovable-node-recheck-timeout": ("nodeless considers nodes again when something changes", False),
    "node-delete-delay-after-taint": ("a node is drained at once when it has its taint", False),
    "daemonset-eviction-for-empty-nodes": ("DaemonSet pods stay until their node terminates", True),
    "daemonset-eviction-for-occupied-nodes": ("DaemonSet pods stay until their node terminates", True),
    "ignore-daemonsets-utilization": (_CONSOLIDATION, False),
    "ignore-mirror-pods-utilization": (_CONSOLIDATION, False),
    "min-replica-count": (
        "pods of small ReplicaSets are moved as well; hint: give them a PodDisruptionBudget",
        True,
    ),
    "skip-nodes-with-custom-controller-pods": ("pods of any controller are moved", True),
    "max-bulk-soft-taint-count": ("there are no soft taints", False),
    "max-bulk-soft-taint-time": ("there are no soft taints", False),
    "initial-node-group-backoff-duration": (
        "nodeless avoids offerings without capacity for three minutes",
        False,
    ),
    "max-node-group-backoff-duration": (
        "nodeless avoids offerings without capacity for three minutes",
        False,
    ),
    "node-group-backoff-reset-timeout": (
        "nodeless avoids offerings without capacity for three minutes",
        False,
    ),
    "enforce-node-group-min-size": ("there is no minimum: unneeded nodes are removed", True),
    "force-ds": ("DaemonSets are always counted on new nodes", False),
}


@dataclass(slots=True)
class Autoscaler:
    """What the flags say."""

    found: bool = False
    deployment: str = ""
    """`namespace/name`; empty: not in the input."""
    replicas: int = 1
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Least and most nodes of each group of `--nodes`."""
    discovery: list[dict[str, str | None]] = field(default_factory=list)
    """Tags by which groups are found: all of one entry must be there; None: any value."""
    scale_down: bool = True
    unneeded_time: str = "10m"
    skips_local_storage: bool = True
    skips_system_pods: bool = True
    expendable_below: int = -10
    startup_taints: tuple[str, ...] = ()
    """Keys of taints that are removed from new nodes."""
    startup_prefixes: tuple[str, ...] = _STARTUP_PREFIXES
    """What keys of such taints begin with."""
    priorities: list[tuple[int, str]] = field(default_factory=list)
    """Priority and the expression that a group's name matches."""
    by_priority: bool = False

    def serves(self, names: Sequence[str], tags: Mapping[str, str]) -> bool:
        """Whether it changes the size of a group, by its names or its tags; unknown counts as yes."""
        if not self.found or not (self.groups or self.discovery):
            return True
        if any(name in self.groups for name in names):
            return True
        return any(
            all(key in tags and value in (None, tags[key]) for key, value in wanted.items())
            for wanted in self.discovery
        )

    def is_startup_taint(self, key: str) -> bool:
        """Whether a taint of this key is only on nodes that start, so that pods need not tolerate it."""
        named = key in self.startup_taints or key.startswith(self.startup_prefixes)
        return named or key.endswith(_AGENT_STARTS)

    def weight(self, names: Sequence[str]) -> int:
        """The weight of a group's pool: the rank of its highest priority that matches; 0: none does."""
        if not self.by_priority:
            return 0
        ranks = sorted({priority for priority, _ in self.priorities})
        step = max(min(10, _LARGEST_WEIGHT // max(len(ranks), 1)), 1)
        found = [
            priority
            for priority, pattern in self.priorities
            if any(_matches(pattern, name) for name in names)
        ]
        return min((ranks.index(max(found)) + 1) * step, _LARGEST_WEIGHT) if found else 0


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def is_autoscaler(manifest: Mapping[str, Any]) -> bool:
    """Whether a Deployment is that of Cluster Autoscaler, by image or command."""
    if manifest.get("kind") != "Deployment":
        return False
    return any(
        "cluster-autoscaler" in _last(container.get("image")) or _is_command(container)
        for container in _containers(manifest)
    )


def _last(image: Any) -> str:
    return str(image or "").rpartition("/")[2].partition("@")[0]


def _is_command(container: Mapping[str, Any]) -> bool:
    words = _words(container)
    return bool(words) and words[0].rpartition("/")[2] == "cluster-autoscaler"


def _containers(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    value: Any = manifest
    for name in ("spec", "template", "spec", "containers"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _words(container: Mapping[str, Any]) -> list[str]:
    parts = [container.get("command"), container.get("args")]
    return [str(word) for part in parts if isinstance(part, list) for word in part]


def read_autoscaler(manifest: Mapping[str, Any], ledger: Ledger) -> Autoscaler:
    """The flags of a Deployment of Cluster Autoscaler."""
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    found = Autoscaler(True, f"{named.get('namespace') or 'default'}/{named.get('name')}")
    spec = manifest.get("spec")
    replicas = spec.get("replicas") if isinstance(spec, Mapping) else None
    found.replicas = replicas if isinstance(replicas, int) else 1
    source = f"Deployment/{named.get('name')}"
    container = next(
        (one for one in _containers(manifest) if "autoscaler" in _last(one.get("image")) or _is_command(one)),
        {},
    )
    for name, value in _flags(_words(container)):
        _read_flag(found, name, value, source, ledger)
    return found


def _flags(words: list[str]) -> list[tuple[str, str]]:
    """The flags of a command line, in their order."""
    flags = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("-"):
            continue
        name, has_value, value = word.lstrip("-").partition("=")
        if not has_value and at < len(words) and not words[at].startswith("-"):
            value, at = words[at], at + 1
        flags.append((name, value if has_value or value else "true"))
    return flags


def _read_flag(found: Autoscaler, name: str, value: str, source: str, ledger: Ledger) -> None:
    member, is_on = f"--{name}", value.lower() not in ("false", "f", "0")
    pools = "NodePool spec.disruption"
    if name == "nodes" and (sizes := re.fullmatch(r"(\d+):(\d+):(.+)", value)):
        found.groups[sizes[3]] = (int(sizes[1]), int(sizes[2]))
        ledger.carry(source, f"{member}={value}", "which groups are migrated, and NodePool spec.limits")
    elif name == "node-group-auto-discovery":
        _, _, text = value.partition("tag=")
        pairs = (pair.partition("=") for pair in text.split(",") if pair)
        found.discovery.append({key.strip(): value if has else None for key, has, value in pairs})
        ledger.carry(source, member, "which groups are migrated")
    elif name == "scale-down-enabled":
        found.scale_down = is_on
        ledger.carry(source, member, f"{pools}.budgets")
    elif name == "scale-down-unneeded-time":
        found.unneeded_time = value
        ledger.carry(source, member, f"{pools}.consolidateAfter")
    elif name == "skip-nodes-with-local-storage":
        found.skips_local_storage = is_on
        ledger.carry(source, member, "which pods behave differently")
    elif name == "skip-nodes-with-system-pods":
        found.skips_system_pods = is_on
        ledger.carry(source, member, "which pods behave differently")
    elif name == "expendable-pods-priority-cutoff" and re.fullmatch(r"-?\d+", value):
        found.expendable_below = int(value)
        ledger.carry(source, member, "which pods behave differently")
    elif name in ("startup-taint", "ignore-taint"):
        found.startup_taints += (value,)
        ledger.carry(source, member, _STARTUP_TAINTS)
    elif name == "startup-taint-prefix":
        found.startup_prefixes += (value,)
        ledger.carry(source, member, _STARTUP_TAINTS)
    elif name == "expander":
        found.by_priority = "priority" in value.split(",")
        if found.by_priority:
            ledger.carry(source, member, "NodePool spec.weight")
        else:
            ledger.leave(source, member, value, _CHEAPEST, matters=value not in ("least-waste", "price"))
    elif name in _REASONS:
        reason, matters = _REASONS[name]
        if is_on:
            ledger.leave(source, member, value, reason, matters=matters)
    elif name.startswith(_OWN_FLAGS):
        ledger.leave(source, member, value, _OWN, matters=False)
    else:
        ledger.leave(
            source,
            member,
            value,
            "this flag has no known counterpart; hint: check whether you need what it does",
        )


def read_priorities(manifest: Mapping[str, Any], found: Autoscaler, ledger: Ledger) -> None:
    """The ConfigMap of the priority expander: a list of expressions for each priority."""
    source, data = f"ConfigMap/{PRIORITIES}", manifest.get("data")
    text = data.get("priorities") if isinstance(data, Mapping) else None
    try:
        read = yaml.safe_load(str(text or ""))
    except yaml.YAMLError:
        read = None
    if not isinstance(read, dict) or not all(isinstance(key, int) for key in read):
        ledger.leave(source, "priorities", text or "", "is not a map of priorities to lists of expressions")
        return
    for priority, patterns in read.items():
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            found.priorities.append((priority, str(pattern)))
    if found.by_priority:
        ledger.carry(source, "priorities", "NodePool spec.weight")
    else:
        ledger.leave(
            source, "priorities", read, "the expander is not priority, so it has no effect", matters=False
        )


def is_priorities(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is the ConfigMap of the priority expander."""
    metadata = manifest.get("metadata")
    return (
        manifest.get("kind") == "ConfigMap"
        and isinstance(metadata, Mapping)
        and metadata.get("name") == PRIORITIES
    )
