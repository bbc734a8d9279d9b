"""A VPC that is there already, made fit for a cluster: its subnets get the tags that everything looks for.

Nothing but tags is made. When the component is destroyed the cluster's own tags go; the roles of the subnets
stay, for they may have been there before, and other clusters' load balancers look for them. What makes a
network from nothing is `network`; both give the same outputs.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import names
from pulumi_nodeless.arguments import ArgumentReader

#: Of a subnet, whatever cluster uses it.
_ROLE_TAGS: Final = "kubernetes.io/role/"


class AdoptedNetworkArgs(TypedDict):
    """Which subnets of which VPC a cluster may use."""

    cluster_name: str
    """Name of the cluster: the value of the discovery tag."""
    vpc_id: str
    """ID of the VPC."""
    private_subnet_ids: Sequence[str]
    """Subnets for nodes and Fargate pods, in at least two zones. None may have a route to an internet
    gateway."""
    public_subnet_ids: NotRequired[Sequence[str]]
    """Subnets for internet-facing load balancers. Default: none."""
    discovery_tag: NotRequired[bool]
    """Whether the private subnets get the tag karpenter.sh/discovery with the name of the cluster. A subnet
    has it for one cluster only: set this to false where another one selects these subnets by it.
    Default: true."""


class AdoptedNetwork(pulumi.ComponentResource):
    """Tags the subnets of an existing VPC for a cluster."""

    vpc_id: pulumi.Output[str]
    """ID of the VPC."""
    private_subnet_ids: pulumi.Output[Sequence[str]]
    """IDs of the private subnets, available once they are tagged."""
    public_subnet_ids: pulumi.Output[Sequence[str]]
    """IDs of the public subnets, available once they are tagged."""

    def __init__(
        self, name: str, args: AdoptedNetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        self._name = name
        reader = ArgumentReader("AdoptedNetwork", args, AdoptedNetworkArgs)
        cluster = reader.cluster_name()
        private, public = read_subnets(reader)
        private_tags = names.private_subnet_tags(cluster)
        if not reader.flag("discovery_tag", True):
            del private_tags[names.DISCOVERY_TAG]
        reader.check()
        super().__init__("nodeless:index:AdoptedNetwork", name, {}, opts)
        self.vpc_id = pulumi.Output.from_input(args["vpc_id"])
        self.private_subnet_ids = self._tag_subnets(private, private_tags)
        self.public_subnet_ids = self._tag_subnets(public, names.public_subnet_tags(cluster))
        self.register_outputs(
            {
                "vpcId": self.vpc_id,
                "privateSubnetIds": self.private_subnet_ids,
                "publicSubnetIds": self.public_subnet_ids,
            }
        )

    def _tag_subnets(self, subnets: Sequence[str], tags: Mapping[str, str]) -> pulumi.Output[Sequence[str]]:
        """The subnets' ids; known when the tags are there, so that what looks for them comes later."""
        made = [
            aws.ec2.Tag(
                f"{self._name}-{subnet}-{key.rpartition('/')[2]}",
                resource_id=subnet,
                key=key,
                value=value,
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=key.startswith(_ROLE_TAGS) or None),
            )
            for subnet in subnets
            for key, value in sorted(tags.items())
        ]
        ids: pulumi.Output[Sequence[str]] = pulumi.Output.all(*[tag.resource_id for tag in made]).apply(
            lambda known: list(dict.fromkeys(known))
        )
        return ids


def read_subnets(reader: ArgumentReader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The private and the public subnets; reports too few of them, and those that are given twice."""
    private, public = reader.texts("private_subnet_ids"), reader.texts("public_subnet_ids")
    reader.report_repeated("private_subnet_ids", private)
    reader.report_repeated("public_subnet_ids", public)
    if len(set(private)) < 2 and not reader.problems:
        reader.report("private_subnet_ids", f"{list(private)} are too few", "EKS needs subnets in two zones")
    for both in sorted(set(private) & set(public)):
        reader.report("public_subnet_ids", f"{both} is also a private subnet")
    return private, public
