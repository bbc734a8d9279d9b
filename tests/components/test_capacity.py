"""Pools of either generation as arguments: what is registered, and what a preview refuses."""

from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from nodeless.api.validation import validate
from nodeless.model.labels import OWNER
from pulumi_nodeless import ArgumentError, Capacity
from tests.components.recorder import Recorder, run

NODE_CLASS = {"name": "default"}


def capacity(**arguments: Any) -> Recorder:
    def program() -> None:
        provider = k8s.Provider("cluster", kubeconfig="{}")
        profile = pulumi.Output.from_input("nodes")
        given: Any = {"cluster_name": "shop", "instance_profile": profile, **arguments}
        Capacity("pools", given, pulumi.ResourceOptions(providers=[provider]))

    return run(program)


def refusals(**arguments: Any) -> list[str]:
    with pytest.raises(ArgumentError) as refused:
        capacity(**arguments)
    return [str(problem) for problem in refused.value.problems]


def as_stored(value: Any) -> Any:
    """As the API server has it: the recorder's wire knows no whole numbers."""
    if isinstance(value, dict):
        return {key: as_stored(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_stored(each) for each in value]
    return int(value) if isinstance(value, float) else value


def test_a_node_class_may_name_a_role_in_place_of_a_profile() -> None:
    made = capacity(node_classes=[{"name": "own", "role": "KarpenterNodeRole-shop"}, NODE_CLASS])
    classes = {each.name: each for each in made.of("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass")}
    own, usual = classes["pools-node-class-own"], classes["pools-node-class-default"]
    assert validate(as_stored(own.inputs)) == []
    assert own.inputs["spec"]["role"] == "KarpenterNodeRole-shop"
    assert "instanceProfile" not in own.inputs["spec"]
    assert usual.inputs["spec"]["instanceProfile"] == "nodes"
    (refused,) = refusals(node_classes=[{"name": "own", "role": "r", "instance_profile": "p"}])
    assert "exactly one of role and instanceProfile" in refused


def test_a_node_pool_and_its_class_are_what_the_webhook_accepts() -> None:
    made = capacity(
        node_classes=[
            {
                "name": "default",
                "ami_alias": "bottlerocket@latest",
                "block_devices": [{"device_name": "/dev/xvdb", "volume_size": "50Gi", "encrypted": True}],
                "tags": {"team": "shop"},
            }
        ],
        node_pools=[
            {
                "name": "spot",
                "node_class": "default",
                "requirements": [
                    {
                        "key": "node.kubernetes.io/instance-type",
                        "operator": "Exists",
                        "min_values": 5.0,  # as other languages send it
                    }
                ],
                "labels": {"team": "shop"},
                "taints": [{"key": "team", "value": "shop", "effect": "NoSchedule"}],
                "expire_after": "168h",
                "consolidate_after": "1m",
                "budgets": [{"nodes": "20%", "schedule": "0 9 * * mon-fri", "duration": "8h"}],
                "limits": {"cpu": "100"},
                "weight": 10.0,
            }
        ],
    )

    (pool,) = made.of("kubernetes:karpenter.sh/v1:NodePool")
    (node_class,) = made.of("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass")
    assert validate(as_stored(pool.inputs)) == validate(as_stored(node_class.inputs)) == []
    assert node_class.inputs["spec"]["instanceProfile"] == "nodes"
    assert node_class.inputs["spec"]["subnetSelectorTerms"] == [{"tags": {"karpenter.sh/discovery": "shop"}}]
    assert pool.inputs["spec"]["template"]["spec"]["requirements"][0]["minValues"] == 5
    assert node_class.urn in pool.dependencies, "the pool goes before its node class"
    assert pool.delete_timeout == "30m"


def test_both_generations_can_stand_side_by_side() -> None:
    made = capacity(
        node_templates=[{"name": "old"}],
        provisioners=[{"name": "old", "node_template": "old"}],
        node_classes=[NODE_CLASS],
        node_pools=[{"name": "new", "node_class": "default"}],
    )
    kinds = {each.token.rpartition(":")[2] for each in made.custom()} - {"kubernetes"}
    assert kinds == {"AWSNodeTemplate", "Provisioner", "EC2NodeClass", "NodePool"}


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (
            {"node_pools": [{"name": "a", "node_class": "absent"}], "node_classes": [NODE_CLASS]},
            "node_pools[0].node_class: 'absent' is not declared here (hint: declared are default)",
        ),
        (
            {"provisioners": [{"name": "a", "node_template": "t"}], "node_templates": [{"name": "t"}] * 2},
            "node_templates[1].name: 't' is used twice",
        ),
        ({"node_pools": [{"name": "a"}]}, "node_pools[0].node_class: required argument is missing"),
    ],
)
def test_references_and_names_are_checked(arguments: dict[str, Any], reported: str) -> None:
    assert reported in refusals(**arguments)


def test_what_the_webhook_would_refuse_a_preview_already_refuses_all_at_once() -> None:
    reported = refusals(
        node_classes=[{"name": "default", "tags": {"karpenter.sh/nodepool": "mine"}}],
        node_pools=[
            {
                "name": "a",
                "node_class": "default",
                "requirements": [{"key": "kubernetes.io/arch", "operator": "Inn", "values": ["amd64"]}],
                "weight": 200,
            }
        ],
        node_templates=[{"name": "t"}],
        provisioners=[
            {"name": "p", "node_template": "t", "ttl_seconds_after_empty": 30, "consolidation": True}
        ],
    )

    assert len(reported) >= 4
    assert any("NodePool a: spec.weight: 200" in each for each in reported)
    assert any("NodePool a: spec.template.spec.requirements[0].operator" in each for each in reported)
    assert any("EC2NodeClass default: spec.tags" in each for each in reported)
    assert any(each.startswith("provisioners[0]: Provisioner p: ") for each in reported)
    assert not any("instanceProfile" in each for each in reported), "a value known later is no fault"


def test_pools_bear_the_name_of_the_component_that_declares_them() -> None:
    made = capacity(
        node_classes=[NODE_CLASS],
        node_pools=[{"name": "spot", "node_class": "default"}],
        node_templates=[{"name": "default"}],
        provisioners=[{"name": "default", "node_template": "default"}],
    )
    owner = {OWNER: f"{pulumi.get_project()}/{pulumi.get_stack()}/pools"}
    for token in ("karpenter.sh/v1:NodePool", "karpenter.sh/v1alpha5:Provisioner"):
        assert made.one(f"kubernetes:{token}").inputs["metadata"]["annotations"] == owner
    node_class = made.one("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass").inputs
    assert node_class["metadata"] == {"name": "default"}
