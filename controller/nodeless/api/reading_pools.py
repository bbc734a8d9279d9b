"""Manifests to the model: Provisioner and NodePool, which mean the same in two spellings.

Defaults are applied and rules are checked here again, so that an object that was stored
without the webhook means the same, and one that never should have been stored is
reported instead of guessed at.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from nodeless.api import node_pool as v1
from nodeless.api.defaulting import default
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.errors import ABSENT, FieldError, InvalidObject
from nodeless.api.kinds import EC2_NODE_CLASS as EC2_NODE_CLASS_API
from nodeless.api.kinds import NODE_POOL, PROVISIONER
from nodeless.api.metadata import read_metadata
from nodeless.api.metav1 import RequirementDefinition
from nodeless.api.provisioner import Provisioner
from nodeless.api.reading_node_classes import read_inline_class
from nodeless.api.reading_parts import (
    read_conditions,
    read_kubelet,
    read_requirement,
    read_taints,
)
from nodeless.api.rule_codes import RuleCode
from nodeless.api.times import parse_life_span
from nodeless.api.unsupported import unsupported
from nodeless.api.validation import require_valid, subject_of
from nodeless.model.labels import EC2_NODE_CLASS_NAME, PROVISIONER_NAME
from nodeless.model.labels import NODE_POOL as NODE_POOL_NAME
from nodeless.model.packing import PACKING_ANNOTATION
from nodeless.model.pools import (
    AWS_NODE_TEMPLATE,
    EC2_NODE_CLASS,
    NODE_POOL_KIND,
    Budget,
    NodeClass,
    Pool,
    Reference,
)
from nodeless.model.pools import PROVISIONER as PROVISIONER_KIND
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.model.resources import parse_resources

_NO_LIMIT = "100%"


def read_pool(manifest: Mapping[str, Any]) -> tuple[Pool, NodeClass | None]:
    """The pool that a Provisioner or NodePool describes, and its node class when that is inline.

    The pool's requirements hold its labels, its own name as `karpenter.sh/provisioner-name` or
    `karpenter.sh/nodepool`, and the defaults. An inline class is called like its Provisioner:
    `Reference("Provisioner", name)`.

    Raises:
        InvalidObject: It breaks rules, or wants what the controller cannot do; all of it is named.
    """
    if NODE_POOL.describes(manifest):
        return _read_node_pool(manifest), None
    return _read_provisioner(manifest)


def read_neighbor_pool(manifest: Mapping[str, Any]) -> Pool:
    """A NodePool that EKS Auto Mode serves, as far as it says which pods it takes.

    Of one that breaks a rule of ours only the name is known: its own controller may know better.
    """
    metadata = read_metadata(manifest)
    try:
        pool = _read_node_pool(_as_ours(manifest))
    except (InvalidObject, msgspec.ValidationError, KeyError, TypeError, ValueError) as error:
        reference = Reference(NODE_POOL_KIND, metadata.name, metadata.uid)
        return Pool(reference, Reference(EC2_NODE_CLASS, ""), invalid=str(error))
    own = Requirements(
        requirement for key, requirement in pool.requirements.items() if key != EC2_NODE_CLASS_NAME
    )
    return replace(pool, requirements=own)


def _as_ours(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The same pool with a node class of a kind that is read."""
    spec = manifest["spec"]
    template, inner = spec["template"], spec["template"]["spec"]
    reference = {**inner["nodeClassRef"], "group": EC2_NODE_CLASS_API.group, "kind": EC2_NODE_CLASS}
    template = {**template, "spec": {**inner, "nodeClassRef": reference}}
    return {**manifest, "spec": {**spec, "template": template}}


def _read_provisioner(manifest: Mapping[str, Any]) -> tuple[Pool, NodeClass | None]:
    require_valid(manifest, PROVISIONER)
    manifest = drop_nulls(manifest)
    provisioner = msgspec.convert(default(manifest), Provisioner)
    metadata, spec = read_metadata(manifest), provisioner.spec
    if spec is None:
        raise InvalidObject(
            subject_of(manifest), [FieldError("spec", ABSENT, "is required", code=RuleCode.MISSING_FIELD)]
        )
    reference = Reference(PROVISIONER_KIND, metadata.name, metadata.uid)
    inline = read_inline_class(spec.provider, reference, metadata) if spec.provider is not None else None
    template = spec.provider_ref.name if spec.provider_ref is not None else ""
    limits = spec.limits.resources if spec.limits is not None else None
    status = provisioner.status
    consolidates = bool(spec.consolidation and spec.consolidation.enabled)
    pool = Pool(
        reference=reference,
        node_class=reference if inline is not None else Reference(AWS_NODE_TEMPLATE, template),
        weight=spec.weight or 0,
        generation=metadata.generation,
        labels=spec.labels or {},
        annotations=spec.annotations or {},
        taints=read_taints(spec.taints),
        startup_taints=read_taints(spec.startup_taints),
        requirements=_requirements(
            spec.labels or {}, spec.requirements or (), [_one(PROVISIONER_NAME, metadata.name)]
        ),
        kubelet=read_kubelet(spec.kubelet_configuration),
        limits=None if limits is None else parse_resources(limits),
        ttl_seconds_after_empty=spec.ttl_seconds_after_empty,
        ttl_seconds_until_expired=spec.ttl_seconds_until_expired,
        consolidation_enabled=consolidates,
        consolidate_after=0 if consolidates else None,
        deletion_timestamp=metadata.deletion_timestamp,
        finalizers=metadata.finalizers,
        status_resources=parse_resources(status.resources if status else None),
        conditions=read_conditions(status.conditions if status else None),
        packing=metadata.annotations.get(PACKING_ANNOTATION),
        own_annotations=metadata.annotations,
    )
    return pool, inline


def _read_node_pool(manifest: Mapping[str, Any]) -> Pool:
    require_valid(manifest, NODE_POOL)
    manifest = drop_nulls(manifest)
    if refused := unsupported(manifest):
        raise InvalidObject(subject_of(manifest), refused)
    metadata = read_metadata(manifest)
    document = msgspec.convert(manifest, v1.NodePool)
    spec, template = document.spec, document.spec.template
    inner = template.spec
    given = template.metadata or v1.TemplateMetadata()
    status = document.status or v1.NodePoolStatus()
    disruption = spec.disruption
    after = parse_life_span(disruption.consolidate_after)
    only_empty = disruption.consolidation_policy == "WhenEmpty"
    if spec.replicas is not None:
        after = None  # a static pool holds its nodes whether they have work or not
    class_name = inner.node_class_ref.name
    return Pool(
        reference=Reference(NODE_POOL_KIND, metadata.name, metadata.uid),
        node_class=Reference(EC2_NODE_CLASS, class_name),
        weight=spec.weight or 0,
        generation=metadata.generation,
        labels=given.labels or {},
        annotations=given.annotations or {},
        taints=read_taints(inner.taints),
        startup_taints=read_taints(inner.startup_taints),
        requirements=_requirements(
            given.labels or {},
            inner.requirements,
            [_one(NODE_POOL_NAME, metadata.name), _one(EC2_NODE_CLASS_NAME, class_name)],
        ),
        limits=None if spec.limits is None else parse_resources(spec.limits),
        ttl_seconds_after_empty=after if only_empty else None,
        ttl_seconds_until_expired=parse_life_span(inner.expire_after),
        consolidation_enabled=not only_empty and after is not None,
        consolidate_after=None if only_empty else after,
        balanced=disruption.consolidation_policy == "Balanced",
        termination_grace_period=_seconds(inner.termination_grace_period),
        budgets=tuple(
            Budget(
                budget.nodes, tuple(budget.reasons or ()), budget.schedule or "", _seconds(budget.duration)
            )
            for budget in disruption.budgets
            if budget.nodes != _NO_LIMIT
        ),
        replicas=spec.replicas,
        deletion_timestamp=metadata.deletion_timestamp,
        finalizers=metadata.finalizers,
        status_resources=parse_resources(status.resources),
        status_nodes=status.nodes,
        status_node_class_generation=status.node_class_observed_generation or 0,
        conditions=read_conditions(status.conditions),
        packing=metadata.annotations.get(PACKING_ANNOTATION),
        own_annotations=metadata.annotations,
    )


def _requirements(
    labels: Mapping[str, str], given: Iterable[RequirementDefinition], own: Iterable[Requirement]
) -> Requirements:
    return Requirements(
        [
            *Requirements.from_labels(labels).values(),
            *own,
            *(read_requirement(requirement) for requirement in given),
        ]
    )


def _one(key: str, value: str) -> Requirement:
    return Requirement.of(key, IN, [value])


def _seconds(text: str | None) -> int | None:
    return None if text is None else parse_life_span(text)
