"""Pools and node classes of the v1 generation as typed arguments, and the manifests that follow from them.

Pure, as `pools` is for the generation before. The functions give the wire form of `karpenter.sh/v1` NodePool
and `karpenter.k8s.aws/v1` EC2NodeClass; the rules of admission decide whether the values make sense.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, TypedDict

from pulumi_nodeless.pools import BlockDeviceArgs, TaintArgs, block_device, whole_lists

NODE_POOL_API: Final = "karpenter.sh/v1"
NODE_CLASS_API: Final = "karpenter.k8s.aws/v1"
_GROUP: Final = "karpenter.k8s.aws"


class PoolRequirementArgs(TypedDict):
    """A requirement of the nodes of a NodePool."""

    key: str
    """Label that the requirement is about, for example `karpenter.k8s.aws/instance-category`."""
    operator: str
    """In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte."""
    values: NotRequired[Sequence[str]]
    """Values to compare with: none for Exists and DoesNotExist, exactly one for Gt, Lt, Gte and Lte."""
    min_values: NotRequired[int]
    """Minimum number of different values among the instance types that a node may be launched as."""


class BudgetArgs(TypedDict):
    """A disruption budget: how many nodes may be disrupted at the same time."""

    nodes: str
    """A number of nodes, or a percentage."""
    reasons: NotRequired[Sequence[str]]
    """Underutilized, Empty, Drifted. Default: all reasons."""
    schedule: NotRequired[str]
    """When the budget becomes active: a cron expression in UTC. Default: always active."""
    duration: NotRequired[str]
    """How long it stays active then, for example 8h."""


class NodePoolArgs(TypedDict):
    """A NodePool: which nodes may be launched, for which pods, and when they are removed."""

    name: str
    """Name of the NodePool."""
    node_class: str
    """Name of the EC2NodeClass that says how its nodes are launched."""
    requirements: NotRequired[Sequence[PoolRequirementArgs]]
    """Requirements of its nodes."""
    labels: NotRequired[Mapping[str, str]]
    """Labels of its nodes."""
    annotations: NotRequired[Mapping[str, str]]
    """Annotations of its nodes."""
    taints: NotRequired[Sequence[TaintArgs]]
    """Taints of its nodes. Only pods that tolerate all of them are considered."""
    startup_taints: NotRequired[Sequence[TaintArgs]]
    """Taints that another component removes once the node is ready for pods."""
    expire_after: NotRequired[str]
    """Age at which a node is replaced, for example 720h, or Never. Default: 720h."""
    termination_grace_period: NotRequired[str]
    """Maximum time that a node may drain, for example 1h."""
    consolidation_policy: NotRequired[str]
    """WhenEmpty or WhenEmptyOrUnderutilized. Default: WhenEmptyOrUnderutilized."""
    consolidate_after: NotRequired[str]
    """How long no pod may have been added to or removed from a node before it is consolidated, or Never.
    Default: 0s."""
    budgets: NotRequired[Sequence[BudgetArgs]]
    """How many nodes may be disrupted at the same time. Default: 10%."""
    limits: NotRequired[Mapping[str, str]]
    """Maximum of all its nodes together, by resource: `cpu`, `memory`, ..."""
    weight: NotRequired[int]
    """From 1 to 100. Pools of higher weight are tried first."""


class NodeClassArgs(TypedDict):
    """An EC2NodeClass: how the nodes of NodePools are launched in EC2."""

    name: str
    """Name of the EC2NodeClass."""
    ami_alias: NotRequired[str]
    """AMI family and version, for example bottlerocket@v1.20.0. Default: al2023@latest."""
    instance_profile: NotRequired[str]
    """Instance profile of the nodes. Default: that of the environment. It cannot be set together with
    `role`."""
    role: NotRequired[str]
    """IAM role of the nodes, for which the controller creates an instance profile. The controller must be
    allowed to pass it: the node role of the environment."""
    user_data: NotRequired[str]
    """User data that is merged with that of the AMI family."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of instances, volumes and launch templates."""
    block_devices: NotRequired[Sequence[BlockDeviceArgs]]
    """EBS volumes, if they are not the AMI family's default."""
    detailed_monitoring: NotRequired[bool]
    """Whether CloudWatch gets metrics every minute."""


def node_pool_spec(args: Mapping[str, Any]) -> dict[str, Any]:
    """The `spec` of a NodePool out of a `NodePoolArgs` that `shapes` has read."""
    template: dict[str, Any] = {
        "nodeClassRef": {"group": _GROUP, "kind": "EC2NodeClass", "name": args["node_class"]},
        "requirements": [_requirement(requirement) for requirement in args.get("requirements") or ()],
        **_rename_fields(args, expire_after="expireAfter", termination_grace_period="terminationGracePeriod"),
        **whole_lists(args, taints="taints", startup_taints="startupTaints"),
    }
    metadata = {name: args[name] for name in ("labels", "annotations") if args.get(name)}
    disruption = {
        **_rename_fields(
            args, consolidation_policy="consolidationPolicy", consolidate_after="consolidateAfter"
        ),
        **whole_lists(args, budgets="budgets"),
    }
    spec: dict[str, Any] = {"template": {**({"metadata": metadata} if metadata else {}), "spec": template}}
    if disruption:
        spec["disruption"] = disruption
    if limits := args.get("limits"):
        spec["limits"] = limits
    if (weight := args.get("weight")) is not None:
        spec["weight"] = weight
    return spec


def node_class_spec(
    args: Mapping[str, Any],
    discovery: Mapping[str, str],
    instance_profile: Any,
    subnet_ids: Sequence[str] = (),
) -> dict[str, Any]:
    """The `spec` of an EC2NodeClass.

    Args:
        args: A `NodeClassArgs` that `shapes` has read.
        discovery: The tags to select subnets and security groups by.
        instance_profile: The one to use where `args` names none.
        subnet_ids: The subnets to select, instead of those with the tags.
    """
    terms = [{"tags": dict(discovery)}]
    spec: dict[str, Any] = {
        "amiSelectorTerms": [{"alias": args.get("ami_alias") or "al2023@latest"}],
        **_identity(args, instance_profile),
        "subnetSelectorTerms": [{"id": subnet} for subnet in subnet_ids] or terms,
        "securityGroupSelectorTerms": terms,
        **_rename_fields(args, user_data="userData", detailed_monitoring="detailedMonitoring"),
    }
    if tags := args.get("tags"):
        spec["tags"] = tags
    if devices := args.get("block_devices"):
        spec["blockDeviceMappings"] = [block_device(device) for device in devices]
    return spec


def _identity(args: Mapping[str, Any], default: Any) -> dict[str, Any]:
    """Role and instance profile as they are given; where neither is, the default profile."""
    given = _rename_fields(args, role="role", instance_profile="instanceProfile")
    return given or {"instanceProfile": default}


def _requirement(args: Mapping[str, Any]) -> dict[str, Any]:
    return _rename_fields(args, key="key", operator="operator", values="values", min_values="minValues")


def _rename_fields(args: Mapping[str, Any], **fields: str) -> dict[str, Any]:
    return {field: args[name] for name, field in fields.items() if args.get(name) is not None}
