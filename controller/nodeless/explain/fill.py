"""What each node holds after a plan: its size, what it costs, and what every workload takes of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nodeless.model.bill import BillPart
from nodeless.model.commitments import Commitment
from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.labels import NODE_POOL, OS, PROVISIONER_NAME, ZONE
from nodeless.model.node_offerings import NodePrices
from nodeless.model.nodes import Node, NodeClaim, capacity_type_of
from nodeless.model.plan import Plan, PlannedNode
from nodeless.model.pods import Pod
from nodeless.model.resources import PODS, Resources, subtract, total
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of
from nodeless.scheduling.capacity.coverage import running_coverage

NEW, EXISTING, STARTING = "new", "existing", "starting"


@dataclass(frozen=True, slots=True)
class Share:
    """What the pods of one workload take of a node."""

    workload: Workload
    pods: int
    requests: Resources = field(hash=False)
    arriving: int = 0
    """How many of the pods come by the plan."""
    keys: tuple[str, ...] = ()
    """Keys (`namespace/name`) of the pods, sorted."""


@dataclass(frozen=True, slots=True)
class NodeFill:
    """One node with what is on it; `price` in US dollars an hour, None when it is not known."""

    name: str
    state: str
    """`new`, `existing`, or `starting` for a claim whose node has not appeared."""
    pool: str
    instance_type: str
    zone: str
    capacity_type: str
    price: float | None
    allocatable: Resources = field(hash=False)
    daemons: Resources = field(hash=False)
    """What DaemonSets take of a new node; on nodes that exist their pods are among the shares."""
    shares: tuple[Share, ...]
    parts: tuple[BillPart, ...] = ()
    """What the price is made of, the instance first; none where it is not known."""

    @property
    def used(self) -> dict[str, int]:
        return total((self.daemons, *(share.requests for share in self.shares)))

    @property
    def pods(self) -> int:
        return sum(share.pods for share in self.shares)

    def fraction(self, resource: str) -> float:
        """How full it is, 0 to 1 and above."""
        size = self.allocatable.get(resource, 0)
        return self.used.get(resource, 0) / size if size else 0.0


def new_nodes(snapshot: Snapshot, catalog: Catalog, plan: Plan) -> tuple[NodeFill, ...]:
    """The nodes to launch, in the plan's order, named `new-1` and so on."""
    named = {key: {kind.name: kind for kind in kinds} for key, kinds in catalog.items()}
    return tuple(
        _new_node(snapshot, named.get(str(node.pool), {}), node, f"new-{number}")
        for number, node in enumerate(plan.new_nodes, 1)
    )


def existing_nodes(
    snapshot: Snapshot, catalog: Catalog, plan: Plan, commitments: Sequence[Commitment] = ()
) -> tuple[NodeFill, ...]:
    """Nodes that exist and claims that start, by name, with the pods that the plan sends there.

    Args:
        snapshot: The cluster.
        catalog: What each pool may buy, at the prices of nodes.
        plan: For the pods that wait there.
        commitments: Those that count now; what they cover is off the bills.
    """
    coverage = running_coverage(snapshot, catalog, commitments)
    arriving: dict[str, list[Pod]] = {}
    for key, name in plan.placements.items():
        arriving.setdefault(name, []).append(snapshot.pods[key])
    moved = {key for node in plan.new_nodes for key in node.pods} | set(plan.placements)
    prices = NodePrices(catalog)
    fills = []
    for name, node in sorted(snapshot.nodes.items()):
        claim = snapshot.claim_of(node)
        staying = [pod for pod in snapshot.pods_on(name) if not pod.terminal and pod.key not in moved]
        guests = [*arriving.get(name, ()), *(arriving.get(claim.name, ()) if claim else ())]
        off = coverage.parts.get(name if claim is None else claim.name, ())
        fills.append(
            _existing_node(node, node.labels, node.allocatable, EXISTING, (prices, off), staying, guests)
        )
    for name, claim in sorted(snapshot.claims.items()):
        if snapshot.node_of(claim) is None and claim.deletion_timestamp is None:
            fills.append(
                _existing_node(
                    claim,
                    claim.labels,
                    claim.allocatable,
                    STARTING,
                    (prices, coverage.parts.get(name, ())),
                    (),
                    arriving.get(name, ()),
                )
            )
    return tuple(fills)


def _new_node(
    snapshot: Snapshot, types: Mapping[str, InstanceType], node: PlannedNode, name: str
) -> NodeFill:
    shares = _shares((), [snapshot.pods[key] for key in node.pods])
    kind = types.get(node.instance_type)
    daemons = subtract(node.requests, total(share.requests for share in shares))
    offering = node.alternatives[0].offering
    return NodeFill(
        name,
        NEW,
        str(node.pool),
        node.instance_type,
        offering.zone,
        offering.capacity_type,
        node.price,
        {} if kind is None else kind.allocatable,
        {resource: amount for resource, amount in daemons.items() if amount > 0},
        shares,
        offering.parts,
    )


def _existing_node(
    thing: Node | NodeClaim,
    labels: Mapping[str, str],
    allocatable: Resources,
    state: str,
    prices: tuple[NodePrices, Sequence[BillPart]],
    staying: Iterable[Pod],
    arriving: Iterable[Pod],
) -> NodeFill:
    pool = str(thing.pool) if isinstance(thing, NodeClaim) else _pool(labels)
    zone, capacity_type = labels.get(ZONE, ""), capacity_type_of(labels)
    listed, off = prices
    offering = listed.find(pool, thing.instance_type, zone, capacity_type, labels.get(OS, ""))
    offering = offering.less(off) if offering is not None else None
    return NodeFill(
        thing.name,
        state,
        pool,
        thing.instance_type,
        zone,
        capacity_type,
        None if offering is None else offering.price,
        allocatable,
        {},
        _shares(staying, arriving),
        () if offering is None else offering.parts,
    )


def _shares(staying: Iterable[Pod], arriving: Iterable[Pod]) -> tuple[Share, ...]:
    members: dict[Workload, list[Pod]] = {}
    comers: dict[Workload, int] = {}
    for pod in staying:
        members.setdefault(workload_of(pod), []).append(pod)
    for pod in arriving:
        workload = workload_of(pod)
        members.setdefault(workload, []).append(pod)
        comers[workload] = comers.get(workload, 0) + 1
    return tuple(
        Share(
            workload,
            len(pods),
            total(_requests(pod) for pod in pods),
            comers.get(workload, 0),
            tuple(sorted(pod.key for pod in pods)),
        )
        for workload, pods in sorted(members.items())
    )


def _requests(pod: Pod) -> Resources:
    return {PODS: 1, **pod.requests}


def _pool(labels: Mapping[str, str]) -> str:
    for key, kind in ((NODE_POOL, "NodePool"), (PROVISIONER_NAME, "Provisioner")):
        if key in labels:
            return f"{kind}/{labels[key]}"
    return ""
