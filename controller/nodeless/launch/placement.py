"""Where EC2 puts an instance: tenancy, and partition of a placement group; labels that say it. Pure."""

from nodeless.model.labels import (
    INSTANCE_TENANCY,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
    TENANCIES,
)
from nodeless.model.placement import PlacementGroup
from nodeless.model.requirements import Requirements


def tenancy_of(requirements: Requirements) -> str:
    """On shared hosts where that is allowed, else on hosts of one account."""
    wanted = requirements.get(INSTANCE_TENANCY)
    return next((tenancy for tenancy in TENANCIES if wanted is None or wanted.allows(tenancy)), TENANCIES[0])


def partition_of(requirements: Requirements, group: PlacementGroup) -> str:
    """The lowest partition that is allowed where one is asked for; empty: EC2 chooses."""
    wanted = requirements.get(PLACEMENT_GROUP_PARTITION)
    if wanted is None:
        return ""
    numbers = (str(number) for number in range(1, group.partitions + 1))
    return next((number for number in numbers if wanted.allows(number)), "")


def placement_labels(requirements: Requirements, group: PlacementGroup | None) -> dict[str, str]:
    """Labels of an instance that is launched so; a partition that EC2 chooses is not known yet."""
    labels = {INSTANCE_TENANCY: tenancy_of(requirements)}
    if group is None:
        return labels
    partition = partition_of(requirements, group)
    return {
        **labels,
        PLACEMENT_GROUP_ID: group.id,
        **({PLACEMENT_GROUP_PARTITION: partition} if partition else {}),
    }
