"""The node groups of the input, whoever manages them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from nodeless.explain.migration.answers import Answers, Placed, clusters_of, tags_of
from nodeless.explain.migration.autoscaler import Autoscaler
from nodeless.explain.migration.ledger import BadAnswer, Ledger
from nodeless.explain.migration.managed_groups import read_managed_group, scaling_names
from nodeless.explain.migration.node_group import MANAGED, SELF_MANAGED, NodeGroup
from nodeless.explain.migration.scaling_groups import read_scaling_group
from nodeless.explain.words import listed

_Read = Callable[[Placed, Answers, Ledger], NodeGroup]
_UNUSED = "no group that is migrated uses it"
_UNSERVED = "the autoscaler's flags do not select it, so it stays as it is; hint: leave the Deployment out"


@dataclass(slots=True)
class Groups:
    """All groups of the input.

    Attributes:
        served: Those that the autoscaler serves.
        others: Those that it does not, or of other clusters; only their names and tags are read.
        faults: What keeps a group from being read, one line each.
    """

    served: list[NodeGroup] = field(default_factory=list)
    others: list[NodeGroup] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def read_groups(answers: Answers, autoscaler: Autoscaler, ledger: Ledger) -> Groups:
    """The groups of some answers; what cannot be read is a fault, and the others are read all the same."""
    return _Reader(answers, autoscaler, ledger).read()


class _Reader:
    def __init__(self, answers: Answers, autoscaler: Autoscaler, ledger: Ledger) -> None:
        self._answers, self._autoscaler, self._ledger = answers, autoscaler, ledger
        self._found = Groups()
        self._clusters = answers.clusters
        self._places: dict[str, str] = {}

    def read(self) -> Groups:
        """All groups; scaling groups that are those of a managed group are read with it."""
        taken: set[str] = set()
        for answer in self._answers.of("nodegroup"):
            outline = _outline_of_managed(answer, self._answers)
            taken.update(outline.scaling_groups)
            self._sort(outline, answer, read_managed_group)
        for answer in self._answers.of("AutoScalingGroups"):
            if answer.name("AutoScalingGroupName") not in taken:
                self._sort(_outline_of_scaling(answer), answer, read_scaling_group)
        _account_for_the_rest(self._answers, self._found, self._ledger)
        return self._found

    def _sort(self, outline: NodeGroup, answer: Placed, read: _Read) -> None:
        """Read a group that is migrated; of another, what else its answer holds does not matter."""
        try:
            reason = self._reason_to_stay(outline)
            if reason:
                self._ledger.leave(outline.subject, "the group", outline.name, reason)
                self._found.others.append(outline)
                return
            self._check(outline)
            group = read(answer, self._answers, self._ledger)
        except BadAnswer as error:
            self._found.faults.append(str(error))
            return
        flags = self._autoscaler.groups
        sizes = next((flags[name] for name in group.names if name in flags), None)
        group.scaled_to = None if sizes is None else sizes[1]
        self._found.served.append(group)

    def _reason_to_stay(self, group: NodeGroup) -> str:
        """Why a group is not migrated; empty: it is."""
        owners = clusters_of(group.tags)
        if self._clusters and owners and not owners & self._clusters:
            return f"belongs to the cluster {listed(sorted(owners))}, of which the input has nothing else"
        # Of a managed group whose scaling group is not in the input: EKS gives it the tags of auto-discovery.
        found_by_eks = group.kind == MANAGED and not group.tags and bool(self._autoscaler.discovery)
        served = found_by_eks or self._autoscaler.serves(group.names, group.tags)
        return "" if served else _UNSERVED

    def _check(self, group: NodeGroup) -> None:
        """Raises BadAnswer for a group that is there twice, or that is a part of one that is not there."""
        key = f"{group.cluster} {group.subject}"
        if group.name and key in self._places:
            raise BadAnswer(
                f"{group.place}: {group.subject} is in {self._places[key]}, too, and differs; hint: give the "
                "newest answer only"
            )
        self._places[key] = group.place
        managed_by = group.tags.get("eks:nodegroup-name")
        if managed_by and group.kind == SELF_MANAGED:
            raise BadAnswer(
                f"{group.place}: {group.subject} belongs to the managed node group {managed_by}; "
                f"hint: add the answer of aws eks describe-nodegroup --nodegroup-name {managed_by}"
            )


def _outline_of_managed(answer: Placed, answers: Answers) -> NodeGroup:
    """What a managed group is called, and the tags of its scaling groups."""
    name, cluster, own = answer.name("nodegroupName"), answer.name("clusterName"), scaling_names(answer)
    scaling = answers.scaling_groups_of(cluster, name, own)
    names = dict.fromkeys([*own, *(one.name("AutoScalingGroupName") for one in scaling)])
    tags = {key: value for one in scaling for key, value in tags_of(one).items()}
    return NodeGroup(MANAGED, name, answer.place, cluster, tuple(names), tags=tags)


def _outline_of_scaling(answer: Placed) -> NodeGroup:
    name = answer.name("AutoScalingGroupName")
    return NodeGroup(SELF_MANAGED, name, answer.place, scaling_groups=(name,), tags=tags_of(answer))


def _account_for_the_rest(answers: Answers, found: Groups, ledger: Ledger) -> None:
    by_name = {name: group for group in found.served for name in group.scaling_groups}
    staying = {name for group in found.others for name in group.scaling_groups}
    for action in answers.of("ScheduledUpdateGroupActions"):
        of, name = action.name("AutoScalingGroupName"), action.name("ScheduledActionName")
        times = action.name("Recurrence") or action.name("StartTime")
        sizes = ", ".join(
            f"{member} {action.value[member]}"
            for member in ("MinSize", "MaxSize", "DesiredCapacity")
            if member in action.value
        )
        reason = (
            "pools have no size to schedule: nodes follow pods; hint: scale the workloads on a "
            "schedule, or change the replicas of a CapacityBuffer on a schedule"
        )
        matters = of not in staying
        reason = reason if matters else "its group is not migrated"
        source = f"{SELF_MANAGED}/{of}"
        ledger.leave(source, f"scheduled action {name}", f"{times}: {sizes}", reason, matters=matters)
        if of in by_name:
            by_name[of].scheduled += (name,)
    used = {entry.source for entry in ledger.carried} | {entry.source for entry in ledger.left}
    for template in answers.of("LaunchTemplateVersions"):
        name = template.name("LaunchTemplateName") or template.name("LaunchTemplateId")
        source = f"LaunchTemplate/{name}:{template.value.get('VersionNumber')}"
        if source not in used:
            ledger.leave(source, "the version", "", _UNUSED, matters=False)
    for configuration in answers.of("LaunchConfigurations"):
        source = f"LaunchConfiguration/{configuration.name('LaunchConfigurationName')}"
        if source not in used:
            ledger.leave(source, "the configuration", "", _UNUSED, matters=False)
