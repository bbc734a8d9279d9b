"""Instance profiles as IAM keeps them, and when EC2 comes to know of them."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from localenv.aws import LocalAws
from tests.localenv.aws.world import World, instance_ids, trust

PATH = "/karpenter/us-east-1/demo/uid-1/"


@pytest.fixture
def iam(aws: LocalAws) -> Any:
    return aws.client("iam")


def code_of(call: Any, **parameters: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**parameters)
    return str(refused.value.response["Error"]["Code"])


def test_a_list_is_of_one_path_in_pages_and_tells_no_tags(iam: Any) -> None:
    tags = [{"Key": "owner", "Value": "me"}]
    for number in range(5):
        iam.create_instance_profile(InstanceProfileName=f"p{number}", Path=PATH, Tags=tags)
    iam.create_instance_profile(InstanceProfileName="other", Path="/karpenter/us-east-1/demo2/uid-1/")
    iam.create_instance_profile(InstanceProfileName="root")
    assert iam.get_instance_profile(InstanceProfileName="p0")["InstanceProfile"]["Tags"] == tags

    pages = list(
        iam.get_paginator("list_instance_profiles").paginate(
            PathPrefix="/karpenter/us-east-1/demo/", PaginationConfig={"PageSize": 2}
        )
    )
    assert [len(page["InstanceProfiles"]) for page in pages] == [2, 2, 1]
    listed = [instance_profile for page in pages for instance_profile in page["InstanceProfiles"]]
    assert [each["InstanceProfileName"] for each in listed] == ["p0", "p1", "p2", "p3", "p4"]
    assert not any(each.get("Tags") for each in listed)
    assert len(iam.list_instance_profiles()["InstanceProfiles"]) == 7


def test_a_profile_holds_one_role_and_ends_without(iam: Any) -> None:
    for role in ("nodes", "others"):
        iam.create_role(RoleName=role, AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
    iam.create_instance_profile(InstanceProfileName="p", Path=PATH)
    named = {"InstanceProfileName": "p"}
    assert code_of(iam.create_instance_profile, **named) == "EntityAlreadyExists"
    assert code_of(iam.add_role_to_instance_profile, **named, RoleName="missing") == "NoSuchEntity"
    iam.add_role_to_instance_profile(**named, RoleName="nodes")
    assert code_of(iam.add_role_to_instance_profile, **named, RoleName="others") == "LimitExceeded"
    assert code_of(iam.remove_role_from_instance_profile, **named, RoleName="others") == "NoSuchEntity"
    assert code_of(iam.delete_instance_profile, **named) == "DeleteConflict"
    iam.remove_role_from_instance_profile(**named, RoleName="nodes")
    iam.delete_instance_profile(**named)
    assert code_of(iam.get_instance_profile, **named) == "NoSuchEntity"


@pytest.mark.parametrize(
    "strange", [{"InstanceProfileName": "a b"}, {"InstanceProfileName": "a", "Path": "/open"}]
)
def test_names_and_paths_are_checked(iam: Any, strange: dict[str, str]) -> None:
    assert code_of(iam.create_instance_profile, **strange) == "ValidationError"


def test_a_new_profile_is_unknown_to_ec2_for_a_while(world: World) -> None:
    world.aws.set_faults(profiles=3600)
    config = world.config(world.launch_template(), ["m5.large"])
    refused = world.fleet(config)["Errors"]
    assert {each["ErrorCode"] for each in refused} == {"InvalidParameterValue"}
    assert all("Invalid IAM Instance Profile name" in each["ErrorMessage"] for each in refused)
    request = {"ImageId": world.image, "InstanceType": "m5.large", "MinCount": 1, "MaxCount": 1}
    profile = {"IamInstanceProfile": {"Name": "nodes"}}
    assert code_of(world.ec2.run_instances, **request, **profile) == "InvalidParameterValue"

    world.aws.set_faults()
    assert len(instance_ids(world.fleet(config))) == 1
    assert world.ec2.run_instances(**request, **profile)["Instances"]


def test_all_instances_of_one_request_get_its_profile(world: World) -> None:
    request = {"ImageId": world.image, "InstanceType": "m5.large", "MinCount": 3, "MaxCount": 3}
    made = world.ec2.run_instances(**request, IamInstanceProfile={"Name": "nodes"})["Instances"]
    ids = [each["InstanceId"] for each in made]
    (reservation,) = world.ec2.describe_instances(InstanceIds=ids)["Reservations"]
    profiles = [
        instance["IamInstanceProfile"]["Arn"].rpartition("/")[2] for instance in reservation["Instances"]
    ]
    assert profiles == ["nodes"] * 3
