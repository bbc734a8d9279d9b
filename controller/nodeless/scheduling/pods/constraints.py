"""What a pod shape asks of a node, as lists of expressions; and what cannot be planned yet.

Required node affinity terms are alternatives: a node must satisfy the node selector and
any one of them. Preferred terms never refuse a node. What other pods mean to a pod is the subject of
`rules`; where its volumes and devices are is found by `volumes` and `devices` and holds with any term.

Labels that are asked for are checked expression by expression, not only after merging: a
merged requirement cannot say "exists, and is not x", which is what two expressions may say.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

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


#: Combinations of places of volumes and devices that are followed; those after them are not tried.
_MOST_ALTERNATIVES = 64
_Expressions = tuple[Requirement, ...]

_VOLUME_UNREACHABLE = UnschedulableReason(
    RefusalCode.VOLUME_UNREACHABLE, "a volume of the pod cannot be reached where it must run"
)
_NO_DEVICE_FITS = UnschedulableReason(
    RefusalCode.NO_DEVICE_FITS, "no device that the pod claims or requests is where it must run"
)


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
    reaching = _reaching(consistent, shape.volume_terms, _VOLUME_UNREACHABLE)
    if not isinstance(reaching, UnschedulableReason):
        reaching = _reaching(reaching, shape.device_terms, _NO_DEVICE_FITS)
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


def with_expressions(
    alternatives: tuple[NodeRequirements, ...], expressions: _Expressions
) -> tuple[NodeRequirements, ...]:
    """Each alternative with more expressions; those that contradict them are left out."""
    if not expressions:
        return alternatives
    grown = (
        node_requirements_of((*node_requirements.expressions, *expressions))
        for node_requirements in alternatives
    )
    return tuple(
        node_requirements for node_requirements in grown if isinstance(node_requirements, NodeRequirements)
    )


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
    alternatives: tuple[NodeRequirements, ...],
    terms: tuple[NodeSelectorTerm, ...],
    otherwise: UnschedulableReason,
) -> tuple[NodeRequirements, ...] | UnschedulableReason:
    """Each alternative with each place where volumes or devices are, contradictions left out.

    `otherwise`: what is said, before the contradiction, where nothing is left.
    """
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
        return UnschedulableReason(otherwise.code, f"{otherwise.message}: {both[0]}")
    return consistent


def together(many: Iterable[tuple[NodeSelectorTerm, ...]]) -> tuple[NodeSelectorTerm, ...] | Conflict:
    """Terms under which all of some places are reached at once; none where there is no restriction.

    Args:
        many: Of each place (a volume, a device) the terms on a node, as alternatives; none: everywhere.

    Returns:
        Alternatives, or the first conflict where no node reaches all places.
    """
    combined: list[_Expressions] = [()]
    for terms in dict.fromkeys(many):
        alternatives = _alternatives(terms)
        grown: dict[Requirements, _Expressions] = {}
        conflict: Conflict | None = None
        for left, right in product(combined, alternatives):
            node_requirements = node_requirements_of(tuple(dict.fromkeys((*left, *right))))
            if isinstance(node_requirements, Conflict):
                conflict = conflict or node_requirements
            elif len(grown) < _MOST_ALTERNATIVES:
                grown.setdefault(node_requirements.requirements, node_requirements.expressions)
        if not grown and conflict is not None:
            return conflict
        combined = list(grown.values())
    return () if () in combined else tuple(NodeSelectorTerm(expressions) for expressions in combined)


def _alternatives(terms: tuple[NodeSelectorTerm, ...]) -> list[_Expressions]:
    """The expressions of each term; lists of values of one label become one list."""
    if any(not term.expressions for term in terms):
        return [()]
    keys = {one.key for term in terms for one in term.expressions}
    if len(keys) == 1 and all(len(term.expressions) == 1 and _listed(term.expressions[0]) for term in terms):
        values = frozenset(value for term in terms for value in term.expressions[0].values)
        return [(Requirement(keys.pop(), False, values),)]
    return [term.expressions for term in terms] or [()]


def _listed(requirement: Requirement) -> bool:
    return not requirement.complement and bool(requirement.values)
