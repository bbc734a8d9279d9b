"""Whether a node is still what its pool and its node class would make today.

In Karpenter's order: fields that are copied into nodes (by digest), requirements, the
instance type, then what the cloud says: image, subnet, security groups, reservation, placement
group. The first reason found stands in the claim's condition `Drifted`; package `disruption` acts on
it. A Provisioner's node is marked `drifted` as well while drift of Provisioners is on, unless it is
marked for another reason.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodeless.model.instance_types import InstanceType
from nodeless.model.instructions import AnnotateClaim, Instruction, UpdateClaimStatus, UpdateNode
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    HOSTNAME,
    NODE_CLASS_HASH,
    NODE_CLASS_HASH_VERSION,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
    PLACEMENT_GROUP_ID,
    VOLUNTARY_DISRUPTION,
    WELL_KNOWN,
)
from nodeless.model.nodes import DRIFTED, LAUNCHED, Instance, Node, NodeClaim
from nodeless.model.pools import NodeClass, Pool
from nodeless.model.requirements import Requirements
from nodeless.nodeclaim.draining import is_v1alpha5
from nodeless.nodeclaim.view import Step, cause_of, changed_condition
from nodeless.state.static_fields import HASH_VERSION, digests, has_changed

#: Younger claims may be of a type that the catalog only seems to lack.
_TYPE_GRACE = 3600.0
_MARK = "drifted"


@dataclass(frozen=True, slots=True)
class Selected:
    """What the cloud says that a node class selects now."""

    subnets: frozenset[str]
    security_groups: frozenset[str]
    images: tuple[tuple[str, Requirements], ...]
    """In order of preference, each with what the instance types that it is for have."""
    reservations: frozenset[str] = frozenset()
    placement_group: str | None = None
    """Id of the placement group; empty: none. None: not known."""

    def images_for(self, instance_type: InstanceType | None) -> frozenset[str]:
        """The image that the type boots from now; all of them where that is not known."""
        if instance_type is not None:
            for image, requirements in self.images:
                if instance_type.requirements.conflict(requirements) is None:
                    return frozenset((image,))
        return frozenset(image for image, _ in self.images)


@dataclass(frozen=True, slots=True)
class DriftView:
    """A claim and what it is compared with; None: not known now, so nothing is concluded from it."""

    claim: NodeClaim
    pool: Pool
    node_class: NodeClass | None
    selected: Selected | None = None
    instance: Instance | None = None
    types: Mapping[str, InstanceType] | None = None
    node: Node | None = None
    marks_provisioners: bool = False
    """Whether drifted nodes of a Provisioner are replaced (gate driftEnabled of v0.27), and so marked."""


def step_drift(view: DriftView, now: float) -> Step:
    """Keep the condition true to what is seen; give claims of an older digest the digests of today."""
    claim = view.claim
    if not _is_comparable(view):
        return Step()
    cause = cause_of(claim)
    found = drift_of(view, now)
    instructions: list[Instruction] = []
    if found is not None:
        condition = changed_condition(claim, DRIFTED, "True", now, reason=found[0], message=found[1])
        if condition:
            instructions.append(UpdateClaimStatus(cause, claim.name, condition))
        return Step((*instructions, *_mark(view, drifted=True)))
    if claim.condition(DRIFTED) is not None:
        condition = changed_condition(claim, DRIFTED, "False", now, reason="NotDrifted")
        if condition:
            instructions.append(UpdateClaimStatus(cause, claim.name, condition))
    today = digests(view.pool, view.node_class)
    versions = (NODE_POOL_HASH_VERSION, *((NODE_CLASS_HASH_VERSION,) if view.node_class is not None else ()))
    if any(claim.annotations.get(version) != HASH_VERSION for version in versions):
        instructions.append(AnnotateClaim(cause, claim.name, dict(today)))
    return Step((*instructions, *_mark(view, drifted=False)))


def drift_of(view: DriftView, now: float) -> tuple[str, str] | None:
    """Reason and message of the first difference found; None: there is none, or nothing to compare."""
    return next(_reasons(view, now), None) if _is_comparable(view) else None


def _is_comparable(view: DriftView) -> bool:
    claim = view.claim
    return (
        claim.is_true(LAUNCHED)
        and claim.deletion_timestamp is None
        and not claim.invalid
        and not view.pool.invalid
    )


def _mark(view: DriftView, *, drifted: bool) -> tuple[UpdateNode, ...]:
    """The mark that a Provisioner's node should bear, or not; that of another reason stays."""
    node, claim = view.node, view.claim
    if node is None or node.deletion_timestamp is not None or not is_v1alpha5(claim):
        return ()
    wanted, present = drifted and view.marks_provisioners, node.annotations.get(VOLUNTARY_DISRUPTION)
    if present not in (None, _MARK) or wanted == (present == _MARK):
        return ()
    stage = "marked node drifted" if wanted else "node is not drifted any more"
    value = _MARK if wanted else None
    return (UpdateNode(cause_of(claim), node.name, annotations={VOLUNTARY_DISRUPTION: value}, stage=stage),)


def _reasons(view: DriftView, now: float) -> Iterator[tuple[str, str]]:
    claim, pool = view.claim, view.pool
    today = digests(pool, view.node_class)
    if has_changed(claim.annotations, today, NODE_POOL_HASH):
        text = f"labels, annotations, taints, kubelet settings or life spans of {pool.reference} have changed"
        yield "NodePoolDrifted", text
    if has_changed(claim.annotations, today, NODE_CLASS_HASH):
        yield "NodeClassDrift", f"settings of {claim.node_class} that nodes are made with have changed"
    for requirement in pool.requirements.values():
        key, wanted = requirement.key, f"{requirement} of {pool.reference}"
        value = claim.labels.get(key)
        if value is not None and not requirement.allows(value):
            yield "RequirementsDrifted", f"label {key}={value} does not meet {wanted}"
        elif value is None and key not in (WELL_KNOWN | {HOSTNAME}) and not requirement.allows_absence():
            yield "RequirementsDrifted", f"there is no label {key}, but {wanted}"
    aged = now - claim.created_at > _TYPE_GRACE
    if view.types and aged and claim.instance_type and claim.instance_type not in view.types:
        yield "InstanceTypeNotFound", f"{pool.reference} cannot have {claim.instance_type} any more"
    if view.selected is not None:
        kind = (view.types or {}).get(claim.instance_type)
        yield from _cloud_reasons(claim, view.selected, view.instance, kind)


def _cloud_reasons(
    claim: NodeClaim, selected: Selected, instance: Instance | None, kind: InstanceType | None
) -> Iterator[tuple[str, str]]:
    image = (instance.image_id if instance is not None else "") or claim.image_id
    images = selected.images_for(kind)
    if image and images and image not in images:
        chosen, whose = ", ".join(sorted(images)[:3]), f"{claim.node_class} for {claim.instance_type}"
        yield "AMIDrift", f"image {image} is not selected by {whose}, which selects {chosen}"
    if instance is None:
        return
    groups = frozenset(instance.security_groups)
    if groups and selected.security_groups and groups != selected.security_groups:
        has, wants = ", ".join(sorted(groups)), ", ".join(sorted(selected.security_groups))
        yield "SecurityGroupDrift", f"security groups are {has}; {claim.node_class} selects {wants}"
    if instance.subnet_id and selected.subnets and instance.subnet_id not in selected.subnets:
        yield "SubnetDrift", f"subnet {instance.subnet_id} is not selected by {claim.node_class}"
    reservation = instance.labels.get(CAPACITY_RESERVATION_ID, "")
    if reservation and reservation not in selected.reservations:
        text = f"capacity reservation {reservation} is not selected by {claim.node_class}"
        yield "CapacityReservationDrift", text
    group = instance.labels.get(PLACEMENT_GROUP_ID, "")
    if selected.placement_group is not None and group != selected.placement_group:
        has, wants = group or "none", selected.placement_group or "none"
        yield "PlacementGroupDrift", f"placement group is {has}; {claim.node_class} selects {wants}"
