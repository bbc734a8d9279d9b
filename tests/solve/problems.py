"""Packing problems in JSON (`tests` and the benchmark share this reader): a file -> snapshot and catalogue.

The folder of problems lies beside the checkout and may be absent; see `available`.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from immutables import Map

from nodeless.model.instance_types import Catalog, InstanceType, Offering
from nodeless.model.labels import INITIALIZED, NODE_POOL, REGISTERED
from nodeless.model.nodes import Node
from nodeless.model.pods import (
    DaemonSet,
    LabelSelector,
    NodeSelectorTerm,
    Owner,
    Pod,
    PodAffinityTerm,
    PodShape,
    TopologySpreadConstraint,
)
from nodeless.model.pools import EC2_NODE_CLASS, NODE_POOL_KIND, Pool, Reference
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import PODS, parse_resources
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, Toleration

Json = Mapping[str, Any]
FOLDER = Path(__file__).parents[2].parent / "shared" / "problems"


@dataclass(frozen=True)
class Problem:
    """A problem as `solve` takes it."""

    name: str
    snapshot: Snapshot
    catalog: Catalog


def available() -> bool:
    return FOLDER.is_dir()


def load(name: str, folder: Path = FOLDER) -> Problem:
    """A problem by name, without suffix. Raises FileNotFoundError."""
    return read(read_json(folder / f"{name}.json.gz"), folder)


def read_json(path: Path) -> Any:
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def read(problem: Json, folder: Path) -> Problem:
    types = _types(problem, folder)
    pools = [_pool(entry) for entry in problem["nodePools"]]
    daemons = [_daemon_set(entry) for entry in problem.get("daemonSets", ())]
    pods = [pod for entry in problem["pods"] for pod in _copies(entry)]
    nodes = [_node(entry) for entry in problem.get("existingNodes", ())]
    running = [
        _running(entry, node["name"], ordinal)
        for node in problem.get("existingNodes", ())
        for entry in node.get("pods", ())
        for ordinal in range(entry.get("count", 1))
    ]
    snapshot = Snapshot(
        pods=Map({pod.key: pod for pod in (*pods, *running)}),
        pods_of_node=Map(_by_node(running)),
        nodes=Map({node.name: node for node in nodes}),
        pools=Map({pool.key: pool for pool in pools}),
        daemon_sets=Map({daemon.key: daemon for daemon in daemons}),
    )
    return Problem(problem.get("name", ""), snapshot, {pool.key: types for pool in pools})


@cache
def catalogue(path: Path) -> tuple[InstanceType, ...]:
    """The instance types of a catalogue file."""
    return tuple(_instance_type(entry) for entry in read_json(path)["instanceTypes"])


def _types(problem: Json, folder: Path) -> tuple[InstanceType, ...]:
    listed = catalogue(folder / problem["catalogue"]) if "catalogue" in problem else ()
    names = problem.get("instanceTypeNames")
    kept = [kind for kind in listed if names is None or kind.name in names]
    return (*kept, *(_instance_type(entry) for entry in problem.get("instanceTypes", ())))


def _instance_type(entry: Json) -> InstanceType:
    return InstanceType(
        name=entry["name"],
        requirements=Requirements(
            Requirement.of(key, "In" if values else "DoesNotExist", values)
            for key, values in entry["requirements"].items()
        ),
        capacity=parse_resources(entry["capacity"]),
        overhead=parse_resources(entry.get("overhead")),
        offerings=tuple(
            Offering(offer["zone"], offer["capacityType"], offer["price"], offer["available"])
            for offer in entry["offerings"]
        ),
    )


def _pool(entry: Json) -> Pool:
    labels = entry.get("labels", {})
    return Pool(
        reference=Reference(NODE_POOL_KIND, entry["name"]),
        node_class=Reference(EC2_NODE_CLASS, "default"),
        weight=entry.get("weight", 0),
        labels=labels,
        taints=_taints(entry.get("taints", ())),
        startup_taints=_taints(entry.get("startupTaints", ())),
        requirements=Requirements(
            [*_expressions(entry.get("requirements", ())), *Requirements.from_labels(labels).values()]
        ),
        limits=parse_resources(entry["limits"]) if entry.get("limits") else None,
    )


def _copies(entry: Json) -> Iterable[Pod]:
    shape = _shape(entry)
    namespace = entry.get("namespace", "default")
    for ordinal in range(entry.get("count", 1)):
        name = f"{entry['name']}-{ordinal}"
        yield Pod(
            uid=f"{namespace}/{name}",
            namespace=namespace,
            name=name,
            shape=shape,
            labels=entry.get("labels", {}),
            priority=entry.get("priority", 0),
            unschedulable=True,
        )


def _running(entry: Json, node: str, ordinal: int) -> Pod:
    name = f"{entry['name']}-{node}-{ordinal}"
    namespace = entry.get("namespace", "default")
    daemon = Owner("apps/v1", "DaemonSet", entry["name"], controller=True)
    return Pod(
        uid=f"{namespace}/{name}",
        namespace=namespace,
        name=name,
        shape=_shape(entry),
        labels=entry.get("labels", {}),
        node_name=node,
        phase="Running",
        owners=(daemon,) if entry.get("daemonSet") else (),
    )


def _node(entry: Json) -> Node:
    labels = dict(entry.get("labels", {}))
    if NODE_POOL in labels:
        labels = {REGISTERED: "true", INITIALIZED: "true", **labels}
    return Node(
        name=entry["name"],
        provider_id=f"aws:///zone/{entry['name']}",
        labels=labels,
        taints=_taints(entry.get("taints", ())),
        allocatable=parse_resources(entry["allocatable"]),
        capacity=parse_resources(entry.get("capacity", entry["allocatable"])),
        ready=True,
    )


def _daemon_set(entry: Json) -> DaemonSet:
    namespace = entry.get("namespace", "default")
    return DaemonSet(entry["name"], namespace, entry["name"], _shape(entry))


def _shape(entry: Json) -> PodShape:
    requests = {**parse_resources(entry.get("requests")), PODS: 1}
    return PodShape(
        requests=tuple(sorted(requests.items())),
        node_selector=tuple(sorted(entry.get("nodeSelector", {}).items())),
        required_terms=tuple(
            NodeSelectorTerm(_expressions(term)) for term in entry.get("requiredNodeAffinity", ())
        ),
        preferred_terms=tuple(
            (term["weight"], NodeSelectorTerm(_expressions(term["matchExpressions"])))
            for term in entry.get("preferredNodeAffinity", ())
        ),
        tolerations=tuple(
            Toleration(
                entry.get("key", ""),
                entry.get("operator", "Equal"),
                entry.get("value", ""),
                entry.get("effect", ""),
            )
            for entry in entry.get("tolerations", ())
        ),
        spread=tuple(_spread(constraint) for constraint in entry.get("topologySpreadConstraints", ())),
        affinity=tuple(_affinity(term) for term in entry.get("podAffinity", ())),
        anti_affinity=tuple(_affinity(term) for term in entry.get("podAntiAffinity", ())),
    )


def _expressions(entries: Iterable[Json]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement.of(entry["key"], entry["operator"], entry.get("values", ()), entry.get("minValues"))
        for entry in entries
    )


def _taints(entries: Iterable[Json]) -> tuple[Taint, ...]:
    return tuple(Taint(entry["key"], entry["effect"], entry.get("value", "")) for entry in entries)


def _selector(entry: Json | None) -> LabelSelector | None:
    if entry is None:
        return None
    return LabelSelector(
        tuple(sorted(entry.get("matchLabels", {}).items())),
        tuple(
            (expression["key"], expression["operator"], tuple(expression.get("values", ())))
            for expression in entry.get("matchExpressions", ())
        ),
    )


def _spread(entry: Json) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        topology_key=entry["topologyKey"],
        max_skew=entry["maxSkew"],
        when_unsatisfiable=entry["whenUnsatisfiable"],
        selector=_selector(entry.get("labelSelector")),
        min_domains=entry.get("minDomains"),
        node_affinity_policy=entry.get("nodeAffinityPolicy", "Honor"),
        node_taints_policy=entry.get("nodeTaintsPolicy", "Ignore"),
        match_label_keys=tuple(entry.get("matchLabelKeys", ())),
    )


def _affinity(entry: Json) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key=entry["topologyKey"],
        selector=_selector(entry.get("labelSelector")),
        namespaces=tuple(entry.get("namespaces", ())),
        weight=entry.get("weight"),
    )


def _by_node(pods: Iterable[Pod]) -> dict[str, frozenset[str]]:
    nodes: dict[str, frozenset[str]] = {}
    for pod in pods:
        nodes[pod.node_name] = nodes.get(pod.node_name, frozenset()) | {pod.key}
    return nodes
