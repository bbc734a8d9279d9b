"""The kind `karpenter.sh/v1alpha1` NodeOverlay: prices and capacity of instance types, as users know them.

Its form, with the rules that the API server itself enforces (Karpenter core v1.14 and its provider for
AWS); what it cannot express is in `node_overlay_rules`.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from nodeless.api.cel import rule, rules
from nodeless.api.metav1 import (
    Conditions,
    Definition,
    FreeForm,
    Int32,
    Quantities,
    RequirementDefinition,
)
from nodeless.api.requirements_v1 import (
    BOUNDS,
    KEY_RULES,
    OPERATORS_V1,
    QUALIFIED_NAME,
    is_bound,
)
from nodeless.api.rule_codes import RuleCode
from nodeless.model.labels import NODE_POOL
from nodeless.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

#: Resources of which the instance type tells (Karpenter core, `WellKnownResources`).
OWN_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
#: US dollars an hour.
_PRICE = r"^\d+(\.\d+)?$"
#: A sign and US dollars an hour, or a sign and percent; no less than -100 %.
_ADJUSTMENT = r"^([+-]\d*\.?\d+|\+\d*\.?\d+%|-(\d{1,2}(\.\d+)?|100)%)$"
_OWN_LIST = ", ".join(f"'{name}'" for name in OWN_RESOURCES)
#: An overlay may name the pools that it is for.
_KEYS = tuple(each for each in KEY_RULES if each.expression != f"self != '{NODE_POOL}'")


class OverlayRequirement(RequirementDefinition):
    """A constraint on one label of instance types, of their offerings, or of the pool that uses them."""

    key: Annotated[
        str,
        Meta(
            max_length=316,
            extra_json_schema={
                "pattern": QUALIFIED_NAME,
                "x-kubernetes-validations": [each.schema() for each in _KEYS],
            },
        ),
    ]
    """Label that the constraint is about: a well-known one, karpenter.sh/nodepool, or one of the labels of a
    pool's template."""
    operator: Annotated[str, Meta(extra_json_schema={"enum": [*OPERATORS_V1]})]
    """How values are compared."""
    values: list[str] | None = None
    """What the label is compared with: at least one value for In and NotIn, exactly one whole number for Gt,
    Lt, Gte and Lte, none for Exists and DoesNotExist."""


def _lacking(*operators: str) -> Any:
    def offenders(listed: list[Mapping[str, Any]]) -> list[int]:
        return [
            position
            for position, each in enumerate(listed)
            if each["operator"] in operators and not each.get("values")
        ]

    return offenders


def _no_bounds(listed: list[Mapping[str, Any]]) -> list[int]:
    return [
        position
        for position, each in enumerate(listed)
        if each["operator"] in BOUNDS and not is_bound(each.get("values") or [])
    ]


_REQUIREMENT_RULES = rules(
    rule(
        "self.all(each, !(each.operator in ['In', 'NotIn']) || "
        "(has(each.values) && each.values.size() != 0))",
        "must hold at least one value for operators In and NotIn",
        _lacking("In", "NotIn"),
        "use Exists for any value",
        code=RuleCode.INVALID_REQUIREMENT,
    ),
    rule(
        "self.all(each, !(each.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(each.values) && "
        "each.values.size() == 1 && int(each.values[0]) >= 0))",
        "must have exactly one whole number of 0 or more for operators Gt, Lt, Gte and Lte",
        _no_bounds,
        code=RuleCode.INVALID_REQUIREMENT,
    ),
)


class NodeOverlaySpec(Definition):
    """Which offerings of instance types are meant, and what is said of them."""

    requirements: Annotated[
        list[OverlayRequirement], Meta(max_length=100, extra_json_schema=_REQUIREMENT_RULES)
    ]
    """What must hold of a type, an offering and the pool that uses them; none: all are meant."""
    price: Annotated[str, Meta(extra_json_schema={"pattern": _PRICE})] | None = None
    """US dollars an hour of the offerings, whatever AWS asks, as 0.25."""
    price_adjustment: Annotated[str, Meta(extra_json_schema={"pattern": _ADJUSTMENT})] | None = None
    """What is added to the price of the offerings: US dollars an hour, as -0.05, or percent, as +10%."""
    capacity: (
        Annotated[
            Quantities,
            Meta(
                extra_json_schema=rules(
                    rule(
                        f"self.all(name, !(name in [{_OWN_LIST}]))",
                        "is what the instance type itself has",
                        lambda capacity: [name for name in capacity if name in OWN_RESOURCES],
                        "name resources of device plugins, or huge pages",
                        code=RuleCode.INVALID_NAME,
                    )
                )
            ),
        ]
        | None
    ) = None
    """Resources that nodes of the types have besides, as example.com/slice: 8. A resource that the type has
    already, as nvidia.com/gpu, gets this amount."""
    weight: Annotated[Int32, Meta(ge=1, le=10000)] | None = None
    """Of two overlays for the same offering or resource, the one of higher weight counts; absent counts as
    0."""


class NodeOverlayStatus(Definition):
    """Whether the overlay is in effect."""

    conditions: Conditions = None


class NodeOverlay(Definition):
    """Overrides the price or the capacity that AWS reports for instance types."""

    spec: Annotated[
        NodeOverlaySpec,
        Meta(
            extra_json_schema=rules(
                rule(
                    "!has(self.price) || !has(self.priceAdjustment)",
                    "price and priceAdjustment exclude each other",
                    lambda spec: spec.get("price") is not None and spec.get("priceAdjustment") is not None,
                    "leave one of them out",
                    code=RuleCode.CONFLICTING_FIELDS,
                )
            )
        ),
    ]
    api_version: str | None = None
    kind: str | None = None
    metadata: FreeForm | None = None
    status: NodeOverlayStatus | None = None
