"""Packing problems: one JSON document with pools, pods, nodes and instance types.

The fields carry Kubernetes' names and meanings; `packing_members` lists them. A document is
checked as a whole, and an unknown member is a fault: a figure for half a problem would be worth
nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from immutables import Map

from nodeless.api.errors import ABSENT, FieldError, InvalidObject
from nodeless.api.packing_members import faults_of
from nodeless.api.rule_codes import RuleCode
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
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem as `solve` takes it."""

    name: str
    snapshot: Snapshot
    catalog: Catalog
    ignore_preferences: bool
    pods: Mapping[str, str]
    """Key of each pod to place, and its name in the problem."""


def read_catalog(document: Any) -> tuple[InstanceType, ...]:
    """The instance types of a catalog file.

    Raises:
        InvalidObject: a member is missing, unknown or of the wrong kind.
    """
    _require(document, "catalog")
    return _read_guarded("the catalog", lambda: _instance_types(document["instanceTypes"]))


def read_problem(document: Any, catalog: Sequence[InstanceType] = ()) -> Problem:
    """The problem that a document describes.

    Args:
        document: The parsed JSON.
        catalog: The types of the file that the document names.

    Raises:
        InvalidObject: a member is missing, unknown or of the wrong kind, or a quantity or operator is none.
    """
    _require(document, "problem")
    return _read_guarded("the problem", lambda: _read(document, catalog))


def _require(document: Any, kind: str) -> None:
    faults = faults_of(document, kind)
    if faults:
        raise InvalidObject(f"the {kind}", faults)


def _read_guarded(subject: str, read: Callable[[], T]) -> T:
    """Faults in values (quantities, operators, bounds) as faults of the object."""
    try:
        return read()
    except (ValueError, IndexError) as error:
        raise InvalidObject(
            subject, [FieldError("a value", ABSENT, str(error), code=RuleCode.INVALID_FORMAT)]
        ) from None


def _read(document: Json, catalog: Sequence[InstanceType]) -> Problem:
    names = document.get("instanceTypeNames")
    wanted = None if names is None else frozenset(names)
    types = tuple(kind for kind in catalog if wanted is None or kind.name in wanted)
    types += _instance_types(document.get("instanceTypes", ()))
    pools = [_pool(entry) for entry in document["nodePools"]]
    # Of a million pods each key is a single string, which is the pod's uid, too.
    pods: dict[str, Pod] = {}
    names_of_pods: dict[str, str] = {}
    for entry in document["pods"]:
        for pod in _copies(entry):
            pods[pod.uid] = pod
            names_of_pods[pod.uid] = entry["name"]
    existing = document.get("existingNodes", ())
    running = [
        _daemon_pod(entry, node["name"], ordinal)
        for node in existing
        for entry in node.get("pods", ())
        for ordinal in range(entry.get("count", 1))
    ]
    daemons = [_daemon_set(entry) for entry in document.get("daemonSets", ())]
    by_node: dict[str, set[str]] = {}
    for pod in running:
        by_node.setdefault(pod.node_name, set()).add(pod.key)
        pods[pod.key] = pod
    snapshot = Snapshot(
        pods=Map(pods),
        pods_of_node=Map({name: frozenset(keys) for name, keys in by_node.items()}),
        nodes=Map({entry["name"]: _node(entry) for entry in existing}),
        pools=Map({pool.key: pool for pool in pools}),
        daemon_sets=Map({daemon.key: daemon for daemon in daemons}),
    )
    return Problem(
        document.get("name", ""),
        snapshot,
        {pool.key: types for pool in pools},
        document.get("preferencePolicy", "Respect") == "Ignore",
        names_of_pods,
    )


def _instance_types(entries: Iterable[Json]) -> tuple[InstanceType, ...]:
    """The types; equal labels of theirs are one object."""
    known: dict[tuple[str, tuple[str, ...]], Requirement] = {}

    def label(key: str, values: tuple[str, ...]) -> Requirement:
        if (key, values) not in known:
            known[key, values] = Requirement.of(key, "In" if values else "DoesNotExist", values)
        return known[key, values]

    return tuple(
        _instance_type(
            entry, Requirements(label(key, tuple(values)) for key, values in entry["requirements"].items())
        )
        for entry in entries
    )


def _instance_type(entry: Json, labels: Requirements) -> InstanceType:
    return InstanceType(
        name=entry["name"],
        requirements=labels,
        capacity=parse_resources(entry["capacity"]),
        overhead=parse_resources(entry.get("overhead")),
        offerings=tuple(
            Offering(offer["zone"], offer["capacityType"], offer["price"], offer.get("available", True))
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
    labels, annotations = entry.get("labels", {}), dict[str, str]()
    for ordinal in range(entry.get("count", 1)):
        name = f"{entry['name']}-{ordinal}"
        yield Pod(
            uid=f"{namespace}/{name}",
            namespace=namespace,
            name=name,
            shape=shape,
            labels=labels,
            annotations=annotations,
            priority=entry.get("priority", 0),
            unschedulable=True,
        )


def _daemon_pod(entry: Json, node: str, ordinal: int) -> Pod:
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
    return DaemonSet(entry["name"], entry.get("namespace", "default"), entry["name"], _shape(entry))


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
                toleration.get("key", ""),
                toleration.get("operator", "Equal"),
                toleration.get("value", ""),
                toleration.get("effect", ""),
            )
            for toleration in entry.get("tolerations", ())
        ),
        spread=tuple(map(_spread, entry.get("topologySpreadConstraints", ()))),
        affinity=tuple(map(_affinity, entry.get("podAffinity", ()))),
        anti_affinity=tuple(map(_affinity, entry.get("podAntiAffinity", ()))),
    )


def _expressions(entries: Iterable[Json]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement.of(entry["key"], entry["operator"], entry.get("values") or (), entry.get("minValues"))
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
            (expression["key"], expression["operator"], tuple(expression.get("values") or ()))
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
