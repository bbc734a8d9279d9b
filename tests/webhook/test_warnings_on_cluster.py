"""What kubectl prints beside its yes, because of instance types and of the other pools of the cluster."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from localenv.kubernetes import KubernetesApi
from nodeless.api.kinds import NODE_POOL
from tests.api.manifests import node_pool, provisioner, requirement
from tests.webhook.asking import asked_to_create
from tests.webhook.conftest import Serving

pytestmark = pytest.mark.cluster

FAMILY, TYPE = "karpenter.k8s.aws/instance-family", "node.kubernetes.io/instance-type"
ARCH, CAPACITY = "kubernetes.io/arch", "karpenter.sh/capacity-type"
SPOT = requirement(CAPACITY, "In", "spot")


def warned(api: KubernetesApi, manifest: dict[str, Any], path: str) -> str:
    """The warnings about one field; the object must be accepted."""
    verdict = asked_to_create(api, manifest)
    assert verdict.refusal == ""
    return "\n".join(text for text in verdict.warnings if text.startswith(f"{path}: "))


def both(*requirements: dict[str, Any], **spec: Any) -> list[tuple[dict[str, Any], str]]:
    """The same requirements in a pool of either generation, with the path to them."""
    return [
        (provisioner(requirements=[*requirements], **spec), "spec.requirements"),
        (node_pool(template={"requirements": [*requirements]}), "spec.template.spec.requirements"),
    ]


def test_a_pool_that_no_type_satisfies(api: KubernetesApi, admission: Serving) -> None:
    for manifest, path in both(requirement(ARCH, "In", "arm64"), requirement(FAMILY, "In", "m5", "c5")):
        told = warned(api, manifest, f"{path}[1]")
        assert f"{FAMILY} In [c5, m5] excludes all " in told
        assert "types of us-east-1 are known" in told


def test_an_architecture_that_none_of_the_types_has(api: KubernetesApi, admission: Serving) -> None:
    wanted = [requirement(ARCH, "In", "arm64", "amd64"), requirement(TYPE, "In", "m5.large", "m5.2xlarge")]
    for manifest, path in both(*wanted):
        assert "that meets the other requirements has arm64" in warned(api, manifest, f"{path}[0].values")


def test_a_type_that_does_not_exist(api: KubernetesApi, admission: Serving) -> None:
    for manifest, path in both(requirement(TYPE, "In", "m5.large", "m5.xlargee")):
        assert "did you mean m5.xlarge?" in warned(api, manifest, f"{path}[0].values")


def test_fewer_than_five_types_for_spot(api: KubernetesApi, admission: Serving) -> None:
    few = requirement(FAMILY, "In", "a1"), requirement("karpenter.k8s.aws/instance-cpu", "Gt", "2")
    for manifest, path in both(*few, requirement(ARCH, "Exists"), SPOT):
        assert "leaves 4 instance types for spot (a1.2xlarge, a1.4xlarge, a1.metal, a1.xlarge)" in warned(
            api, manifest, path
        )
    for manifest, path in both(requirement(FAMILY, "In", "m5"), SPOT):
        assert warned(api, manifest, path) == ""


def test_more_different_values_than_there_are(api: KubernetesApi, admission: Serving) -> None:
    family = requirement(FAMILY, "In", "m5", "c5", "r5") | {"minValues": 3}
    wanted = [family, requirement("karpenter.k8s.aws/instance-category", "In", "m", "c")]
    path = "spec.template.spec.requirements[0].minValues"

    told = warned(api, node_pool(template={"requirements": wanted}), path)

    assert "3 is more than the 2 values that are possible" in told
    assert warned(api, node_pool(template={"requirements": [family]}), path) == ""


def test_a_label_key_that_no_node_will_ever_carry(api: KubernetesApi, admission: Serving) -> None:
    for manifest, path in both(requirement("node.k8s.aws/instance-type", "In", "m5.large")):
        assert "did you mean node.kubernetes.io/instance-type?" in warned(api, manifest, f"{path}[0].key")


@pytest.mark.parametrize(
    ("resource", "meant"), [("cpus", "cpu"), ("nvidia.com/gpus", "nvidia.com/gpu"), ("GPU", "")]
)
def test_limits_in_unknown_resources(
    api: KubernetesApi, admission: Serving, resource: str, meant: str
) -> None:
    old = provisioner(limits={"resources": {resource: 3}})
    for manifest, path in ((old, "spec.limits.resources"), (node_pool(limits={resource: 3}), "spec.limits")):
        where = f'{path}["{resource}"]' if "/" in resource else f"{path}.{resource}"
        told = warned(api, manifest, where)
        assert "limits nothing: no node has such a resource" in told
        assert f"did you mean {meant}?" in told if meant else "known: cpu" in told


def test_resources_that_nodes_may_have_can_be_limited(api: KubernetesApi, admission: Serving) -> None:
    for resource in ("nvidia.com/gpu", "example.com/widgets", "hugepages-2Mi"):
        assert asked_to_create(api, node_pool(limits={resource: 3})).warnings == ()


def test_overlapping_pools_without_weight(api: KubernetesApi, admission: Serving) -> None:
    other = node_pool(template={"requirements": [requirement(FAMILY, "In", "m5")]})
    other["metadata"]["name"] = "other"
    api.create(other)
    try:
        told = api.wait(
            partial(warned, api, provisioner(requirements=[requirement(FAMILY, "In", "m5")]), "spec.weight"),
            lambda text: text != "",
        )
        assert told.startswith("spec.weight: overlaps with NodePool/other, which has the same weight")
        for apart in (
            provisioner(weight=10),
            provisioner(taints=[{"key": "team", "effect": "NoSchedule"}]),
            provisioner(requirements=[requirement(FAMILY, "In", "c5")]),
            provisioner(requirements=[requirement("karpenter.k8s.aws/instance-category", "In", "c")]),
        ):
            assert warned(api, apart, "spec.weight") == ""
        assert warned(api, other | {"metadata": {"generateName": "x-"}}, "spec.weight") != ""
    finally:
        api.delete(NODE_POOL.path("other"))
        api.wait_gone(NODE_POOL.path("other"))
