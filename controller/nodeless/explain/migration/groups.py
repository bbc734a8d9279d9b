"""The node groups of the input, whoever manages them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from nodeless.explain.migration.answers import Answers, tags_of
from nodeless.explain.migration.autoscaler import Autoscaler
from nodeless.explain.migration.ledger import BadAnswer, Ledger
from nodeless.explain.migration.managed_groups import read_managed_group, scaling_names
from nodeless.explain.migration.node_group import MANAGED, SELF_MANAGED, NodeGroup
from nodeless.explain.migration.scaling_groups import read_scaling_group


@dataclass(slots=True)
class Groups:
    """All groups of the input.

    Attributes:
        served: Those that the autoscaler serves.
        others: Those that it does not.
        faults: What keeps a group from being read, one line each.
    """

    served: list[NodeGroup] = field(default_factory=list)
    others: list[NodeGroup] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def read_groups(answers: Answers, autoscaler: Autoscaler, ledger: Ledger) -> Groups:
    """The groups of some answers; what cannot be read is a fault, and the others are read all the same."""
    found = Groups()
    taken: set[str] = set()
    for answer in answers.of("nodegroup"):
        try:
            group = read_managed_group(answer, answers, ledger)
        except BadAnswer as error:
            found.faults.append(str(error))
            taken.update(scaling_names(answer))
            continue
        taken.update(group.scaling_groups)
        _sort(found, group, autoscaler, ledger)
    for answer in answers.of("AutoScalingGroups"):
        name = answer.name("AutoScalingGroupName")
        if name in taken:
            continue
        try:
            managed_by = tags_of(answer).get("eks:nodegroup-name")
            if managed_by:
                hint = f"hint: add the answer of aws eks describe-nodegroup --nodegroup-name {managed_by}"
                raise BadAnswer(
                    f"{answer.place}: {SELF_MANAGED}/{name} belongs to the managed node group "
                    f"{managed_by}; {hint}"
                )
            _sort(found, read_scaling_group(answer, answers, ledger), autoscaler, ledger)
        except BadAnswer as error:
            found.faults.append(str(error))
    _account_for_the_rest(answers, [*found.served, *found.others], ledger)
    return found


def _sort(found: Groups, group: NodeGroup, autoscaler: Autoscaler, ledger: Ledger) -> None:
    sizes = next((autoscaler.groups[name] for name in group.names if name in autoscaler.groups), None)
    group.scaled_to = None if sizes is None else sizes[1]
    # Of a managed group whose scaling group is not in the input: EKS gives it the tags of auto-discovery.
    found_by_eks = group.kind == MANAGED and not group.tags and bool(autoscaler.discovery)
    if found_by_eks or autoscaler.serves(group.names, group.tags):
        found.served.append(group)
        return
    reason = "the autoscaler's flags do not select it, so it stays as it is; hint: leave the Deployment out"
    ledger.leave(group.subject, "the group", group.name, reason)
    found.others.append(group)


def _account_for_the_rest(answers: Answers, groups: Iterable[NodeGroup], ledger: Ledger) -> None:
    by_name = {name: group for group in groups for name in group.scaling_groups}
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
        ledger.leave(f"{SELF_MANAGED}/{of}", f"scheduled action {name}", f"{times}: {sizes}", reason)
        if of in by_name:
            by_name[of].scheduled += (name,)
    used = {entry.source for entry in ledger.carried} | {entry.source for entry in ledger.left}
    for template in answers.of("LaunchTemplateVersions"):
        name = template.name("LaunchTemplateName") or template.name("LaunchTemplateId")
        source = f"LaunchTemplate/{name}:{template.value.get('VersionNumber')}"
        if source not in used:
            ledger.leave(source, "the version", "", "no group of the input uses it", matters=False)
    for configuration in answers.of("LaunchConfigurations"):
        source = f"LaunchConfiguration/{configuration.name('LaunchConfigurationName')}"
        if source not in used:
            ledger.leave(source, "the configuration", "", "no group of the input uses it", matters=False)
