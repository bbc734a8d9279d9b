"""What stands on a user's objects: status and conditions of pools and node classes. No I/O.

A condition keeps the time since when it holds; a status that says nothing new is not written.
"""

from collections.abc import Iterator
from dataclasses import replace

from nodeless.api.times import format_time
from nodeless.api.writing import conditions_to_api
from nodeless.cloudprovider import LAUNCH_FAILED, CloudError, NodeClassUnresolved
from nodeless.launch.resolved import ResolvedNodeClass
from nodeless.model.conditions import (
    CAPACITY_RESERVATIONS_READY,
    DELETING,
    IMAGES_READY,
    INSTANCE_PROFILE_READY,
    NODE_CLASS_READY,
    PLACEMENT_GROUP_READY,
    SECURITY_GROUPS_READY,
    SUBNETS_READY,
    VALIDATION_SUCCEEDED,
    Condition,
    same,
    updated_conditions,
)
from nodeless.model.placement import CapacityReservation
from nodeless.model.pools import EC2_NODE_CLASS, NODE_POOL_KIND, NodeClass, Pool
from nodeless.model.resources import Resources, format_resources

Status = dict[str, object]
#: Beginning of the field that selects nothing, and the condition that it is about.
_CONDITION_OF = {
    "subnet": SUBNETS_READY,
    "securityGroup": SECURITY_GROUPS_READY,
    "ami": IMAGES_READY,
    "instanceProfile": INSTANCE_PROFILE_READY,
    "role": INSTANCE_PROFILE_READY,
    "userData": VALIDATION_SUCCEEDED,
    "tags": VALIDATION_SUCCEEDED,
    "validation": VALIDATION_SUCCEEDED,
    "placementGroup": PLACEMENT_GROUP_READY,
}
#: Faults that are not about the field that they name.
_CONDITION_OF_REASON = {"ClusterCIDRResolutionFailed": VALIDATION_SUCCEEDED}
#: Karpenter v1's words for what selects nothing; what was looked for and what to do about it follow.
_SHORT = {
    "SubnetsNotFound": "SubnetSelector did not match any Subnets",
    "SecurityGroupsNotFound": "SecurityGroupSelector did not match any SecurityGroups",
    "AMINotFound": "AMISelector did not match any AMIs",
    "ClusterCIDRResolutionFailed": "Failed to detect the cluster CIDR",
}
#: Karpenter v1 validates a class once everything that it selects is there.
_DEPENDENCIES = (
    "DependenciesNotReady",
    "Awaiting AMI, Instance Profile, Security Group, and Subnet resolution",
)
_ALLOWED = Condition(VALIDATION_SUCCEEDED, "True")


def usage_status(pool: Pool, usage: Resources, nodes: int) -> Status:
    """What a pool's nodes hold, where its status says something else; resources that went are removed."""
    status: Status = {}
    if usage != dict(pool.status_resources):
        gone: dict[str, str | None] = dict.fromkeys(pool.status_resources)
        status["resources"] = {**gone, **format_resources(usage)}
    if pool.reference.kind == NODE_POOL_KIND and nodes != pool.status_nodes:
        status["nodes"] = nodes
    return status


def deletion_status(pool: Pool, progress: str, now: float) -> Status:
    """How far the deletion of a pool has come, where its status says something else."""
    present = {condition.type: condition for condition in pool.conditions}
    wanted = Condition(DELETING, "True", "WaitingForNodes", progress, now, pool.generation)
    known = present.get(DELETING)
    if known is not None and (known.status, known.message) == (wanted.status, wanted.message):
        return {}
    since = known.last_transition_time if known is not None and known.status == "True" else now
    present[DELETING] = replace(wanted, last_transition_time=since)
    return {"conditions": conditions_to_api(present[type_] for type_ in sorted(present))}


def pool_conditions(
    pool: Pool, node_class: NodeClass | None, problem: str, now: float, health: Condition | None = None
) -> Status:
    """Whether a pool can make nodes, where its status says something else; `health`: whether they join."""
    if pool.invalid:
        observed = (
            _false(VALIDATION_SUCCEEDED, "Invalid", pool.invalid),
            Condition(NODE_CLASS_READY, "Unknown", "NotChecked"),
        )
    else:
        reason = "NodeClassNotFound" if node_class is None else "NodeClassNotReady"
        if node_class is not None and node_class.deletion_timestamp is not None:
            reason = "NodeClassTerminating"
        observed = (
            Condition(VALIDATION_SUCCEEDED, "True"),
            _false(NODE_CLASS_READY, reason, problem) if problem else Condition(NODE_CLASS_READY, "True"),
        )
    conditions = pool.conditions
    if health is not None:
        conditions = (*(each for each in conditions if each.type != health.type), health)
    after = updated_conditions(conditions, observed, now, pool.generation)
    status: Status = {} if same(pool.conditions, after) else {"conditions": conditions_to_api(after)}
    generation = node_class.generation if node_class is not None else 0
    if pool.reference.kind == NODE_POOL_KIND and generation not in (0, pool.status_node_class_generation):
        status["nodeClassObservedGeneration"] = generation
    return status


def validation(node_class: NodeClass, problem: CloudError | None, *, passed: bool) -> Condition:
    """Whether launches with a node class are allowed, as far as is known: it was not refused.

    Args:
        node_class: The class as it stands.
        problem: Why AWS did not tell; None where it was not asked yet.
        passed: It told that they are.
    """
    if passed:
        return _ALLOWED
    if problem is not None:
        reason = "DryRunUnanswered" if problem.reason == LAUNCH_FAILED else problem.reason
        return Condition(VALIDATION_SUCCEEDED, "Unknown", reason, str(problem))
    former = next((each for each in node_class.conditions if each.type == VALIDATION_SUCCEEDED), None)
    if former and former.status == "True" and former.observed_generation == node_class.generation:
        # What another leader found out holds until we know better.
        return _ALLOWED
    return Condition(
        VALIDATION_SUCCEEDED, "Unknown", "Validating", "nodeless is asking EC2 whether launches are allowed"
    )


def resolved_status(
    node_class: NodeClass, resolved: ResolvedNodeClass, now: float, checked: Condition = _ALLOWED
) -> Status:
    """What a node class selects; `checked` is its condition ValidationSucceeded."""
    by_free = sorted(resolved.subnets, key=lambda subnet: (-subnet.free_addresses, subnet.id))
    status: Status = {
        "subnets": [{"id": subnet.id, "zone": subnet.zone} for subnet in by_free],
        "securityGroups": [{"id": group} for group in resolved.security_groups],
    }
    if node_class.reference.kind == EC2_NODE_CLASS:
        status["subnets"] = [
            {"id": each.id, "zone": each.zone, **({"zoneID": each.zone_id} if each.zone_id else {})}
            for each in by_free
        ]
        status["securityGroups"] = [
            {"id": group, "name": resolved.group_names.get(group, "")} for group in resolved.security_groups
        ]
        status["amis"] = [
            {
                "id": image.id,
                "name": image.name,
                "requirements": image.requirements.to_api(),
                **({"deprecated": True} if image.deprecated else {}),
            }
            for image in resolved.images
        ]
        status["instanceProfile"] = resolved.instance_profile
        status["capacityReservations"] = [_reservation(each, now) for each in resolved.reservations]
    found = [
        checked if type_ == VALIDATION_SUCCEEDED else Condition(type_, "True") for type_ in _types(node_class)
    ]
    return status | _new_conditions(node_class, found, now)


def unresolved_status(node_class: NodeClass, error: CloudError, now: float) -> Status:
    """What a node class does not select; when the cloud gave no answer, nothing is known of any part."""
    if isinstance(error, NodeClassUnresolved):
        found = {each.type: each for each in _faults(error)}
        unvalidated = Condition(VALIDATION_SUCCEEDED, "True")
        if any(type_ != VALIDATION_SUCCEEDED for type_ in found):
            # Whether launches are allowed cannot be asked while something is missing.
            unvalidated = _false(VALIDATION_SUCCEEDED, *_DEPENDENCIES)
        observed = [
            found.get(type_, unvalidated if type_ == VALIDATION_SUCCEEDED else Condition(type_, "True"))
            for type_ in _types(node_class)
        ]
    else:
        observed = [
            Condition(type_, "Unknown", *_DEPENDENCIES)
            if type_ == VALIDATION_SUCCEEDED
            else Condition(type_, "Unknown", "CloudUnavailable", str(error))
            for type_ in _types(node_class)
        ]
    return _new_conditions(node_class, observed, now)


def _faults(error: NodeClassUnresolved) -> Iterator[Condition]:
    """A condition for each part that has faults, with those alone."""
    by_type: dict[str, list[NodeClassUnresolved]] = {}
    for fault in error.faults:
        by_type.setdefault(_condition_of(fault), []).append(fault)
    for type_, faults in by_type.items():
        yield _false(type_, _reason(type_, faults[0].reason), "; ".join(map(_message, faults)))


def _message(fault: NodeClassUnresolved) -> str:
    short = _SHORT.get(fault.reason)
    text = f"{short}: {fault.detail}" if short else fault.detail
    return f"{text}; hint: {fault.hint}" if fault.hint else text


def _types(node_class: NodeClass) -> list[str]:
    """The conditions of a class, by name.

    An EC2NodeClass has them all, also those of what it does not name: clients with Karpenter's types take
    one that is not there for unknown, and the class for not ready.
    """
    types = {*_CONDITION_OF.values()}
    if node_class.reference.kind == EC2_NODE_CLASS:
        types.add(CAPACITY_RESERVATIONS_READY)
    else:
        types.discard(PLACEMENT_GROUP_READY)
    return sorted(types)


def _reservation(reservation: CapacityReservation, now: float) -> Status:
    ends = {} if reservation.ends is None else {"endTime": format_time(reservation.ends)}
    return {
        "id": reservation.id,
        "instanceType": reservation.instance_type,
        "availabilityZone": reservation.zone,
        "instanceMatchCriteria": reservation.match_criteria,
        "ownerID": reservation.owner,
        "reservationType": reservation.type,
        "state": "expiring" if reservation.expiring(now) else "active",
        "interruptible": reservation.interruptible,
        **ends,
    }


def invalid_class_status(node_class: NodeClass, now: float) -> Status:
    """Why a node class cannot be used."""
    observed = (_false(VALIDATION_SUCCEEDED, "Invalid", node_class.invalid),)
    return _new_conditions(node_class, observed, now)


def _condition_of(fault: NodeClassUnresolved) -> str:
    by_field = (type_ for start, type_ in _CONDITION_OF.items() if fault.what.startswith(start))
    return _CONDITION_OF_REASON.get(fault.reason) or next(by_field, IMAGES_READY)


def _reason(type_: str, reason: str) -> str:
    """Of an object itself nothing is "not found"."""
    return "Invalid" if type_ == VALIDATION_SUCCEEDED and reason == "NotFound" else reason


def _false(type_: str, reason: str, message: str) -> Condition:
    return Condition(type_, "False", reason, message)


def _new_conditions(
    subject: Pool | NodeClass, observed: list[Condition] | tuple[Condition, ...], now: float
) -> Status:
    after = updated_conditions(subject.conditions, observed, now, subject.generation)
    return {} if same(subject.conditions, after) else {"conditions": conditions_to_api(after)}
