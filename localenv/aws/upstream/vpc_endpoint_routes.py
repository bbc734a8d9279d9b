"""VPC endpoints: changed and deleted as EC2 does it, where moto does less.

A gateway endpoint has a route in each of its route tables. moto adds and removes tables without their
routes, and then fails to delete the endpoint for a route that it never made, or for want of a type where
none was asked for, which in EC2 makes a gateway endpoint. Endpoints that cannot be deleted do not fail
EC2's call either: they are named in its answer, which a caller has to read.

Source: VPC user guide, "Gateway endpoints"; EC2 API reference, ModifyVpcEndpoint, DeleteVpcEndpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from localenv.aws.calls import AwsError, Call, Handlers


def create_vpc_endpoint(call: Call) -> dict[str, Any]:
    """ec2.CreateVpcEndpoint: a gateway endpoint unless another type is asked for."""
    return call.forward(VpcEndpointType=call.parameters.get("VpcEndpointType") or "Gateway")


def modify_vpc_endpoint(call: Call) -> dict[str, Any]:
    """ec2.ModifyVpcEndpoint: tables that come and go get and lose the route to the service."""
    identity, client = call.parameters["VpcEndpointId"], call.client()
    before = _endpoint(call, identity)
    tables = {*before.get("RouteTableIds", [])}
    answer = call.forward()
    after = {*_endpoint(call, identity).get("RouteTableIds", [])}
    if services := _prefix_list(call, before):
        for table in sorted(after - tables):
            client.create_route(RouteTableId=table, DestinationPrefixListId=services, GatewayId=identity)
        for table in sorted(tables - after):
            client.delete_route(RouteTableId=table, DestinationPrefixListId=services)
    return answer


def delete_vpc_endpoints(call: Call) -> dict[str, Any]:
    """ec2.DeleteVpcEndpoints: says in its answer which ones it could not delete, and why."""
    refused: list[dict[str, Any]] = []
    for identity in call.parameters["VpcEndpointIds"]:
        try:
            _endpoint(call, identity)
            call.forward(VpcEndpointIds=[identity])
        except AwsError as error:
            refused.append(_unsuccessful(identity, error.code, error.message))
        except ClientError as error:
            told = error.response["Error"]
            refused.append(_unsuccessful(identity, told["Code"], told["Message"]))
    return {"Unsuccessful": refused}


def _endpoint(call: Call, identity: str) -> Mapping[str, Any]:
    for vpc_endpoint in call.client().describe_vpc_endpoints()["VpcEndpoints"]:
        if vpc_endpoint["VpcEndpointId"] == identity and vpc_endpoint.get("State") != "deleted":
            found: Mapping[str, Any] = vpc_endpoint
            return found
    message = f"The Vpc Endpoint Id '{identity}' does not exist"
    raise AwsError("InvalidVpcEndpointId.NotFound", message)


def _prefix_list(call: Call, endpoint: Mapping[str, Any]) -> str:
    """The list of a gateway endpoint's addresses, which its routes lead to; empty for other endpoints."""
    if endpoint.get("VpcEndpointType") not in (None, "Gateway"):
        return ""
    named = [{"Name": "prefix-list-name", "Values": [endpoint["ServiceName"]]}]
    lists = call.client().describe_managed_prefix_lists(Filters=named)["PrefixLists"]
    return str(lists[0]["PrefixListId"]) if lists else ""


def _unsuccessful(identity: str, code: str, message: str) -> dict[str, Any]:
    return {"ResourceId": identity, "Error": {"Code": code, "Message": message}}


HANDLERS: Handlers = {
    ("ec2", "CreateVpcEndpoint"): create_vpc_endpoint,
    ("ec2", "ModifyVpcEndpoint"): modify_vpc_endpoint,
    ("ec2", "DeleteVpcEndpoints"): delete_vpc_endpoints,
}
