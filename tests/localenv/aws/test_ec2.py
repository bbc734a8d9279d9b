"""EC2 calls around launches: filters, pages, DryRun, statuses, deletions."""

from __future__ import annotations

import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localenv.aws import LocalAws
from localenv.aws.calls import Call
from localenv.aws.keys import ACCESS_KEY, SECRET_KEY
from localenv.aws.moto_instances import chosen
from localenv.aws.moto_internals import MotoServer, WireResponse
from localenv.aws.state import LocalState
from tests.localenv.aws.world import World, instance_ids


def test_dry_run_is_refused_as_on_aws(ec2: Any) -> None:
    with pytest.raises(ClientError) as caught:
        ec2.describe_instance_types(DryRun=True)
    assert caught.value.response["Error"]["Code"] == "DryRunOperation"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412


def test_filters_of_the_same_name_are_anded(world: World) -> None:
    first, second = list(world.subnets.values())[:2]
    world.ec2.create_tags(Resources=[first, second], Tags=[{"Key": "both", "Value": "1"}])
    world.ec2.create_tags(Resources=[first], Tags=[{"Key": "one", "Value": "1"}])
    filters = [{"Name": "tag-key", "Values": ["one"]}, {"Name": "tag-key", "Values": ["both"]}]
    assert [s["SubnetId"] for s in world.ec2.describe_subnets(Filters=filters)["Subnets"]] == [first]


def test_filters_of_the_same_name_are_anded_for_instances(world: World) -> None:
    config = world.config(world.launch_template(), ["m5.large"])
    ours, foreign = (instance_ids(world.fleet(config))[0] for _ in range(2))
    world.ec2.create_tags(Resources=[ours, foreign], Tags=[{"Key": "pool", "Value": "a"}])
    world.ec2.create_tags(Resources=[ours], Tags=[{"Key": "kubernetes.io/cluster/demo", "Value": "owned"}])
    filters = [
        {"Name": "tag-key", "Values": ["kubernetes.io/cluster/demo"]},
        {"Name": "tag-key", "Values": ["pool"]},
    ]
    found = world.ec2.describe_instances(Filters=filters)["Reservations"]
    assert [i["InstanceId"] for r in found for i in r["Instances"]] == [ours]


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


def test_subnets_come_in_pages_when_asked(world: World) -> None:
    filters = [{"Name": "vpc-id", "Values": [world.vpc]}]
    first = world.ec2.describe_subnets(Filters=filters, MaxResults=5)
    assert len(first["Subnets"]) == 3
    for number in range(5):
        world.ec2.create_subnet(VpcId=world.vpc, CidrBlock=f"10.0.10{number}.0/24")
    pages = world.ec2.get_paginator("describe_subnets").paginate(
        Filters=filters, PaginationConfig={"PageSize": 5}
    )
    assert [len(page["Subnets"]) for page in pages] == [5, 3]


def test_all_launch_templates_are_found_without_asking_for_a_page_size(world: World) -> None:
    for number in range(22):
        world.launch_template(f"karpenter.k8s.aws/{number}")
    pages = list(world.ec2.get_paginator("describe_launch_templates").paginate())
    assert sum(len(page["LaunchTemplates"]) for page in pages) == 22
    sizes = world.ec2.get_paginator("describe_launch_templates").paginate(PaginationConfig={"PageSize": 10})
    assert [len(page["LaunchTemplates"]) for page in sizes] == [10, 10, 2]


def test_a_missing_launch_template_has_ec2s_code(ec2: Any) -> None:
    with pytest.raises(ClientError, match=r"InvalidLaunchTemplateId\.NotFound"):
        ec2.delete_launch_template(LaunchTemplateId="lt-00000000000000000")
    with pytest.raises(ClientError, match=r"InvalidLaunchTemplateName\.NotFoundException"):
        ec2.delete_launch_template(LaunchTemplateName="nobody")


def test_tags_of_a_missing_instance_are_refused(ec2: Any) -> None:
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        ec2.create_tags(Resources=["i-00000000000000000"], Tags=[{"Key": "a", "Value": "b"}])


def test_an_unknown_filter_is_named(world: World) -> None:
    world.fleet(world.config(world.launch_template(), ["m5.large"]))
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        world.ec2.describe_instances(Filters=[{"Name": "colour", "Values": ["blue"]}])


def test_instance_status_filters(world: World) -> None:
    config = world.config(world.launch_template(), ["m5.large"])
    well, ill = (instance_ids(world.fleet(config))[0] for _ in range(2))
    world.aws.set_faults(impaired=[ill])

    def found(name: str, value: str) -> list[str]:
        answer = world.ec2.describe_instance_status(Filters=[{"Name": name, "Values": [value]}])
        return [s["InstanceId"] for s in answer["InstanceStatuses"]]

    assert found("instance-status.status", "impaired") == [ill]
    assert found("system-status.status", "ok") == [well]
    assert found("event.code", "instance-retirement") == []
    world.aws.set_faults(impaired={ill: 60}, scheduled={well: "instance-retirement"})
    assert found("event.code", "instance-retirement") == [well]
    (status,) = world.ec2.describe_instance_status(InstanceIds=[ill])["InstanceStatuses"]
    since = status["SystemStatus"]["Details"][0]["ImpairedSince"]
    assert 60 <= time.time() - since.timestamp() < 3600


def test_a_running_instance_holds_its_group_subnet_and_vpc(world: World) -> None:
    answer = world.fleet(world.config(world.launch_template(), ["m5.large"], ("us-east-1a",)))
    subnet = world.subnets["us-east-1a"]
    with pytest.raises(ClientError, match="DependencyViolation"):
        world.ec2.delete_security_group(GroupId=world.group)
    with pytest.raises(ClientError, match="DependencyViolation"):
        world.ec2.delete_subnet(SubnetId=subnet)
    world.ec2.terminate_instances(InstanceIds=instance_ids(answer))
    for each in world.subnets.values():
        world.ec2.delete_subnet(SubnetId=each)
    with pytest.raises(ClientError, match="DependencyViolation"):
        world.ec2.delete_vpc(VpcId=world.vpc)
    world.ec2.delete_security_group(GroupId=world.group)
    world.ec2.delete_vpc(VpcId=world.vpc)
    assert not world.ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [world.vpc]}])["Vpcs"]


def test_an_internet_gateway_holds_its_vpc(ec2: Any) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
    with pytest.raises(ClientError, match="DependencyViolation"):
        ec2.delete_vpc(VpcId=vpc)
    ec2.detach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
    ec2.delete_vpc(VpcId=vpc)


def test_a_network_with_nat_and_endpoints_can_be_taken_down(world: World) -> None:
    subnet = world.subnets["us-east-1a"]
    allocation = world.ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = world.ec2.create_nat_gateway(SubnetId=subnet, AllocationId=allocation)["NatGateway"]["NatGatewayId"]
    endpoint = world.ec2.create_vpc_endpoint(
        VpcId=world.vpc,
        ServiceName="com.amazonaws.us-east-1.sts",
        VpcEndpointType="Interface",
        SubnetIds=[subnet],
        SecurityGroupIds=[world.group],
    )["VpcEndpoint"]["VpcEndpointId"]
    for _ in range(2):
        with pytest.raises(ClientError, match="DependencyViolation"):
            world.ec2.delete_subnet(SubnetId=subnet)
    world.ec2.delete_nat_gateway(NatGatewayId=nat)
    world.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
    world.ec2.delete_subnet(SubnetId=subnet)


def test_an_interface_ends_with_its_instance(world: World) -> None:
    answer = world.fleet(world.config(world.launch_template(), ["m5.large"]))
    before = world.instance(instance_ids(answer)[0])["NetworkInterfaces"][0]["NetworkInterfaceId"]
    world.ec2.terminate_instances(InstanceIds=instance_ids(answer))
    filters = [{"Name": "network-interface-id", "Values": [before]}]
    assert world.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"] == []


def test_plain_run_instances_works(world: World) -> None:
    answer = world.ec2.run_instances(
        ImageId=world.image,
        InstanceType="m5.large",
        MinCount=1,
        MaxCount=1,
        SubnetId=world.subnets["us-east-1a"],
        SecurityGroupIds=[world.group],
        UserData="hello",
    )
    identifier = answer["Instances"][0]["InstanceId"]
    data = world.ec2.describe_instance_attribute(InstanceId=identifier, Attribute="userData")
    assert data["UserData"]["Value"] == "aGVsbG8="


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
    assert [each["GroupId"] for each in described(world)[first]["SecurityGroups"]] == [group]
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
        assert len(chosen(call)[0][0]["Instances"]) == 2
    assert len(shown) == 1
    ec2.create_tags(Resources=[launched[0]["InstanceId"]], Tags=[{"Key": "a", "Value": "b"}])
    chosen(call)
    assert len(shown) == 3
    ec2.terminate_instances(InstanceIds=[each["InstanceId"] for each in launched])
