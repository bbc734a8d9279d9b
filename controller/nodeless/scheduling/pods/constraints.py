"""What a pod shape asks of a node, as lists of expressions; and what cannot be planned yet.

Required node affinity terms are alternatives: a node must satisfy the node selector and
any one of them. Preferred terms never refuse a node. What other pods mean to a pod is the subject of
`rules`; where its volumes can be reached is found by `volumes` and holds with any of its terms.

Labels that are asked for are checked expression by expression, not only after merging: a
merged requirement cannot say "exists, and is not x", which is what two expressions may say.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from nodeless.api.names import label_value_defects
from nodeless.model.plan import RefusalCode
from nodeless.model.pods import NodeSelectorTerm, PodShape
from nodeless.model.requirements import IN, Conflict, Requirement, Requirements
from nodeless.model.resources import format_amount


@dataclass(frozen=True, slots=True)
class UnschedulableReason:
    """Why no node at all can be planned for a pod shape, whatever the pools are."""

    code: RefusalCode
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class NodeRequirements:
    """One consistent set of expressions that a node may be asked to satisfy; compared by identity."""

    expressions: tuple[Requirement, ...]
    requirements: Requirements
    """The expressions merged."""


@dataclass(frozen=True, slots=True, eq=False)
class PodRequirements:
    """What the node selector and node affinity of a pod shape say; compared by identity."""

    required: tuple[NodeRequirements, ...]
    """Alternatives, in the order of the terms; never empty."""
    preferred: tuple[tuple[int, tuple[Requirement, ...]], ...]
    """(weight, expressions), heaviest first; terms of equal weight in their order."""


def demand_of(shape: PodShape) -> PodRequirements | UnschedulableReason:
    """The demand of a shape, or why it cannot be planned."""
    fault = shape.invalid or _fault_of_requests(shape)
    if fault:
        return UnschedulableReason(RefusalCode.INVALID_POD, f"the pod cannot be read: {fault}")
    if shape.resource_claims:
        return UnschedulableReason(
            RefusalCode.RESOURCE_CLAIMS_NOT_PLANNED,
            f"the pod asks for devices by resourceClaims: {', '.join(shape.resource_claims)}; nodes are not "
            "planned by devices, it waits for a node that has them; hint: request the device as a resource, "
            "nvidia.com/gpu for example",
        )
    selector = tuple(Requirement.of(key, IN, (value,)) for key, value in shape.node_selector)
    usable = [term.expressions for term in shape.required_terms if _matches_something(term)]
    if shape.required_terms and not usable:
        return UnschedulableReason(
            RefusalCode.MATCH_FIELDS_NOT_PLANNED,
            "every required node affinity term is empty or uses matchFields, which names nodes that exist; "
            "hint: use matchExpressions",
        )
    possible = [known for expressions in usable or [()] if (known := matchable(expressions)) is not None]
    if not possible:
        return UnschedulableReason(
            RefusalCode.REQUIREMENTS_CONTRADICT, "the pod asks for labels with values that no label can have"
        )
    alternatives = [node_requirements_of((*selector, *expressions)) for expressions in possible]
    consistent = tuple(
        node_requirements
        for node_requirements in alternatives
        if isinstance(node_requirements, NodeRequirements)
    )
    if not consistent:
        return UnschedulableReason(
            RefusalCode.REQUIREMENTS_CONTRADICT, f"the pod contradicts itself: {alternatives[0]}"
        )
    reaching = _reaching(consistent, shape.volume_terms)
    if isinstance(reaching, UnschedulableReason):
        return reaching
    preferred = sorted(
        (
            (weight, expressions)
            for weight, term in shape.preferred_terms
            if term.expressions and not term.match_fields and (expressions := matchable(term.expressions))
        ),
        key=lambda entry: -entry[0],
    )
    return PodRequirements(reaching, tuple(preferred))


def matchable(expressions: Iterable[Requirement]) -> tuple[Requirement, ...] | None:
    """The expressions without values that no label can have; None where one of them can never hold.

    The API server takes any text as a value of preferred node affinity. No node bears it, so it says
    nothing where it is excluded, and must not get into the requirements and labels of a NodeClaim.
    """
    kept: list[Requirement] = []
    for one in expressions:
        values = frozenset(value for value in one.values if not label_value_defects(value))
        if values == one.values:
            kept.append(one)
        elif not one.complement and not values:
            return None
        elif values or one.minimum is not None or one.maximum is not None or not one.complement:
            kept.append(replace(one, values=values))
    return tuple(kept)


def _fault_of_requests(shape: PodShape) -> str:
    return next(
        (
            f"it requests {format_amount(name, amount)} of {name}"
            for name, amount in shape.requests
            if amount < 0
        ),
        "",
    )


def node_requirements_of(expressions: tuple[Requirement, ...]) -> NodeRequirements | Conflict:
    """Expressions as one set of requirements, or the first two that contradict each other."""
    by_key: dict[str, Requirement] = {}
    for expression in expressions:
        present = by_key.get(expression.key)
        if expression.is_impossible() or (present is not None and not present.overlaps(expression)):
            return Conflict(expression.key, expression, present or expression)
        by_key[expression.key] = expression if present is None else present.intersect(expression)
    return NodeRequirements(expressions, Requirements(by_key.values()))


def daemon_alternatives(shape: PodShape) -> tuple[tuple[Requirement, ...], ...]:
    """The alternatives of a daemon's pod, with what they ask of the node's name; preferences are ignored."""
    selector = tuple(Requirement.of(key, IN, (value,)) for key, value in shape.node_selector)
    terms: Iterable[tuple[Requirement, ...]] = [()]
    if shape.required_terms:
        terms = [(*term.expressions, *term.fields) for term in shape.required_terms]
        terms = [expressions for expressions in terms if expressions]
    return tuple((*selector, *expressions) for expressions in terms)


def _matches_something(term: NodeSelectorTerm) -> bool:
    """Kubernetes: a term without expressions matches no node; one on fields only matches nodes by name."""
    return bool(term.expressions) and not term.match_fields


def _reaching(
    alternatives: tuple[NodeRequirements, ...], terms: tuple[NodeSelectorTerm, ...]
) -> tuple[NodeRequirements, ...] | UnschedulableReason:
    """Each alternative with each place where the volumes can be reached, contradictions left out."""
    if not terms:
        return alternatives
    both = [
        node_requirements_of((*node_requirements.expressions, *term.expressions))
        for node_requirements in alternatives
        for term in terms
    ]
    consistent = tuple(
        node_requirements for node_requirements in both if isinstance(node_requirements, NodeRequirements)
    )
    if not consistent:
        return UnschedulableReason(
            RefusalCode.VOLUME_UNREACHABLE,
            f"a volume of the pod cannot be reached where it must run: {both[0]}",
        )
    return consistent
