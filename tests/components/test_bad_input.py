"""Arguments that cannot work are one error before anything is registered, by the argument's own name."""

import json
from typing import Any

import pytest

from pulumi_nodeless import ArgumentError, Environment, EnvironmentArgs
from pulumi_nodeless.configuration import ConfigurationError
from tests.components.conftest import CONFIG, program
from tests.components.recorder import Recorder, run

POOL = {"name": "general", "node_template": "own", "requirements": [{"key": "zone", "operator": "In"}]}

SELECTORS = [{"namespace": "kube-system"}, {"namespace": "karpenter"}]
VPC = {"vpc_id": "vpc-1", "private_subnet_ids": ["a", "b"]}


def refused(args: dict[str, Any]) -> list[str]:
    """What an environment with these arguments is told, one line each; nothing may have been registered."""
    recorder = Recorder()
    with pytest.raises(ArgumentError) as caught:
        run(lambda: Environment("own", {"cluster_name": "demo", **args}), recorder=recorder)  # type: ignore[typeddict-item]
    assert recorder.resources == {}
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("args", "reported"),
    [
        ({"vpc_cidr": "10.0.0.0/28"}, "vpc_cidr: "),
        ({"vpc_cidr": "10.0.0.0/8"}, "vpc_cidr: "),
        ({"zone_count": 1}, "zone_count: 1 is not between 2 and 6"),
        ({"availability_zones": ["us-east-1a"]}, "availability_zones: ['us-east-1a'] are not 2 to 6"),
        (
            {"existing_vpc": {"vpc_id": "vpc-1"}},
            "existing_vpc.private_subnet_ids: required",
        ),
        ({"cluster_name": "c" * 101}, "cluster_name: "),
        ({"cluster_name": "under.way"}, "cluster_name: 'under.way' is not a name that EKS accepts"),
        ({"cluster_name": None}, "cluster_name: required argument is missing"),
        ({"tags": {"aws:team": "web"}}, "tags.aws:team: tags that begin with aws: are reserved by AWS"),
        ({"tags": {"karpenter.sh/discovery": "demo"}}, "tags.karpenter.sh/discovery: is reserved"),
        ({"tags": {"kubernetes.io/cluster/demo": "owned"}}, "tags.kubernetes.io/cluster/demo: is reserved"),
        ({"kubernetes_version": "latest"}, "kubernetes_version: 'latest' is not a version that EKS offers"),
        ({"kubernetes_version": "1.9"}, "kubernetes_version: '1.9' is not a version that EKS offers"),
        ({"kubernetes_version": "1.33.2"}, "kubernetes_version: '1.33.2' is not a version that EKS offers"),
        ({"cluster_log_types": ["audits"]}, "cluster_log_types: 'audits' is not one of api, audit"),
        (
            {"endpoint_public_access": False, "public_access_cidrs": ["10.0.0.0/8"]},
            "public_access_cidrs: given although the public endpoint is off",
        ),
        ({"controller_replicas": 0}, "controller_replicas: 0 is not between 1 and 5"),
        (
            {"controller_webhook_cidrs": ["10.0.0.1/8"]},
            "controller_webhook_cidrs: '10.0.0.1/8' is not a network",
        ),
        ({"controller_log_level": "loud"}, "controller_log_level: 'loud' is not one of"),
        (
            {"controller_settings": {"aws.clusterName": "x"}},
            "controller_settings.aws.clusterName: follows",
        ),
        (
            {"controller_settings": {"aws.tags": {"team": "web"}}},
            "controller_settings.aws.tags: expected text, got {'team': 'web'}",
        ),
        ({"controller_environment": {"LOG": None}}, "controller_environment.LOG: expected text, got None"),
        ({"tags": {"cost": [1]}}, "tags.cost: expected text, got [1]"),
        ({"manage_coredns": "no"}, "manage_coredns: expected true or false, got 'no'"),
        ({"controller_permissions": "all"}, "controller_permissions: 'all' is not one of guide"),
        ({"authentication_mode": "NONE"}, "authentication_mode: 'NONE' is not one of API"),
        ({"teardown_timeout_minutes": 0}, "teardown_timeout_minutes: 0 is not between"),
        (
            {"teardown_timeout_minutes": 5, "teardown_drain_minutes": 5},
            "teardown_drain_minutes: destruction fails after 5 minutes, before 5 are over",
        ),
        ({"provisioners": [POOL]}, "provisioners[0].node_template: 'own' is not declared here"),
        ({"interruption_queue": "yes"}, "interruption_queue: expected true or false, got 'yes'"),
        ({"zonecount": 3}, "zonecount: no such argument (hint: did you mean zone_count?)"),
        (
            {"fargate_profiles": [{"name": name, "selectors": SELECTORS} for name in ("a", "b", "a")]},
            "fargate_profiles[2].name: 'a' is used twice",
        ),
        (
            {"private_access_cidrs": ["10.0.0.0/8", "10.0.0.0/8"]},
            "private_access_cidrs: '10.0.0.0/8' is given twice",
        ),
        (
            {"existing_vpc": {"vpc_id": "vpc-1", "private_subnet_ids": ["a", "b", "a"]}},
            "existing_vpc.private_subnet_ids: 'a' is given twice",
        ),
        (
            {"existing_vpc": {**VPC, "public_subnet_ids": ["c", "c"]}},
            "existing_vpc.public_subnet_ids: 'c' is given twice",
        ),
        *(
            ({"public_access_cidrs": [block]}, f"public_access_cidrs: {block!r} is not a network")
            for block in ("203.0.113.7", "203.0.113.7/24", "10.0.0.0/255.0.0.0", "2001:db8::1/64", "")
        ),
    ],
    ids=lambda value: value.partition(":")[0] if isinstance(value, str) else "",
)
def test_one_wrong_argument_is_named(args: dict[str, Any], reported: str) -> None:
    assert [line for line in refused(args) if line.startswith(reported)], refused(args)


def test_what_a_program_reads_of_a_key_that_is_not_set_is_as_good_as_left_out() -> None:
    """`pulumi.Config` gives None, which a program may pass on as it is."""

    def registered(**args: None) -> set[str]:
        return set(run(lambda: Environment("own", {"cluster_name": "demo", **args})).resources)  # type: ignore[typeddict-item]

    assert registered(**dict.fromkeys(EnvironmentArgs.__optional_keys__)) == registered()
    assert registered(controller_settings=None) == registered()


def test_every_fault_of_every_part_is_told_at_once() -> None:
    args = {
        "vpc_cidr": "10.0.0.0/28",
        "kubernetes_version": "new",
        "controller_replicas": 9,
        "tags": {"aws:x": ""},
    }
    assert [line.partition(":")[0] for line in refused(args)] == [
        "tags.aws",
        "vpc_cidr",
        "kubernetes_version",
        "controller_replicas",
    ]


def test_a_stack_without_a_region_is_told_which_key_is_missing() -> None:
    config = {key: value for key, value in CONFIG.items() if key != "aws:region"}
    recorder = Recorder()
    with pytest.raises(Exception, match="aws:region"):
        run(program, config=config, recorder=recorder)
    assert recorder.resources == {}


def test_keys_of_the_aws_provider_that_would_have_no_effect_are_refused() -> None:
    """The engine configures default providers alone; without its profile a stack goes to another account."""
    recorder = Recorder()
    wrong = {"aws:profile": "shop", "aws:regoin": "eu-west-1"}
    with pytest.raises(ConfigurationError) as refused:
        run(program, config={**CONFIG, **wrong}, recorder=recorder)
    assert [str(problem) for problem in refused.value.problems] == [
        "profile: has no effect here (hint: set AWS_PROFILE or the like in the environment)",
        "regoin: has no effect here (hint: did you mean aws:region?)",
    ]
    assert recorder.resources == {}


def test_a_configured_tag_that_is_reserved_stops_the_stack_before_it_begins() -> None:
    recorder = Recorder()
    config = {**CONFIG, "nodeless:tags": json.dumps({"karpenter.sh/discovery": "demo"})}
    with pytest.raises(ConfigurationError, match=r"nodeless:tags\.karpenter\.sh/discovery"):
        run(program, config=config, recorder=recorder)
    assert {resource.token for resource in recorder.resources.values()} <= {"pulumi:providers:aws"}
