"""CoreDNS on the real engine: between Fargate and nodes it moves in place, as EKS knows one such add-on."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from localenv.aws import LocalAws
from localenv.pulumi import ResourceStep
from pulumi_nodeless import FargateProfiles
from pulumi_nodeless.coredns import coredns_on_nodes
from tests.localenv.aws.world import World
from tests.localenv.pulumi.conftest import Shop
from tests.localenv.pulumi.programs import on_aws

pytestmark = pytest.mark.cluster

ADDON = "aws:eks/addon:Addon"


def dns(*, on_fargate: bool) -> None:
    """The part of an environment that has to do with DNS."""
    provider = on_aws().provider
    assert provider is not None
    options = pulumi.ResourceOptions(providers=[provider])
    above = pulumi.ComponentResource("shop:index:Above", "above", {}, options)
    args: Any = {
        "cluster_name": "demo",
        "pod_execution_role_arn": "arn:aws:iam::123456789012:role/pods",
        "subnet_ids": [],
        "profiles": [],
        "manage_coredns": on_fargate,
    }
    fargate = FargateProfiles("above-fargate", args, pulumi.ResourceOptions(parent=above))
    if not on_fargate:
        coredns_on_nodes("above-fargate-coredns", above, fargate, "demo", {}, [fargate])


def what_happens_to_it(shop: Shop, *, on_fargate: bool) -> set[str]:
    shop.program = lambda: dns(on_fargate=on_fargate)
    steps: list[ResourceStep] = []
    shop.stack.up(steps.append)
    return {step.operation for step in steps if step.done and step.type == ADDON}


def configuration(aws: LocalAws) -> Any:
    addon = aws.client("eks").describe_addon(clusterName="demo", addonName="coredns")["addon"]
    return json.loads(addon["configurationValues"])


def test_dns_moves_from_fargate_to_nodes_and_back_without_an_end(shop: Shop, aws: LocalAws) -> None:
    World.make(aws).cluster()
    assert what_happens_to_it(shop, on_fargate=True) == {"create"}
    assert configuration(aws) == {"computeType": "Fargate"}
    assert what_happens_to_it(shop, on_fargate=False) == {"update"}
    assert configuration(aws) == {}
    assert what_happens_to_it(shop, on_fargate=True) == {"update"}
    assert configuration(aws) == {"computeType": "Fargate"}
