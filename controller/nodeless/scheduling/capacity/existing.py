"""Room that is there already, or on its way: nodes, and claims whose node has not appeared.

Order of use: initialized nodes and nodes that are not ours, then our nodes that still boot,
then claims without a node; each by name. A claim whose instance is not known yet may become
any of several types: it offers the least that any of them leaves to pods, and a pod counts
on a label only when all of them would bear it. `filling` puts pods here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nodeless.model.labels import (
    COMPUTE_TYPE,
    FARGATE,
    HOSTNAME,
    INITIALIZED,
    NODE_NAME,
    REBOOTING_TAINT,
    REGISTERED,
    UNREGISTERED_TAINT,
)
from nodeless.model.nodes import (
    INITIALIZED_CONDITION,
    REBOOT_FENCE,
    REBOOT_REQUESTED,
    REBOOTING,
    Node,
    NodeClaim,
)
from nodeless.model.pods import HostPort, Pod, PodShape
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import total
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, find_untolerated
from nodeless.scheduling.capacity.in_flight_node import (
    InFlightNode,
    always_satisfies,
    expected_allocatable,
    expected_node,
    type_named,
    what_decides,
)
from nodeless.scheduling.capacity.pool_table import LATER_LABELS, PoolTable, prefers_only
from nodeless.scheduling.pods.classes import UNBOUNDED, Amounts, Axis
from nodeless.scheduling.pods.constraints import daemon_alternatives
from nodeless.scheduling.pods.eligibility import claims_by_provider_id, leaving, managed
from nodeless.scheduling.pods.selecting import selects
from nodeless.scheduling.pods.volumes import Volumes, attachable

_BOOT_TAINTS = frozenset(
    (
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        UNREGISTERED_TAINT,
        REBOOTING_TAINT,
    )
)
#: Labels that a node of ours bears once it has joined; daemons may wait for them.
_JOINED = {REGISTERED: "true", INITIALIZED: "true"}
#: Prefix of the taints that a readiness gate keeps on a node until it is ready.
_READINESS_PREFIX = "readiness.k8s.io/"
#: Prefix of the taints that the DaemonSet controller makes its pods tolerate (memory-pressure and the like).
_CONDITION_PREFIX = "node.kubernetes.io/"
_INITIALIZED, _BOOTING, _CLAIMED = range(3)


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One existing node or claim."""

    name: str
    rank: int
    labels: Mapping[str, str]
    """Labels that are certain."""
    possible: tuple[Requirements, ...]
    """For each type that a claim may become, its labels; empty for a node."""
    taints: tuple[Taint, ...]
    free: Amounts
    """What pods may still use; negative where more is promised than there is."""
    ports: tuple[HostPort, ...] = ()
    held: frozenset[str] = frozenset()
    """Claims whose volumes are attached here."""

    @property
    def starting(self) -> bool:
        """Whether no pod can run on it yet: it is a claim, or a node that is coming up."""
        return self.rank != _INITIALIZED

    def satisfies(self, expression: Requirement) -> bool:
        """Whether the expression holds, whatever this becomes."""
        value = self.labels.get(expression.key)
        if value is not None:
            return expression.allows(value)
        if expression.key == HOSTNAME:
            return LATER_LABELS[HOSTNAME](expression)
        if not self.possible:
            return expression.allows_absence()
        return all(
            always_satisfies(expression, requirements.get(expression.key)) for requirements in self.possible
        )

    def domains(self, key: str) -> frozenset[str]:
        """The values that a label may have: one where it is certain, none where it is absent."""
        if key in self.labels:
            return frozenset((self.labels[key],))
        values: set[str] = set()
        for requirements in self.possible:
            label = requirements.get(key)
            if label is not None and not label.complement:
                values |= label.values
        return frozenset(values)


def existing_slots(
    snapshot: Snapshot, tables: Mapping[str, PoolTable], axis: Axis, volumes: Volumes
) -> list[Slot]:
    """Every node and claim that may take pods, in the order of use."""
    claims = claims_by_provider_id(snapshot)
    slots = []
    seen = set()
    # Claims of one launch are alike by the hundred.
    outlines: dict[object, InFlightNode | None] = {}
    for node in snapshot.nodes.values():
        seen.add(node.provider_id)
        claim = claims.get(node.provider_id)
        if _takes_pods(snapshot, node, claim):
            slots.append(_node_slot(snapshot, node, claim, tables, axis, volumes))
    for claim in snapshot.claims.values():
        appeared = claim.provider_id and claim.provider_id in seen
        if claim.deletion_timestamp is None and not appeared:
            alike = what_decides(claim, snapshot.node_classes)
            if alike not in outlines:
                table = tables.get(str(claim.pool))
                outlines[alike] = expected_node(claim, table, axis, snapshot.node_classes)
            outlined = outlines[alike]
            if outlined is not None:
                slots.append(_claim_slot(snapshot, claim, outlined, axis))
    return sorted(slots, key=lambda slot: (slot.rank, slot.name))


def initialized(node: Node, claim: NodeClaim | None) -> bool:
    """Whether a node of ours has reported all it needs; nodes that are not ours count as such.

    One that is being rebooted counts as a node that boots: it will be as it was, so its pods wait for it. It
    bears the label of an initialized one all the time; the claim says when it is back and free of taints.
    """
    if not managed(node, claim):
        return True
    if claim is not None and claim.is_true(REBOOTING):
        return False
    if claim is not None and claim.condition(REBOOTING) is not None:
        return claim.is_true(INITIALIZED_CONDITION)
    return node.initialized or (claim is not None and claim.is_true(INITIALIZED_CONDITION))


def _takes_pods(snapshot: Snapshot, node: Node, claim: NodeClaim | None) -> bool:
    if node.labels.get(COMPUTE_TYPE) == FARGATE or node.unschedulable or leaving(node, claim):
        return False
    condition = claim.condition(REBOOTING) if claim is not None else None
    drained = condition is not None and (condition.status, condition.reason) == ("True", REBOOT_REQUESTED)
    return not (drained and any(_held(snapshot, pod) for pod in snapshot.pods_on(node.name)))


def _held(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether a disruption budget keeps the pod on a node that is drained for its reboot.

    Those of its workload that have left the node must run elsewhere before: they may not wait for the node.
    """
    stays = pod.terminal or pod.deletion_timestamp is not None or pod.owned_by_node
    return (
        not stays
        and find_untolerated((REBOOT_FENCE,), pod.shape.tolerations) is not None
        and any(
            budget.namespace == pod.namespace and budget.refuses(pod) and selects(budget.selector, pod.labels)
            for budget in snapshot.disruption_budgets.values()
        )
    )


def _node_slot(
    snapshot: Snapshot,
    node: Node,
    claim: NodeClaim | None,
    tables: Mapping[str, PoolTable],
    axis: Axis,
    volumes: Volumes,
) -> Slot:
    pods = [pod for pod in snapshot.pods_on(node.name) if not pod.terminal]
    pool = claim.pool if claim is not None else node.pool
    labels = {HOSTNAME: node.name, **node.labels}
    taints, allocatable, rank = node.taints, dict(node.allocatable), _INITIALIZED
    if not initialized(node, claim):
        rank = _BOOTING
        labels = {**(claim.labels if claim is not None else {}), **labels}
        taints = _lasting_taints(snapshot, node, claim)
        expected = expected_allocatable(node, claim, tables.get(str(pool)), snapshot.node_classes)
        allocatable.update({name: amount for name, amount in expected.items() if not allocatable.get(name)})
    named = {**labels, NODE_NAME: node.name, **(_JOINED if managed(node, claim) else {})}
    shapes = [pod.shape for pod in pods] + _daemons_to_come(snapshot, named, taints, pods)
    requested = total(dict(shape.requests) for shape in shapes)
    attaching = attachable(_volume_limits(snapshot, node, tables.get(str(pool))), axis.names, int(UNBOUNDED))
    if attaching:
        allocatable.update(attaching)
        attached = volumes.attached(pods)
        # A driver may say less than it has attached: that keeps off further volumes, and no other pod.
        requested.update({name: min(attached.get(name, 0), most) for name, most in attaching.items()})
    ports = tuple(port for shape in shapes for port in shape.host_ports)
    free, held = axis.row(allocatable) - axis.row(requested), volumes.held(pods)
    return Slot(node.name, rank, labels, (), taints, free, ports, held)


def _claim_slot(snapshot: Snapshot, claim: NodeClaim, outlined: InFlightNode, axis: Axis) -> Slot:
    free, ports = outlined.free, outlined.ports
    if not outlined.possible:
        # Its type is not in the catalog, which would know its daemons.
        shapes = _daemons_to_come(snapshot, {**claim.labels, **_JOINED}, claim.taints, ())
        free = free - axis.row(total(dict(shape.requests) for shape in shapes))
        ports = tuple(port for shape in shapes for port in shape.host_ports)
    return Slot(claim.name, _CLAIMED, claim.labels, outlined.possible, claim.taints, free, ports)


def _volume_limits(snapshot: Snapshot, node: Node, table: PoolTable | None) -> Mapping[str, int]:
    """By driver: what the node says, and what its type says of drivers that have not come up on it yet."""
    said = snapshot.csi_nodes.get(node.name)
    published = dict(said.limits) if said is not None else {}
    instance_type = type_named(node.instance_type, table)
    expected = instance_type.volume_limits if instance_type is not None else {}
    limits = {driver: limit for driver, limit in expected.items() if driver not in published}
    return {**limits, **{driver: limit for driver, limit in published.items() if limit is not None}}


def _lasting_taints(snapshot: Snapshot, node: Node, claim: NodeClaim | None) -> tuple[Taint, ...]:
    """The taints that stay once a node has booted: startup taints and those of booting left out."""
    reference = node.pool
    pool = snapshot.pools.get(str(reference)) if reference is not None else None
    starting = claim.startup_taints if claim is not None else pool.startup_taints if pool is not None else ()
    promised = claim.taints if claim is not None and not node.registered else ()
    present = {(taint.key, taint.effect) for taint in node.taints}
    taints = (*node.taints, *(taint for taint in promised if (taint.key, taint.effect) not in present))
    return tuple(
        taint
        for taint in taints
        if taint.key not in _BOOT_TAINTS
        and not taint.key.startswith(_READINESS_PREFIX)
        and not any(taint.matches(start) for start in starting)
    )


def _daemons_to_come(
    snapshot: Snapshot, labels: Mapping[str, str], taints: tuple[Taint, ...], pods: Sequence[Pod]
) -> list[PodShape]:
    """The pods of DaemonSets that select the node and are not on it yet."""
    present = {
        (pod.namespace, owner.name) for pod in pods for owner in pod.owners if owner.kind == "DaemonSet"
    }
    hard = lasting_for_daemons(taints)
    return [
        daemon_set.shape
        for _, daemon_set in sorted(snapshot.daemon_sets.items())
        if (daemon_set.namespace, daemon_set.name) not in present
        and find_untolerated(hard, daemon_set.shape.tolerations) is None
        and any(
            all(_holds(expression, labels) for expression in expressions)
            for expressions in daemon_alternatives(daemon_set.shape)
        )
    ]


def lasting_for_daemons(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """The taints that keep pods of a DaemonSet off a node unless they are tolerated."""
    return tuple(
        taint for taint in taints if not prefers_only(taint) and not taint.key.startswith(_CONDITION_PREFIX)
    )


def _holds(expression: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    return expression.allows_absence() if value is None else expression.allows(value)
