"""What is deleted while something depends on it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.localenv.aws.world import World, instance_ids


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
