"""A node class resolved: all that its selectors find, and all faults at once."""

import asyncio
from collections.abc import Mapping, Sequence

from nodeless.cloudprovider import NodeClassUnresolved
from nodeless.cloudprovider.aws.capacity_reservations import CapacityReservations, of_platforms
from nodeless.cloudprovider.aws.images import Images
from nodeless.cloudprovider.aws.instance_profiles import InstanceProfiles
from nodeless.cloudprovider.aws.placement_groups import PlacementGroups
from nodeless.cloudprovider.aws.security_groups import SecurityGroups
from nodeless.cloudprovider.aws.subnets import Subnets
from nodeless.launch.checking import Fault, node_class_faults
from nodeless.launch.kubelet_arguments import Cluster, first_dns, is_ipv6
from nodeless.launch.resolved import Image, ResolvedNodeClass
from nodeless.model.pools import NodeClass

_NO_SERVICE_CIDR = Fault(
    "amiFamily",
    "AL2023 needs the service CIDR of the cluster, and EKS did not return it",
    "allow eks:DescribeCluster in the controller's policy, or use another spec.amiFamily",
    "ClusterCIDRResolutionFailed",
)


class Resolver:
    """Asks subnets, security groups and images side by side."""

    def __init__(
        self,
        subnets: Subnets,
        security_groups: SecurityGroups,
        images: Images,
        profiles: InstanceProfiles,
        reservations: CapacityReservations,
        placement_groups: PlacementGroups,
    ) -> None:
        self._reservations = reservations
        self._placement_groups = placement_groups
        self._profiles = profiles
        self._subnets = subnets
        self._security_groups = security_groups
        self._images = images
        #: Tags that the controller's settings give everything.
        self.tags: Mapping[str, str] = {}
        #: Whether pods have addresses of their node's subnet; never so where they have IPv6 addresses.
        self.pods_in_subnets = True

    async def resolve(
        self, node_class: NodeClass, version: str, cluster: Cluster, *, refresh: bool = False
    ) -> ResolvedNodeClass:
        """What the class selects; a class with a launch template of its own needs subnets only.

        Raises:
            NodeClassUnresolved: Something is not there, or nothing can be made of it; all of it is named.
        """
        own_template = node_class.launch_template is not None
        subnets, groups, images, profile, reservations, placement = await asyncio.gather(
            self._subnets.select(node_class, refresh=refresh),
            _resolve_nothing() if own_template else self._security_groups.select(node_class, refresh=refresh),
            _no_images() if own_template else self._images.select(node_class, version, refresh=refresh),
            _no_profile() if own_template else self._profiles.select(node_class),
            self._reservations.select(node_class, refresh=refresh),
            self._placement_groups.select(node_class),
            return_exceptions=True,
        )
        faults = [
            _unresolved_class(node_class, node_class_fault)
            for node_class_fault in node_class_faults(node_class, cluster, self.tags)
        ]
        if node_class.ami_family == "AL2023" and not cluster.service_cidr:
            faults.append(_unresolved_class(node_class, _NO_SERVICE_CIDR))
        _raise_all([subnets, groups, images, profile, reservations, placement, *faults])
        assert not isinstance(subnets, BaseException)  # noqa: S101 - narrows the types for mypy
        assert not isinstance(groups, BaseException)  # noqa: S101
        assert not isinstance(images, BaseException)  # noqa: S101
        assert not isinstance(profile, BaseException)  # noqa: S101
        assert not isinstance(reservations, BaseException)  # noqa: S101
        assert not isinstance(placement, BaseException)  # noqa: S101
        names = self._security_groups.names(groups)
        return ResolvedNodeClass(
            subnets,
            groups,
            images,
            profile,
            names,
            of_platforms(reservations, node_class, images),
            placement,
            pods_take_addresses=self.pods_in_subnets and not is_ipv6(first_dns(node_class.kubelet, cluster)),
        )

    def expire(self, node_class: NodeClass, version: str) -> None:
        """Ask AWS again at the next call for what a class selects: something of it was not there."""
        self._subnets.expire(node_class)
        self._security_groups.expire(node_class)
        self._images.expire(node_class, version)
        self._reservations.expire(node_class)
        self._placement_groups.expire(node_class)

    def expire_profile(self, node_class: NodeClass) -> None:
        """Ask IAM again at the next call, or make the profile of a role anew: EC2 does not find it."""
        self._profiles.expire(node_class)


def _unresolved_class(node_class: NodeClass, fault: Fault) -> NodeClassUnresolved:
    return NodeClassUnresolved(node_class.reference, fault.field, fault.message, fault.hint, fault.reason)


async def _resolve_nothing() -> tuple[str, ...]:
    return ()


async def _no_images() -> tuple[Image, ...]:
    return ()


async def _no_profile() -> str:
    return ""


def _raise_all(results: Sequence[object]) -> None:
    unresolved = [result for result in results if isinstance(result, NodeClassUnresolved)]
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, NodeClassUnresolved):
            raise result
    if unresolved:
        raise NodeClassUnresolved.of(unresolved)
