"""Dictionaries inside of arguments: what is wrong in them is told by its full path, all of it at once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin, is_typeddict

import pulumi
import pytest

from pulumi_nodeless import ArgumentError, Capacity, EnvironmentArgs, FargateProfiles, FargateProfilesArgs
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.configuration import ConfigurationError
from pulumi_nodeless.environment_checks import check_environment
from pulumi_nodeless.shapes import kinds, python_members, read
from tests.components.conftest import CONFIG, program
from tests.components.recorder import Recorder, run

POOL = {"name": "own", "node_class": "own"}
PROVISIONER = {"name": "own", "node_template": "own"}
CLASSES = {"node_classes": [{"name": "own"}], "node_templates": [{"name": "own"}]}
CLUSTER = {
    "arn": "arn:aws:eks:us-east-1:123456789012:cluster/demo",
    "endpoint": "https://demo.example",
    "certificate_authority": "Q0E=",
    "oidc_provider_arn": "arn:aws:iam::123456789012:oidc-provider/x",
    "oidc_issuer": "oidc.example/id/1",
    "vpc_id": "vpc-1",
    "private_subnet_ids": ["subnet-1", "subnet-2"],
    "security_group_id": "sg-1",
}


def reported(**args: Any) -> list[str]:
    """What an environment with these arguments is told, one line each."""
    try:
        check_environment({"cluster_name": "demo", **args})  # type: ignore[typeddict-item]
    except ArgumentError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (
            {**CLASSES, "node_pools": [{**POOL, "requirements": [{"key": "zone", "values": ["a"]}]}]},
            "node_pools[0].requirements[0].operator: required argument is missing",
        ),
        (
            {
                **CLASSES,
                "node_pools": [
                    {**POOL, "requirements": [{"key": "zone", "operator": "Exists", "minvalues": 2}]}
                ],
            },
            "node_pools[0].requirements[0].minvalues: no such argument (hint: did you mean min_values?)",
        ),
        (
            {**CLASSES, "node_pools": [{**POOL, "weight": "ten"}]},
            "node_pools[0].weight: expected a whole number, got 'ten' "
            "(hint: write it in digits, without quotes)",
        ),
        (
            {**CLASSES, "provisioners": [{**PROVISIONER, "weight": 2.5}]},
            "provisioners[0].weight: expected a whole number, got 2.5 "
            "(hint: write it in digits, without quotes)",
        ),
        (
            {**CLASSES, "provisioners": [{**PROVISIONER, "taints": {"key": "gpu", "effect": "NoSchedule"}}]},
            "provisioners[0].taints: expected a list, got {'key': 'gpu', 'effect': 'NoSchedule'} "
            "(hint: write a list, of one item too)",
        ),
        (
            {"node_templates": [{"name": "default", "block_devices": [{"volume_size": "50Gi"}]}]},
            "node_templates[0].block_devices[0].device_name: required argument is missing",
        ),
        (
            {
                "node_templates": [
                    {"name": "default", "block_devices": [{"device_name": "/dev/xvda", "encryptd": True}]}
                ]
            },
            "node_templates[0].block_devices[0].encryptd: no such argument (hint: did you mean encrypted?)",
        ),
        (
            {"node_classes": ["default"]},
            "node_classes[0]: expected a map, got 'default' (hint: members are name, ami_alias, "
            "instance_profile, role, user_data, tags, block_devices, detailed_monitoring)",
        ),
        (
            {"node_pools": POOL},
            f"node_pools: expected a list, got {POOL!r} (hint: write a list, of one item too)",
        ),
        (
            {"fargate_profiles": [{"name": "own", "selectors": {"namespace": "karpenter"}}]},
            "fargate_profiles[0].selectors: expected a list, got {'namespace': 'karpenter'} "
            "(hint: write a list, of one item too)",
        ),
        (
            {"fargate_profiles": [{"name": "own", "selectors": ["karpenter"]}]},
            "fargate_profiles[0].selectors[0]: expected a map, got 'karpenter' "
            "(hint: members are namespace, labels)",
        ),
        (
            {"existing_vpc": {"vpc_id": "vpc-1", "private_subnet_ids": "subnet-1"}},
            "existing_vpc.private_subnet_ids: expected a list, got 'subnet-1' "
            "(hint: write a list, of one item too)",
        ),
        (
            {"existing_vpc": {"vpc_id": "vpc-1", "private_subnet_ids": ["subnet-1"]}},
            "existing_vpc.private_subnet_ids: ['subnet-1'] are too few "
            "(hint: EKS needs subnets in two zones)",
        ),
        (
            {"existing_cluster": {**CLUSTER, "arn": "demo"}},
            "existing_cluster.arn: 'demo' is not an ARN with a region "
            "(hint: as EKS shows it: arn:aws:eks:REGION:ACCOUNT:cluster/NAME)",
        ),
    ],
    ids=lambda value: value.partition(":")[0] if isinstance(value, str) else "",
)
def test_one_wrong_member_is_named_with_its_path_and_what_to_do(args: dict[str, Any], line: str) -> None:
    assert line in reported(**args), reported(**args)


def test_faults_of_all_depths_and_arguments_are_told_at_once() -> None:
    lines = reported(
        vpc_cidr="10.0.0.0/28",
        fargate_profiles=[{"name": "eks", "selectors": ["karpenter"]}],
        node_classes=[{"name": "own", "block_devices": [{"encryptd": True}]}],
        node_pools=[{**POOL, "weight": "ten", "taints": [{"key": "gpu"}]}, {**POOL, "node_class": "other"}],
    )
    assert {line.partition(": ")[0] for line in lines} == {
        "vpc_cidr",
        "fargate_profiles[0].name",
        "fargate_profiles[0].selectors[0]",
        "node_classes[0].block_devices[0].encryptd",
        "node_classes[0].block_devices[0].device_name",
        "node_pools[0].weight",
        "node_pools[0].taints[0].effect",
        "node_pools[1].name",
        "node_pools[1].node_class",
    }


def kinds_within(kind: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every member below a kind by its path, where lists have one item and maps one entry."""
    if is_typeddict(kind):
        for name, hint in kinds(kind).items():
            yield f"{path}.{name}", hint
            yield from kinds_within(hint, f"{path}.{name}")
    elif get_origin(kind) is Sequence:
        (item,) = get_args(kind)
        yield f"{path}[0]", item
        yield from kinds_within(item, f"{path}[0]")


def nested(kind: Any) -> bool:
    return is_typeddict(kind) or any(nested(arg) for arg in get_args(kind))


MEMBERS = {
    path: kind
    for name, hint in kinds(EnvironmentArgs).items()
    if nested(hint)
    for path, kind in [(name, hint), *kinds_within(hint, name)]
}


def with_value(path: str, value: Any) -> Any:
    """Arguments that have this value at the path, and nothing beside it."""
    head, _, rest = path.partition(".")
    name, _, index = head.partition("[")
    inner = with_value(rest, value) if rest else value
    return {name: [inner] if index else inner}


@pytest.mark.parametrize("path", MEMBERS)
def test_no_member_of_whatever_depth_takes_a_value_of_another_kind(path: str) -> None:
    wrong = object()
    lines = [line for line in reported(**with_value(path, wrong)) if line.startswith(f"{path}: expected ")]
    assert len(lines) == 1
    assert f"got {wrong!r}" in lines[0]


def test_every_nested_argument_was_looked_at() -> None:
    assert {path.partition("[")[0].partition(".")[0] for path in MEMBERS} == {
        "existing_cluster",
        "existing_vpc",
        "fargate_profiles",
        "node_classes",
        "node_pools",
        "node_templates",
        "provisioners",
    }
    assert "node_pools[0].requirements[0].min_values" in MEMBERS


def capacity(**args: Any) -> Recorder:
    return run(lambda: Capacity("own", {"cluster_name": "demo", **args}))  # type: ignore[typeddict-item]


def spec_of(recorder: Recorder, kind: str) -> dict[str, Any]:
    (found,) = [each for each in recorder.custom() if each.token.endswith(f":{kind}")]
    return dict(found.inputs["spec"])


def test_what_configuration_reads_as_numbers_is_written_as_the_api_wants_it() -> None:
    """YAML takes `values: [2]` for a number, and other languages send 10 as 10.0."""
    requirement = {
        "key": "karpenter.k8s.aws/instance-cpu",
        "operator": "In",
        "values": [2, 4.0],
        "min_values": 2.0,
    }
    recorder = capacity(
        node_classes=[{"name": "own", "instance_profile": "nodes"}],
        node_pools=[
            {
                **POOL,
                "weight": 10.0,
                "requirements": [requirement],
                "labels": {"example.com/gpu": True},
                "limits": {"cpu": 200},
                "budgets": [{"nodes": 5}],
            }
        ],
    )
    spec = spec_of(recorder, "NodePool")
    assert (spec["weight"], spec["limits"]) == (10, {"cpu": "200"})
    assert spec["disruption"]["budgets"] == [{"nodes": "5"}]
    assert spec["template"]["metadata"] == {"labels": {"example.com/gpu": "true"}}
    (made,) = spec["template"]["spec"]["requirements"]
    assert (made["values"], made["minValues"]) == (["2", "4"], 2)


@pytest.mark.parametrize(
    ("kind", "given", "read_as"),
    [
        (int, 10.0, "10"),
        (int, 3, "3"),
        (int, True, None),
        (int, "3", None),
        (int, float("inf"), None),
        (str, 10.0, '"10"'),
        (str, 0.5, '"0.5"'),
        (str, False, '"false"'),
        (str, float("nan"), None),
        (bool, "true", None),
        (bool, False, "false"),
    ],
)
def test_a_plain_value_has_one_way_of_writing_or_none(kind: type, given: Any, read_as: str | None) -> None:
    reader = ArgumentReader("Thing", {}, EnvironmentArgs)
    reader.problems.clear()
    made = read(reader, "one.of[0]", given, kind)
    if read_as is None:
        assert [problem.path for problem in reader.problems] == ["one.of[0]"]
    else:
        assert (json.dumps(made), reader.problems) == (read_as, [])


def test_what_is_only_handed_on_may_be_known_later_and_what_shapes_resources_may_not() -> None:
    later: Any = pulumi.Output.from_input({"team": "web"})
    recorder = capacity(
        node_classes=[{"name": "own", "instance_profile": pulumi.Output.from_input("nodes"), "tags": later}],
        node_pools=[{**POOL, "labels": later}],
    )
    assert spec_of(recorder, "EC2NodeClass")["instanceProfile"] == "nodes"
    assert spec_of(recorder, "EC2NodeClass")["tags"] == {"team": "web"}
    assert spec_of(recorder, "NodePool")["template"]["metadata"] == {"labels": {"team": "web"}}
    with pytest.raises(ArgumentError) as caught:
        capacity(node_classes=[{"name": later}], node_pools=[{**POOL, "weight": later, "taints": later}])
    lines = [str(problem) for problem in caught.value.problems]
    for path in ("node_classes[0].name", "node_pools[0].weight", "node_pools[0].taints"):
        assert [
            line for line in lines if line.startswith(f"{path}: expected ") and "must be known" in line
        ], lines


def test_selectors_of_a_profile_may_be_known_later_where_nothing_depends_on_them() -> None:
    namespace: Any = pulumi.Output.from_input("web")
    args: FargateProfilesArgs = {
        "cluster_name": "demo",
        "pod_execution_role_arn": "arn:aws:iam::123456789012:role/pods",
        "subnet_ids": ["subnet-1"],
        "profiles": [{"name": "own", "selectors": [{"namespace": namespace}]}],
    }
    recorder = run(lambda: FargateProfiles("own", args))
    (profile,) = recorder.of("aws:eks/fargateProfile:FargateProfile")
    assert profile.inputs["selectors"] == [{"namespace": "web"}]
    lines = reported(fargate_profiles=[{"name": "own", "selectors": [{"namespace": namespace}]}])
    assert any(line.startswith("fargate_profiles[0].selectors[0].namespace: expected text") for line in lines)


def test_a_wrong_profile_in_a_stacks_configuration_stops_it_before_anything_is_registered() -> None:
    recorder = Recorder()
    profiles = json.dumps([{"name": "own", "selectors": {"namespace": "karpenter"}}])
    with pytest.raises(ConfigurationError, match=r"fargateProfiles\[0\]\.selectors: expected"):
        run(program, config={**CONFIG, "nodeless:fargateProfiles": profiles}, recorder=recorder)
    assert {resource.token for resource in recorder.resources.values()} <= {"pulumi:providers:aws"}


def test_members_in_camel_case_become_pythons_and_keys_of_maps_stay() -> None:
    hints: Mapping[str, Any] = kinds(EnvironmentArgs)
    given = [{"name": "a", "nodeClass": "b", "labels": {"costCenter": "1"}, "budgets": [{"noSuchThing": 1}]}]
    assert python_members(given, hints["node_pools"]) == [
        {"name": "a", "node_class": "b", "labels": {"costCenter": "1"}, "budgets": [{"no_such_thing": 1}]}
    ]
