"""Claims of one pass that differ in nothing but their names share one fleet request.

They bear the annotation `nodeless.dev/launch-group` (the name of the group's first claim)
and its size; their instances bear the group as a tag instead of a claim's name. Which of
them becomes whose node does not matter, so whoever leads next gives instances that have
no claim yet to claims that have no instance yet (`assign`). Next: `fleet`.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nodeless.model.labels import LAUNCH_GROUP, LAUNCH_GROUP_SIZE
from nodeless.model.nodes import NodeClaim

#: Most claims of one fleet request (Karpenter's batcher).
MAX_GROUP = 1000


def group_claims(claims: Sequence[NodeClaim]) -> tuple[NodeClaim, ...]:
    """The claims in their order; those that are like others bear their group and its size."""
    alike: dict[object, list[NodeClaim]] = {}
    for claim in claims:
        alike.setdefault(_kind(claim), []).append(claim)
    marks: dict[str, dict[str, str]] = {}
    for some in alike.values():
        for start in range(0, len(some), MAX_GROUP):
            group = some[start : start + MAX_GROUP]
            if len(group) > 1:
                mark = {LAUNCH_GROUP: group[0].name, LAUNCH_GROUP_SIZE: str(len(group))}
                marks.update(dict.fromkeys((claim.name for claim in group), mark))
    return tuple(
        replace(claim, annotations={**claim.annotations, **marks[claim.name]})
        if claim.name in marks
        else claim
        for claim in claims
    )


def _kind(claim: NodeClaim) -> object:
    """What decides a fleet request. Not the requests: the instance types have been chosen by them."""
    return (
        claim.pool,
        claim.node_class,
        claim.requirements,
        tuple(sorted(claim.labels.items())),
        tuple(sorted(claim.annotations.items())),
        claim.taints,
        claim.startup_taints,
    )


@dataclass(frozen=True, slots=True)
class Found:
    """A living instance of a group."""

    id: str
    provider_id: str
    launched_at: float


def assign(
    wanted: Iterable[str],
    found: Sequence[Found],
    *,
    given: Mapping[str, str],
    claimed: Container[str] = frozenset(),
) -> dict[str, str]:
    """Instance ids by claim, for as many of the wanting claims as there are instances without a claim.

    Args:
        wanted: Names of claims that ask for an instance.
        found: The group's living instances.
        given: Claims by instance id, as this process gave them out: a claim gets its own again.
        claimed: Provider ids of instances that claims bear already.
    """
    by_age = sorted(found, key=lambda instance: (instance.launched_at, instance.id))
    # Should a claim have been given two, the older one is its own.
    own = {given[instance.id]: instance.id for instance in reversed(by_age) if instance.id in given}
    names = sorted(wanted)
    result = {name: own[name] for name in names if name in own}
    free = (
        instance for instance in by_age if instance.id not in given and instance.provider_id not in claimed
    )
    unassigned = (name for name in names if name not in result)
    result.update((name, instance.id) for name, instance in zip(unassigned, free, strict=False))
    return result
