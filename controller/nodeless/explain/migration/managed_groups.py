"""Node groups that EKS manages."""

import re

from nodeless.explain.migration.answers import Answers, Placed
from nodeless.explain.migration.instance_requirements import requirements_of
from nodeless.explain.migration.launch_templates import (
    Launch,
    read_template,
    template_of,
)
from nodeless.explain.migration.ledger import BadAnswer, Ledger, Members
from nodeless.explain.migration.node_group import (
    LABELS,
    MANAGED,
    REQUIREMENT,
    TAINTS,
    NodeGroup,
    add_group_security,
    leave_sizes,
    set_image,
    set_labels,
    set_subnets,
)
from nodeless.explain.migration.scaling_groups import WARM, add_scaling_group
from nodeless.explain.migration.user_data import AL2, AL2023, BOTTLEROCKET
from nodeless.model.labels import ON_DEMAND, RESERVED, SPOT

#: What EKS gives nodes of Amazon Linux 2; those of AL2023 have the defaults of an EC2NodeClass.
_EKS_METADATA = {"httpTokens": "optional", "httpPutResponseHopLimit": 2}
_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}
#: What each AMI type of EKS is called in an alias.
_FAMILIES = {
    "AL2_": ("AL2", "al2"),
    "AL2023_": ("AL2023", "al2023"),
    "BOTTLEROCKET_": ("Bottlerocket", "bottlerocket"),
}
_WINDOWS = re.compile(r"WINDOWS_(?:CORE|FULL)_(2019|2022|2025)_")


def read_managed_group(answer: Placed, answers: Answers, ledger: Ledger) -> NodeGroup:
    """A group of `aws eks describe-nodegroup`. Raises BadAnswer."""
    name = answer.name("nodegroupName")
    if not name:
        raise BadAnswer(f"{answer.place}: nodegroup has no nodegroupName; hint: aws eks describe-nodegroup")
    members = Members(answer.value, f"{MANAGED}/{name}", ledger, place=answer.place)
    group = NodeGroup(MANAGED, name, answer.place, members.text("clusterName"))
    members.state("nodegroupName", "nodegroupArn", "status", "createdAt", "modifiedAt", "health", "version")
    scaling = answers.scaling_groups_of(group.cluster, name, scaling_names(answer))
    members.read("resources")
    _add_remote_access(members)
    group.scaling_groups = tuple(
        dict.fromkeys([*scaling_names(answer), *(one.name("AutoScalingGroupName") for one in scaling)])
    )
    launch = _launch_of_managed(members, answers, ledger)
    _read_sizes(members, group)
    types = members.texts("instanceTypes", f"{REQUIREMENT}node.kubernetes.io/instance-type")
    # What EKS takes where neither group nor template names a type.
    group.types = tuple(types) or ((launch.instance_type,) if launch.instance_type else ())
    if not group.types and launch.instance_requirements is None:
        group.types = ("t3.medium",)
    if launch.instance_requirements is not None and not types:
        group.requirements = requirements_of(launch.instance_requirements, answers.sold)
    capacity = members.text("capacityType", f"{REQUIREMENT}karpenter.sh/capacity-type")
    group.capacity_types = {"SPOT": (SPOT,), "CAPACITY_BLOCK": (RESERVED,)}.get(capacity, (ON_DEMAND,))
    set_labels(group, {**launch.start_up.labels, **members.mapping("labels", LABELS)}, ledger)
    group.taints = list(launch.start_up.taints)
    for taint in members.each("taints"):
        effect = taint.text("effect", TAINTS)
        key, value = taint.text("key", TAINTS), taint.text("value", TAINTS)
        group.taints.append(
            {"key": key, **({"value": value} if value else {}), "effect": _EFFECTS.get(effect, effect)}
        )
        taint.close()
    group.spec = launch.spec
    _read_image_of_managed(members, group, launch)
    _read_role(members, group)
    subnets = members.texts("subnets", "EC2NodeClass spec.subnetSelectorTerms")
    set_subnets(group, subnets, answers)
    _read_disk(members, group)
    _read_update(members, group)
    tags = members.mapping("tags")
    if tags:
        ledger.leave(
            group.subject,
            "tags",
            tags,
            "belong to the group only: EKS does not put them on instances",
            matters=False,
        )
    members.leave("the controller repairs nodes by itself", "nodeRepairConfig", matters=False)
    members.leave(WARM, "warmPoolConfig")
    for one in scaling:
        add_scaling_group(group, one, ledger)
    add_group_security(group, answers)
    members.close()
    return group


def scaling_names(answer: Placed) -> list[str]:
    """Names of the scaling groups that EKS keeps for a managed group."""
    resources = answer.value.get("resources")
    groups = resources.get("autoScalingGroups") if isinstance(resources, dict) else None
    listed = groups if isinstance(groups, list) else []
    return [str(group.get("name")) for group in listed if isinstance(group, dict)]


def _launch_of_managed(members: Members, answers: Answers, ledger: Ledger) -> Launch:
    reference = members.below("launchTemplate")
    if reference is None:
        is_al2 = members.text("amiType").startswith("AL2_")
        return Launch({"metadataOptions": dict(_EKS_METADATA)} if is_al2 else {})
    template = template_of(reference, answers, members.source)
    ledger.carry(members.source, "launchTemplate", "EC2NodeClass")
    reference.close()
    return read_template(template, ledger)


def _add_remote_access(members: Members) -> None:
    members.leave(
        "nodes have no key for SSH; hint: reach them by Systems Manager, or add the public key in userData",
        "remoteAccess",
    )


def _read_sizes(members: Members, group: NodeGroup) -> None:
    scaling = members.below("scalingConfig")
    if scaling is None:
        return
    group.minimum, group.desired = scaling.number("minSize") or 0, scaling.number("desiredSize") or 0
    group.maximum = scaling.number("maxSize", "NodePool spec.limits")
    leave_sizes(scaling, group, "minSize", "desiredSize")
    scaling.close()


def _read_image_of_managed(members: Members, group: NodeGroup, launch: Launch) -> None:
    kind = members.text("amiType")
    release = members.text("releaseVersion")
    if launch.image or kind == "CUSTOM":
        members.ledger.carry(group.subject, "amiType", "EC2NodeClass spec.amiFamily")
        if release:
            members.ledger.leave(
                group.subject, "releaseVersion", release, "the launch template names the image", matters=False
            )
        set_image(group, launch, members)
        return
    family, alias = next(
        (names for prefix, names in _FAMILIES.items() if kind.startswith(prefix)), ("AL2023", "al2023")
    )
    windows = _WINDOWS.match(kind)
    if windows:
        family, alias = f"Windows{windows[1]}", f"windows{windows[1]}"
    version = _release(family, release)
    group.spec["amiSelectorTerms"] = [{"alias": f"{alias}@{version}"}]
    to = "EC2NodeClass spec.amiSelectorTerms"
    if kind:
        members.ledger.carry(group.subject, "amiType", to)
    if release and version != "latest":
        members.ledger.carry(group.subject, "releaseVersion", to)
    elif release:
        members.ledger.leave(group.subject, "releaseVersion", release, "images follow the newest release")
    if "FIPS" in kind:
        reason = "aliases have no FIPS images; hint: select them by amiSelectorTerms with ssmParameter"
        members.ledger.leave(group.subject, "amiType", kind, reason)
    if "FULL" in kind:
        reason = "the image of the alias is Windows Server Core; hint: select the full one by ssmParameter"
        members.ledger.leave(group.subject, "amiType", kind, reason)


def _release(family: str, release: str) -> str:
    """The version of an alias, as `v20240703`; the newest where a release does not say it."""
    date = re.search(r"-(\d{8})$", release)
    if family in (AL2, AL2023) and date:
        return f"v{date[1]}"
    number = re.match(r"(\d+\.\d+\.\d+)", release)
    return f"v{number[1]}" if family == BOTTLEROCKET and number else "latest"


def _read_role(members: Members, group: NodeGroup) -> None:
    arn = members.text("nodeRole", "EC2NodeClass spec.role")
    if arn:
        group.spec["role"] = arn.rpartition("/")[2]


def _read_disk(members: Members, group: NodeGroup) -> None:
    size = members.number("diskSize", "EC2NodeClass spec.blockDeviceMappings")
    if size and "blockDeviceMappings" not in group.spec:
        alias = str(group.spec.get("amiSelectorTerms", [{}])[0].get("alias", ""))
        device = {"bottlerocket": "/dev/xvdb", "windows": "/dev/sda1"}.get(
            re.split(r"[\d@]", alias)[0], "/dev/xvda"
        )
        ebs = {"volumeSize": f"{size}Gi", "volumeType": "gp3", "encrypted": True, "deleteOnTermination": True}
        group.spec["blockDeviceMappings"] = [{"deviceName": device, "ebs": ebs}]


def _read_update(members: Members, group: NodeGroup) -> None:
    update = members.below("updateConfig")
    if update is None:
        return
    to = "NodePool spec.disruption.budgets"
    percent, number = update.number("maxUnavailablePercentage", to), update.number("maxUnavailable", to)
    group.update_nodes = f"{percent}%" if percent else str(number or "")
    update.leave("nodes that drift are replaced before they are drained", "updateStrategy", matters=False)
    update.close()
