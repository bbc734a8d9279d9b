"""Which pods' rules are looked at in a pass: as many as can be held against all labels of its pods.

Each rule of a pod counts other pods, and it has to be found out which: rules times pods. So many pods with
many rules each would take the whole pass before the first of them is placed. What is beyond the bound is set
aside before anything else, evenly by namespace: whoever has used the least so far is next with the pods of
fewest rules. The next pass, in which the others are placed, takes on more of them.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from nodeless.model.identity import Identity
from nodeless.model.pods import LabelSelector, Pod, PodShape
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.grouping import PodGroup

#: Pairs of a rule and a set of labels that a pass looks at: some seconds of work at most.
PAIRS = 750_000
#: Seconds for each pair.
_PAIR = 1.5e-6
#: Pairs that it costs to look at a rule at all.
_RULE = 4


class Crowd:
    """The pods whose labels rules are held against."""

    def __init__(self, pods: Iterable[Pod], meter: Meter) -> None:
        self._sets = list(dict.fromkeys((pod.namespace, _items(pod)) for pod in pods))
        self._bearing: Counter[tuple[str, str]] = Counter(pair for _, items in self._sets for pair in items)
        self._meter = meter
        self._most = PAIRS

    def bearable(self, batch: Sequence[PodGroup]) -> tuple[list[PodGroup], list[PodGroup]]:
        """The kinds of pods that a pass takes on, in their order, and those that it sets aside."""
        chosen = self._chosen([(pod_group.pods[0].namespace, pod_group.shape) for pod_group in batch])
        aside = [pod_group for index, pod_group in enumerate(batch) if index not in chosen]
        return [batch[index] for index in sorted(chosen)], aside

    def inverse_anti_affinity(self, pods: Sequence[Pod]) -> list[Pod]:
        """The running pods whose required anti-affinity is looked at: those of fewest terms."""
        return [pods[index] for index in sorted(self._chosen([(pod.namespace, pod.shape) for pod in pods]))]

    def _chosen(self, shapes: Sequence[tuple[str, PodShape]]) -> set[int]:
        """Which of some namespaces and shapes are looked at, by their place."""
        chosen = set[int]()
        by_namespace: dict[str, list[tuple[int, int]]] = {}
        for index, (namespace, shape) in enumerate(shapes):
            if number := _number(shape):
                by_namespace.setdefault(namespace, []).append((number, index))
            else:
                chosen.add(index)
        for waiting in by_namespace.values():
            waiting.sort(reverse=True)
        known: set[object] = set()
        spent = 0
        turns = [(0, namespace) for namespace in sorted(by_namespace)]
        while turns:
            used, namespace = heapq.heappop(turns)
            _, index = by_namespace[namespace].pop()
            pairs, new = self._pairs(namespace, shapes[index][1], known, self._most - spent)
            if spent + pairs > self._most:
                # Those behind it have as many rules or more.
                continue
            spent += pairs
            known |= new
            chosen.add(index)
            if by_namespace[namespace]:
                heapq.heappush(turns, (used + pairs, namespace))
        self._meter.spend(_PAIR * spent)
        return chosen

    def _pairs(
        self, namespace: str, shape: PodShape, known: set[object], most: int
    ) -> tuple[int, set[object]]:
        """What the rules of a shape cost that no other pod has; and these."""
        pairs, new = 0, set[object]()
        for rule, selector in _rules(namespace, shape):
            pairs += _RULE
            if pairs > most:
                break
            if rule not in known and rule not in new:
                new.add(rule)
                pairs += self._selectable(selector)
        return pairs, new

    def _selectable(self, selector: LabelSelector | None) -> int:
        if selector is not None and selector.match_labels:
            return self._bearing[selector.match_labels[0]]
        return len(self._sets)


def crowded(batch: Sequence[PodGroup], staying: int, inverse_anti_affinity: Sequence[Pod]) -> bool:
    """Whether rules and pods may be too many: a look at their numbers alone."""
    rules = sum(_number(pod_group.shape) for pod_group in batch) + sum(
        _number(pod.shape) for pod in inverse_anti_affinity
    )
    return rules * (sum(len(pod_group.pods) for pod_group in batch) + staying + _RULE) > PAIRS


def _number(shape: PodShape) -> int:
    return len(shape.spread) + len(shape.affinity) + 2 * len(shape.anti_affinity)


def _rules(namespace: str, shape: PodShape) -> Iterator[tuple[object, LabelSelector | None]]:
    """What tells a rule from those of other pods, about, and what selects the pods that it counts."""
    picky = Identity(shape) if shape.required_terms or shape.node_selector else None
    for spread in shape.spread:
        yield (namespace, spread, picky), spread.selector
    for term in (*shape.affinity, *shape.anti_affinity):
        own = term.namespaces or term.namespace_selector is not None
        yield ("" if own else namespace, term), term.selector
    for term in shape.anti_affinity:
        if term.weight is None:
            yield (namespace, term, "carried"), term.selector


def _items(pod: Pod) -> tuple[tuple[str, str], ...]:
    return tuple(pod.labels.items())
