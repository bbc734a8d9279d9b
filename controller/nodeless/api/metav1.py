"""Definitions that several kinds share: requirements, taints, conditions.

A definition is a `msgspec.Struct` whose docstrings, its own and those below its fields, become the
schema's descriptions; `schema` turns it into the custom resource definition, `reading` decodes into
it. A field of type `Quantity` is a Kubernetes quantity.
"""

from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

Quantity: TypeAlias = int | str
"""A Kubernetes quantity as spelled: `4`, `500m`, `2Gi`."""

Quantities: TypeAlias = dict[str, Quantity]
Int32: TypeAlias = Annotated[int, Meta(extra_json_schema={"format": "int32"})]
Int64: TypeAlias = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
Time: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Strings: TypeAlias = dict[str, str]
FreeForm: TypeAlias = dict[str, Any]


class Definition(Struct, kw_only=True, rename="camel"):
    """Base of every definition: members are in camel case."""


class TaintDefinition(Definition):
    """A taint that nodes carry: pods that do not tolerate it stay away."""

    key: str
    """Key of the taint."""
    effect: str
    """NoSchedule, PreferNoSchedule or NoExecute."""
    value: str | None = None
    """Value of the taint."""
    time_added: Time | None = None
    """When the taint was added."""


class RequirementDefinition(Definition):
    """A constraint on one label of the nodes."""

    key: str
    """Label that the constraint is about."""
    operator: str
    """How values are compared: In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: list[str] | None = None
    """What the label is compared with: at least one value for In, exactly one whole number for Gt and
    Lt, none for Exists and DoesNotExist."""


class ConditionDefinition(Definition):
    """One observation about an object: whether something is the case, since when, and why."""

    type: Annotated[str, Meta(max_length=316)]
    """What is observed."""
    status: Annotated[str, Meta(extra_json_schema={"enum": ["True", "False", "Unknown"]})]
    """True, False or Unknown."""
    last_transition_time: Time | None = None
    """When the status last changed."""
    reason: Annotated[str, Meta(max_length=1024)] | None = None
    """Why, in one word."""
    message: Annotated[str, Meta(max_length=32768)] | None = None
    """Why, in a sentence."""
    observed_generation: Annotated[Int64, Meta(ge=0)] | None = None
    """Generation of the object that was looked at."""


class ObjectMeta(Definition):
    """The members of `metadata` that we read. The API server checks them; a file was checked by nobody."""

    name: str | None = None
    generate_name: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: Int64 | None = None
    labels: Strings | None = None
    annotations: Strings | None = None
    finalizers: list[str] | None = None
    owner_references: list[FreeForm] | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None


Conditions: TypeAlias = (
    Annotated[
        list[ConditionDefinition],
        Meta(
            description="What is observed about the object.",
            extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ]
    | None
)
