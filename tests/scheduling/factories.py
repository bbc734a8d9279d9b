"""Pods, pools, types and nodes with only the fields that matter to a test.

Types: price 0.1 per CPU and 0.1 per 10^9 bytes of memory; overhead 100m CPU and 10Mi; spot in z1 and
z2, on-demand in z1, z2 and z3, spot at half price.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from immutables import Map

from nodeless.model.disruption import PodDisruptionBudget
from nodeless.model.instance_types import Catalog, InstanceType, Offering
from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    PROVISIONER_NAME,
    REGISTERED,
    SPOT,
    ZONE,
)
from nodeless.model.namespaces import Namespace
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.plan import Plan, PlannedNode
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
from nodeless.model.pools import AWS_NODE_TEMPLATE, PROVISIONER, Pool, Reference
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import PODS, parse_resources
from nodeless.model.snapshot import Snapshot
from nodeless.model.volumes import CsiNode, PersistentVolumeClaim, StorageClass, Volume
from nodeless.scheduling import FEWEST_NODES, Policy, solve

SIZE = "example.com/size"
DEFAULT = f"{PROVISIONER}/default"
NOW = 1_700_000_000.0


def needs(key: str, operator: str, *values: str) -> Requirement:
    return Requirement.of(key, operator, values)


def term(*expressions: Requirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(expressions)


def pods(
    number: int,
    cpu: str = "1",
    memory: str = "0",
    *,
    name: str = "web",
    selector: Mapping[str, str] | None = None,
    extra: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    namespace: str = "default",
    **fields: object,
) -> list[Pod]:
    """Pending pods of one shape, labeled `app=<name>` unless labeled; more fields are the shape's."""
    requests = {**parse_resources({"cpu": cpu, "memory": memory, **(extra or {})}), PODS: 1}
    shape = PodShape(
        requests=tuple(sorted(requests.items())),
        node_selector=tuple(sorted((selector or {}).items())),
        **fields,  # type: ignore[arg-type]
    )
    own = {"app": name} if labels is None else labels
    return [
        Pod(f"{name}-{i}", namespace, f"{name}-{i}", shape, labels=own, unschedulable=True)
        for i in range(number)
    ]


def running(pod: Pod, node: str, *, daemon_set: str = "") -> Pod:
    return Pod(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        shape=pod.shape,
        labels=pod.labels,
        node_name=node,
        phase="Running",
        owners=(Owner("apps/v1", "DaemonSet", daemon_set, controller=True),) if daemon_set else (),
    )


def instance_type(
    name: str,
    cpu: int = 4,
    gib: int = 4,
    *,
    pods: int = 110,
    arch: str = "amd64",
    price: float | None = None,
    labels: Iterable[Requirement] = (),
    offerings: tuple[Offering, ...] | None = None,
    **capacity: str,
) -> InstanceType:
    memory = gib * 2**30
    cost = price if price is not None else round(0.1 * cpu + 0.1 * memory / 1e9, 6)
    sold = (
        *(Offering(zone, SPOT, cost / 2) for zone in ("z1", "z2")),
        *(Offering(zone, ON_DEMAND, cost) for zone in ("z1", "z2", "z3")),
    )
    known = (
        needs(INSTANCE_TYPE, "In", name),
        needs(ARCH, "In", arch),
        needs(OS, "In", "linux"),
        needs(ZONE, "In", "z1", "z2", "z3"),
        needs(CAPACITY_TYPE, "In", SPOT, ON_DEMAND),
    )
    return InstanceType(
        name=name,
        requirements=Requirements([*known, *labels]),
        capacity={"cpu": cpu * 1000, "memory": memory, "pods": pods, **parse_resources(capacity)},
        overhead={"cpu": 100, "memory": 10 * 2**20},
        offerings=sold if offerings is None else offerings,
    )


#: One family in five sizes.
FAMILY = tuple(
    instance_type(name, cpu, 4 * cpu)
    for name, cpu in (("small", 1), ("medium", 2), ("large", 4), ("xlarge", 8), ("2xlarge", 16))
)


def selecting(**labels: str) -> LabelSelector:
    return LabelSelector(tuple(sorted(labels.items())))


def spread(
    key: str, app: str = "web", skew: int = 1, *, soft: bool = False, **fields: object
) -> TopologySpreadConstraint:
    """A spread of the pods labeled `app`."""
    when = "ScheduleAnyway" if soft else "DoNotSchedule"
    fields.setdefault("selector", selecting(app=app))
    return TopologySpreadConstraint(key, skew, when, **fields)  # type: ignore[arg-type]


def beside(key: str, app: str = "web", **fields: object) -> PodAffinityTerm:
    """A term on the pods labeled `app`, for affinity and anti-affinity."""
    return PodAffinityTerm(key, selecting(app=app), **fields)  # type: ignore[arg-type]


def planned_labels(
    seen: Snapshot, new: PlannedNode, types: Iterable[InstanceType], which: int = 0
) -> dict[str, str]:
    """The labels of a planned node that is launched as one of its alternatives."""
    chosen = new.alternatives[which]
    kind = next(kind for kind in types if kind.name == chosen.instance_type)
    own = seen.pools[str(new.pool)]
    return {
        **new.requirements.single_values(),
        **own.labels,
        **kind.requirements.single_values(),
        ZONE: chosen.offering.zone,
        CAPACITY_TYPE: chosen.offering.capacity_type,
        PROVISIONER_NAME: own.name,
        INITIALIZED: "true",
        REGISTERED: "true",
    }


def carried_out(seen: Snapshot, result: Plan, types: Iterable[InstanceType] = FAMILY) -> Snapshot:
    """The cluster once the plan's nodes are up, initialized, and its pods run on them."""
    named = {kind.name: kind for kind in types}
    nodes, places = dict(seen.nodes), dict(result.placements)
    for new in result.new_nodes:
        name = f"node-{len(nodes)}"
        kind = named[new.instance_type]
        nodes[name] = Node(
            name=name,
            provider_id=f"aws:///zone/i-{name}",
            labels=planned_labels(seen, new, named.values()),
            taints=seen.pools[str(new.pool)].taints,
            allocatable=kind.allocatable,
            capacity=kind.capacity,
        )
        places.update(dict.fromkeys(new.pods, name))
    moved = [running(pod, places[key]) if key in places else pod for key, pod in seen.pods.items()]
    after = snapshot(moved, list(nodes.values()))
    return replace(seen, pods=after.pods, pods_of_node=after.pods_of_node, nodes=after.nodes)


def domains(seen: Snapshot, key: str, app: str = "web") -> dict[str, int]:
    """Running pods labeled `app` by the value of a node label."""
    found: dict[str, int] = {}
    for name in sorted(seen.nodes):
        value = {HOSTNAME: name, **seen.nodes[name].labels}.get(key)
        count = sum(pod.labels.get("app") == app for pod in seen.pods_on(name))
        if value is not None and count:
            found[value] = found.get(value, 0) + count
    return found


def daemon(name: str = "agent", cpu: str = "0", memory: str = "0", **fields: object) -> DaemonSet:
    made = pods(1, cpu, memory, name=name, **fields)[0]
    return DaemonSet(name, made.namespace, name, made.shape, made.labels)


def pool(
    name: str = "default",
    *requirements: Requirement,
    labels: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    **fields: object,
) -> Pool:
    own = dict(labels or {})
    return Pool(
        reference=Reference(PROVISIONER, name),
        node_class=Reference(AWS_NODE_TEMPLATE, "default"),
        labels=own,
        requirements=Requirements([*requirements, *Requirements.from_labels(own).values()]),
        limits=parse_resources(limits) if limits is not None else None,
        **fields,  # type: ignore[arg-type]
    )


def node(
    name: str,
    cpu: str = "4",
    memory: str = "16Gi",
    *,
    labels: Mapping[str, str] | None = None,
    **fields: object,
) -> Node:
    """An initialized node of pool default; `labels` replace its labels."""
    own = {PROVISIONER_NAME: "default", INITIALIZED: "true", REGISTERED: "true", ZONE: "z1", ARCH: "amd64"}
    fields.setdefault("provider_id", f"aws:///z1/i-{name}")
    amounts = parse_resources({"cpu": cpu, "memory": memory, "pods": 110})
    fields.setdefault("allocatable", amounts)
    fields.setdefault("capacity", amounts)
    return Node(name=name, labels=own if labels is None else labels, **fields)  # type: ignore[arg-type]


def claim(name: str, *types: str, pool_name: str = "default", **fields: object) -> NodeClaim:
    """A claim that was written but not launched, on one of some types."""
    requirements = [needs(INSTANCE_TYPE, "In", *types)] if types else []
    fields.setdefault("requirements", Requirements(requirements))
    return NodeClaim(
        name=name,
        pool=Reference(PROVISIONER, pool_name),
        node_class=Reference(AWS_NODE_TEMPLATE, "default"),
        **fields,  # type: ignore[arg-type]
    )


def claim_for(planned: PlannedNode, name: str = "default-aaaaa", **fields: object) -> NodeClaim:
    """The claim that a planned node becomes: its requirements, and its types by name."""
    names = (alternative.instance_type for alternative in planned.alternatives)
    types = needs(INSTANCE_TYPE, "In", *names)
    return claim(
        name,
        pool_name=planned.pool.name,
        requirements=Requirements([*planned.requirements.values(), types]),
        **fields,
    )


def flatten(things: Iterable[object]) -> list[object]:
    """Things, and the members of lists of things, however deep."""
    return [one for thing in things for one in (flatten(thing) if isinstance(thing, list) else [thing])]


def snapshot(*things: object) -> Snapshot:
    """Any pods, pools, nodes, claims, daemon sets and budgets (lists of them too) as one snapshot."""
    flat = flatten(things)
    seen = [thing for thing in flat if isinstance(thing, Pod)]
    by_node: dict[str, frozenset[str]] = {}
    for pod in seen:
        if pod.node_name:
            by_node[pod.node_name] = by_node.get(pod.node_name, frozenset()) | {pod.key}
    return Snapshot(
        pods=Map({pod.key: pod for pod in seen}),
        pods_of_node=Map(by_node),
        nodes=Map({thing.name: thing for thing in flat if isinstance(thing, Node)}),
        claims=Map({thing.name: thing for thing in flat if isinstance(thing, NodeClaim)}),
        pools=Map({thing.key: thing for thing in flat if isinstance(thing, Pool)}),
        daemon_sets=Map({thing.key: thing for thing in flat if isinstance(thing, DaemonSet)}),
        namespaces=Map({thing.name: thing for thing in flat if isinstance(thing, Namespace)}),
        volume_claims=Map({thing.key: thing for thing in flat if isinstance(thing, PersistentVolumeClaim)}),
        volumes=Map({thing.name: thing for thing in flat if isinstance(thing, Volume)}),
        storage_classes=Map({thing.name: thing for thing in flat if isinstance(thing, StorageClass)}),
        csi_nodes=Map({thing.name: thing for thing in flat if isinstance(thing, CsiNode)}),
        disruption_budgets=Map(
            {thing.key: thing for thing in flat if isinstance(thing, PodDisruptionBudget)}
        ),
    )


def plan(*things: object, types: tuple[InstanceType, ...] = FAMILY, policy: Policy | None = None) -> Plan:
    """The plan for a snapshot of these things; every pool (default, if none is given) may buy `types`."""
    if not any(isinstance(thing, Pool) for thing in flatten(things)):
        things = (*things, pool())
    seen = snapshot(*things)
    catalog: Catalog = dict.fromkeys(seen.pools, types)
    return solve(seen, catalog, policy or Policy(packing=FEWEST_NODES))


def new_types(result: Plan) -> list[str]:
    """The intended type of each new node, in the plan's order."""
    return [node.instance_type for node in result.new_nodes]


def codes(result: Plan) -> list[str]:
    """The refusals' codes, in the order of the pods' keys."""
    return [refusal.code for refusal in result.refusals]
