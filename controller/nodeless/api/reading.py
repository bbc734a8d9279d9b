"""Manifests to the model. Pools and node classes have modules of their own; claims are read here."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import msgspec

from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.errors import ABSENT, FieldError, InvalidObject, problem_of
from nodeless.api.kinds import NODE_CLAIM
from nodeless.api.metadata import Metadata, read_metadata
from nodeless.api.node_claim import NodeClaim as Manifest
from nodeless.api.node_claim import NodeClaimSpec, NodeClaimStatus
from nodeless.api.reading_node_classes import read_node_class
from nodeless.api.reading_parts import conditions_of, read_conditions, read_requirement, read_taints
from nodeless.api.reading_pools import read_neighbor_pool, read_pool
from nodeless.api.rule_codes import RuleCode
from nodeless.api.schema_validation import structural_errors
from nodeless.api.times import parse_life_span, parse_time
from nodeless.api.validation import MOST_FAULTS, subject_of
from nodeless.model.labels import NODE_POOL, PROVISIONER_NAME
from nodeless.model.nodes import NodeClaim
from nodeless.model.pools import NODE_POOL_KIND, Reference
from nodeless.model.pools import PROVISIONER as PROVISIONER_KIND
from nodeless.model.requirements import Requirements
from nodeless.model.resources import parse_resources

__all__ = [
    "read_any_claim",
    "read_broken_claim",
    "read_claim",
    "read_neighbor_pool",
    "read_node_class",
    "read_pool",
]


def read_claim(manifest: Mapping[str, Any]) -> NodeClaim:
    """The claim that a NodeClaim describes.

    Raises:
        InvalidObject: Its form is broken; the API server lets no such object in.
    """
    if errors := list(islice(structural_errors(manifest, NODE_CLAIM), MOST_FAULTS)):
        raise InvalidObject(subject_of(manifest), errors)
    manifest = drop_nulls(manifest)
    document = msgspec.convert(manifest, Manifest)
    metadata, spec = read_metadata(manifest), document.spec
    status = document.status or NodeClaimStatus()
    return NodeClaim(
        name=metadata.name,
        pool=_pool_of(metadata),
        node_class=Reference(spec.node_class_ref.kind, spec.node_class_ref.name),
        requirements=_claim_requirements(manifest, spec),
        requests=parse_resources(spec.resources.requests if spec.resources else None),
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        labels=metadata.labels,
        annotations=metadata.annotations,
        taints=read_taints(spec.taints),
        startup_taints=read_taints(spec.startup_taints),
        expire_after=parse_life_span(spec.expire_after),
        termination_grace_period=parse_life_span(spec.termination_grace_period)
        if spec.termination_grace_period is not None
        else None,
        created_at=metadata.created_at,
        deletion_timestamp=metadata.deletion_timestamp,
        finalizers=metadata.finalizers,
        conditions=read_conditions(status.conditions),
        last_pod_event=parse_time(status.last_pod_event_time) if status.last_pod_event_time else None,
        provider_id=status.provider_id or "",
        node_name=status.node_name or "",
        image_id=status.image_id or "",
        capacity=parse_resources(status.capacity),
        allocatable=parse_resources(status.allocatable),
    )


def read_any_claim(
    manifest: Mapping[str, Any], report: Callable[[Exception], object] = lambda _error: None
) -> NodeClaim:
    """The claim that a NodeClaim describes, or what is certain of one that cannot be read.

    A claim must be seen whatever it says: its instance must not pass for one without a claim, and its end
    must come as that of any other.

    Args:
        manifest: A NodeClaim as the API server keeps it.
        report: Told of what is wrong with it.
    """
    try:
        return read_claim(manifest)
    except Exception as error:  # whatever its definition lets in and `read_claim` does not
        report(error)
        return read_broken_claim(manifest, problem_of(error))


def read_broken_claim(manifest: Mapping[str, Any], problem: str) -> NodeClaim:
    """What is certain of a NodeClaim that cannot be read: which one it is, and which instance is its own.

    As long as it is known, the instance is not taken for one without a claim.
    """
    metadata = read_metadata(manifest)
    status = manifest.get("status")
    provider_id = status.get("providerID") if isinstance(status, Mapping) else None
    return NodeClaim(
        name=metadata.name,
        pool=_pool_of(metadata),
        node_class=Reference("", ""),
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        labels=metadata.labels,
        annotations=metadata.annotations,
        created_at=metadata.created_at,
        deletion_timestamp=metadata.deletion_timestamp,
        finalizers=metadata.finalizers,
        conditions=conditions_of(manifest),
        provider_id=provider_id if isinstance(provider_id, str) else "",
        invalid=problem,
    )


def _pool_of(metadata: Metadata) -> Reference:
    """The pool that owns a claim; by its labels while it has no owner yet."""
    for owner in metadata.owners:
        if owner.kind in (PROVISIONER_KIND, NODE_POOL_KIND):
            return Reference(owner.kind, owner.name, owner.uid)
    if PROVISIONER_NAME in metadata.labels:
        return Reference(PROVISIONER_KIND, metadata.labels[PROVISIONER_NAME])
    return Reference(NODE_POOL_KIND, metadata.labels.get(NODE_POOL, ""))


def _claim_requirements(manifest: Mapping[str, Any], spec: NodeClaimSpec) -> Requirements:
    try:
        return Requirements(read_requirement(requirement) for requirement in spec.requirements)
    except (ValueError, IndexError) as error:
        fault = FieldError(
            "spec.requirements", ABSENT, f"cannot be read: {error}", code=RuleCode.INVALID_REQUIREMENT
        )
        raise InvalidObject(subject_of(manifest), [fault]) from None
