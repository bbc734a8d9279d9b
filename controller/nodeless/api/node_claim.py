"""The kind `karpenter.sh/v1` NodeClaim: the request for one node, written before its instance exists."""

from typing import Annotated

from msgspec import Meta, field

from nodeless.api.cel import rule, rules
from nodeless.api.metav1 import (
    Conditions,
    Definition,
    FreeForm,
    Quantities,
    TaintDefinition,
    Time,
)
from nodeless.api.node_pool import DEFAULT_EXPIRE_AFTER, DURATION_OR_NEVER, Duration
from nodeless.api.requirements_v1 import RequirementV1
from nodeless.api.rule_codes import RuleCode


class NodeClassRef(Definition):
    """What says how the instance is made."""

    group: Annotated[str, Meta(min_length=1)]
    """API group of the node class."""
    kind: Annotated[str, Meta(min_length=1)]
    """Kind of the node class."""
    name: Annotated[str, Meta(min_length=1)]
    """Name of the node class."""


class ClaimResources(Definition):
    """Resources that the node must have room for."""

    requests: Quantities | None = None
    """Sum of what the node's pods and daemons request."""


class NodeClaimSpec(Definition):
    """The node that is wanted; never changed after creation."""

    node_class_ref: NodeClassRef
    requirements: Annotated[list[RequirementV1], Meta(max_length=100)]
    """Constraints on the labels of the node."""
    taints: list[TaintDefinition] | None = None
    """Taints of the node."""
    startup_taints: list[TaintDefinition] | None = None
    """Taints that something else takes off once the node is ready for work."""
    resources: ClaimResources | None = None
    expire_after: Annotated[
        str, Meta(extra_json_schema={"default": DEFAULT_EXPIRE_AFTER, "pattern": DURATION_OR_NEVER})
    ] = DEFAULT_EXPIRE_AFTER
    """Life span after which the node is replaced, as 720h, or Never."""
    termination_grace_period: Duration | None = None
    """Longest time that a drain may take, as 1h30m; absent: as long as it takes."""


class NodeClaimStatus(Definition):
    """What became of the claim."""

    provider_id: str | None = field(default=None, name="providerID")
    """The instance, as aws:///ZONE/ID."""
    node_name: str | None = None
    """The node that the instance became."""
    image_id: str | None = field(default=None, name="imageID")
    """Image that the instance runs."""
    capacity: Quantities | None = None
    """All that the node holds."""
    allocatable: Quantities | None = None
    """What of it pods may use."""
    conditions: Conditions = None
    last_pod_event_time: Time | None = None
    """When a pod was last bound to the node, ended or left."""


class NodeClaim(Definition):
    """A request for one node, and what became of it. Made by the controller; deleting it drains the node."""

    spec: Annotated[
        NodeClaimSpec,
        Meta(
            extra_json_schema=rules(
                rule("self == oldSelf", "spec is immutable", None, code=RuleCode.IMMUTABLE_FIELD)
            )
        ),
    ]
    api_version: str | None = None
    kind: str | None = None
    metadata: FreeForm | None = None
    status: NodeClaimStatus | None = None
