"""Conditions: what is observed about an object, and since when."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

READY = "Ready"
DELETING = "Deleting"
VALIDATION_SUCCEEDED = "ValidationSucceeded"
NODE_CLASS_READY = "NodeClassReady"
SUBNETS_READY = "SubnetsReady"
SECURITY_GROUPS_READY = "SecurityGroupsReady"
IMAGES_READY = "AMIsReady"
INSTANCE_PROFILE_READY = "InstanceProfileReady"
CAPACITY_RESERVATIONS_READY = "CapacityReservationsReady"
PLACEMENT_GROUP_READY = "PlacementGroupReady"
#: Characters of a condition's message (metav1.Condition).
_LONGEST_MESSAGE = 32_768


@dataclass(frozen=True, slots=True)
class Condition:
    """A `metav1.Condition`; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: float = 0.0
    observed_generation: int = 0
    """Generation of the object that was looked at; 0 where it is not said."""


def updated_conditions(
    before: Iterable[Condition], observed: Iterable[Condition], now: float, generation: int = 0
) -> tuple[Condition, ...]:
    """The observed conditions and, last, Ready: true when all of them are; unknown ones make it unknown.

    Args: as those of `merged_conditions`.
    """
    observed = tuple(observed)
    worst = next((condition for condition in observed if condition.status == "False"), None) or next(
        (condition for condition in observed if condition.status != "True"), None
    )
    ready = (
        Condition(READY, "True", READY)
        if worst is None
        else Condition(READY, worst.status, f"{worst.type}{worst.status}", worst.message)
    )
    return merged_conditions(before, (*observed, ready), now, generation)


def merged_conditions(
    before: Iterable[Condition], observed: Iterable[Condition], now: float, generation: int = 0
) -> tuple[Condition, ...]:
    """The observed conditions beside those of other types that the object had, by type.

    A condition whose status has not changed keeps the time since when it holds. A message is cut to what the
    API server stores.

    Args:
        before: The conditions that the object has.
        observed: What is observed of it now.
        now: Seconds since the epoch.
        generation: The generation of the object that was looked at.
    """
    known = {condition.type: condition for condition in before}
    for condition in observed:
        former = known.get(condition.type)
        since = former.last_transition_time if former and former.status == condition.status else now
        known[condition.type] = Condition(
            condition.type,
            condition.status,
            condition.reason or condition.type,
            condition.message[:_LONGEST_MESSAGE],
            since,
            generation,
        )
    return tuple(known[type_] for type_ in sorted(known))


def same(left: Iterable[Condition], right: Iterable[Condition]) -> bool:
    """Whether two sets of conditions say the same, in any order; fractions of a second do not count."""

    def plain(conditions: Iterable[Condition]) -> set[Condition]:
        return {
            replace(condition, last_transition_time=int(condition.last_transition_time))
            for condition in conditions
        }

    return plain(left) == plain(right)
