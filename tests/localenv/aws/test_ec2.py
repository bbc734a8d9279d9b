"""EC2 calls around launches: filters, pages, DryRun, statuses, deletions."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from localenv.aws import LocalAws
from localenv.aws.calls import Call
from localenv.aws.keys import ACCESS_KEY, SECRET_KEY
from localenv.aws.moto_instances import choose_page
from localenv.aws.moto_internals import MotoServer, WireResponse
from localenv.aws.state import LocalState
from tests.localenv.aws.world import World, instance_ids


def test_dry_run_is_refused_as_on_aws(ec2: Any) -> None:
    with pytest.raises(ClientError) as caught:
        ec2.describe_instance_types(DryRun=True)
    assert caught.value.response["Error"]["Code"] == "DryRunOperation"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412


def test_instance_types_come_in_pages(ec2: Any) -> None:
    filters = [
        {"Name": "supported-virtualization-type", "Values": ["hvm"]},
        {"Name": "processor-info.supported-architecture", "Values": ["x86_64", "arm64"]},
    ]
    first = ec2.describe_instance_types(Filters=filters, MaxResults=100)
    assert len(first["InstanceTypes"]) == 100
    assert first["NextToken"]
    pages = ec2.get_paginator("describe_instance_types").paginate(Filters=filters)
    names = [t["InstanceType"] for page in pages for t in page["InstanceTypes"]]
    assert len(names) == len(set(names)) > 1300
    assert not [name for name in names if name.startswith("mac")]


def test_offerings_come_in_pages(ec2: Any) -> None:
    pages = list(
        ec2.get_paginator("describe_instance_type_offerings").paginate(LocationType="availability-zone")
    )
    assert len(pages) > 1
    assert max(len(page["InstanceTypeOfferings"]) for page in pages) == 1000


def test_another_region_is_another_world(aws: LocalAws, world: World) -> None:
    subnets = aws.client("ec2", region="eu-west-1").describe_subnets()["Subnets"]
    assert not {s["SubnetId"] for s in subnets} & set(world.subnets.values())


def described(world: World) -> dict[str, dict[str, Any]]:
    pages = world.ec2.get_paginator("describe_instances").paginate()
    return {i["InstanceId"]: i for page in pages for r in page["Reservations"] for i in r["Instances"]}


def test_what_changes_about_an_instance_is_shown_though_it_was_shown_before(world: World) -> None:
    config = world.config(world.launch_template(), ["m5.large"])
    first, second = (instance_ids(world.fleet(config))[0] for _ in range(2))
    before = described(world)
    assert described(world) == before
    world.ec2.create_tags(Resources=[first], Tags=[{"Key": "late", "Value": "1"}])
    tagged = described(world)
    assert {"Key": "late", "Value": "1"} in tagged[first]["Tags"]
    assert tagged[second] == before[second]
    world.ec2.stop_instances(InstanceIds=[second])
    assert described(world)[second]["State"]["Name"] == "stopped"
    group = world.ec2.create_security_group(GroupName="late", Description="late", VpcId=world.vpc)["GroupId"]
    world.ec2.modify_instance_attribute(InstanceId=first, Groups=[group])
    assert [security_group["GroupId"] for security_group in described(world)[first]["SecurityGroups"]] == [
        group
    ]
    world.ec2.terminate_instances(InstanceIds=[first])
    assert described(world)[first]["State"]["Name"] == "terminated"


def test_instances_come_in_pages_of_the_size_that_is_asked_for(world: World) -> None:
    config = world.config(world.launch_template(), ["m5.large"])
    launched = {instance_ids(world.fleet(config))[0] for _ in range(3)}
    options = {"PageSize": 2}
    pages = list(world.ec2.get_paginator("describe_instances").paginate(PaginationConfig=options))
    found = [i["InstanceId"] for page in pages for r in page["Reservations"] for i in r["Instances"]]
    assert len(pages) == 2
    assert sorted(found) == sorted(launched)


def test_an_instance_that_was_shown_is_not_asked_of_moto_again(monkeypatch: pytest.MonkeyPatch) -> None:
    region = "eu-west-3"
    moto = MotoServer(ACCESS_KEY, SECRET_KEY)
    ec2 = moto.client("ec2", region)
    image = ec2.describe_images()["Images"][0]["ImageId"]
    launched = ec2.run_instances(ImageId=image, MinCount=2, MaxCount=2)["Instances"]
    shown: list[str] = []
    dispatch = MotoServer.dispatch

    def counted(self: MotoServer, environ: dict[str, Any]) -> WireResponse:
        shown.append(environ["PATH_INFO"])
        return dispatch(self, environ)

    monkeypatch.setattr(MotoServer, "dispatch", counted)
    call = Call("ec2", "DescribeInstances", region, ACCESS_KEY, "", {}, moto, LocalState(region))
    for _ in range(5):
        assert len(choose_page(call)[0][0]["Instances"]) == 2
    assert len(shown) == 1
    ec2.create_tags(Resources=[launched[0]["InstanceId"]], Tags=[{"Key": "a", "Value": "b"}])
    choose_page(call)
    assert len(shown) == 3
    ec2.terminate_instances(InstanceIds=[each["InstanceId"] for each in launched])
