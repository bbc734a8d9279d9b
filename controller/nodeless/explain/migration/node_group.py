"""A node group, managed by EKS or made by hand, and what is read alike of both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeless.explain.migration.answers import Answers
from nodeless.explain.migration.launch_templates import Launch
from nodeless.explain.migration.ledger import BadAnswer, Ledger, Members
from nodeless.explain.migration.user_data import AL2023, CUSTOM
from nodeless.model.labels import ON_DEMAND

MANAGED, SELF_MANAGED = "nodegroup", "AutoScalingGroup"
REQUIREMENT = "NodePool requirement "
OF_THE_GROUP = "is a label of the group only"
LABELS, TAINTS = "NodePool spec.template.metadata.labels", "NodePool spec.template.spec.taints"
_EKSCTL_NAME = "alpha.eksctl.io/nodegroup-name"
_OF_GROUPS = ("eks.amazonaws.com/", "alpha.eksctl.io/")
_MINIMUM = (
    "pools have no minimum: unneeded nodes are removed; hint: a CapacityBuffer, or a pool with spec.replicas"
)
_DESIRED = "follows from the pods"


@dataclass(frozen=True, slots=True)
class GroupInstance:
    """An instance of a group."""

    id: str
    instance_type: str
    zone: str


@dataclass(slots=True)
class NodeGroup:
    """A node group: what its nodes are, and how many there may be."""

    kind: str
    """`nodegroup` or `AutoScalingGroup`."""
    name: str
    place: str
    """The file that it is in."""
    cluster: str = ""
    scaling_groups: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    requirements: list[dict[str, Any]] = field(default_factory=list)
    """By which its types are chosen, where they are not listed."""
    capacity_types: tuple[str, ...] = (ON_DEMAND,)
    zones: tuple[str, ...] = ()
    """Empty: not known."""
    minimum: int = 0
    maximum: int | None = None
    desired: int = 0
    scaled_to: int | None = None
    """Most nodes by the autoscaler's flags, where they say it."""
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, str]] = field(default_factory=list)
    resources: dict[str, str] = field(default_factory=dict)
    """Of `node-template/resources`: what its nodes offer besides what their types do."""
    spec: dict[str, Any] = field(default_factory=dict)
    """Of its EC2NodeClass."""
    unneeded_time: str = ""
    """Of its own, where it has one."""
    lifetime: int = 0
    """Seconds; 0: no bound."""
    update_nodes: str = ""
    """How many nodes an update may take at once."""
    instances: tuple[GroupInstance, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    """Of its scaling groups."""
    scheduled: tuple[str, ...] = ()
    """Names of its scheduled actions."""
    profile: str = ""

    @property
    def subject(self) -> str:
        """`nodegroup/web`."""
        return f"{self.kind}/{self.name}"

    @property
    def most_nodes(self) -> int | None:
        """To which size the autoscaler may bring it; None: not known."""
        return self.maximum if self.scaled_to is None else self.scaled_to

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which the autoscaler may know it."""
        return tuple(dict.fromkeys((*self.scaling_groups, self.name)))

    @property
    def label_names(self) -> tuple[str, ...]:
        """All names by which labels of nodes may call it."""
        of_eksctl = self.tags.get(_EKSCTL_NAME)
        return (*self.names, *([of_eksctl] if of_eksctl else []))


def is_label_of_groups(key: str) -> bool:
    """Whether a label says which group a node is of: on nodes of pools, it would name one that is gone."""
    return key.startswith(_OF_GROUPS)


def set_labels(group: NodeGroup, labels: Mapping[str, str], ledger: Ledger) -> None:
    """The labels of its nodes, without those that name the group."""
    for key, value in labels.items():
        if is_label_of_groups(key):
            ledger.leave(group.subject, f"label {key}", value, OF_THE_GROUP, matters=False)
        else:
            group.labels[key] = value


def leave_sizes(members: Members, group: NodeGroup, minimum: str, desired: str) -> None:
    """What a pool has no counterpart of."""
    if group.minimum:
        members.ledger.leave(group.subject, members.path(minimum), group.minimum, _MINIMUM)
    members.ledger.leave(group.subject, members.path(desired), group.desired, _DESIRED, matters=False)


def set_image(group: NodeGroup, launch: Launch, members: Members) -> None:
    """The image that a launch template names, and the family whose start-up data it understands."""
    if not launch.image:
        raise BadAnswer(
            f"{group.place}: {group.subject}: there is no image in its launch template; hint: is the "
            f"version right?"
        )
    parameter = launch.image.removeprefix("resolve:ssm:")
    term = {"id": launch.image} if parameter == launch.image else {"ssmParameter": parameter}
    group.spec["amiSelectorTerms"] = [term]
    family = launch.start_up.family
    if not family:
        family = AL2023
        reason = "its user data does not show its family, so AL2023 is assumed; hint: check amiFamily"
        members.ledger.leave(group.subject, "ImageId", launch.image, reason)
    group.spec["amiFamily"] = family if family != CUSTOM else CUSTOM
    members.ledger.carry(group.subject, "ImageId", "EC2NodeClass spec.amiSelectorTerms")


def set_subnets(group: NodeGroup, subnets: list[str], answers: Answers) -> None:
    """Its subnets, and the zones of those that are known."""
    if subnets:
        group.spec["subnetSelectorTerms"] = [{"id": subnet} for subnet in dict.fromkeys(subnets)]
    known = {answers.zones[subnet] for subnet in subnets if subnet in answers.zones}
    if known:
        group.zones = tuple(sorted(known))


def add_group_security(group: NodeGroup, answers: Answers) -> None:
    """The cluster's own security group, which EKS puts on nodes whose template names none."""
    if "securityGroupSelectorTerms" in group.spec:
        return
    for answer in answers.of("cluster"):
        settings = answer.value.get("resourcesVpcConfig")
        identity = settings.get("clusterSecurityGroupId") if isinstance(settings, dict) else None
        if answer.name("name") == group.cluster and isinstance(identity, str) and identity:
            group.spec["securityGroupSelectorTerms"] = [{"id": identity}]
            return
    group.spec["securityGroupSelectorTerms"] = [{"tags": {"aws:eks:cluster-name": group.cluster or "*"}}]
