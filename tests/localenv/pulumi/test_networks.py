"""Networks of other shapes than the demo's, made by the real engine."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from localenv.aws import LocalAws
from localenv.pulumi import StackFailed
from pulumi_nodeless import AdoptedNetwork, Cluster, Network
from pulumi_nodeless.network import PRIVATE_SERVICES
from tests.localenv.pulumi.conftest import Shop
from tests.localenv.pulumi.programs import on_aws

pytestmark = pytest.mark.cluster


def providers() -> pulumi.ResourceOptions:
    provider = on_aws().provider
    assert provider is not None
    return pulumi.ResourceOptions(providers=[provider])


def test_a_network_without_a_way_out_is_made_once_and_goes_whole(shop: Shop, aws: LocalAws) -> None:
    def program() -> None:
        Network(
            "net",
            {"cluster_name": "shop", "zone_count": 2, "nat_gateways": "none", "intra_subnets": True},
            providers(),
        )

    shop.program = program
    made = shop.stack.up()

    ec2 = aws.client("ec2")
    services = {
        vpc_endpoint["ServiceName"].split(".", 3)[3]
        for vpc_endpoint in ec2.describe_vpc_endpoints()["VpcEndpoints"]
    }
    assert services == {*PRIVATE_SERVICES, "s3"}
    assert ec2.describe_nat_gateways()["NatGateways"] == []
    assert shop.stack.up() == {"same": made["create"]}

    shop.stack.destroy()
    assert [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")] == []


@pytest.mark.parametrize(("first", "then"), [(2, 3), (3, 2)])
def test_a_network_whose_zones_changed_goes_whole(shop: Shop, aws: LocalAws, first: int, then: int) -> None:
    def network(zones: int) -> None:
        Network("net", {"cluster_name": "shop", "zone_count": zones}, providers())

    ec2 = aws.client("ec2")
    for zones in (first, then):
        shop.program = lambda zones=zones: network(zones)  # type: ignore[misc]
        shop.stack.up()
        (endpoint,) = ec2.describe_vpc_endpoints()["VpcEndpoints"]
        tables = ec2.describe_route_tables()["RouteTables"]
        routed = {
            table["RouteTableId"]
            for table in tables
            for route in table["Routes"]
            if route.get("GatewayId") == endpoint["VpcEndpointId"]
        }
        assert {*endpoint["RouteTableIds"]} == routed

    shop.stack.destroy()
    assert [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")] == []


def test_a_zone_takes_the_place_of_another_in_two_steps(shop: Shop, aws: LocalAws) -> None:
    """At once AWS refuses it: the subnet of the zone that goes still has the range."""

    def up(*zones: str) -> None:
        shop.program = lambda: Network(
            "net",
            {"cluster_name": "shop", "availability_zones": [f"us-east-1{zone}" for zone in zones]},
            providers(),
        )
        shop.stack.up()

    up("a", "b", "c")
    with pytest.raises(StackFailed, match=r"InvalidSubnet\.Conflict"):
        up("a", "b", "d")
    up("a", "b")
    up("a", "b", "d")
    subnets = aws.client("ec2").describe_subnets()["Subnets"]
    zones = {subnet["AvailabilityZone"][-1] for subnet in subnets if not subnet["DefaultForAz"]}
    assert zones == {"a", "b", "d"}


def test_an_adopted_network_keeps_its_subnets_and_loses_only_its_tags(shop: Shop, aws: LocalAws) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.7.{index}.0/24", AvailabilityZone=f"us-east-1{zone}")[
            "Subnet"
        ]["SubnetId"]
        for index, zone in enumerate("ab")
    ]
    ec2.create_tags(Resources=[subnets[0]], Tags=[{"Key": "owner", "Value": "us"}])
    shop.program = lambda: AdoptedNetwork(
        "net", {"cluster_name": "shop", "vpc_id": vpc, "private_subnet_ids": subnets}, providers()
    )

    def tags(subnet: str) -> dict[str, str]:
        [found] = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"]
        return {tag["Key"]: tag["Value"] for tag in found.get("Tags", [])}

    shop.stack.up()
    assert tags(subnets[1])["karpenter.sh/discovery"] == "shop"
    shop.stack.destroy()
    assert tags(subnets[0]) == {"owner": "us", "kubernetes.io/role/internal-elb": "1"}
    assert tags(subnets[1]) == {"kubernetes.io/role/internal-elb": "1"}


def test_a_renamed_component_with_an_alias_keeps_every_resource(shop: Shop, aws: LocalAws) -> None:
    def program(name: str, *former: str) -> None:
        aliases = pulumi.ResourceOptions(aliases=[pulumi.Alias(name=each) for each in former])
        Network(
            name,
            {"cluster_name": "shop", "zone_count": 2, "nat_gateways": "none"},
            pulumi.ResourceOptions.merge(providers(), aliases),
        )

    shop.program = lambda: program("net")
    made = shop.stack.up()
    shop.program = lambda: program("network", "net")
    changes = shop.stack.up()

    assert not {"replace", "create-replacement", "delete"} & set(changes)
    assert sum(changes.values()) == made["create"]
    assert shop.stack.up() == {"same": made["create"]}


def test_a_users_transforms_and_retention_reach_every_resource_of_a_component(
    shop: Shop, aws: LocalAws
) -> None:
    def owned(arguments: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if "tags" not in arguments.props:
            return None
        tags = {**arguments.props["tags"], "owner": "finance"}
        return pulumi.ResourceTransformResult({**arguments.props, "tags": tags}, arguments.opts)

    def program() -> None:
        options = pulumi.ResourceOptions(transforms=[owned], retain_on_delete=True)
        Network(
            "net",
            {"cluster_name": "shop", "zone_count": 2, "nat_gateways": "none"},
            pulumi.ResourceOptions.merge(providers(), options),
        )

    shop.program = program
    shop.stack.up()
    ec2 = aws.client("ec2")
    [vpc] = [vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")]
    own = [{"Name": "vpc-id", "Values": [vpc]}]
    subnets = ec2.describe_subnets(Filters=own)["Subnets"]
    assert len(subnets) == 4
    assert all({"Key": "owner", "Value": "finance"} in subnet["Tags"] for subnet in subnets)

    shop.stack.destroy()
    assert len(ec2.describe_subnets(Filters=own)["Subnets"]) == 4


@pytest.mark.parametrize("given", ["private_subnet_ids", "fargate_subnet_ids"])
def test_a_cluster_stays_in_the_zones_that_it_was_made_with(shop: Shop, aws: LocalAws, given: str) -> None:
    """Those of every zone, which earlier versions gave it, or of the first two, which they give it now."""

    def program(zones: int, subnets: str) -> None:
        options = providers()
        network = Network("net", {"cluster_name": "shop", "zone_count": zones}, options)
        Cluster(
            "cluster",
            {
                "cluster_name": "shop",
                "authentication_mode": "API",
                "vpc_id": network.vpc_id,
                "private_subnet_ids": getattr(network, subnets),
            },
            options,
        )
        pulumi.export("vpcId", network.vpc_id)

    def subnets() -> list[str]:
        config = aws.client("eks").describe_cluster(name="shop")["cluster"]["resourcesVpcConfig"]
        return list(config["subnetIds"])

    shop.program = lambda: program(3, given)
    shop.stack.up()
    made = subnets()
    shop.program = lambda: program(4, "fargate_subnet_ids")
    shop.stack.up()
    assert subnets() == made
    shop.program = lambda: program(2, "fargate_subnet_ids")
    if given == "private_subnet_ids":
        with pytest.raises(StackFailed, match="EKS keeps a cluster in its zones"):
            shop.stack.up()
    else:
        shop.stack.up()
    assert subnets() == made


def test_zones_that_take_no_cluster_are_left_out_and_refused_by_name(shop: Shop, aws: LocalAws) -> None:
    """In this account use1-az3 is us-east-1e."""
    shop.program = lambda: _network(zone_count=5)
    shop.stack.up()
    subnets = aws.client("ec2").describe_subnets(
        Filters=[{"Name": "tag:karpenter.sh/discovery", "Values": ["shop"]}]
    )["Subnets"]
    assert sorted(each["AvailabilityZone"][-1] for each in subnets) == ["a", "b", "c", "d", "f"]
    shop.program = lambda: _network(availability_zones=["us-east-1a", "us-east-1e"])
    with pytest.raises(StackFailed, match="EKS puts no cluster in us-east-1e"):
        shop.stack.up()


def _network(**arguments: Any) -> None:
    Network("net", {"cluster_name": "shop", **arguments}, providers())  # type: ignore[typeddict-item]
