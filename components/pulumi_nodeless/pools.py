"""Pools and node templates as typed arguments, and the manifests that follow from them.

Pure: `capacity` makes the resources. The argument types are dictionaries with documented fields, so that
every language sees the same names. The functions turn them into the wire form of `karpenter.sh/v1alpha5`
Provisioner and `karpenter.k8s.aws/v1alpha1` AWSNodeTemplate. Whether the values make sense to the
controller is decided by its admission rules, which the API server applies.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, TypedDict

PROVISIONER_API: Final = "karpenter.sh/v1alpha5"
NODE_TEMPLATE_API: Final = "karpenter.k8s.aws/v1alpha1"


class RequirementArgs(TypedDict):
    """A requirement of the nodes of a Provisioner."""

    key: str
    """Label that the requirement is about, for example `karpenter.k8s.aws/instance-category`."""
    operator: str
    """In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: NotRequired[Sequence[str]]
    """Values to compare with: none for Exists and DoesNotExist, exactly one for Gt and Lt."""


class TaintArgs(TypedDict):
    """A taint of the nodes of a pool."""

    key: str
    """Key of the taint."""
    effect: str
    """NoSchedule, PreferNoSchedule or NoExecute."""
    value: NotRequired[str]
    """Value of the taint."""


class ProvisionerArgs(TypedDict):
    """A Provisioner: which nodes may be launched, for which pods, and when they are removed."""

    name: str
    """Name of the Provisioner."""
    node_template: str
    """Name of the AWSNodeTemplate that says how its nodes are launched."""
    requirements: NotRequired[Sequence[RequirementArgs]]
    """Requirements of its nodes."""
    labels: NotRequired[Mapping[str, str]]
    """Labels of its nodes."""
    annotations: NotRequired[Mapping[str, str]]
    """Annotations of its nodes."""
    taints: NotRequired[Sequence[TaintArgs]]
    """Taints of its nodes. Only pods that tolerate all of them are considered."""
    startup_taints: NotRequired[Sequence[TaintArgs]]
    """Taints that another component removes once the node is ready for pods."""
    limits: NotRequired[Mapping[str, str]]
    """Maximum of all its nodes together, by resource: `cpu`, `memory`, ..."""
    weight: NotRequired[int]
    """From 1 to 100. Pools of higher weight are tried first."""
    ttl_seconds_after_empty: NotRequired[int]
    """Seconds after which a node that has only DaemonSet pods is removed. It cannot be set together with
    consolidation."""
    ttl_seconds_until_expired: NotRequired[int]
    """Seconds after which a node is replaced."""
    consolidation: NotRequired[bool]
    """Whether nodes are removed or replaced by cheaper ones where their pods can run elsewhere."""


class BlockDeviceArgs(TypedDict):
    """An EBS volume of each node."""

    device_name: str
    """Device name of the volume, for example /dev/xvda."""
    volume_size: NotRequired[str]
    """Size as a quantity, for example 50Gi."""
    volume_type: NotRequired[str]
    """gp3, gp2, io1, io2, st1, sc1 or standard."""
    encrypted: NotRequired[bool]
    """Whether the volume is encrypted."""
    delete_on_termination: NotRequired[bool]
    """Whether the volume is deleted when its instance terminates."""


class NodeTemplateArgs(TypedDict):
    """An AWSNodeTemplate: how the nodes of a Provisioner are launched in EC2."""

    name: str
    """Name of the AWSNodeTemplate."""
    subnet_selector: NotRequired[Mapping[str, str]]
    """Tags by which subnets are selected. Default: the discovery tag of the cluster; in an existing VPC, the
    IDs of its private subnets."""
    security_group_selector: NotRequired[Mapping[str, str]]
    """Tags by which security groups are selected. Default: the discovery tag of the cluster."""
    ami_family: NotRequired[str]
    """AL2, Bottlerocket, Ubuntu or Custom. Default: AL2, of which AWS publishes images up to Kubernetes
    1.32."""
    ami_selector: NotRequired[Mapping[str, str]]
    """Tags or IDs by which AMIs are selected, instead of the newest AMI of the family."""
    instance_profile: NotRequired[str]
    """Instance profile, if it is not the controller's default."""
    user_data: NotRequired[str]
    """User data that is merged with that of the AMI family."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of instances, volumes and launch templates."""
    block_devices: NotRequired[Sequence[BlockDeviceArgs]]
    """EBS volumes, if they are not the AMI family's default."""
    detailed_monitoring: NotRequired[bool]
    """Whether CloudWatch gets metrics every minute."""


def provisioner_spec(args: Mapping[str, Any]) -> dict[str, Any]:
    """The `spec` of a Provisioner out of a `ProvisionerArgs` that `shapes` has read."""
    spec: dict[str, Any] = {"providerRef": {"name": args["node_template"]}}
    if requirements := args.get("requirements"):
        spec["requirements"] = [_without_none(dict(requirement)) for requirement in requirements]
    spec |= {name: args[name] for name in ("labels", "annotations") if args.get(name)}
    spec |= whole_lists(args, taints="taints", startup_taints="startupTaints")
    if limits := args.get("limits"):
        spec["limits"] = {"resources": limits}
    for name, field in (
        ("weight", "weight"),
        ("ttl_seconds_after_empty", "ttlSecondsAfterEmpty"),
        ("ttl_seconds_until_expired", "ttlSecondsUntilExpired"),
    ):
        if (number := args.get(name)) is not None:
            spec[field] = number
    if (consolidation := args.get("consolidation")) is not None:
        spec["consolidation"] = {"enabled": consolidation}
    return spec


def node_template_spec(
    args: Mapping[str, Any], discovery: Mapping[str, str], subnet_ids: Sequence[str] = ()
) -> dict[str, Any]:
    """The `spec` of an AWSNodeTemplate.

    Args:
        args: a `NodeTemplateArgs` that `shapes` has read.
        discovery: the tags to select by where `args` has no selector.
        subnet_ids: the subnets to select where `args` selects none, instead of those with the tags.
    """
    subnets = {"aws-ids": ",".join(subnet_ids)} if subnet_ids else dict(discovery)
    spec: dict[str, Any] = {
        "subnetSelector": args.get("subnet_selector") or subnets,
        "securityGroupSelector": args.get("security_group_selector") or dict(discovery),
    }
    for name, field in (
        ("ami_family", "amiFamily"),
        ("ami_selector", "amiSelector"),
        ("instance_profile", "instanceProfile"),
        ("user_data", "userData"),
        ("tags", "tags"),
        ("detailed_monitoring", "detailedMonitoring"),
    ):
        if (value := args.get(name)) is not None:
            spec[field] = value
    if devices := args.get("block_devices"):
        spec["blockDeviceMappings"] = [block_device(device) for device in devices]
    return spec


def whole_lists(args: Mapping[str, Any], **fields: str) -> dict[str, Any]:
    """Lists of plain objects under their names in the API, those that are given and not empty."""
    return {field: [dict(item) for item in args[name]] for name, field in fields.items() if args.get(name)}


def block_device(device: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of `blockDeviceMappings` out of a `BlockDeviceArgs`."""
    volume = {
        "volumeSize": device.get("volume_size"),
        "volumeType": device.get("volume_type"),
        "encrypted": device.get("encrypted"),
        "deleteOnTermination": device.get("delete_on_termination"),
    }
    return {"deviceName": device["device_name"], "ebs": _without_none(volume)}


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
