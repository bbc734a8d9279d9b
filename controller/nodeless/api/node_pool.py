"""The kind `karpenter.sh/v1` NodePool: which nodes may be made, for which pods, and when they go.

Only its form, with the rules and defaults that the API server itself enforces (Karpenter
core v1.15); what it cannot express is in `node_pool_rules`.
"""

from typing import Annotated, TypeAlias

from msgspec import Meta, field

from nodeless.api.cel import rule, rules
from nodeless.api.metav1 import Conditions, Definition, FreeForm, Int32, Int64, Quantities
from nodeless.api.requirements_v1 import LABEL_RULES, PoolRequirement, PoolTaint, requirement_rules
from nodeless.api.rule_codes import RuleCode
from nodeless.api.schedules import SCHEDULE_PATTERN

#: One or more groups of digits and a unit.
DURATION = r"^([0-9]+(s|m|h))+$"
DURATION_OR_NEVER = r"^(([0-9]+(s|m|h))+|Never)$"
_NODES = r"^((100|[0-9]{1,2})%|[0-9]+)$"
_BUDGET_DURATION = r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"
_LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
REASONS = ("Underutilized", "Empty", "Drifted", "Unhealthy")
DEFAULT_POLICY = "WhenEmptyOrUnderutilized"
DEFAULT_CONSOLIDATE_AFTER = "0s"
DEFAULT_BUDGET = "10%"
DEFAULT_EXPIRE_AFTER = "720h"

Duration: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": DURATION})]

_IMMUTABLE = "cannot be changed"
_NEW_POOL = "create a new NodePool, and delete this one when its nodes have moved"


class NodeClassReference(Definition):
    """What says how the pool's nodes are made. Group and kind cannot be changed later."""

    group: Annotated[str, Meta(min_length=1, extra_json_schema={"pattern": r"^[^/]*$"})]
    """API group of the node class, as karpenter.k8s.aws."""
    kind: Annotated[str, Meta(min_length=1)]
    """Kind of the node class, as EC2NodeClass."""
    name: Annotated[str, Meta(min_length=1)]
    """Name of the node class."""


class TemplateMetadata(Definition):
    """Labels and annotations that every node of the pool gets."""

    labels: (
        Annotated[
            dict[str, Annotated[str, Meta(max_length=63, extra_json_schema={"pattern": _LABEL_VALUE})]],
            Meta(max_length=100, extra_json_schema=rules(*LABEL_RULES)),
        ]
        | None
    ) = None
    """Labels of the nodes; each is a requirement with that one value too."""
    annotations: dict[str, str] | None = None
    """Annotations of the nodes."""


class TemplateSpec(Definition):
    """What each node of the pool is like."""

    requirements: Annotated[
        list[PoolRequirement], Meta(max_length=100, extra_json_schema=rules(*requirement_rules()))
    ]
    """Constraints on the labels of the nodes; nothing is added where nothing is said."""
    node_class_ref: Annotated[
        NodeClassReference,
        Meta(
            extra_json_schema=rules(
                rule(
                    "self.group == oldSelf.group",
                    f"group {_IMMUTABLE}",
                    None,
                    _NEW_POOL,
                    code=RuleCode.IMMUTABLE_FIELD,
                ),
                rule(
                    "self.kind == oldSelf.kind",
                    f"kind {_IMMUTABLE}",
                    None,
                    _NEW_POOL,
                    code=RuleCode.IMMUTABLE_FIELD,
                ),
            )
        ),
    ]
    taints: list[PoolTaint] | None = None
    """Taints of the nodes: only pods that tolerate all of them are considered."""
    startup_taints: list[PoolTaint] | None = None
    """Taints that something else takes off once a node is ready for work. They do not keep pods from being
    considered."""
    expire_after: Annotated[
        str, Meta(extra_json_schema={"default": DEFAULT_EXPIRE_AFTER, "pattern": DURATION_OR_NEVER})
    ] = DEFAULT_EXPIRE_AFTER
    """Life span after which a node is replaced, as 720h, or Never."""
    termination_grace_period: Duration | None = None
    """Longest time that a drain may take, as 1h30m; beyond it pods are deleted whatever protects them."""


class NodeTemplate(Definition):
    """What the nodes of the pool are made from."""

    spec: TemplateSpec
    metadata: TemplateMetadata | None = None


class Budget(Definition):
    """How many nodes of the pool may be disrupted at the same time."""

    nodes: Annotated[str, Meta(extra_json_schema={"default": DEFAULT_BUDGET, "pattern": _NODES})] = (
        DEFAULT_BUDGET
    )
    """A number of nodes, or a percentage of the pool's nodes, rounded up."""
    reasons: (
        Annotated[list[Annotated[str, Meta(extra_json_schema={"enum": [*REASONS]})]], Meta(max_length=50)]
        | None
    ) = None
    """Which disruptions it limits: Underutilized, Empty, Drifted, Unhealthy; absent: all of them."""
    schedule: Annotated[str, Meta(extra_json_schema={"pattern": SCHEDULE_PATTERN})] | None = None
    """When the budget begins to apply: five cron fields or @daily and its like, in UTC; absent: always."""
    duration: Annotated[str, Meta(extra_json_schema={"pattern": _BUDGET_DURATION})] | None = None
    """How long the budget applies from each time of its schedule, in hours and minutes."""


class Disruption(Definition):
    """Which nodes may be taken away, when, and how many at once."""

    consolidation_policy: Annotated[
        str, Meta(extra_json_schema={"default": DEFAULT_POLICY, "enum": [*POLICIES]})
    ] = DEFAULT_POLICY
    """WhenEmpty: only nodes without workload pods. WhenEmptyOrUnderutilized: also nodes whose pods fit
    elsewhere for less. Balanced: as that, where the part of the pool's price saved is worth the part of it
    that is disturbed."""
    consolidate_after: Annotated[
        str,
        Meta(extra_json_schema={"default": DEFAULT_CONSOLIDATE_AFTER, "pattern": DURATION_OR_NEVER}),
    ] = DEFAULT_CONSOLIDATE_AFTER
    """How long nothing may have changed on a node before it is consolidated, or Never."""
    budgets: Annotated[
        list[Budget],
        Meta(
            max_length=50,
            extra_json_schema=rules(
                rule(
                    "self.all(budget, has(budget.schedule) == has(budget.duration))",
                    "schedule and duration only make sense together",
                    lambda budgets: [
                        position
                        for position, budget in enumerate(budgets)
                        if (budget.get("schedule") is None) != (budget.get("duration") is None)
                    ],
                    "give both, or neither",
                    code=RuleCode.INCOMPLETE_FIELDS,
                ),
                default=[{"nodes": DEFAULT_BUDGET}],
            ),
        ),
    ] = field(default_factory=lambda: [Budget()])
    """How many nodes may be disrupted at the same time; the strictest budget that applies counts."""


def _more_than_nodes(spec: FreeForm) -> bool:
    return spec.get("replicas") is not None and bool(set(spec.get("limits") or ()) - {"nodes"})


class NodePoolSpec(Definition):
    """Which nodes the pool may make, and how long they live."""

    template: NodeTemplate
    disruption: Annotated[
        Disruption,
        Meta(extra_json_schema={"default": {"consolidateAfter": DEFAULT_CONSOLIDATE_AFTER}}),
    ] = field(default_factory=Disruption)
    limits: Quantities | None = None
    """Resource to amount, the most that all nodes of the pool may hold together; at or above it nothing
    more is launched."""
    weight: Annotated[Int32, Meta(ge=1, le=100)] | None = None
    """Pools of higher weight are tried first; absent counts as 0."""
    replicas: Annotated[Int64, Meta(ge=0)] | None = None
    """Fixed number of nodes of a static pool."""


class NodePoolStatus(Definition):
    """What the pool's nodes hold now."""

    resources: Quantities | None = None
    """Sum of the capacity of the pool's nodes."""
    nodes: Annotated[Int64, Meta(extra_json_schema={"default": 0})] = 0
    """How many nodes the pool has."""
    node_class_observed_generation: Int64 | None = None
    """Generation of the node class that was looked at."""
    conditions: Conditions = None


class NodePool(Definition):
    """A pool: which nodes nodeless may create, for which pods, and when it removes them."""

    spec: Annotated[
        NodePoolSpec,
        Meta(
            extra_json_schema=rules(
                rule(
                    "has(self.replicas) == has(oldSelf.replicas)",
                    "replicas can neither be added nor removed",
                    None,
                    _NEW_POOL,
                    code=RuleCode.IMMUTABLE_FIELD,
                ),
                rule(
                    "!has(self.replicas) || !has(self.limits) || self.limits.all(name, name == 'nodes')",
                    "limits other than nodes cannot go together with replicas",
                    _more_than_nodes,
                    "keep limits.nodes at most",
                    code=RuleCode.CONFLICTING_FIELDS,
                ),
                rule(
                    "!has(self.replicas) || !has(self.weight)",
                    "weight cannot go together with replicas",
                    lambda spec: spec.get("replicas") is not None and spec.get("weight") is not None,
                    "leave weight out",
                    code=RuleCode.CONFLICTING_FIELDS,
                ),
            )
        ),
    ]
    api_version: str | None = None
    kind: str | None = None
    metadata: FreeForm | None = None
    status: NodePoolStatus | None = None
