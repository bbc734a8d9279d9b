"""Gateway endpoints and their routes."""

from __future__ import annotations

from tests.localenv.aws.world import World


def routed(world: World, table: str, endpoint: str) -> bool:
    (found,) = world.ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    return any(route.get("GatewayId") == endpoint for route in found["Routes"])


def test_a_gateway_endpoint_has_a_route_in_each_of_its_tables(world: World) -> None:
    first, second = (
        world.ec2.create_route_table(VpcId=world.vpc)["RouteTable"]["RouteTableId"] for _ in range(2)
    )
    endpoint = world.ec2.create_vpc_endpoint(
        VpcId=world.vpc, ServiceName="com.amazonaws.us-east-1.s3", RouteTableIds=[first]
    )["VpcEndpoint"]["VpcEndpointId"]

    world.ec2.modify_vpc_endpoint(
        VpcEndpointId=endpoint, AddRouteTableIds=[second], RemoveRouteTableIds=[first]
    )

    assert [routed(world, table, endpoint) for table in (first, second)] == [False, True]
    answer = world.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint, "vpce-00000000000000000"])
    (refused,) = answer["Unsuccessful"]
    assert refused["ResourceId"] == "vpce-00000000000000000"
    assert refused["Error"]["Code"] == "InvalidVpcEndpointId.NotFound"
    assert not routed(world, second, endpoint)
