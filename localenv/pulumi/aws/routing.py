"""Route tables, routes, associations, gateway endpoints, and single tags on foreign resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localenv.pulumi.aws.clients import AwsClients, AwsResource, unless_gone
from localenv.pulumi.aws.ec2 import Ec2Resource, arn, capitalized, present, tag_specifications, with_tags
from localenv.pulumi.resources import Inputs, Outputs, ResourceFailed


class RouteTable(Ec2Resource):
    token = "aws:ec2/routeTable:RouteTable"
    required = frozenset({"vpcId"})
    computed = ("arn", "ownerId", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.ec2.create_route_table(
            VpcId=inputs["vpcId"], TagSpecifications=tag_specifications("route-table", inputs)
        )
        return str(reply["RouteTable"]["RouteTableId"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        if _table(backend, identity) is None:
            return None
        return with_tags(inputs, {"arn": arn(backend, "route-table", identity), "ownerId": backend.account})

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.ec2.delete_route_table, RouteTableId=identity)


class Route(AwsResource):
    """One route of a table; its id names the table and the destination."""

    token = "aws:ec2/route:Route"
    required = frozenset({"routeTableId", "destinationCidrBlock"})
    #: Where the route leads; exactly one is given.
    in_place = frozenset(
        {"gatewayId", "natGatewayId", "networkInterfaceId", "transitGatewayId", "vpcPeeringConnectionId"}
    )
    computed = ("origin", "state")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        backend.ec2.create_route(**capitalized(inputs, *self.required, *self.in_place))
        return f"r-{inputs['routeTableId']}-{inputs['destinationCidrBlock']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        table = _table(backend, inputs["routeTableId"])
        for route in table["Routes"] if table else []:
            if route.get("DestinationCidrBlock") == inputs["destinationCidrBlock"]:
                return {"origin": route.get("Origin", "CreateRoute"), "state": route["State"]}
        return None

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        backend.ec2.replace_route(**capitalized(new, *self.required, *self.in_place))

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(
            backend.ec2.delete_route,
            RouteTableId=state["routeTableId"],
            DestinationCidrBlock=state["destinationCidrBlock"],
        )


class RouteTableAssociation(AwsResource):
    token = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    required = frozenset({"routeTableId", "subnetId"})
    in_place = frozenset({"routeTableId"})

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.ec2.associate_route_table(
            RouteTableId=inputs["routeTableId"], SubnetId=inputs["subnetId"]
        )
        return str(reply["AssociationId"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        return None if self._association(backend, inputs) is None else {}

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        association = self._association(backend, old)
        if association is not None:
            backend.ec2.replace_route_table_association(
                AssociationId=association, RouteTableId=new["routeTableId"]
            )

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        association = self._association(backend, state)
        if association is not None:
            unless_gone(backend.ec2.disassociate_route_table, AssociationId=association)

    @staticmethod
    def _association(backend: AwsClients, inputs: Inputs) -> str | None:
        """Its id on AWS, which another table changes: a subnet has one association."""
        table = _table(backend, inputs["routeTableId"])
        for association in table["Associations"] if table else []:
            if association.get("SubnetId") == inputs["subnetId"]:
                return str(association["RouteTableAssociationId"])
        return None


class VpcEndpoint(Ec2Resource):
    """An endpoint in the VPC: a Gateway has route tables, an Interface has subnets and groups."""

    token = "aws:ec2/vpcEndpoint:VpcEndpoint"
    required = frozenset({"vpcId", "serviceName"})
    in_place = frozenset(
        {"routeTableIds", "subnetIds", "securityGroupIds", "privateDnsEnabled", "policy", "tags"}
    )
    computed = ("arn", "ownerId", "state", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.ec2.create_vpc_endpoint(
            VpcEndpointType=inputs.get("vpcEndpointType", "Gateway"),
            **capitalized(inputs, *self.required, "routeTableIds", "subnetIds", "securityGroupIds"),
            **capitalized(inputs, "privateDnsEnabled"),
            **present(PolicyDocument=inputs.get("policy")),
            TagSpecifications=tag_specifications("vpc-endpoint", inputs),
        )
        return str(reply["VpcEndpoint"]["VpcEndpointId"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.ec2.describe_vpc_endpoints, VpcEndpointIds=[identity])
        endpoint = next(iter(reply["VpcEndpoints"]), None) if reply else None
        if endpoint is None or str(endpoint["State"]).lower() == "deleted":
            return None
        return with_tags(
            inputs,
            {
                "arn": arn(backend, "vpc-endpoint", identity),
                "ownerId": backend.account,
                "state": endpoint["State"],
            },
        )

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        super().update(backend, identity, old, new)
        arguments: dict[str, Any] = {}
        for key, plural in (
            ("routeTableIds", "RouteTableIds"),
            ("subnetIds", "SubnetIds"),
            ("securityGroupIds", "SecurityGroupIds"),
        ):
            before, after = set(old.get(key, [])), set(new.get(key, []))
            arguments |= {f"Add{plural}": sorted(after - before)} if after - before else {}
            arguments |= {f"Remove{plural}": sorted(before - after)} if before - after else {}
        if old.get("policy") != new.get("policy"):
            arguments |= {"PolicyDocument": new["policy"]} if "policy" in new else {"ResetPolicy": True}
        if old.get("privateDnsEnabled") != new.get("privateDnsEnabled"):
            arguments["PrivateDnsEnabled"] = bool(new.get("privateDnsEnabled"))
        if arguments:
            backend.ec2.modify_vpc_endpoint(VpcEndpointId=identity, **arguments)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        # The call succeeds whatever becomes of the endpoints; its answer names those that stay.
        for refused in backend.ec2.delete_vpc_endpoints(VpcEndpointIds=[identity])["Unsuccessful"]:
            if "NotFound" not in refused["Error"]["Code"]:
                raise ResourceFailed(
                    f"{identity} stays: {refused['Error']['Code']}: {refused['Error']['Message']}"
                )


class Tag(AwsResource):
    """One tag on a resource that somebody else made."""

    token = "aws:ec2/tag:Tag"
    required = frozenset({"resourceId", "key", "value"})
    in_place = frozenset({"value"})

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        self.update(backend, "", {}, inputs)
        return f"{inputs['resourceId']},{inputs['key']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        resource, key = identity.split(",", 1)
        filters = [{"Name": "resource-id", "Values": [resource]}, {"Name": "key", "Values": [key]}]
        return {} if backend.ec2.describe_tags(Filters=filters)["Tags"] else None

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        tag = {"Key": new["key"], "Value": new["value"]}
        backend.ec2.create_tags(Resources=[new["resourceId"]], Tags=[tag])

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        resource, key = identity.split(",", 1)
        unless_gone(backend.ec2.delete_tags, Resources=[resource], Tags=[{"Key": key}])


def _table(backend: AwsClients, identity: str) -> Mapping[str, Any] | None:
    reply = unless_gone(backend.ec2.describe_route_tables, RouteTableIds=[identity])
    return next(iter(reply["RouteTables"]), None) if reply else None
