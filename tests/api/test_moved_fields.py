"""A field of another generation is a fault that names where the field is in this one."""

from __future__ import annotations

from typing import Any

import pytest

from nodeless.api.crds import schema
from nodeless.api.kinds import (
    AWS_NODE_TEMPLATE,
    EC2_NODE_CLASS,
    EC2_NODE_CLASS_V1BETA1,
    NODE_CLAIM,
    NODE_CLAIM_V1BETA1,
    NODE_POOL,
    NODE_POOL_V1BETA1,
    PROVISIONER,
    V1BETA1,
    Kind,
)
from nodeless.api.moved_fields import MOVED
from nodeless.api.v1beta1 import schema_v1beta1
from nodeless.api.validation import validate
from nodeless.api.validation_v1beta1 import validate_v1beta1
from tests.api.manifests import (
    ec2_node_class,
    ec2_node_class_v1beta1,
    node_claim_v1beta1,
    node_pool,
    node_pool_v1beta1,
    node_template,
    provisioner,
)

VALID = {
    NODE_POOL: node_pool(limits={}, disruption={}),
    EC2_NODE_CLASS: ec2_node_class(),
    PROVISIONER: provisioner(),
    AWS_NODE_TEMPLATE: node_template(),
    NODE_CLAIM: {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "one"},
        "spec": {"nodeClassRef": {"group": "a", "kind": "b", "name": "c"}, "requirements": []},
    },
    NODE_POOL_V1BETA1: node_pool_v1beta1(),
    EC2_NODE_CLASS_V1BETA1: ec2_node_class_v1beta1(),
    NODE_CLAIM_V1BETA1: node_claim_v1beta1(),
}
FIELDS = [(kind, path, home) for kind, fields in MOVED.items() for path, home in fields.items()]


def with_field(value: Any, path: list[str]) -> Any:
    """A copy of a manifest with something at a path."""
    if not path:
        return {"cpu": "1"}
    return {**value, path[0]: with_field(value.get(path[0], {}), path[1:])}


@pytest.mark.parametrize(
    ("kind", "path", "home"),
    FIELDS,
    ids=[f"{kind.api_version} {kind.kind} {path}" for kind, path, _ in FIELDS],
)
def test_a_field_that_moved_is_a_fault_that_says_where_to(kind: Kind, path: str, home: str) -> None:
    check = validate_v1beta1 if kind in V1BETA1 else validate
    faults = [
        fault
        for fault in check(with_field(VALID[kind], path.split(".")))
        if not fault.warning and fault.path == path
    ]

    assert [fault.hint for fault in faults] == [f"in {kind.api_version} this is {home}"]


@pytest.mark.parametrize(
    ("kind", "path"),
    [(kind, path) for kind, path, _ in FIELDS],
    ids=[f"{kind.api_version} {kind.kind} {path}" for kind, path, _ in FIELDS],
)
def test_the_table_names_no_field_that_the_kind_has(kind: Kind, path: str) -> None:
    part: Any = schema_v1beta1(kind) if kind in V1BETA1 else schema(kind)
    for name in path.split("."):
        part = part.get("properties", {}).get(name, {})

    assert part == {}
