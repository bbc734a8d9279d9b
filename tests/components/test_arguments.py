"""Arguments of components: every fault named at once, before anything is registered."""

from typing import Any, NotRequired, TypedDict

import pulumi
import pytest

from pulumi_nodeless.arguments import ArgumentError, ArgumentReader
from pulumi_nodeless.cluster import ClusterArgs, ClusterOptions
from pulumi_nodeless.controller import ControllerOptions
from pulumi_nodeless.network import NetworkOptions


def faults(read: Any, args: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ArgumentError) as caught:
        read(args)
    return {problem.path: f"{problem.message} {problem.hint}" for problem in caught.value.problems}


def test_every_fault_is_named_with_its_path() -> None:
    reported = faults(
        NetworkOptions.read,
        {"cidr": "10.0.0.0/8", "zone_count": 9, "nat_gateways": "many", "zonecount": 2},
    )
    assert set(reported) == {"cluster_name", "cidr", "zone_count", "nat_gateways", "zonecount"}
    assert "did you mean zone_count?" in reported["zonecount"]
    assert "missing" in reported["cluster_name"]
    assert "single, per-zone" in reported["nat_gateways"]


def test_whole_numbers_may_arrive_as_floats() -> None:
    options = NetworkOptions.read({"cluster_name": "demo", "zone_count": 2.0})  # type: ignore[typeddict-item]
    assert options.zone_count == 2
    assert isinstance(options.zone_count, int)
    assert "2.5" in faults(NetworkOptions.read, {"cluster_name": "demo", "zone_count": 2.5})["zone_count"]


def test_a_value_that_shapes_resources_must_be_known() -> None:
    reported = faults(NetworkOptions.read, {"cluster_name": pulumi.Output.from_input("demo")})
    assert "must be known" in reported["cluster_name"]


def test_named_zones_decide_their_number() -> None:
    options = NetworkOptions.read(
        {"cluster_name": "demo", "availability_zones": ["us-east-1a", "us-east-1b"]}
    )
    assert options.zone_count == 2
    assert (
        "different zones"
        in faults(
            NetworkOptions.read, {"cluster_name": "demo", "availability_zones": ["us-east-1a", "us-east-1a"]}
        )["availability_zones"]
    )


def test_config_map_modes_need_the_roles_that_aws_auth_lists() -> None:
    args = {"cluster_name": "demo", "vpc_id": "vpc-1", "private_subnet_ids": []}
    assert set(faults(ClusterOptions.read, args)) == {"node_role_arn", "pod_execution_role_arn"}
    alone: ClusterArgs = {
        "cluster_name": "demo",
        "vpc_id": "vpc-1",
        "private_subnet_ids": [],
        "authentication_mode": "API",
    }
    assert ClusterOptions.read(alone).authentication_mode == "API"


def test_what_the_component_sets_cannot_be_given_twice() -> None:
    reported = faults(
        ControllerOptions.read,
        {
            "cluster_name": "demo",
            "cluster_endpoint": "https://api",
            "role_arn": "arn",
            "default_instance_profile": "profile",
            "settings": {"aws.clusterName": "other"},
            "environment": {"POD_IP": "10.0.0.1"},
        },
    )
    assert set(reported) == {"settings.aws.clusterName", "environment.POD_IP"}


class Thing(TypedDict):
    one: NotRequired[str]


def test_an_error_reads_as_one_line_for_each_fault() -> None:
    reader = ArgumentReader("Thing", {}, Thing)
    reader.report("one", "is wrong", "make it right")
    with pytest.raises(ArgumentError) as caught:
        reader.check()
    assert str(caught.value) == "Thing: 1 invalid argument(s)\n  one: is wrong (hint: make it right)"


class Texts(TypedDict):
    values: NotRequired[dict[str, Any]]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (True, "true"),
        (False, "false"),
        (30, "30"),
        (30.0, "30"),
        (-0.075, "-0.075"),
        (123456789012.0, "123456789012"),
        ("yes", "yes"),
        ("", ""),
    ],
)
def test_truth_values_and_numbers_become_the_text_that_was_written(given: Any, text: str) -> None:
    reader = ArgumentReader("Thing", {"values": {"key": given}}, Texts)
    assert reader.text_mapping("values") == reader.tags("values") == {"key": text}
    reader.check()


@pytest.mark.parametrize("given", [None, [], {"a": "b"}, float("nan"), float("inf"), object()])
def test_what_is_no_text_is_named_by_its_path_with_its_value(given: Any) -> None:
    reader = ArgumentReader("Thing", {"values": {"a.b/c": given}}, Texts)
    assert reader.text_mapping("values") == {}
    (problem,) = reader.problems
    assert problem.path == "values.a.b/c"
    assert repr(given) in problem.message


def test_a_value_that_is_known_later_passes() -> None:
    later = pulumi.Output.from_input("later")
    assert ArgumentReader("Thing", {"values": {"key": later}}, Texts).text_mapping("values") == {"key": later}
