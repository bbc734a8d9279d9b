"""The AWS Load Balancer Controller as the program of infra/ installs it, and by itself."""

import json
from fnmatch import fnmatchcase
from typing import Any

import pulumi_aws as aws
import pytest
from pulumi import ResourceOptions

from pulumi_nodeless import ArgumentError, LoadBalancerController
from pulumi_nodeless.configuration import ConfigurationError
from pulumi_nodeless.load_balancer_policy import load_balancer_policy
from pulumi_nodeless.policies import MANAGED_POLICY_LIMIT
from tests.components.conftest import CONFIG, program
from tests.components.recorder import ACCOUNT, ISSUER, Recorder, run

RELEASE = "kubernetes:helm.sh/v3:Release"
ROLE = "aws:iam/role:Role"
CLUSTER_TAG = "elbv2.k8s.aws/cluster"


def controller(**arguments: Any) -> Recorder:
    given = {
        "cluster_name": "shop",
        "vpc_id": "vpc-1",
        "oidc_provider_arn": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{ISSUER}",
        "oidc_issuer": f"https://{ISSUER}",
        **arguments,
    }

    def install() -> None:
        options = ResourceOptions(providers=[aws.Provider("aws", region="us-east-1")])
        LoadBalancerController("lb", given, options)  # type: ignore[arg-type]

    return run(install)


def test_its_pods_match_a_fargate_profile_that_is_there_before_them(environment: Recorder) -> None:
    release = environment.one(RELEASE)
    profile = next(
        each
        for each in environment.of("aws:eks/fargateProfile:FargateProfile")
        if each.inputs["fargateProfileName"] == "kube-system"
    )
    chosen = release.inputs["values"]["podLabels"]
    assert chosen == {"eks.amazonaws.com/fargate-profile": profile.inputs["fargateProfileName"]}
    # The chart labels its pods with the chart's name.
    assert {
        "namespace": release.inputs["namespace"],
        "labels": {"app.kubernetes.io/name": release.inputs["chart"]},
    } in profile.inputs["selectors"]
    assert profile.urn in environment.everything_behind(release)


def test_it_is_told_what_it_cannot_ask_for_on_fargate(environment: Recorder) -> None:
    values = environment.one(RELEASE).inputs["values"]
    assert values["clusterName"] == "demo"
    assert values["region"] == "us-east-1"
    assert values["vpcId"] == "nodeless-network-vpc-id"
    assert values["defaultTargetType"] == "ip"
    assert values["resources"]["requests"] == values["resources"]["limits"]


def test_its_role_trusts_its_service_account_alone(environment: Recorder) -> None:
    role = next(each for each in environment.of(ROLE) if "LoadBalancer" in each.inputs["name"])
    (statement,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
    assert statement["Condition"]["StringEquals"] == {
        f"{ISSUER}:aud": "sts.amazonaws.com",
        f"{ISSUER}:sub": "system:serviceaccount:kube-system:aws-load-balancer-controller",
    }
    account = environment.one(RELEASE).inputs["values"]["serviceAccount"]
    assert account["name"] == "aws-load-balancer-controller"
    assert account["annotations"] == {
        "eks.amazonaws.com/role-arn": f"arn:aws:iam::{ACCOUNT}:role/{role.inputs['name']}"
    }


def test_new_services_do_not_depend_on_it_unless_asked_for() -> None:
    assert controller().one(RELEASE).inputs["values"]["enableServiceMutatorWebhook"] is False
    asked = controller(default_load_balancers=True).one(RELEASE).inputs["values"]
    assert asked["enableServiceMutatorWebhook"] is True


def test_own_values_of_the_chart_win() -> None:
    made = controller(values={"logLevel": "debug", "region": "eu-west-1"}, tags={"team": "web"}, replicas=1)
    values = made.one(RELEASE).inputs["values"]
    assert made.faults == []
    assert (values["logLevel"], values["region"], values["replicaCount"]) == ("debug", "eu-west-1", 1)
    assert values["defaultTags"] == {"team": "web"}


def test_on_nodes_it_has_no_profile() -> None:
    assert "podLabels" not in controller(fargate_profile="").one(RELEASE).inputs["values"]


def test_wrong_arguments_are_named_before_anything_is_registered() -> None:
    with pytest.raises(ArgumentError) as caught:
        controller(replicas=0, default_load_balancers="yes", replcas=2)
    assert sorted(problem.path for problem in caught.value.problems) == [
        "default_load_balancers",
        "replcas",
        "replicas",
    ]


def test_a_stack_can_do_without_it() -> None:
    recorder = run(program, config={**CONFIG, "nodeless:loadBalancerController": "false"})
    assert recorder.of(RELEASE) == []
    assert not [each for each in recorder.of(ROLE) if "LoadBalancer" in each.inputs["name"]]


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov", "aws-iso-b"])
def test_its_policy_fits_and_stays_in_its_partition(partition: str) -> None:
    text = json.dumps(load_balancer_policy(partition), separators=(",", ":"))
    assert len(text) <= MANAGED_POLICY_LIMIT
    assert text.count("arn:") == text.count(f"arn:{partition}:")


@pytest.mark.parametrize(
    ("action", "own", "foreign"),
    [
        ("elasticloadbalancing:DeleteLoadBalancer", True, False),
        ("elasticloadbalancing:DeleteTargetGroup", True, False),
        ("elasticloadbalancing:ModifyTargetGroup", True, False),
        ("ec2:DeleteSecurityGroup", True, False),
        ("elasticloadbalancing:DescribeLoadBalancers", True, True),
        ("ec2:TerminateInstances", False, False),
    ],
)
def test_it_may_end_only_what_it_made(action: str, own: bool, foreign: bool) -> None:
    assert allowed(action, {CLUSTER_TAG: "shop"}) is own
    assert allowed(action, {}) is foreign


def allowed(action: str, tags: dict[str, str]) -> bool:
    """Whether some statement grants the action on a resource that bears these tags."""
    return any(
        any(fnmatchcase(action, pattern) for pattern in statement["Action"])
        and all(
            (key.removeprefix("aws:ResourceTag/") not in tags) == (absent == "true")
            for key, absent in statement.get("Condition", {}).get("Null", {}).items()
            if key.startswith("aws:ResourceTag/")
        )
        for statement in load_balancer_policy("aws")["Statement"]
    )


def with_profiles(*profiles: Any) -> Recorder:
    return run(program, config={**CONFIG, "nodeless:fargateProfiles": json.dumps(profiles)})


OWN = {"name": "own", "selectors": [{"namespace": "karpenter"}]}


@pytest.mark.parametrize(
    "selector",
    [
        {"namespace": "kube-system"},
        {"namespace": "kube-*", "labels": {"app.kubernetes.io/name": "aws-load-balancer-controller"}},
        {"namespace": "kube-system", "labels": {"app.kubernetes.io/instance": "aws-load-balancer-*"}},
    ],
)
def test_its_pods_name_the_profile_that_takes_them(selector: dict[str, Any]) -> None:
    recorder = with_profiles(OWN, {"name": "system", "selectors": [selector]})
    values = recorder.one(RELEASE).inputs["values"]
    assert values["podLabels"] == values["podAnnotations"] == {"eks.amazonaws.com/fargate-profile": "system"}


def test_without_a_profile_that_takes_it_the_stack_says_what_to_do() -> None:
    with pytest.raises(ConfigurationError) as refused:
        with_profiles(OWN)
    (problem,) = refused.value.problems
    assert problem.path == "loadBalancerController"
    assert "no Fargate profile selects its pods" in problem.message
    assert "app.kubernetes.io/name=aws-load-balancer-controller" in problem.hint
