"""Launch templates: what instances of one image, with the same labels, taints and disks, have in common.

A template's name is a digest of its whole content, so a template that exists under the
name is the right one, and a change makes another name. Instance type and subnet are not
in it: they come from the fleet request. Next: `fleet`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeless.launch.families import CUSTOM, family_of
from nodeless.launch.interfaces import network_interfaces
from nodeless.launch.kubelet_arguments import (
    Bootstrap,
    Cluster,
    kubelet_labels,
    registration_taints,
)
from nodeless.launch.placement import partition_of, tenancy_of
from nodeless.launch.resolved import Image, ResolvedNodeClass
from nodeless.launch.tags import specifications, template_tags
from nodeless.launch.user_data import encode_base64, user_data
from nodeless.model.instance_types import Offering
from nodeless.model.labels import CAPACITY_TYPE, DO_NOT_SYNC_TAINTS, ON_DEMAND, SPOT, TENANCIES
from nodeless.model.nodes import NodeClaim
from nodeless.model.placement import CAPACITY_BLOCK
from nodeless.model.pools import EC2_NODE_CLASS, BlockDevice, NodeClass, Pool, kubelet_of

NAME_PREFIX = "karpenter.k8s.aws/"
_GIB = 2**30
#: Regions whose EC2 refuses `HttpProtocolIpv6` (Karpenter's list).
_NO_METADATA_IPV6 = frozenset(
    (
        "us-iso-east-1",
        "us-iso-west-1",
        "us-isob-east-1",
        "us-isob-west-1",
        "us-isof-east-1",
        "us-isof-south-1",
    )
)


@dataclass(frozen=True, slots=True)
class LaunchTemplate:
    """A launch template to be: `request` is the whole CreateLaunchTemplate request."""

    name: str
    request: Mapping[str, Any] = field(hash=False)


def launch_template(
    claim: NodeClaim,
    pool: Pool,
    node_class: NodeClass,
    resolved: ResolvedNodeClass,
    image: Image,
    *,
    capacity_type: str,
    cluster: Cluster,
    tags: Mapping[str, str],
    eni_limited_pod_density: bool = True,
    pods: int | None = None,
    efa: int = 0,
    reservation: Offering | None = None,
    region: str = "",
) -> LaunchTemplate:
    """The template for one image; claims with equal labels and taints share it.

    Args:
        claim: Its labels and taints are the node's.
        pool: What the node belongs to.
        node_class: How its instance is made.
        resolved: What the node class selects in AWS.
        image: What the instance boots from.
        capacity_type: As a label: spot and on-demand have templates of their own.
        cluster: What the node joins.
        tags: Of everything that is made.
        eni_limited_pod_density: False: 110 pods, whatever the network interfaces allow.
        pods: The limit of pods where the node would compute another one.
        efa: EFA interfaces of the instance.
        reservation: The offering of a capacity reservation that instances are bought from.
        region: Where; empty: any.

    Raises:
        nodeless.launch.user_data.UserDataError: The node class's user data does not do.
    """
    bootstrap = Bootstrap(
        cluster=cluster,
        labels=_node_labels(claim, node_class, capacity_type),
        taints=registration_taints(claim.taints, claim.startup_taints),
        kubelet=kubelet_of(pool, node_class),
        custom=node_class.user_data or "",
        eni_limited_pod_density=eni_limited_pod_density,
        pods=pods,
        instance_store_raid=node_class.instance_store_raid,
        release=node_class.image_release,
        of_v1=_is_of_v1(node_class),
    )
    interfaces = network_interfaces(node_class, resolved.security_groups, ipv6=bootstrap.ipv6, efa=efa)
    data: dict[str, Any] = {
        "ImageId": image.id,
        "IamInstanceProfile": {"Name": resolved.instance_profile},
        "Monitoring": {"Enabled": node_class.detailed_monitoring},
        "SecurityGroupIds": [] if interfaces else sorted(resolved.security_groups),
        "NetworkInterfaces": interfaces,
        "UserData": encode_base64(user_data(node_class.ami_family, bootstrap)),
        "BlockDeviceMappings": _block_devices(node_class),
        "MetadataOptions": _metadata_options(node_class, ipv6=bootstrap.ipv6, region=region),
        "CpuOptions": _cpu_options(node_class),
        "EnclaveOptions": {"Enabled": True} if node_class.enclaves else {},
        "Placement": _placement(claim, resolved),
        "CapacityReservationSpecification": _reservation(node_class, capacity_type, reservation),
        "InstanceMarketOptions": _market(reservation),
        "TagSpecifications": specifications(tags, "network-interface", *_requests(capacity_type)),
    }
    request = {
        "LaunchTemplateData": {key: value for key, value in data.items() if value},
        "TagSpecifications": specifications(template_tags(cluster.name, tags), "launch-template"),
    }
    name = NAME_PREFIX + _digest(request)
    return LaunchTemplate(name, {"LaunchTemplateName": name, **request})


def _node_labels(claim: NodeClaim, node_class: NodeClass, capacity_type: str) -> dict[str, str]:
    """The labels that the kubelet registers the node with.

    Since Karpenter v1 they say that it brings its taints along: a startup taint that was removed before the
    node is registered does not come back. An image of family Custom is told nothing, and may bring none.
    """
    own = {**claim.labels, CAPACITY_TYPE: capacity_type}
    if _is_of_v1(node_class) and node_class.ami_family != CUSTOM:
        own[DO_NOT_SYNC_TAINTS] = "true"
    return kubelet_labels(own)


def _is_of_v1(node_class: NodeClass) -> bool:
    return node_class.reference.kind == EC2_NODE_CLASS


def _reservation(node_class: NodeClass, capacity_type: str, reservation: Offering | None) -> dict[str, Any]:
    """Only the reservation that was planned with.

    An on-demand node of generation v1 takes no place of an open reservation, which another node counts on.
    """
    if reservation is not None:
        return {
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": reservation.reservation},
        }
    if capacity_type == ON_DEMAND and _is_of_v1(node_class):
        return {"CapacityReservationPreference": "none"}
    return {}


def _market(reservation: Offering | None) -> dict[str, Any]:
    if reservation is None:
        return {}
    if reservation.interruptible:
        return {"MarketType": "interruptible-capacity-reservation"}
    return {"MarketType": CAPACITY_BLOCK} if reservation.reservation_type == CAPACITY_BLOCK else {}


def _placement(claim: NodeClaim, resolved: ResolvedNodeClass) -> dict[str, Any]:
    group, tenancy = resolved.placement_group, tenancy_of(claim.requirements)
    placement: dict[str, Any] = {} if tenancy == TENANCIES[0] else {"Tenancy": tenancy}
    if group is None:
        return placement
    partition = partition_of(claim.requirements, group)
    return placement | {"GroupId": group.id} | ({"PartitionNumber": int(partition)} if partition else {})


def _requests(capacity_type: str) -> tuple[str, ...]:
    """Spot instances come with a request, which a policy may demand to be tagged."""
    return ("spot-instances-request",) if capacity_type == SPOT else ()


def _digest(request: Mapping[str, Any]) -> str:
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def _block_devices(node_class: NodeClass) -> list[dict[str, Any]]:
    devices = node_class.block_devices or family_of(node_class.ami_family).block_devices
    return [_block_device(device) for device in devices]


def _block_device(device: BlockDevice) -> dict[str, Any]:
    ebs = {
        "DeleteOnTermination": device.delete_on_termination,
        "Encrypted": device.encrypted,
        "VolumeType": device.volume_type,
        "Iops": device.iops,
        "Throughput": device.throughput,
        "KmsKeyId": device.kms_key_id,
        "SnapshotId": device.snapshot_id,
        "VolumeInitializationRate": device.initialization_rate,
        "VolumeSize": None if device.volume_size is None else -(-device.volume_size // _GIB),
    }
    return {
        "DeviceName": device.device_name,
        "Ebs": {key: value for key, value in ebs.items() if value is not None},
    }


def _metadata_options(node_class: NodeClass, *, ipv6: bool, region: str) -> dict[str, Any]:
    options = _wanted_metadata_options(node_class, ipv6=ipv6)
    if region in _NO_METADATA_IPV6:
        options.pop("HttpProtocolIpv6", None)
    return options


def _wanted_metadata_options(node_class: NodeClass, *, ipv6: bool) -> dict[str, Any]:
    given = node_class.metadata_options
    if given is None:
        return {
            "HttpEndpoint": "enabled",
            "HttpProtocolIpv6": "enabled" if ipv6 else "disabled",
            "HttpPutResponseHopLimit": 2,
            "HttpTokens": "required",
        }
    options = {
        "HttpEndpoint": given.http_endpoint,
        "HttpProtocolIpv6": given.http_protocol_ipv6,
        "HttpPutResponseHopLimit": given.http_put_response_hop_limit,
        "HttpTokens": given.http_tokens,
        "InstanceMetadataTags": "disabled" if node_class.reference.kind == EC2_NODE_CLASS else None,
    }
    return {key: value for key, value in options.items() if value is not None}


def _cpu_options(node_class: NodeClass) -> dict[str, Any]:
    given = node_class.cpu_options
    if given is None:
        return {}
    nested = given.nested_virtualization
    options = {
        "CoreCount": given.cores,
        "ThreadsPerCore": given.threads_per_core,
        "NestedVirtualization": None if nested is None else "enabled" if nested else "disabled",
    }
    return {key: value for key, value in options.items() if value is not None}
