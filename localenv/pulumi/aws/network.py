"""VPC, subnets, gateways and addresses. Routes between them stand in `routing`."""

from __future__ import annotations

import time
from typing import Any

from localenv.pulumi.aws.clients import AwsClients, unless_gone
from localenv.pulumi.aws.ec2 import Ec2Resource, arn, capitalized, tag_specifications, with_tags
from localenv.pulumi.resources import Inputs, Outputs, ResourceFailed

_POLL_SECONDS = 0.1
#: A NAT gateway takes about two minutes on AWS; ten is the real provider's patience.
_NAT_SECONDS = 600.0


class Vpc(Ec2Resource):
    token = "aws:ec2/vpc:Vpc"
    required = frozenset({"cidrBlock"})
    in_place = frozenset({"enableDnsHostnames", "enableDnsSupport", "instanceTenancy", "tags"})
    computed = ("arn", "ownerId", "defaultSecurityGroupId", "mainRouteTableId", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.ec2.create_vpc(
            **capitalized(inputs, "cidrBlock", "instanceTenancy"),
            TagSpecifications=tag_specifications("vpc", inputs),
        )
        return str(reply["Vpc"]["VpcId"])

    def finish(self, backend: AwsClients, identity: str, inputs: Inputs) -> None:
        self._set_dns(backend, identity, {}, inputs)

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.ec2.describe_vpcs, VpcIds=[identity])
        if reply is None:
            return None
        of_vpc = {"Name": "vpc-id", "Values": [identity]}
        groups = backend.ec2.describe_security_groups(
            Filters=[of_vpc, {"Name": "group-name", "Values": ["default"]}]
        )["SecurityGroups"]
        tables = backend.ec2.describe_route_tables(
            Filters=[of_vpc, {"Name": "association.main", "Values": ["true"]}]
        )["RouteTables"]
        return with_tags(
            inputs,
            {
                "arn": arn(backend, "vpc", identity),
                "ownerId": backend.account,
                "defaultSecurityGroupId": groups[0]["GroupId"] if groups else "",
                "mainRouteTableId": tables[0]["RouteTableId"] if tables else "",
            },
        )

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        super().update(backend, identity, old, new)
        self._set_dns(backend, identity, old, new)
        if old.get("instanceTenancy") != new.get("instanceTenancy"):
            backend.ec2.modify_vpc_tenancy(VpcId=identity, InstanceTenancy="default")

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.ec2.delete_vpc, VpcId=identity)

    @staticmethod
    def _set_dns(backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        # EC2 takes one attribute a call; support is on by default, host names are off.
        defaults = {"enableDnsSupport": True, "enableDnsHostnames": False}
        for key, default in defaults.items():
            wanted = new.get(key, default)
            if wanted != old.get(key, default):
                attribute = key[0].upper() + key[1:]
                backend.ec2.modify_vpc_attribute(VpcId=identity, **{attribute: {"Value": wanted}})


class Subnet(Ec2Resource):
    token = "aws:ec2/subnet:Subnet"
    required = frozenset({"vpcId", "cidrBlock"})
    in_place = frozenset({"mapPublicIpOnLaunch", "tags"})
    computed = ("arn", "ownerId", "availabilityZone", "availabilityZoneId", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.ec2.create_subnet(
            **capitalized(inputs, "vpcId", "cidrBlock", "availabilityZone"),
            TagSpecifications=tag_specifications("subnet", inputs),
        )
        return str(reply["Subnet"]["SubnetId"])

    def finish(self, backend: AwsClients, identity: str, inputs: Inputs) -> None:
        self._set_public(backend, identity, {}, inputs)

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.ec2.describe_subnets, SubnetIds=[identity])
        if reply is None:
            return None
        subnet = reply["Subnets"][0]
        return with_tags(
            inputs,
            {
                "arn": arn(backend, "subnet", identity),
                "ownerId": backend.account,
                "availabilityZone": subnet["AvailabilityZone"],
                "availabilityZoneId": subnet.get("AvailabilityZoneId", ""),
            },
        )

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        super().update(backend, identity, old, new)
        self._set_public(backend, identity, old, new)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.ec2.delete_subnet, SubnetId=identity)

    @staticmethod
    def _set_public(backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        wanted = new.get("mapPublicIpOnLaunch", False)
        if wanted != old.get("mapPublicIpOnLaunch", False):
            backend.ec2.modify_subnet_attribute(SubnetId=identity, MapPublicIpOnLaunch={"Value": wanted})


class InternetGateway(Ec2Resource):
    token = "aws:ec2/internetGateway:InternetGateway"
    in_place = frozenset({"vpcId", "tags"})
    computed = ("arn", "ownerId", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.ec2.create_internet_gateway(
            TagSpecifications=tag_specifications("internet-gateway", inputs)
        )
        return str(reply["InternetGateway"]["InternetGatewayId"])

    def finish(self, backend: AwsClients, identity: str, inputs: Inputs) -> None:
        if "vpcId" not in inputs:
            return
        found = backend.ec2.describe_internet_gateways(InternetGatewayIds=[identity])["InternetGateways"][0]
        if not found.get("Attachments"):
            backend.ec2.attach_internet_gateway(InternetGatewayId=identity, VpcId=inputs["vpcId"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        if unless_gone(backend.ec2.describe_internet_gateways, InternetGatewayIds=[identity]) is None:
            return None
        return with_tags(
            inputs, {"arn": arn(backend, "internet-gateway", identity), "ownerId": backend.account}
        )

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        super().update(backend, identity, old, new)
        if old.get("vpcId") != new.get("vpcId"):
            self._detach(backend, identity)
            self.finish(backend, identity, new)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        if self._detach(backend, identity):
            backend.ec2.delete_internet_gateway(InternetGatewayId=identity)

    @staticmethod
    def _detach(backend: AwsClients, identity: str) -> bool:
        """Whether the gateway is still there; it has no VPC any more then."""
        reply = unless_gone(backend.ec2.describe_internet_gateways, InternetGatewayIds=[identity])
        if reply is None:
            return False
        for attachment in reply["InternetGateways"][0].get("Attachments", []):
            backend.ec2.detach_internet_gateway(InternetGatewayId=identity, VpcId=attachment["VpcId"])
        return True


class Eip(Ec2Resource):
    token = "aws:ec2/eip:Eip"
    computed = ("arn", "allocationId", "publicIp", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.ec2.allocate_address(
            Domain=inputs.get("domain", "vpc"), TagSpecifications=tag_specifications("elastic-ip", inputs)
        )
        return str(reply["AllocationId"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.ec2.describe_addresses, AllocationIds=[identity])
        if not reply or not reply["Addresses"]:
            return None
        return with_tags(
            inputs,
            {
                "arn": arn(backend, "elastic-ip", identity),
                "allocationId": identity,
                "publicIp": reply["Addresses"][0]["PublicIp"],
            },
        )

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.ec2.release_address, AllocationId=identity)


class NatGateway(Ec2Resource):
    token = "aws:ec2/natGateway:NatGateway"
    required = frozenset({"subnetId"})
    computed = ("networkInterfaceId", "privateIp", "publicIp", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.ec2.create_nat_gateway(
            **capitalized(inputs, "subnetId", "allocationId", "connectivityType"),
            TagSpecifications=tag_specifications("natgateway", inputs),
        )
        return str(reply["NatGateway"]["NatGatewayId"])

    def finish(self, backend: AwsClients, identity: str, inputs: Inputs) -> None:
        self._wait(backend, identity, "available")

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        gateway = _nat_gateway(backend, identity)
        if gateway is None or gateway["State"] == "deleted":
            return None
        address: dict[str, Any] = next(iter(gateway.get("NatGatewayAddresses", [])), {})
        return with_tags(
            inputs,
            {
                "networkInterfaceId": address.get("NetworkInterfaceId", ""),
                "privateIp": address.get("PrivateIp", ""),
                "publicIp": address.get("PublicIp", ""),
            },
        )

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        if unless_gone(backend.ec2.delete_nat_gateway, NatGatewayId=identity) is not None:
            # The address can be released and the subnet deleted only afterwards.
            self._wait(backend, identity, "deleted")

    @staticmethod
    def _wait(backend: AwsClients, identity: str, state: str) -> None:
        deadline = time.monotonic() + _NAT_SECONDS
        while True:
            gateway = _nat_gateway(backend, identity)
            now = gateway["State"] if gateway else "deleted"
            if now == state:
                return
            if now == "failed" or time.monotonic() > deadline:
                raise ResourceFailed(f"NAT gateway {identity} is {now}, not {state}")
            time.sleep(_POLL_SECONDS)


def _nat_gateway(backend: AwsClients, identity: str) -> dict[str, Any] | None:
    reply = unless_gone(backend.ec2.describe_nat_gateways, NatGatewayIds=[identity])
    return next(iter(reply["NatGateways"]), None) if reply else None
