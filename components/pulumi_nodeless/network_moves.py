"""Changes of a network that AWS carries out only after half of them, told before the first step.

A cluster stays in its VPC for as long as it lives, and the range of a VPC is what it was made with. A subnet
stays in its zone, and while the old one is there nobody else can have its range. EKS keeps a cluster in the
zones that it was made with. A preview that shows only
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
        clusters: The stack's clusters by name, each with the positions of the zones in which it has a private
            subnet.
    """

    cidr: str = ""
    zones: Mapping[int, str] = field(default_factory=dict)
    clusters: Mapping[str, frozenset[int]] = field(default_factory=dict)


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
    subnets = {
        int(each.removeprefix(prefix)): subnet
        for each, (kind, subnet) in own.items()
        if kind == _SUBNET and each.startswith(prefix) and subnet.get("availabilityZone")
    }
    return StandingNetwork(
        str(vpc.get("cidrBlock", "")) if kind == _VPC else "",
        {position: str(subnet["availabilityZone"]) for position, subnet in subnets.items()},
        {
            str(cluster.get("name")): _positions_of(cluster, subnets)
            for cluster in (
                resource.get("outputs") or {}
                for resource in resources.values()
                if resource["type"] == _CLUSTER
            )
        },
    )


def _positions_of(cluster: Mapping[str, Any], subnets: Mapping[int, Mapping[str, Any]]) -> frozenset[int]:
    """Positions of the subnets that a cluster was given."""
    given = set((cluster.get("vpcConfig") or {}).get("subnetIds") or ())
    return frozenset(
        position
        for position, subnet in subnets.items()
        if str(subnet.get("arn", "")).rpartition("/")[2] in given
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


def require_same_zones(
    zones: Sequence[str], cidr: str, cluster: str, standing: StandingNetwork
) -> Sequence[str]:
    """The zones, each of which has to be the one that the subnets of its position stand in.

    Raises:
        RunError: a subnet would have to move, or to go from under the cluster.
    """
    if standing.cidr != cidr:
        return zones
    held = standing.clusters.get(cluster, frozenset())
    lasting = max(_LASTING_ZONES, *(position + 1 for position in held), 0)
    for position, zone in enumerate(zones):
        old = standing.zones.get(position, zone)
        if old != zone:
            raise pulumi.RunError(_describe_move(position, old, zone, standing, lasting))
    if held and len(zones) < lasting:
        kept = [standing.zones[position] for position in sorted(standing.zones) if position < lasting]
        raise pulumi.RunError(
            f"the cluster {cluster} was made with subnets in {', '.join(kept)}, and EKS keeps a cluster in"
            " its zones (zoneCount, availabilityZones); hint: keep them at the beginning"
        )
    return zones


def _describe_move(position: int, old: str, zone: str, standing: StandingNetwork, lasting: int) -> str:
    stood = [standing.zones[zone] for zone in sorted(standing.zones)]
    if position < lasting:
        kept = ", ".join(stood[: max(position + 1, lasting)])
        hint = f"keep {kept} at the beginning, and add zones at the end"
    else:
        hint = f"set availabilityZones to {', '.join(stood[:position])}, run pulumi up, and then add {zone}"
    return (
        f"the subnets of zone {position + 1} are in {old} and cannot move to {zone}: AWS keeps their ranges"
        f" until they are gone (availabilityZones); hint: {hint}"
    )
