"""Which pods a term speaks of: label selectors and namespaces.

kube-scheduler's reading: no selector selects no pod, an empty one selects every pod of the
namespaces. Of namespaces only the name is known here; a namespace selector on anything else
cannot be decided (`Audience.of`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodeless.model.pods import LabelSelector, PodAffinityTerm

#: The label that every namespace bears, its name.
NAMESPACE_NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class Audience:
    """The pods of some namespaces that a label selector selects."""

    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    """Further namespaces, by their name."""

    @classmethod
    def of(cls, term: PodAffinityTerm, namespace: str, *, undecided: bool) -> "Audience | None":
        """The audience of a term of a pod in a namespace.

        A namespace selector that cannot be decided counts as one that selects every namespace where
        `undecided` is true, and gives None where it is false.
        """
        chosen = term.namespace_selector
        if chosen is not None and not _decidable(chosen):
            if not undecided:
                return None
            chosen = LabelSelector()
        own = (namespace,) if not term.namespaces and term.namespace_selector is None else ()
        return cls(term.selector, tuple(sorted(term.namespaces)) or own, chosen)

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return selects(self.selector, labels) and (
            namespace in self.namespaces or selects(self.namespace_selector, {NAMESPACE_NAME: namespace})
        )

    def keys(self) -> Iterator[str]:
        """The label keys that the selector looks at."""
        if self.selector is not None:
            yield from (key for key, _ in self.selector.match_labels)
            yield from (key for key, _, _ in self.selector.match_expressions)


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


def _decidable(selector: LabelSelector) -> bool:
    keys = [key for key, _ in selector.match_labels] + [key for key, _, _ in selector.match_expressions]
    return all(key == NAMESPACE_NAME for key in keys)
