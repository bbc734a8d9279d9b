"""Deletions that EC2 refuses while something depends on the resource: security groups, subnets, VPCs.

moto deletes groups and subnets under running instances, so a teardown in the wrong order goes unnoticed.
EC2 answers `DependencyViolation` as long as there are instances, interfaces, endpoints, NAT or internet
gateways, or rules of other groups.

Source: EC2 API reference, DeleteSecurityGroup, DeleteSubnet, DeleteVpc; error codes of the EC2 API.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from localenv.aws.calls import AwsError, Call, Handlers

_ALIVE = ["pending", "running", "shutting-down", "stopping", "stopped"]


def delete_security_group(call: Call) -> dict[str, Any]:
    """ec2.DeleteSecurityGroup."""
    group = call.parameters.get("GroupId")
    if group:
        with call.state.lock:
            _refuse_if_any(users_of_group(call, group), f"resource {group} has a dependent object")
            return call.forward()
    return call.forward()


def delete_subnet(call: Call) -> dict[str, Any]:
    """ec2.DeleteSubnet."""
    subnet = call.parameters["SubnetId"]
    message = f"The subnet '{subnet}' has dependencies and cannot be deleted."
    with call.state.lock:
        _refuse_if_any(_users_of_subnet(call, subnet), message)
        return call.forward()


def delete_vpc(call: Call) -> dict[str, Any]:
    """ec2.DeleteVpc."""
    vpc = call.parameters["VpcId"]
    with call.state.lock:
        message = f"The vpc '{vpc}' has dependencies and cannot be deleted."
        _refuse_if_any(_users_of_vpc(call, vpc), message)
        return call.forward()


def users_of_group(call: Call, group: str) -> Iterator[str]:
    """Ids of what keeps a security group: instances, endpoints, other groups' rules."""
    yield from _instances(call, "instance.group-id", group)
    yield from _endpoints(call, lambda endpoint: group in {g["GroupId"] for g in endpoint.get("Groups", [])})
    for other in call.client("ec2").describe_security_groups()["SecurityGroups"]:
        for permission in [*other.get("IpPermissions", []), *other.get("IpPermissionsEgress", [])]:
            referenced = {pair.get("GroupId") for pair in permission.get("UserIdGroupPairs", [])}
            if other["GroupId"] != group and group in referenced:
                yield other["GroupId"]


def _users_of_subnet(call: Call, subnet: str) -> Iterator[str]:
    yield from _instances(call, "subnet-id", subnet)
    yield from _endpoints(call, lambda endpoint: subnet in endpoint.get("SubnetIds", []))
    gateways = call.client("ec2").describe_nat_gateways(Filter=[{"Name": "subnet-id", "Values": [subnet]}])
    for gateway in gateways["NatGateways"]:
        if gateway["State"] not in {"deleted", "failed"}:
            yield gateway["NatGatewayId"]


def _users_of_vpc(call: Call, vpc: str) -> Iterator[str]:
    client = call.client("ec2")
    here = [{"Name": "vpc-id", "Values": [vpc]}]
    for subnet in client.describe_subnets(Filters=here)["Subnets"]:
        yield subnet["SubnetId"]
    for group in client.describe_security_groups(Filters=here)["SecurityGroups"]:
        if group["GroupName"] != "default":
            yield group["GroupId"]
    attached = [{"Name": "attachment.vpc-id", "Values": [vpc]}]
    for gateway in client.describe_internet_gateways(Filters=attached)["InternetGateways"]:
        yield gateway["InternetGatewayId"]
    yield from _endpoints(call, lambda endpoint: endpoint["VpcId"] == vpc)


def _instances(call: Call, filter_name: str, value: str) -> Iterator[str]:
    filters = [
        {"Name": filter_name, "Values": [value]},
        {"Name": "instance-state-name", "Values": _ALIVE},
    ]
    if filter_name == "instance.group-id":
        # moto compares this filter with the first group only; look at every interface instead.
        filters = filters[1:]
    for reservation in call.client("ec2").describe_instances(Filters=filters, MaxResults=1000)[
        "Reservations"
    ]:
        for instance in reservation["Instances"]:
            groups = {g["GroupId"] for n in instance["NetworkInterfaces"] for g in n.get("Groups", [])}
            if filter_name != "instance.group-id" or value in groups:
                yield instance["InstanceId"]


def _endpoints(call: Call, uses: Any) -> Iterator[str]:
    for endpoint in call.client("ec2").describe_vpc_endpoints()["VpcEndpoints"]:
        if endpoint.get("State") != "deleted" and uses(endpoint):
            yield endpoint["VpcEndpointId"]


def _refuse_if_any(users: Iterator[str], message: str) -> None:
    if next(users, None) is not None:
        raise AwsError("DependencyViolation", message)


HANDLERS: Handlers = {
    ("ec2", "DeleteSecurityGroup"): delete_security_group,
    ("ec2", "DeleteSubnet"): delete_subnet,
    ("ec2", "DeleteVpc"): delete_vpc,
}
