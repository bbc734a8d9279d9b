"""Pods by what they have in common, so that nothing after this grows with their number.

Most pods of a workload share one shape object, as they were read. They are gathered by its
identity first, which costs one look at each pod; shapes are compared only once each.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from nodeless.model.identity import Identity, places_of_same
from nodeless.model.pods import Pod, PodShape

Mark = tuple[str, tuple[str | None, ...]]
"""Namespace, and the values of the labels that matter; empty when no label matters."""
NO_MARK: Mark = ("", ())


@dataclass(frozen=True, slots=True, eq=False)
class PodGroup:
    """Pods that share one shape object, in no order."""

    shape: PodShape
    keys: list[str] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    """The pods of the keys."""
    ages: set[float] = field(default_factory=set)
    """When they were created."""


class PodGroups:
    """Pods by the identity of their shapes."""

    def __init__(self) -> None:
        self._pod_groups: dict[Identity, PodGroup] = {}

    def __iter__(self) -> Iterator[PodGroup]:
        return iter(self._pod_groups.values())

    def gather(self, pods: Iterable[tuple[str, Pod]], wanted: Callable[[Pod], bool] | None = None) -> None:
        """Add the pods, with their keys, that are wanted."""
        chosen = [(key, pod) for key, pod in pods if wanted is None or wanted(pod)]
        for places in places_of_same([(pod.shape,) for _, pod in chosen]):
            some = [chosen[place] for place in places]
            shape = some[0][1].shape
            pod_group = self._pod_groups.setdefault(Identity(shape), PodGroup(shape))
            pod_group.keys.extend([key for key, _ in some])
            pod_group.pods.extend([pod for _, pod in some])
            pod_group.ages.update([pod.created_at for _, pod in some])


def group(
    batch: Iterable[PodGroup], mark: Callable[[Pod], Mark] | None
) -> dict[tuple[PodShape, Mark], tuple[str, ...]]:
    """Keys of the pods by shape and mark, oldest first and those of one age by key.

    Args:
        batch: The pods, in any order.
        mark: What tells pods of one shape apart; None: nothing does.

    Returns:
        In the order of the least key.
    """
    members: dict[tuple[PodShape, Mark], list[str]] = {}
    pods: dict[str, Pod] = {}
    ages: set[float] = set()
    for pod_group in batch:
        ages |= pod_group.ages
        if mark is None:
            members.setdefault((pod_group.shape, NO_MARK), []).extend(pod_group.keys)
        else:
            by_mark: dict[Mark, list[str]] = {}
            for key, pod in zip(pod_group.keys, pod_group.pods, strict=True):
                by_mark.setdefault(mark(pod), []).append(key)
            for own, keys in by_mark.items():
                members.setdefault((pod_group.shape, own), []).extend(keys)
    for keys in members.values():
        keys.sort()
    ordered = sorted(members.items(), key=lambda entry: entry[1][0])
    if len(ages) > 1:
        for pod_group in batch:
            pods.update(zip(pod_group.keys, pod_group.pods, strict=True))
        for keys in members.values():
            keys.sort(key=lambda key: pods[key].created_at)
    return {pod_group: tuple(keys) for pod_group, keys in ordered}
