"""CreateFleet of type instant, as the controller uses it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localenv.aws import LocalAws
from tests.localenv.aws.world import World, instance_ids


def price(world: World, instance_type: str, zone: str) -> float:
    rows = world.ec2.describe_spot_price_history(
        InstanceTypes=[instance_type], AvailabilityZone=zone, ProductDescriptions=["Linux/UNIX"]
    )["SpotPriceHistory"]
    return float(rows[0]["SpotPrice"])


def test_the_cheapest_override_is_launched_wherever_it_stands(world: World) -> None:
    first, second = world.launch_template("one"), world.launch_template("two")
    answer = world.fleet(
        world.config(first, ["m5.2xlarge", "c5.large"]), world.config(second, ["t3a.small"]), capacity=2
    )
    assert [e["InstanceType"] for e in answer["Instances"]] == ["t3a.small"]
    assert len(instance_ids(answer)) == 2
    used = answer["Instances"][0]["LaunchTemplateAndOverrides"]
    assert used["LaunchTemplateSpecification"]["LaunchTemplateName"] == "two"
    assert used["Overrides"]["InstanceType"] == "t3a.small"
    assert answer["Errors"] == []


def test_an_instance_that_does_not_boot_is_ended_by_ec2(world: World) -> None:
    world.aws.set_faults(boot=[{"instanceType": "m5.large", "outcome": "terminated"}])
    config = world.config(world.launch_template(), ["m5.large"])
    (lost,) = instance_ids(world.fleet(config))
    deadline = time.monotonic() + 30
    while world.instance(lost)["State"]["Name"] != "terminated":
        assert time.monotonic() < deadline
    world.aws.set_faults()
    (kept,) = instance_ids(world.fleet(config))
    assert world.instance(kept)["State"]["Name"] == "running"


def test_spot_goes_to_the_cheapest_zone(world: World) -> None:
    answer = world.fleet(world.config(world.launch_template(), ["m5.large"]), spot=True)
    cheapest = min(world.subnets, key=lambda zone: price(world, "m5.large", zone))
    instance = world.instance(instance_ids(answer)[0])
    assert instance["Placement"]["AvailabilityZone"] == cheapest
    assert instance["SubnetId"] == world.subnets[cheapest]


def test_a_request_for_spot_is_found_by_its_id_and_bears_its_tags(world: World) -> None:
    tags = [{"Key": "team", "Value": "a"}]
    specification = {"ResourceType": "spot-instances-request", "Tags": tags}
    config = world.config(world.launch_template(), ["m5.large"])
    (spot,) = instance_ids(world.fleet(config, spot=True, TagSpecifications=[specification]))
    request_id = world.instance(spot)["SpotInstanceRequestId"]
    answer = world.ec2.describe_spot_instance_requests(SpotInstanceRequestIds=[request_id])
    (request,) = answer["SpotInstanceRequests"]
    assert (request["InstanceId"], request["Tags"], request["State"]) == (spot, tags, "active")
    with pytest.raises(ClientError, match=r"InvalidSpotInstanceRequestID\.NotFound"):
        world.ec2.describe_spot_instance_requests(SpotInstanceRequestIds=["sir-0"])


def test_an_instance_tells_the_cores_and_the_tracking_that_its_template_asks_for(world: World) -> None:
    tracking = {"TcpEstablishedTimeout": 600, "UdpTimeout": 45}
    interface = {"DeviceIndex": 0, "ConnectionTrackingSpecification": tracking}
    asked = world.launch_template(
        "asked",
        CpuOptions={"CoreCount": 1, "ThreadsPerCore": 1},
        EnclaveOptions={"Enabled": True},
        NetworkInterfaces=[interface],
    )
    (one,) = instance_ids(world.fleet(world.config(asked, ["m5.large"])))
    (other,) = instance_ids(world.fleet(world.config(world.launch_template("plain"), ["m5.large"])))
    told = world.instance(one)
    assert told["CpuOptions"]["CoreCount"] == 1
    assert told["EnclaveOptions"] == {"Enabled": True}
    (own,) = told["NetworkInterfaces"]
    assert own["ConnectionTrackingConfiguration"] == tracking
    assert own["SubnetId"] == told["SubnetId"]
    assert "ConnectionTrackingConfiguration" not in world.instance(other)["NetworkInterfaces"][0]
    interfaces = {
        network_interface["Attachment"]["InstanceId"]: network_interface
        for network_interface in world.ec2.describe_network_interfaces()["NetworkInterfaces"]
    }
    assert interfaces[one]["ConnectionTrackingConfiguration"] == tracking
    assert "ConnectionTrackingConfiguration" not in interfaces[other]


def test_cores_without_threads_and_threads_without_cores_are_refused(world: World) -> None:
    for number, lacking in enumerate(({"CoreCount": 1}, {"ThreadsPerCore": 1})):
        template = world.launch_template(f"lacking-{number}", CpuOptions=lacking)
        with pytest.raises(ClientError, match=r"MissingParameter.*both CoreCount and ThreadsPerCore"):
            world.fleet(world.config(template, ["m5.large"]))
    nested = world.launch_template("nested", CpuOptions={"NestedVirtualization": "enabled"})
    assert len(instance_ids(world.fleet(world.config(nested, ["m8i.large"])))) == 1


def test_an_instance_tells_of_every_interface_of_its_template(world: World) -> None:
    cards = [
        {"NetworkCardIndex": card, "DeviceIndex": min(card, 1), "InterfaceType": "efa"} for card in range(4)
    ]
    template = world.launch_template(NetworkInterfaces=cards)
    (made,) = instance_ids(world.fleet(world.config(template, ["p4d.24xlarge"])))
    told = world.instance(made)["NetworkInterfaces"]
    assert [interface["InterfaceType"] for interface in told] == ["efa"] * 4
    assert [interface["Attachment"]["NetworkCardIndex"] for interface in told[1:]] == [1, 2, 3]
    assert len({interface["NetworkInterfaceId"] for interface in told}) == 4


def test_prioritized_takes_the_lowest_priority_number(world: World) -> None:
    config = world.config(world.launch_template(), ["t3a.small"], ("us-east-1a",), Priority=2.0)
    config["Overrides"] += world.config("pool", ["m5.large"], ("us-east-1b",), Priority=1.0)["Overrides"]
    answer = world.fleet(config, OnDemandOptions={"AllocationStrategy": "prioritized"})
    assert [e["InstanceType"] for e in answer["Instances"]] == ["m5.large"]


def test_the_launch_template_is_applied_to_the_instance(world: World) -> None:
    template = world.launch_template(
        MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
        BlockDeviceMappings=[
            {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 35, "VolumeType": "gp3", "Encrypted": True}}
        ],
        TagSpecifications=[
            {"ResourceType": "network-interface", "Tags": [{"Key": "owner", "Value": "pool"}]}
        ],
    )
    tags = [{"Key": "karpenter.sh/nodeclaim", "Value": "default-abc12"}]
    specifications = [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", "fleet")]
    answer = world.fleet(world.config(template, ["m5.large"]), spot=True, TagSpecifications=specifications)
    instance = world.instance(instance_ids(answer)[0])
    assert [g["GroupId"] for g in instance["SecurityGroups"]] == [world.group]
    assert instance["IamInstanceProfile"]["Arn"].endswith(":instance-profile/nodes")
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["MetadataOptions"]["HttpPutResponseHopLimit"] == 2
    assert instance["Architecture"] == "x86_64"
    assert instance["InstanceLifecycle"] == "spot"
    assert instance["SpotInstanceRequestId"].startswith("sir-")
    assert {"Key": "karpenter.sh/nodeclaim", "Value": "default-abc12"} in instance["Tags"]
    assert any(t["Key"] == "aws:ec2:fleet-id" and t["Value"] == answer["FleetId"] for t in instance["Tags"])
    [mapping] = instance["BlockDeviceMappings"]
    [volume] = world.ec2.describe_volumes(VolumeIds=[mapping["Ebs"]["VolumeId"]])["Volumes"]
    assert (mapping["DeviceName"], volume["Size"], volume["VolumeType"], volume["Encrypted"]) == (
        "/dev/xvda",
        35,
        "gp3",
        True,
    )
    assert volume["Tags"] == tags
    [interface] = world.ec2.describe_network_interfaces(
        NetworkInterfaceIds=[instance["NetworkInterfaces"][0]["NetworkInterfaceId"]]
    )["NetworkInterfaces"]
    assert [g["GroupId"] for g in interface["Groups"]] == [world.group]
    assert interface["TagSet"] == [{"Key": "owner", "Value": "pool"}]
    user_data = world.ec2.describe_instance_attribute(InstanceId=instance["InstanceId"], Attribute="userData")
    assert user_data["UserData"]["Value"] == "IyEvYmluL2Jhc2gKL2V0Yy9la3MvYm9vdHN0cmFwLnNo"
    [fleet] = world.ec2.describe_fleets(FleetIds=[answer["FleetId"]])["Fleets"]
    assert fleet["Tags"] == tags


def test_private_dns_names_are_those_of_the_region(world: World) -> None:
    answer = world.fleet(world.config(world.launch_template(), ["m5.large"]))
    instance = world.instance(instance_ids(answer)[0])
    dashed = instance["PrivateIpAddress"].replace(".", "-")
    assert instance["PrivateDnsName"] == f"ip-{dashed}.ec2.internal"

    seoul = world.aws.client("ec2", region="ap-northeast-2")
    subnet = seoul.describe_subnets()["Subnets"][0]["SubnetId"]
    image = world.aws.client("ssm", region="ap-northeast-2").get_parameter(
        Name="/aws/service/eks/optimized-ami/1.30/amazon-linux-2/recommended/image_id"
    )["Parameter"]["Value"]
    seoul.create_launch_template(LaunchTemplateName="pool", LaunchTemplateData={"ImageId": image})
    answer = seoul.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "pool", "Version": "$Latest"},
                "Overrides": [{"InstanceType": "m5.large", "SubnetId": subnet}],
            }
        ],
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
    )
    [reservation] = seoul.describe_instances(InstanceIds=instance_ids(answer))["Reservations"]
    name = reservation["Instances"][0]["PrivateDnsName"]
    assert name.startswith("ip-")
    assert name.endswith(".ap-northeast-2.compute.internal")


def test_a_client_token_answers_with_the_same_instances_even_when_they_are_gone(world: World) -> None:
    config = world.config(world.launch_template(), ["m5.large"])
    first = world.fleet(config, ClientToken="default-abc12")
    again = world.fleet(config, ClientToken="default-abc12")
    assert (first["FleetId"], instance_ids(first)) == (again["FleetId"], instance_ids(again))
    world.ec2.terminate_instances(InstanceIds=instance_ids(first))
    assert instance_ids(world.fleet(config, ClientToken="default-abc12")) == instance_ids(first)
    with pytest.raises(ClientError, match="IdempotentParameterMismatch"):
        world.fleet(config, capacity=2, ClientToken="default-abc12")
    assert instance_ids(world.fleet(config, ClientToken="default-zzz99")) != instance_ids(first)


def test_an_empty_pool_is_reported_and_the_next_one_delivers(world: World) -> None:
    world.aws.set_faults(capacity=[{"instanceType": "t3a.small", "capacityType": "on-demand"}])
    answer = world.fleet(world.config(world.launch_template(), ["t3a.small", "m5.large"]))
    assert [e["InstanceType"] for e in answer["Instances"]] == ["m5.large"]
    assert {e["ErrorCode"] for e in answer["Errors"]} == {"InsufficientInstanceCapacity"}
    assert {
        e["LaunchTemplateAndOverrides"]["Overrides"]["AvailabilityZone"] for e in answer["Errors"]
    } == set(world.subnets)


def test_capacity_that_lasts_for_some_is_fulfilled_in_part(world: World) -> None:
    world.aws.set_faults(capacity=[{"zone": "us-east-1a", "remaining": 2}])
    answer = world.fleet(world.config(world.launch_template(), ["m5.large"], ("us-east-1a",)), capacity=5)
    assert len(instance_ids(answer)) == 2
    assert [e["ErrorCode"] for e in answer["Errors"]] == ["InsufficientInstanceCapacity"]
    later = world.fleet(world.config("pool", ["m5.large"], ("us-east-1a",)))
    assert instance_ids(later) == []


def test_no_capacity_at_all_gives_errors_and_no_instance(world: World) -> None:
    world.aws.set_faults(capacity=[{}])
    answer = world.fleet(world.config(world.launch_template(), ["m5.large"]))
    assert answer["Instances"] == []
    assert len(answer["Errors"]) == 3
    assert world.ec2.describe_instances()["Reservations"] == []


@pytest.mark.parametrize(
    ("changes", "instance_type", "code"),
    [
        ({}, "m5.enormous", "InvalidParameterValue"),
        ({"ImageId": "ami-00000000000000000"}, "m5.large", "InvalidAMIID.NotFound"),
        ({}, "m6g.large", "InvalidParameterValue"),
        ({"IamInstanceProfile": {"Name": "nobody"}}, "m5.large", "InvalidParameterValue"),
        ({"SecurityGroupIds": ["sg-00000000000000000"]}, "m5.large", "InvalidGroup.NotFound"),
    ],
)
def test_what_is_wrong_with_an_override_is_told_in_ec2s_words(
    world: World, changes: dict[str, Any], instance_type: str, code: str
) -> None:
    answer = world.fleet(world.config(world.launch_template(**changes), [instance_type], ("us-east-1a",)))
    assert answer["Instances"] == []
    assert [e["ErrorCode"] for e in answer["Errors"]] == [code]


def test_a_group_of_another_vpc_is_refused(world: World) -> None:
    other = world.ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    group = world.ec2.create_security_group(GroupName="other", Description="x", VpcId=other)["GroupId"]
    template = world.launch_template(SecurityGroupIds=[group])
    [error] = world.fleet(world.config(template, ["m5.large"], ("us-east-1a",)))["Errors"]
    assert error["ErrorCode"] == "InvalidParameter"
    assert "belong to different networks" in error["ErrorMessage"]


def test_a_missing_launch_template_fails_the_call(world: World) -> None:
    with pytest.raises(ClientError, match=r"InvalidLaunchTemplateName\.NotFoundException"):
        world.fleet(world.config("nobody", ["m5.large"]))


def test_a_full_subnet_gives_what_it_has(world: World) -> None:
    small = world.ec2.create_subnet(VpcId=world.vpc, CidrBlock="10.0.200.0/28", AvailabilityZone="us-east-1a")
    world.subnets["us-east-1a"] = small["Subnet"]["SubnetId"]
    answer = world.fleet(world.config(world.launch_template(), ["m5.large"], ("us-east-1a",)), capacity=20)
    assert len(instance_ids(answer)) == 11
    assert [e["ErrorCode"] for e in answer["Errors"]] == ["InsufficientFreeAddressesInSubnet"]


def test_a_quota_counts_what_runs_in_its_capacity_type(aws: LocalAws, world: World) -> None:
    aws.set_faults(quotas={"spot": 4, "on-demand": 2})
    config = world.config(world.launch_template(), ["m5.large"])
    assert len(instance_ids(world.fleet(config, capacity=3, spot=True))) == 2
    (error, *_) = world.fleet(config, spot=True)["Errors"]
    assert error["ErrorCode"] == "MaxSpotInstanceCountExceeded"
    assert len(instance_ids(world.fleet(config))) == 1
    (error, *_) = world.fleet(config)["Errors"]
    assert error["ErrorCode"] == "VcpuLimitExceeded"


def test_a_pool_refuses_in_the_words_of_its_fault(aws: LocalAws, world: World) -> None:
    aws.set_faults(capacity=[{"zone": "us-east-1a", "code": "Unsupported"}])
    answer = world.fleet(world.config(world.launch_template(), ["m5.large"]))
    assert [error["ErrorCode"] for error in answer["Errors"]] == ["Unsupported"]
    assert len(instance_ids(answer)) == 1


def test_a_new_instance_is_hidden_while_reads_lag_behind(aws: LocalAws, world: World) -> None:
    (made,) = instance_ids(world.fleet(world.config(world.launch_template(), ["m5.large"])))
    aws.set_faults(consistency=3600)
    assert world.ec2.describe_instances()["Reservations"] == []
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        world.instance(made)
    aws.set_faults()
    assert world.instance(made)["State"]["Name"] == "running"


@pytest.mark.parametrize(
    ("ebs", "seen"),
    [
        ({"VolumeType": "io2", "Iops": 4000, "VolumeSize": 100}, ("io2", 4000, None)),
        ({"VolumeType": "io1", "Iops": 200, "VolumeSize": 8}, ("io1", 200, None)),
        ({"VolumeType": "gp3", "Iops": 5000, "Throughput": 400, "VolumeSize": 50}, ("gp3", 5000, 400)),
        ({"VolumeType": "gp3", "VolumeSize": 50}, ("gp3", 3000, None)),
    ],
)
def test_a_volume_has_the_performance_that_was_asked_for(
    world: World, ebs: dict[str, Any], seen: tuple[str, int, int | None]
) -> None:
    template = world.launch_template(BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": ebs}])
    answer = world.fleet(world.config(template, ["m5.large"]))
    [mapping] = world.instance(instance_ids(answer)[0])["BlockDeviceMappings"]
    [volume] = world.ec2.describe_volumes(VolumeIds=[mapping["Ebs"]["VolumeId"]])["Volumes"]
    assert (volume["VolumeType"], volume["Iops"], volume.get("Throughput") or None) == seen
    assert volume["Size"] == ebs["VolumeSize"]


@pytest.mark.parametrize(
    ("ebs", "code"),
    [
        ({"VolumeType": "io2", "VolumeSize": 10}, "MissingParameter"),
        ({"VolumeType": "gp2", "Iops": 3000, "VolumeSize": 10}, "InvalidParameterCombination"),
        (
            {"VolumeType": "io1", "Iops": 100, "Throughput": 125, "VolumeSize": 10},
            "InvalidParameterCombination",
        ),
        ({"VolumeType": "gp3", "KmsKeyId": "alias/none", "VolumeSize": 10}, "InvalidParameterDependency"),
    ],
)
def test_a_launch_that_fails_leaves_no_instance(world: World, ebs: dict[str, Any], code: str) -> None:
    template = world.launch_template(BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": ebs}])
    with pytest.raises(ClientError, match=code):
        world.fleet(world.config(template, ["m5.large"]))
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    assert world.ec2.describe_instances(Filters=alive)["Reservations"] == []


@pytest.mark.parametrize("public", [True, False])
def test_an_instance_has_a_public_address_when_its_template_says_so(world: World, public: bool) -> None:
    interface = {"DeviceIndex": 0, "AssociatePublicIpAddress": public, "Groups": [world.group]}
    template = world.launch_template(NetworkInterfaces=[interface], SecurityGroupIds=[])
    answer = world.fleet(world.config(template, ["m5.large"]))
    assert bool(world.instance(instance_ids(answer)[0]).get("PublicIpAddress")) == public
