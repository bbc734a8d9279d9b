"""Answers of the AWS CLI, told apart by what they hold.

`aws eks describe-nodegroup`, `aws autoscaling describe-auto-scaling-groups`, `describe-launch-configurations`
and `describe-scheduled-actions`, `aws ec2 describe-launch-template-versions` and `describe-subnets`,
`aws eks describe-cluster`.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeless.explain.migration.ledger import BadAnswer, shown
from nodeless.model.labels import CLUSTER_TAG_PREFIX

_HINT = "hint: give the output of the AWS CLI unchanged"
#: What each answer holds, by the member that says which one it is.
COMMANDS = {
    "nodegroup": "aws eks describe-nodegroup",
    "cluster": "aws eks describe-cluster",
    "AutoScalingGroups": "aws autoscaling describe-auto-scaling-groups",
    "LaunchConfigurations": "aws autoscaling describe-launch-configurations",
    "ScheduledUpdateGroupActions": "aws autoscaling describe-scheduled-actions",
    "LaunchTemplateVersions": "aws ec2 describe-launch-template-versions",
    "Subnets": "aws ec2 describe-subnets",
}


@dataclass(frozen=True, slots=True)
class Placed:
    """An object of an answer, and the file that it is in."""

    place: str
    value: Mapping[str, Any]

    def name(self, member: str) -> str:
        """A member that names it; empty where there is none."""
        return str(self.value.get(member) or "")


@dataclass(slots=True)
class Answers:
    """All objects of all answers."""

    objects: dict[str, list[Placed]] = field(default_factory=dict)
    """By the member of the answer that they were in."""
    sold: Collection[str] = ()
    """Names of all instance types, by which patterns of names are read."""
    _known: set[str] = field(default_factory=set)

    def add(self, document: Mapping[str, Any], place: str) -> None:
        """Take in an answer. Raises BadAnswer."""
        for member, command in COMMANDS.items():
            if member not in document:
                continue
            value = document[member]
            listed = value if isinstance(value, list) else [value]
            for item in listed:
                if not isinstance(item, Mapping):
                    raise BadAnswer(
                        f"{place}: {member} contains an item that is not an object: {shown(item)}; {_HINT}"
                    )
                # An object of two answers, of all groups and of one of them, is one.
                text = f"{member} {json.dumps(item, sort_keys=True)}"
                if text not in self._known:
                    self._known.add(text)
                    self.objects.setdefault(member, []).append(Placed(place, item))
            if not listed:
                raise BadAnswer(f"{place}: {member} is empty; hint: is the region of {command} right?")

    def of(self, member: str) -> list[Placed]:
        """The objects of one kind of answer."""
        return self.objects.get(member, [])

    @property
    def zones(self) -> dict[str, str]:
        """The zone of each subnet that is known."""
        return {
            subnet.name("SubnetId"): subnet.name("AvailabilityZone")
            for subnet in self.of("Subnets")
            if subnet.name("SubnetId") and subnet.name("AvailabilityZone")
        }

    @property
    def clusters(self) -> set[str]:
        """Names of the clusters that the input is about; empty: it does not say."""
        named = {group.name("clusterName") for group in self.of("nodegroup")}
        return (named | {cluster.name("name") for cluster in self.of("cluster")}) - {""}

    def scaling_groups_of(self, cluster: str, nodegroup: str, names: list[str]) -> list[Placed]:
        """The scaling groups that EKS keeps for a managed node group, by name or by EKS's own tags."""
        return [
            group
            for group in self.of("AutoScalingGroups")
            if group.name("AutoScalingGroupName") in names
            or (
                tags_of(group).get("eks:nodegroup-name") == nodegroup
                and tags_of(group).get("eks:cluster-name", cluster) == cluster
            )
        ]


def is_answer(document: Any) -> bool:
    """Whether a document is an answer of the AWS CLI that is read; objects of Kubernetes have a kind."""
    return (
        isinstance(document, Mapping)
        and "kind" not in document
        and any(name in document for name in COMMANDS)
    )


def clusters_of(tags: Mapping[str, str]) -> set[str]:
    """The clusters whose nodes a scaling group with these tags has; empty: they do not say."""
    prefix = CLUSTER_TAG_PREFIX
    owners = {key.removeprefix(prefix) for key in tags if key.startswith(prefix)}
    return owners | ({tags["eks:cluster-name"]} if tags.get("eks:cluster-name") else set())


def tags_of(group: Placed) -> dict[str, str]:
    """The tags of a scaling group."""
    tags = group.value.get("Tags")
    return {
        str(tag.get("Key")): str(tag.get("Value") or "")
        for tag in (tags if isinstance(tags, list) else [])
        if isinstance(tag, Mapping) and tag.get("Key")
    }
