"""What other pods mean to a pod, and the pod to others: rules and topology groups for each kind of pod.

Pods of one shape differ for others by namespace and labels. Only those labels that some
selector looks at tell pods apart (`mark`), so that a thousand workloads with labels of their
own stay few classes. `counting` keeps the numbers of the topology groups found here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nodeless.model.pods import DaemonSet, Pod, PodAffinityTerm, PodShape
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.crowding import Crowd, crowded
from nodeless.scheduling.pods.grouping import NO_MARK, Mark, PodGroup, group
from nodeless.scheduling.pods.rules import NO_RULES, Rules, TopologyGroup, carried, has_rules, rules_of
from nodeless.scheduling.pods.selecting import Namespaces


@dataclass(frozen=True, slots=True)
class Profile:
    """The rules of a pod, and the topology groups in which it counts."""

    rules: Rules = NO_RULES
    adds: tuple[TopologyGroup, ...] = ()


class Profiles:
    """The profiles of the pods of one solve; without `preferences` only what is required makes rules."""

    def __init__(
        self,
        snapshot: Snapshot,
        batch: Sequence[PodGroup],
        *,
        preferences: bool = True,
        lasts: Callable[[Pod], bool] = lambda _: False,
        meter: Meter | None = None,
    ) -> None:
        """`lasts`: whether a pod that terminates is still there when new nodes are."""
        self._preferences = preferences
        self._namespaces = Namespaces(snapshot)
        #: Pods that run and stay: they count, and their anti-affinity repels. Terminating ones that last
        #: count for anti-affinity alone.
        self.staying = tuple(_staying(snapshot, batch, lasts)) if _matters(snapshot, batch) else None
        """None: no pod has rules."""
        inverse_anti_affinity = [pod for pod in self.staying or () if _repels(pod.shape)]
        self.aside: tuple[str, ...] = ()
        """Keys of pods with more rules than there is time for."""
        if self.staying is not None and crowded(batch, len(self.staying), inverse_anti_affinity):
            everybody = (*self.staying, *(pod for pod_group in batch for pod in pod_group.pods))
            crowd = Crowd(everybody, meter or Meter())
            batch, aside = crowd.bearable(batch)
            inverse_anti_affinity = crowd.inverse_anti_affinity(inverse_anti_affinity)
            self.aside = tuple(key for pod_group in aside for key in pod_group.keys)
        self._daemon_sets = sorted(snapshot.daemon_sets.values(), key=lambda daemon_set: daemon_set.key)
        repelling: list[Pod | DaemonSet] = [
            *inverse_anti_affinity,
            *(daemon_set for daemon_set in self._daemon_sets if _repels(daemon_set.shape)),
        ]
        shapes = [each.shape for each in repelling] + [pod_group.shape for pod_group in batch]
        self._keys = _label_keys(shapes) if self.staying is not None else ()
        self.groups = group(batch, None if self.staying is None else self.mark)
        """Keys of the pods by shape and mark."""
        self._profiles: dict[tuple[PodShape, Mark], Profile] = {}
        self._selected: dict[Mark, tuple[TopologyGroup, ...]] = {}
        self._carried: dict[tuple[tuple[PodAffinityTerm, ...], str], tuple[TopologyGroup, ...]] = {}
        self._counted: dict[tuple[tuple[PodAffinityTerm, ...], Mark], tuple[TopologyGroup, ...]] = {}
        #: Every topology group, in the order in which they are met, with the namespaces whose pods use it.
        self._topology_groups: dict[TopologyGroup, set[str]] = {}
        if self.staying is not None:
            self._declare(repelling)

    @property
    def topology_groups(self) -> tuple[TopologyGroup, ...]:
        return tuple(self._topology_groups)

    def of_namespace(self, topology_group: TopologyGroup, namespace: str) -> bool:
        """Whether pods of a namespace look at a topology group, or carry what it counts."""
        return namespace in self._topology_groups[topology_group]

    def mark(self, pod: Pod | DaemonSet) -> Mark:
        """What tells the pod, or a DaemonSet's pods, apart from others of the same shape."""
        if self.staying is None:
            return NO_MARK
        labels = pod.labels
        return (pod.namespace, tuple([labels.get(key) for key in self._keys]))

    def of(self, shape: PodShape, mark: Mark) -> Profile:
        """The profile of a pod of the batch."""
        return self._profiles.get((shape, mark), _PLAIN)

    def daemon_sets_of_groups(self) -> dict[TopologyGroup, list[DaemonSet]]:
        """The DaemonSets whose pods each topology group counts; groups that count none are missing."""
        found: dict[TopologyGroup, list[DaemonSet]] = {}
        for daemon_set in self._daemon_sets if self._topology_groups else ():
            for topology_group in self.counted_in(daemon_set):
                found.setdefault(topology_group, []).append(daemon_set)
        return found

    def counted_in(self, pod: Pod | DaemonSet) -> tuple[TopologyGroup, ...]:
        """The topology groups in which a running pod, or each pod of a DaemonSet, counts."""
        mark = self.mark(pod)
        key = (pod.shape.anti_affinity, mark)
        known = self._counted.get(key)
        if known is None:
            own = self._carried_by(pod.shape, pod.namespace)
            known = self._counted[key] = (
                *self._selecting(mark),
                *(topology_group for topology_group in own if topology_group in self._topology_groups),
            )
        return known

    def _declare(self, repelling: Iterable[Pod | DaemonSet]) -> None:
        declared: dict[tuple[PodShape, Mark], Rules] = {}
        for pod in repelling:
            self._note(self._carried_by(pod.shape, pod.namespace), pod.namespace)
        for shape, mark in self.groups:
            rules = rules_of(shape, mark[0], self._labels(mark), self._namespaces)
            declared[shape, mark] = rules = rules if self._preferences else rules.hard()
            own = self._carried_by(shape, mark[0])
            self._note((*rules.topology_groups(), *own), mark[0])
        self._index = _index(
            topology_group
            for topology_group in self._topology_groups
            if not topology_group.inverse_anti_affinity
        )
        self._repelling = _index(
            topology_group for topology_group in self._topology_groups if topology_group.inverse_anti_affinity
        )
        for (shape, mark), rules in declared.items():
            self._profiles[shape, mark] = self._profile(shape, mark, rules)

    def _note(self, topology_groups: Iterable[TopologyGroup], namespace: str) -> None:
        for topology_group in topology_groups:
            self._topology_groups.setdefault(topology_group, set()).add(namespace)

    def _profile(self, shape: PodShape, mark: Mark, rules: Rules) -> Profile:
        namespace, labels = mark[0], self._labels(mark)
        repelled = tuple(
            topology_group
            for topology_group in _candidates(self._repelling, labels)
            if topology_group.pod_selectors[0].selects(namespace, labels)
        )
        adds = (*self._selecting(mark), *dict.fromkeys(self._carried_by(shape, namespace)))
        return Profile(replace(rules, repelled_by=repelled), adds)

    def _selecting(self, mark: Mark) -> tuple[TopologyGroup, ...]:
        """The topology groups that count a pod for its labels."""
        known = self._selected.get(mark)
        if known is None:
            namespace, labels = mark[0], self._labels(mark)
            known = self._selected[mark] = tuple(
                topology_group
                for topology_group in _candidates(self._index, labels)
                if all(
                    pod_selector.selects(namespace, labels) for pod_selector in topology_group.pod_selectors
                )
            )
        return known

    def _carried_by(self, shape: PodShape, namespace: str) -> tuple[TopologyGroup, ...]:
        key = (shape.anti_affinity, namespace)
        known = self._carried.get(key)
        if known is None:
            known = self._carried[key] = carried(shape, namespace, self._namespaces)
        return known

    def _labels(self, mark: Mark) -> dict[str, str]:
        return {key: value for key, value in zip(self._keys, mark[1], strict=True) if value is not None}


_PLAIN = Profile()
_Index = dict[tuple[str, str] | None, list[TopologyGroup]]


def _candidates(index: _Index, labels: Mapping[str, str]) -> Iterator[TopologyGroup]:
    """The topology groups that may select a pod with these labels."""
    for label in (None, *labels.items()):
        yield from index.get(label, ())


def _index(topology_groups: Iterable[TopologyGroup]) -> _Index:
    """Topology groups by a label that a pod must have to be selected; None: no single label is asked for."""
    index: _Index = {}
    for topology_group in topology_groups:
        selector = topology_group.pod_selectors[0].selector
        label = selector.match_labels[0] if selector is not None and selector.match_labels else None
        index.setdefault(label, []).append(topology_group)
    return index


def _matters(snapshot: Snapshot, batch: Iterable[PodGroup]) -> bool:
    return (
        any(has_rules(pod_group.shape) for pod_group in batch)
        or any(_repels(daemon_set.shape) for daemon_set in snapshot.daemon_sets.values())
        or any(_repels(snapshot.pods[key].shape) for keys in snapshot.pods_of_node.values() for key in keys)
    )


def _repels(shape: PodShape) -> bool:
    return any(term.weight is None for term in shape.anti_affinity)


def _staying(snapshot: Snapshot, batch: Iterable[PodGroup], lasts: Callable[[Pod], bool]) -> Iterator[Pod]:
    """Bound pods that run, or will: not finished, not soon gone, not about to move in this pass."""
    moving = {pod.key for pod_group in batch for pod in pod_group.pods if pod.node_name}
    for key in sorted(key for keys in snapshot.pods_of_node.values() for key in keys):
        pod = snapshot.pods[key]
        stays = pod.deletion_timestamp is None or lasts(pod)
        if not pod.terminal and stays and key not in moving:
            yield pod


def _label_keys(shapes: Iterable[PodShape]) -> tuple[str, ...]:
    """The labels that any selector of any rule looks at, sorted."""
    keys: set[str] = set()
    for shape in shapes:
        keys.update(key for spread in shape.spread for key in spread.match_label_keys)
        selectors = [spread.selector for spread in shape.spread]
        selectors += [term.selector for term in (*shape.affinity, *shape.anti_affinity)]
        for selector in selectors:
            if selector is not None:
                keys.update(key for key, _ in selector.match_labels)
                keys.update(key for key, _, _ in selector.match_expressions)
    return tuple(sorted(keys))
