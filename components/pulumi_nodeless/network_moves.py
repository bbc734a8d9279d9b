"""Changes of a network that AWS carries out only after half of them, told before the first step.

A cluster stays in its VPC for as long as it lives, and the range of a VPC is what it was made with. A subnet
stays in its zone, and while the old one is there nobody else can have its range. A preview that shows only
replacements would be right about each of them, and AWS would refuse in their midst. So what the stack's last
update left is compared with what is declared now (`last_update`); where that is not known nothing is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi

from pulumi_nodeless.last_update import recorded_resources, types_of

_VPC: Final = "aws:ec2/vpc:Vpc"
_SUBNET: Final = "aws:ec2/subnet:Subnet"
_CLUSTER: Final = "aws:eks/cluster:Cluster"
#: EKS asks for subnets in two zones, so the first two cannot be left out for an update.
_LASTING_ZONES: Final = 2


@dataclass(frozen=True, slots=True)
class StandingNetwork:
    """A network as the last update left it.

    Attributes:
        cidr: Range of its VPC; empty when there is none.
        zones: Zones by position, of the private subnets.
        clusters: Names of the stack's clusters.
    """

    cidr: str = ""
    zones: Mapping[int, str] = field(default_factory=dict)
    clusters: frozenset[str] = frozenset()


async def standing_network(component: pulumi.Resource, name: str) -> StandingNetwork:
    """What stands of a `Network`; nothing where the engine does not tell."""
    resources = await recorded_resources()
    if not resources:
        return StandingNetwork()
    return read_network(resources, str(await component.urn.future()), name)


def read_network(resources: Mapping[str, Mapping[str, Any]], urn: str, name: str) -> StandingNetwork:
    """The network with this URN and name among resources by URN."""
    own = {
        other.rpartition("::")[2]: (resource["type"], resource.get("outputs") or {})
        for other, resource in resources.items()
        if types_of(other)[:-1] == types_of(urn)
    }
    kind, vpc = own.get(f"{name}-vpc", ("", {}))
    prefix = f"{name}-private-"
    return StandingNetwork(
        str(vpc.get("cidrBlock", "")) if kind == _VPC else "",
        {
            int(each.removeprefix(prefix)): str(subnet["availabilityZone"])
            for each, (kind, subnet) in own.items()
            if kind == _SUBNET and each.startswith(prefix) and subnet.get("availabilityZone")
        },
        frozenset(
            str((resource.get("outputs") or {}).get("name"))
            for resource in resources.values()
            if resource["type"] == _CLUSTER
        ),
    )


def require_same_range(cidr: str, cluster: str, standing: StandingNetwork) -> str:
    """The range, which has to be the one that the cluster was made in.

    Raises:
        RunError: the cluster stands in another.
    """
    if standing.cidr and standing.cidr != cidr and cluster in standing.clusters:
        raise pulumi.RunError(
            f"the cluster {cluster} is in a VPC with the range {standing.cidr} and cannot move to {cidr}"
            f" (vpcCidr; cidr of Network); hint: set {standing.cidr} again; for another range make another"
            " environment, in a stack and under a cluster name of its own"
        )
    return cidr


def require_same_zones(zones: Sequence[str], cidr: str, standing: StandingNetwork) -> Sequence[str]:
    """The zones, each of which has to be the one that the subnets of its position stand in.

    Raises:
        RunError: a subnet would have to move.
    """
    for position, zone in enumerate(zones):
        old = standing.zones.get(position, zone)
        if old != zone and standing.cidr == cidr:
            raise pulumi.RunError(_describe_move(position, old, zone, standing))
    return zones


def _describe_move(position: int, old: str, zone: str, standing: StandingNetwork) -> str:
    stood = [standing.zones[zone] for zone in sorted(standing.zones)]
    if position < _LASTING_ZONES:
        hint = f"keep {', '.join(stood[: position + 1])} at the beginning, and add zones at the end"
    else:
        hint = f"set availabilityZones to {', '.join(stood[:position])}, run pulumi up, and then add {zone}"
    return (
        f"the subnets of zone {position + 1} are in {old} and cannot move to {zone}: AWS keeps their ranges"
        f" until they are gone (availabilityZones); hint: {hint}"
    )
