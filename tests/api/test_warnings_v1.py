"""What `nodeless validate` and the webhook warn about in v1 objects."""

from __future__ import annotations

import pytest

from nodeless.api.validation import warnings
from nodeless.api.validation_context import ValidationContext, context_warnings
from nodeless.cloudprovider.aws.bundled_types import bundled_types
from tests.api.manifests import node_pool, provisioner, requirement

CAPACITY_TYPE, OS = "karpenter.sh/capacity-type", "kubernetes.io/os"


@pytest.mark.parametrize(("key", "value"), [(CAPACITY_TYPE, "reserved"), (OS, "windows")])
def test_reserved_capacity_and_windows_are_known_values_of_a_node_pool(key: str, value: str) -> None:
    wanted = [
        requirement(key, "In", value),
        requirement("node.kubernetes.io/instance-type", "In", "m5.large"),
    ]
    pool = node_pool(template={"requirements": wanted})

    assert warnings(pool) == []
    assert context_warnings(pool, ValidationContext(bundled_types())) == []


@pytest.mark.parametrize(("key", "value"), [(CAPACITY_TYPE, "reserved"), (OS, "windows")])
def test_a_provisioner_has_neither_reserved_capacity_nor_windows(key: str, value: str) -> None:
    (warning,) = warnings(provisioner(requirements=[requirement(key, "In", value)]))

    assert f'"{value}" is no known value of {key}' in warning
