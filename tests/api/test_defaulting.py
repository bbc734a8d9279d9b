"""What a Provisioner means where it says nothing."""

from __future__ import annotations

from copy import deepcopy

import pytest

from nodeless.api.defaulting import default
from tests.api.manifests import node_template, provisioner, requirement

OS = requirement("kubernetes.io/os", "In", "linux")
ARCH = requirement("kubernetes.io/arch", "In", "amd64")
CAPACITY = requirement("karpenter.sh/capacity-type", "In", "on-demand")
CATEGORY = requirement("karpenter.k8s.aws/instance-category", "In", "c", "m", "r")
GENERATION = requirement("karpenter.k8s.aws/instance-generation", "Gt", "2")


def added(**spec: object) -> list[dict[str, object]]:
    manifest = provisioner(**spec)
    given = manifest["spec"].get("requirements") or []
    requirements: list[dict[str, object]] = default(manifest)["spec"].get("requirements", [])
    assert requirements[: len(given)] == given
    return requirements[len(given) :]


def test_everything_is_defaulted_where_nothing_is_said() -> None:
    assert added() == [OS, ARCH, CAPACITY, CATEGORY, GENERATION]


@pytest.mark.parametrize("operator", ["Exists", "NotIn", "DoesNotExist"])
def test_a_requirement_counts_whatever_its_operator(operator: str) -> None:
    assert ARCH not in added(requirements=[requirement("kubernetes.io/arch", operator)])


def test_an_alias_counts_as_its_key() -> None:
    assert ARCH not in added(requirements=[requirement("beta.kubernetes.io/arch", "In", "arm64")])


def test_aws_15_12_a_label_counts_since_a_default_could_only_contradict_it() -> None:
    assert added(labels={"kubernetes.io/arch": "arm64"}) == [OS, CAPACITY, CATEGORY, GENERATION]


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "karpenter.k8s.aws/instance-family",
        "karpenter.k8s.aws/instance-category",
        "karpenter.k8s.aws/instance-generation",
    ],
)
def test_any_word_on_the_type_leaves_category_and_generation_alone(key: str) -> None:
    assert added(requirements=[requirement(key, "Exists")]) == [OS, ARCH, CAPACITY]


def test_a_requirement_that_an_update_removed_is_added_again() -> None:
    manifest = default(provisioner())
    manifest["spec"]["requirements"].remove(ARCH)

    assert ARCH in default(manifest)["spec"]["requirements"]


def test_nothing_else_is_touched() -> None:
    manifest = provisioner(limits={"resources": {"cpu": 1000, "memory": "1000Gi"}}, requirements=None)
    before = deepcopy(manifest)

    defaulted = default(manifest)

    assert manifest == before
    del defaulted["spec"]["requirements"]
    assert defaulted == before


def test_node_templates_have_no_defaults() -> None:
    assert default(node_template()) == node_template()
