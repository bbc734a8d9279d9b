"""The new nodes of a plan as NodeClaims, written before any instance exists.

A claim's name is derived from what it is for, so it can serve as the idempotency token
of its fleet request. It does not choose the instance type: it carries up to 60 of them,
cheapest first by the plan, and `candidates` chooses among those at launch.
"""

import hashlib
from base64 import b32encode
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from nodeless.launch.groups import group_claims
from nodeless.model.devices import EFA_INTERFACES
from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.instructions import CreateClaim
from nodeless.model.labels import (
    ARCH,
    CAPACITY_OVERLAY_APPLIED,
    CAPACITY_TYPE,
    EFA_DEVICES,
    HOSTNAME,
    INSTANCE_TYPE,
    LAUNCHED_FOR_GANG,
    LAUNCHED_FOR_REQUEST,
    MIN_VALUES_RELAXED,
    OS,
    PLANNED_BECAUSE,
    PLANNED_PODS,
    PRICE_OVERLAY_APPLIED,
    RESERVATION_LABELS,
    TERMINATION_FINALIZER,
    WELL_KNOWN,
    ZONE,
)
from nodeless.model.min_values import least_values
from nodeless.model.nodes import NodeClaim
from nodeless.model.plan import Alternative, Plan, PlannedNode
from nodeless.model.pods import Pod
from nodeless.model.pools import NodeClass, Pool
from nodeless.model.requirements import Requirement, Requirements
from nodeless.state.expected import uid_digest
from nodeless.state.static_fields import digests

#: Instance types kept in a claim and in a fleet request (Karpenter's `MaxInstanceTypes`).
MAX_INSTANCE_TYPES = 60
#: Requirements that a NodeClaim may have (`maxItems` of its CRD).
MOST_REQUIREMENTS = 100
#: Labels that come with the instance type.
_OF_TYPES = WELL_KNOWN - {ZONE, CAPACITY_TYPE, ARCH, OS} - frozenset(RESERVATION_LABELS)
_MAX_NAME_LENGTH = 63
_SUFFIX_LENGTH = 5


def claims_for(
    plan: Plan,
    pools: Mapping[str, Pool],
    now: float,
    *,
    cause: str = "pass",
    taken: Collection[str] = frozenset(),
    node_classes: Mapping[str, NodeClass] | None = None,
    reason: Callable[[PlannedNode], str] | None = None,
    pods: Mapping[str, Pod] | None = None,
    catalog: Catalog | None = None,
    gangs: Mapping[str, str] = MappingProxyType({}),
    requests: Mapping[str, str] = MappingProxyType({}),
) -> tuple[CreateClaim, ...]:
    """One claim for each new node of the plan, in the plan's order.

    Args:
        plan: What the solver proposes.
        pools: Pools by key (`Provisioner/default`), those that the plan was made with.
        now: The time of the pass; part of the names.
        cause: Identity of the pass, kept in the instructions.
        taken: Names that claims bear already; none of them is given again.
        node_classes: Node classes by key: what their nodes take from them is noted on the claims.
        reason: Says why a node is what it is, in one line; kept on its claim.
        pods: The pods of the pass by key: which of them a claim is for is noted on it.
        gangs: The gangs of pods by key: that a claim is launched for them is noted on it.
        requests: The same of provisioning requests, by the keys of their placeholders.
        catalog: What the plan was made with; that NodeOverlays say something of its types is noted on claims.

    Raises:
        KeyError: The plan names a pool that is not given.
    """
    used = set(taken)
    overlaid = {
        pool: _overlaid((catalog or {}).get(pool, ())) for pool in {str(node.pool) for node in plan.new_nodes}
    }
    claims = []
    for ordinal, node in enumerate(plan.new_nodes):
        pool = pools[str(node.pool)]
        name = claim_name(pool.name, f"{now:.6f}", str(ordinal), *node.pods, taken=used)
        used.add(name)
        node_class = (node_classes or {}).get(str(node.node_class))
        claim = _claim(name, node, pool, node_class, now)
        marks = _overlay_marks(node, overlaid[str(node.pool)])
        claims.append(replace(claim, annotations={**claim.annotations, **marks}) if marks else claim)
    marked = zip(group_claims(claims), plan.new_nodes, strict=True)
    groups = {LAUNCHED_FOR_GANG: gangs, LAUNCHED_FOR_REQUEST: requests}
    return tuple(
        CreateClaim(cause, _with_notes(claim, node, reason, pods or {}, groups)) for claim, node in marked
    )


def _overlaid(types: Iterable[InstanceType]) -> dict[str, set[str]]:
    """The annotations for NodeOverlays (Karpenter v1), each with the names of the types that it is for."""
    found: dict[str, set[str]] = {}
    for each in types:
        if each.price_overlays:
            found.setdefault(PRICE_OVERLAY_APPLIED, set()).add(each.name)
        if each.capacity_overlays:
            found.setdefault(CAPACITY_OVERLAY_APPLIED, set()).add(each.name)
    return found


def _overlay_marks(node: PlannedNode, overlaid: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Annotations for what NodeOverlays say of any of the types that the claim will name."""
    named = [alternative.instance_type for alternative in node.alternatives[:MAX_INSTANCE_TYPES]]
    return {key: "true" for key, names in overlaid.items() if any(name in names for name in named)}


def _with_notes(
    claim: NodeClaim,
    node: PlannedNode,
    reason: Callable[[PlannedNode], str] | None,
    pods: Mapping[str, Pod],
    groups: Mapping[str, Mapping[str, str]],
) -> NodeClaim:
    """The claim with its reason and its pods, which play no part in what makes claims alike.

    `groups` has, by annotation, what pods are for: each of these is noted once.
    """
    notes = {} if reason is None else {PLANNED_BECAUSE: reason(node)}
    planned = sorted(uid_digest(pods[key].uid) for key in node.pods if key in pods)
    if planned:
        notes[PLANNED_PODS] = ",".join(planned)
    for annotation, names in groups.items():
        if named := sorted({names[key] for key in node.pods if key in names}):
            notes[annotation] = ",".join(named)
    return replace(claim, annotations={**claim.annotations, **notes})


def claim_name(pool: str, *identity: str, taken: Collection[str] = frozenset()) -> str:
    """`<pool>-<5 base32 characters>`: a DNS-1123 label of at most 63 characters, told by the arguments."""
    prefix = pool.replace(".", "-")[: _MAX_NAME_LENGTH - _SUFFIX_LENGTH - 1].strip("-")
    attempt = 0
    while True:
        digest = hashlib.sha256("\n".join((pool, *identity, str(attempt))).encode()).digest()
        name = f"{prefix}-{b32encode(digest).decode().lower()[:_SUFFIX_LENGTH]}"
        if name not in taken:
            return name
        attempt += 1


def _claim(name: str, node: PlannedNode, pool: Pool, node_class: NodeClass | None, now: float) -> NodeClaim:
    return NodeClaim(
        name=name,
        pool=pool.reference,
        node_class=node.node_class,
        requirements=_requirements(node, pool),
        requests={name: amount for name, amount in node.requests.items() if name != EFA_INTERFACES},
        labels=labels_of(node.requirements, pool),
        annotations={
            **pool.annotations,
            **digests(pool, node_class),
            **({MIN_VALUES_RELAXED: "true"} if node.min_values_relaxed else {}),
            **({EFA_DEVICES: "true"} if node.requests.get(EFA_INTERFACES) else {}),
        },
        taints=pool.taints,
        startup_taints=pool.startup_taints,
        created_at=now,
        expire_after=pool.ttl_seconds_until_expired,
        termination_grace_period=pool.termination_grace_period,
        finalizers=(TERMINATION_FINALIZER,),
    )


def _requirements(node: PlannedNode, pool: Pool) -> Requirements:
    present = node.requirements.get(INSTANCE_TYPE)
    alternatives = node.alternatives if least_values(node.requirements) else _as_planned(node.alternatives)
    names = [alternative.instance_type for alternative in alternatives[:MAX_INSTANCE_TYPES]]
    types = Requirement(
        INSTANCE_TYPE, False, frozenset(names), min_values=present.min_values if present else None
    )
    others = [
        requirement
        for requirement in node.requirements.values()
        if requirement.key != INSTANCE_TYPE and _is_informative(requirement, pool)
    ]
    if sum(len(other.to_api()) for other in (*others, types)) > MOST_REQUIREMENTS:
        # The list of types says what is asked of types.
        others = [
            requirement
            for requirement in others
            if requirement.key in pool.requirements or requirement.key not in _OF_TYPES
        ]
    return Requirements([*others, types])


def _as_planned(alternatives: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
    """Those that EC2 does not take before the intended one although nodes of them cost more.

    EC2 goes by prices of instances and knows of no credits, licenses, discounts: offered a burstable type
    of a low price beside the intended one, it launches that.
    """
    intended = alternatives[0].offering
    return tuple(
        alternative
        for alternative in alternatives
        if alternative.offering.price <= intended.price
        or alternative.offering.instance_price >= intended.instance_price
    )


def _is_informative(requirement: Requirement, pool: Pool) -> bool:
    """Whether a requirement says anything of a node: labels that only pods speak of are absent there."""
    key = requirement.key
    if key in RESERVATION_LABELS and not requirement.complement and not requirement.values:
        # That it is not reserved says the capacity type, as with Karpenter v1.
        return key in pool.requirements
    return key in pool.requirements or key in WELL_KNOWN or not requirement.allows_absence()


def labels_of(requirements: Requirements, pool: Pool) -> dict[str, str]:
    """The labels that a node of the pool bears before its instance is known.

    The pool's own labels, its name, and one value for each label of the user's own that the requirements
    leave open. Well-known labels (zone, instance type, ...) come from the instance.
    """
    labels = {pool.reference.pool_label: pool.name}
    for key in sorted(requirements):
        if key in WELL_KNOWN or key == HOSTNAME:
            continue
        requirement = requirements[key]
        if key not in pool.requirements and requirement.allows_absence():
            continue
        value = requirement.some_value()
        if value is not None:
            labels[key] = value
    return {**labels, **pool.labels}
