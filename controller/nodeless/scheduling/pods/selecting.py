"""Which pods a term speaks of: label selectors and namespaces.

kube-scheduler's reading: no selector selects no pod, an empty one selects every pod of the
namespaces. A namespace selector on labels stands for the namespaces that bear them now (`Namespaces`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodeless.model.pods import LabelSelector, PodAffinityTerm
from nodeless.model.snapshot import Snapshot

#: The label that every namespace bears, its name.
NAMESPACE_NAME = "kubernetes.io/metadata.name"


class Namespaces:
    """The namespaces of a cluster; one in which a pod is, but of which nothing is known, bears no labels."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._labels: dict[str, Mapping[str, str]] | None = None
        self._selected: dict[LabelSelector, frozenset[str]] = {}

    def selected(self, selector: LabelSelector) -> frozenset[str]:
        """The names of those whose labels satisfy a selector."""
        if selector not in self._selected:
            self._selected[selector] = frozenset(
                name for name, labels in self._known().items() if selects(selector, labels)
            )
        return self._selected[selector]

    def _known(self) -> dict[str, Mapping[str, str]]:
        if self._labels is None:
            labels: dict[str, Mapping[str, str]] = {pod.namespace: {} for pod in self._snapshot.pods.values()}
            labels.update((name, each.labels) for name, each in self._snapshot.namespaces.items())
            self._labels = {name: {**own, NAMESPACE_NAME: name} for name, own in labels.items()}
        return self._labels


@dataclass(frozen=True, slots=True)
class PodSelector:
    """The pods of some namespaces that a label selector selects."""

    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    """Further namespaces, by their name."""

    @classmethod
    def of(cls, term: PodAffinityTerm, namespace: str, namespaces: Namespaces) -> "PodSelector":
        """The pod selector of a term of a pod in a namespace."""
        chosen = term.namespace_selector
        named = set(term.namespaces)
        if chosen is None and not named:
            named.add(namespace)
        if chosen is not None and any(key != NAMESPACE_NAME for key in chosen.label_keys()):
            named |= namespaces.selected(chosen)
            chosen = None
        return cls(term.selector, tuple(sorted(named)), chosen)

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return selects(self.selector, labels) and (
            namespace in self.namespaces or selects(self.namespace_selector, {NAMESPACE_NAME: namespace})
        )

    def keys(self) -> Iterator[str]:
        """The label keys that the selector looks at."""
        if self.selector is not None:
            yield from self.selector.label_keys()


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy a selector; an operator that does not exist selects nothing."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels) and all(
        _holds(labels.get(key), operator, values) for key, operator, values in selector.match_expressions
    )


def _holds(value: str | None, operator: str, values: tuple[str, ...]) -> bool:
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
