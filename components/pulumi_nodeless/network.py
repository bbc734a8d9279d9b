"""The network of an environment: a VPC with a private and a public subnet in every zone.

Private subnets hold nodes and Fargate pods and reach the internet through NAT; public ones hold the NAT
gateways and internet-facing load balancers; intra subnets, when asked for, have no way to the internet. The
private subnets carry the discovery tag that node templates select by. Without NAT the AWS services that a
cluster needs are reached by endpoints inside the VPC. Address arithmetic is `cidr`'s. The security group
that nodes use comes with the cluster (`cluster`); a VPC that is there already is `adopted_network`'s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import cidr, names
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.network_moves import (
    StandingNetwork,
    require_same_range,
    require_same_zones,
    standing_network,
)

NAT_NONE = "none"
NAT_SINGLE = "single"
NAT_PER_ZONE = "per-zone"
_EVERYWHERE = "0.0.0.0/0"
PRIVATE_SERVICES: Final = (
    "ec2",
    "ecr.api",
    "ecr.dkr",
    "eks",
    "eks-auth",
    "elasticloadbalancing",
    "logs",
    "sqs",
    "ssm",
    "sts",
)
"""What nodes, Fargate pods and the controller call in a VPC without a way out; S3 has an endpoint anyway.
Source: https://docs.aws.amazon.com/eks/latest/userguide/private-clusters.html, and for eks-auth
https://docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html: it is there whatever gives the
controller its role, since any workload may come by its own through EKS Pod Identity."""


#: Services whose endpoints have another prefix in China. Source: aws/aws-cdk, aws-ec2/lib/vpc-endpoint.ts.
_PREFIXED_IN_CHINA: Final = frozenset({"ec2", "ecr.api", "ecr.dkr", "eks", "sqs", "sts"})
#: Zones that a network has at least: EKS asks for subnets in two.
MINIMUM_ZONES: Final = 2
UNSUPPORTED_ZONE_IDS: Final = ("use1-az3", "usw1-az2", "cac1-az3")
"""Zones in which EKS puts no cluster. Each account has names of its own for them. Source:
https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html."""


class NetworkArgs(TypedDict):
    """What a network is made of."""

    cluster_name: str
    """Name of the cluster whose nodes run in the private subnets: the value of the discovery tag."""
    cidr: NotRequired[str]
    """CIDR block of the VPC, between /16 and /22. Default: 10.0.0.0/16."""
    zone_count: NotRequired[int]
    """Number of availability zones to use, from 2 to 6. Default: 3. Increasing it moves no existing
    subnet."""
    availability_zones: NotRequired[Sequence[str]]
    """Names of the availability zones to use, instead of the first `zone_count` ones of the region that can
    have a cluster. The first two must be able to."""
    nat_gateways: NotRequired[str]
    """`single` (one for all zones, cheaper), `per-zone` (survives the failure of a zone) or `none` (private
    subnets have no route to the internet). Default: single."""
    service_endpoints: NotRequired[bool]
    """Whether to create VPC endpoints for the AWS services that a cluster needs. They are billed by the hour.
    Default: only without NAT gateways."""
    intra_subnets: NotRequired[bool]
    """Whether each zone also gets a small subnet without a route to the internet. Default: false."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of all AWS resources of the network."""


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """The arguments of a network, checked and with defaults."""

    cluster_name: str
    cidr: str
    zone_count: int
    availability_zones: tuple[str, ...]
    nat_gateways: str
    service_endpoints: bool
    intra_subnets: bool
    tags: dict[str, str]

    @classmethod
    def read(cls, args: NetworkArgs) -> "NetworkOptions":
        """Checks the arguments.

        Raises:
            ArgumentError: with every fault found.
        """
        reader = ArgumentReader("Network", args, NetworkArgs)
        zones = reader.texts("availability_zones")
        if zones and not 2 <= len(set(zones)) == len(zones) <= cidr.MAXIMUM_ZONES:
            reader.report(
                "availability_zones", f"{list(zones)} are not 2 to {cidr.MAXIMUM_ZONES} different zones"
            )
        address_range = reader.text("cidr", "10.0.0.0/16")
        try:
            cidr.parse_vpc_cidr(address_range)
        except ValueError as error:
            reader.report("cidr", str(error), "for example 10.0.0.0/16")
        nat = reader.choice("nat_gateways", (NAT_SINGLE, NAT_PER_ZONE, NAT_NONE), NAT_SINGLE)
        options = cls(
            cluster_name=reader.cluster_name(),
            cidr=address_range,
            zone_count=len(zones) or reader.integer("zone_count", 3, MINIMUM_ZONES, cidr.MAXIMUM_ZONES),
            availability_zones=zones,
            nat_gateways=nat,
            service_endpoints=reader.flag("service_endpoints", nat == NAT_NONE),
            intra_subnets=reader.flag("intra_subnets", False),
            tags=reader.tags("tags"),
        )
        reader.check()
        return options


class Network(pulumi.ComponentResource):
    """A VPC with private subnets for nodes and Fargate pods."""

    vpc_id: pulumi.Output[str]
    """ID of the VPC."""
    private_subnet_ids: pulumi.Output[Sequence[str]]
    """IDs of the private subnets, one for each zone."""
    fargate_subnet_ids: pulumi.Output[Sequence[str]]
    """IDs of the private subnets of the first two zones, which exist whatever the number of zones. They are
    for Fargate profiles and the cluster: a profile's subnets cannot be changed, and its pods stop when it is
    replaced; a cluster's zones cannot be changed."""
    public_subnet_ids: pulumi.Output[Sequence[str]]
    """IDs of the public subnets, one for each zone."""
    intra_subnet_ids: pulumi.Output[Sequence[str]]
    """IDs of the subnets without a route to the internet; empty unless `intra_subnets` is set."""
    availability_zones: pulumi.Output[Sequence[str]]
    """Names of the availability zones in use."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        self._name = name
        self._options = options = NetworkOptions.read(args)
        super().__init__("nodeless:index:Network", name, {}, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        standing: pulumi.Output[StandingNetwork] = pulumi.Output.from_input(standing_network(self, name))
        zones = self._zones(standing)
        subnets = cidr.split(options.cidr, options.zone_count)
        self._vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=standing.apply(
                lambda known: require_same_range(options.cidr, options.cluster_name, known)
            ),
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=self._tags("vpc"),
            opts=self._child,
        )
        gateway = aws.ec2.InternetGateway(
            f"{name}-internet", vpc_id=self._vpc.id, tags=self._tags("internet"), opts=self._child
        )
        public_table = self._route_table("public")
        self._route("public", public_table, gateway=gateway)
        placed = list(enumerate(zip(zones, subnets, strict=True)))
        public = [
            self._subnet(f"public-{index}", zone, ranges.public, public_table, self._role(public=True))
            for index, (zone, ranges) in placed
        ]
        gateways = self._nat_gateways(public, gateway)
        private_tables = [self._route_table(f"private-{index}") for index in range(len(zones))]
        for index, table in enumerate(private_tables):
            if gateways:
                self._route(f"private-{index}", table, nat=gateways[index % len(gateways)])
        private = [
            self._subnet(
                f"private-{index}", zone, ranges.private, private_tables[index], self._role(public=False)
            )
            for index, (zone, ranges) in placed
        ]
        tables = [public_table, *private_tables]
        intra: list[aws.ec2.Subnet] = []
        if options.intra_subnets:
            tables.append(self._route_table("intra"))
            intra = [
                self._subnet(f"intra-{index}", zone, ranges.intra, tables[-1], {})
                for index, (zone, ranges) in placed
            ]
        self._storage_endpoint(tables)
        if options.service_endpoints:
            self._service_endpoints(private)
        self.vpc_id = self._vpc.id
        self.private_subnet_ids = pulumi.Output.all(*[subnet.id for subnet in private])
        self.fargate_subnet_ids = pulumi.Output.all(*[subnet.id for subnet in private[:MINIMUM_ZONES]])
        self.public_subnet_ids = pulumi.Output.all(*[subnet.id for subnet in public])
        self.intra_subnet_ids = pulumi.Output.all(*[subnet.id for subnet in intra])
        self.availability_zones = pulumi.Output.all(*zones)
        self.register_outputs(
            {
                "vpcId": self.vpc_id,
                "privateSubnetIds": self.private_subnet_ids,
                "fargateSubnetIds": self.fargate_subnet_ids,
                "publicSubnetIds": self.public_subnet_ids,
                "intraSubnetIds": self.intra_subnet_ids,
                "availabilityZones": self.availability_zones,
            }
        )

    def _zones(self, standing: pulumi.Output[StandingNetwork]) -> list[pulumi.Output[str]]:
        options = self._options
        checked = pulumi.Output.all(self._wanted_zones(), standing).apply(
            lambda known: require_same_zones(known[0], options.cidr, options.cluster_name, known[1])
        )
        return [checked[i] for i in range(options.zone_count)]

    def _wanted_zones(self) -> pulumi.Output[Sequence[str]]:
        options = pulumi.InvokeOutputOptions(parent=self)
        if self._options.availability_zones:
            known = aws.get_availability_zones_output(opts=options)
            return known.apply(
                lambda answer: require_supported_zones(
                    self._options.availability_zones, dict(zip(answer.names, answer.zone_ids, strict=False))
                )
            )
        # Local and wavelength zones need opting in and cannot hold a control plane.
        found = aws.get_availability_zones_output(
            state="available",
            filters=[
                aws.GetAvailabilityZonesFilterArgs(name="opt-in-status", values=["opt-in-not-required"]),
            ],
            exclude_zone_ids=list(UNSUPPORTED_ZONE_IDS),
            opts=options,
        )
        return found.names.apply(partial(first_zones, self._options.zone_count))

    def _tags(self, suffix: str) -> dict[str, str]:
        return {**self._options.tags, "Name": f"{self._options.cluster_name}-{suffix}"}

    def _route_table(self, suffix: str) -> aws.ec2.RouteTable:
        return aws.ec2.RouteTable(
            f"{self._name}-{suffix}-routes", vpc_id=self._vpc.id, tags=self._tags(suffix), opts=self._child
        )

    def _route(
        self,
        suffix: str,
        table: aws.ec2.RouteTable,
        gateway: aws.ec2.InternetGateway | None = None,
        nat: aws.ec2.NatGateway | None = None,
    ) -> None:
        aws.ec2.Route(
            f"{self._name}-{suffix}-default",
            route_table_id=table.id,
            destination_cidr_block=_EVERYWHERE,
            gateway_id=gateway.id if gateway else None,
            nat_gateway_id=nat.id if nat else None,
            opts=self._child,
        )

    def _role(self, *, public: bool) -> dict[str, str]:
        if public:
            return names.public_subnet_tags(self._options.cluster_name)
        return names.private_subnet_tags(self._options.cluster_name)

    def _subnet(
        self,
        suffix: str,
        zone: pulumi.Output[str],
        block: str,
        table: aws.ec2.RouteTable,
        role: Mapping[str, str],
    ) -> aws.ec2.Subnet:
        subnet = aws.ec2.Subnet(
            f"{self._name}-{suffix}",
            vpc_id=self._vpc.id,
            cidr_block=block,
            availability_zone=zone,
            map_public_ip_on_launch=True if suffix.startswith("public") else None,
            tags={**self._tags(suffix), **role},
            opts=self._child,
        )
        aws.ec2.RouteTableAssociation(
            f"{self._name}-{suffix}-routes", route_table_id=table.id, subnet_id=subnet.id, opts=self._child
        )
        return subnet

    def _nat_gateways(
        self, public: Sequence[aws.ec2.Subnet], gateway: aws.ec2.InternetGateway
    ) -> list[aws.ec2.NatGateway]:
        count = {NAT_NONE: 0, NAT_SINGLE: 1, NAT_PER_ZONE: len(public)}[self._options.nat_gateways]
        made = []
        for index in range(count):
            address = aws.ec2.Eip(
                f"{self._name}-nat-{index}", domain="vpc", tags=self._tags(f"nat-{index}"), opts=self._child
            )
            made.append(
                aws.ec2.NatGateway(
                    f"{self._name}-nat-{index}",
                    allocation_id=address.id,
                    subnet_id=public[index].id,
                    tags=self._tags(f"nat-{index}"),
                    # Without the internet gateway a NAT gateway fails to become available.
                    opts=pulumi.ResourceOptions(parent=self, depends_on=[gateway]),
                )
            )
        return made

    def _storage_endpoint(self, tables: Sequence[aws.ec2.RouteTable]) -> None:
        """S3 without NAT charges: container layers come from there."""
        region = aws.get_region_output(opts=pulumi.InvokeOutputOptions(parent=self)).region
        aws.ec2.VpcEndpoint(
            f"{self._name}-s3",
            vpc_id=self._vpc.id,
            service_name=pulumi.Output.format("com.amazonaws.{0}.s3", region),
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in tables],
            tags=self._tags("s3"),
            opts=self._child,
        )

    def _service_endpoints(self, subnets: Sequence[aws.ec2.Subnet]) -> None:
        """AWS services inside the VPC, for everything that has an address of it."""
        region = aws.get_region_output(opts=pulumi.InvokeOutputOptions(parent=self)).region
        group = aws.ec2.SecurityGroup(
            f"{self._name}-endpoints",
            vpc_id=self._vpc.id,
            description=f"AWS services inside the VPC of {self._options.cluster_name}",
            ingress=[
                aws.ec2.SecurityGroupIngressArgs(
                    protocol="tcp", from_port=443, to_port=443, cidr_blocks=[self._options.cidr]
                )
            ],
            tags=self._tags("endpoints"),
            opts=self._child,
        )
        for service in PRIVATE_SERVICES:
            aws.ec2.VpcEndpoint(
                f"{self._name}-{service.replace('.', '-')}",
                vpc_id=self._vpc.id,
                service_name=region.apply(partial(interface_endpoint, service)),
                vpc_endpoint_type="Interface",
                subnet_ids=[subnet.id for subnet in subnets],
                security_group_ids=[group.id],
                private_dns_enabled=True,
                tags=self._tags(service.replace(".", "-")),
                opts=self._child,
            )


def first_zones(count: int, zones: Sequence[str]) -> Sequence[str]:
    """The first of a region's zones.

    Raises:
        RunError: the region has fewer.
    """
    if count > len(zones):
        raise pulumi.RunError(
            f"the region has {len(zones)} usable zones, but {count} were requested; hint: lower zoneCount"
        )
    return zones[:count]


def require_supported_zones(zones: Sequence[str], ids: Mapping[str, str]) -> Sequence[str]:
    """The zones that are given, of which the first two get the cluster.

    Args:
        zones: their names.
        ids: ids of the region's zones by name, the same ones in every account.

    Raises:
        RunError: one of the first two takes no cluster.
    """
    for zone in zones[:MINIMUM_ZONES]:
        if ids.get(zone) in UNSUPPORTED_ZONE_IDS:
            usable = ", ".join(sorted(name for name in ids if ids[name] not in UNSUPPORTED_ZONE_IDS))
            raise pulumi.RunError(
                f"EKS puts no cluster in {zone}, which is {ids[zone]} (availabilityZones); hint: begin with"
                f" two of {usable}"
            )
    return zones


def interface_endpoint(service: str, region: str) -> str:
    """The name of a service's interface endpoint in a region."""
    china = region.startswith("cn-") and service in _PREFIXED_IN_CHINA
    return f"{'cn.' if china else ''}com.amazonaws.{region}.{service}"
