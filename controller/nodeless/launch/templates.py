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

from nodeless.launch.kubelet_arguments import (
    Bootstrap,
    Cluster,
    kubelet_labels,
    registration_taints,
)
from nodeless.launch.resolved import Image, ResolvedNodeClass
from nodeless.launch.tags import specifications, template_tags
from nodeless.launch.user_data import encoded, user_data
from nodeless.model.labels import CAPACITY_TYPE, SPOT
from nodeless.model.nodes import Claim
from nodeless.model.pools import BlockDevice, NodeClass, Pool, kubelet_of

NAME_PREFIX = "karpenter.k8s.aws/"
_GIB = 2**30
_DEFAULT_DEVICES = {
    "AL2": (BlockDevice("/dev/xvda", 20 * _GIB, "gp3", encrypted=True),),
    "AL2023": (BlockDevice("/dev/xvda", 20 * _GIB, "gp3", encrypted=True),),
    "Ubuntu": (BlockDevice("/dev/sda1", 20 * _GIB, "gp3", encrypted=True),),
    "Bottlerocket": (
        BlockDevice("/dev/xvda", 4 * _GIB, "gp3", encrypted=True),
        BlockDevice("/dev/xvdb", 20 * _GIB, "gp3", encrypted=True),
    ),
}
#: The device whose size is the node's ephemeral storage, by family.
EPHEMERAL_DEVICE = {
    "AL2": "/dev/xvda",
    "AL2023": "/dev/xvda",
    "Ubuntu": "/dev/sda1",
    "Bottlerocket": "/dev/xvdb",
}


@dataclass(frozen=True, slots=True)
class LaunchTemplate:
    """A launch template to be: `request` is the whole CreateLaunchTemplate request."""

    name: str
    request: Mapping[str, Any] = field(hash=False)


def launch_template(
    claim: Claim,
    pool: Pool,
    node_class: NodeClass,
    resolved: ResolvedNodeClass,
    image: Image,
    *,
    capacity_type: str,
    cluster: Cluster,
    tags: Mapping[str, str],
    eni_limited_pod_density: bool = True,
) -> LaunchTemplate:
    """The template for one image; claims with equal labels and taints share it.

    Raises:
        nodeless.launch.user_data.UserDataError: The node class's user data does not do.
    """
    bootstrap = Bootstrap(
        cluster=cluster,
        labels=kubelet_labels({**claim.labels, CAPACITY_TYPE: capacity_type}),
        taints=registration_taints(claim.taints, claim.startup_taints),
        kubelet=kubelet_of(pool, node_class),
        custom=node_class.user_data or "",
        eni_limited_pod_density=eni_limited_pod_density,
    )
    data: dict[str, Any] = {
        "ImageId": image.id,
        "IamInstanceProfile": {"Name": resolved.instance_profile},
        "Monitoring": {"Enabled": node_class.detailed_monitoring},
        "SecurityGroupIds": sorted(resolved.security_groups),
        "UserData": encoded(user_data(node_class.ami_family, bootstrap)),
        "BlockDeviceMappings": _block_devices(node_class),
        "MetadataOptions": _metadata_options(node_class, ipv6=bootstrap.ipv6),
        "TagSpecifications": specifications(tags, "network-interface", *_requests(capacity_type)),
    }
    request = {
        "LaunchTemplateData": {key: value for key, value in data.items() if value},
        "TagSpecifications": specifications(template_tags(cluster.name, tags), "launch-template"),
    }
    name = NAME_PREFIX + _digest(request)
    return LaunchTemplate(name, {"LaunchTemplateName": name, **request})


def _requests(capacity_type: str) -> tuple[str, ...]:
    """Spot instances come with a request, which a policy may demand to be tagged."""
    return ("spot-instances-request",) if capacity_type == SPOT else ()


def _digest(request: Mapping[str, Any]) -> str:
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def _block_devices(node_class: NodeClass) -> list[dict[str, Any]]:
    devices = node_class.block_devices or _DEFAULT_DEVICES.get(node_class.ami_family, ())
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
        "VolumeSize": None if device.volume_size is None else -(-device.volume_size // _GIB),
    }
    return {
        "DeviceName": device.device_name,
        "Ebs": {key: value for key, value in ebs.items() if value is not None},
    }


def _metadata_options(node_class: NodeClass, *, ipv6: bool) -> dict[str, Any]:
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
    }
    return {key: value for key, value in options.items() if value is not None}
