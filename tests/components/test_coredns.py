"""DNS of the cluster: on Fargate, on nodes, or left to whoever has it."""

import json
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

from pulumi_nodeless import ArgumentError, Environment
from pulumi_nodeless.configuration import ConfigurationError
from pulumi_nodeless.environment_checks import check_environment
from tests.components.conftest import CONFIG, program
from tests.components.recorder import ACCOUNT, Recorder, run

ADDON = "aws:eks/addon:Addon"
PROFILE = "aws:eks/fargateProfile:FargateProfile"
PROVISIONER = "kubernetes:karpenter.sh/v1alpha5:Provisioner"
DNS = {"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}}
#: A profile that leaves kube-system to nodes.
OWN = [{"name": "own", "selectors": [{"namespace": "karpenter"}]}]
ON_NODES = {
    **CONFIG,
    "nodeless:fargateProfiles": json.dumps(OWN),
    "nodeless:loadBalancerController": "false",
}
EXISTING = {
    "arn": f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/demo",
    "endpoint": "https://abc.eks",
    "certificate_authority": "Q0E=",
    "oidc_provider_arn": f"arn:aws:iam::{ACCOUNT}:oidc-provider/x",
    "oidc_issuer": "https://oidc.example/id/1",
    "vpc_id": "vpc-1",
    "private_subnet_ids": ["subnet-1", "subnet-2"],
    "security_group_id": "sg-1",
}


def existing(**arguments: Any) -> Recorder:
    """An environment in a cluster that is there."""
    given: Any = {"cluster_name": "demo", "existing_cluster": EXISTING, **arguments}
    return run(
        lambda: Environment(
            "apps", given, pulumi.ResourceOptions(providers=[aws.Provider("aws", region="us-east-1")])
        )
    )


def selectors(recorder: Recorder) -> list[Any]:
    return [selector for profile in recorder.of(PROFILE) for selector in profile.inputs["selectors"]]


def test_without_a_profile_for_it_dns_runs_on_the_first_node_that_a_pool_makes() -> None:
    recorder = run(program, config=ON_NODES)
    assert recorder.faults == []
    dns = recorder.one(ADDON)
    assert dns.inputs["addonName"] == "coredns"
    assert json.loads(dns.inputs["configurationValues"]) == {}
    # Without a version it stays at its first one, whatever the cluster is upgraded to.
    assert dns.inputs["addonVersion"] == "v1.12.1-eksbuild.2"
    before = recorder.everything_behind(dns)
    for needed in (recorder.one(PROVISIONER), recorder.one("kubernetes:apps/v1:Deployment")):
        assert needed.urn in before
    waiting = [each.name for each in recorder.custom() if dns.urn in each.dependencies]
    assert waiting == [], "what waits for DNS would wait for a node"


def test_pods_that_drain_at_destruction_still_have_dns() -> None:
    assert run(program, config=ON_NODES).one(ADDON).inputs["preserve"] is True


def test_dns_that_nothing_makes_a_node_for_is_refused_before_anything_is_registered() -> None:
    recorder = Recorder()
    with pytest.raises(ConfigurationError) as refused:
        run(program, config={**ON_NODES, "nodeless:defaultPool": "false"}, recorder=recorder)
    (problem,) = refused.value.problems
    assert problem.path == "manageCoredns"
    assert "no declared pool" in problem.message
    assert not [each for each in recorder.custom() if not each.token.startswith("pulumi:providers")]


def told_of_dns(*taints: dict[str, str]) -> list[str]:
    """What an environment is told of DNS on nodes whose only pool has these taints."""
    arguments: Any = {
        "cluster_name": "demo",
        "fargate_profiles": OWN,
        "load_balancer_controller": False,
        "node_classes": [{"name": "default"}],
        "node_pools": [{"name": "default", "node_class": "default", "taints": taints}],
    }
    try:
        check_environment(arguments)
    except ArgumentError as refused:
        return [problem.path for problem in refused.problems]
    return []


def test_a_pool_whose_taints_keep_dns_away_makes_no_node_for_it() -> None:
    team = {"key": "team", "value": "search", "effect": "NoSchedule"}
    system = {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}
    assert told_of_dns() == told_of_dns(system) == []
    assert told_of_dns({**team, "effect": "PreferNoSchedule"}) == []
    assert told_of_dns(team) == told_of_dns(system, team) == ["manage_coredns"]


@pytest.mark.parametrize("more", [{}, {"nodeless:defaultPool": "false"}])
def test_dns_can_be_left_to_the_user(more: dict[str, str]) -> None:
    recorder = run(program, config={**ON_NODES, **more, "nodeless:manageCoredns": "false"})
    assert recorder.of(ADDON) == []


def test_an_existing_cluster_keeps_its_dns() -> None:
    recorder = existing()
    assert recorder.of(ADDON) == []
    assert DNS not in selectors(recorder), "its pods would move to Fargate with their next restart"


def test_an_existing_cluster_gets_dns_when_asked_for() -> None:
    recorder = existing(manage_coredns=True)
    assert json.loads(recorder.one(ADDON).inputs["configurationValues"]) == {"computeType": "Fargate"}
    assert DNS in selectors(recorder)


def test_an_existing_cluster_has_nodes_of_its_own_for_dns() -> None:
    """Where it is asked for on nodes, no pool has to make one."""
    recorder = existing(
        manage_coredns=True,
        load_balancer_controller=False,
        fargate_profiles=OWN,
        node_templates=[],
        provisioners=[],
    )
    assert json.loads(recorder.one(ADDON).inputs["configurationValues"]) == {}
