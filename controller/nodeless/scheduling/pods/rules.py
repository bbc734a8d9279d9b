"""Rules between pods: topology spread, pod affinity, pod anti-affinity, as things to count.

A `TopologyGroup` says what is counted: pods (those that pod selectors select, or those that carry a
required anti-affinity term) in each domain of a topology key. Rules read topology groups. Equal
topology groups of different workloads are counted once. `counting` keeps the numbers.

Affinity follows kube-scheduler: a pod counts for required affinity when all required terms
select it, and the first pod of a group needs no other when it is selected by its own terms.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from nodeless.model.labels import ZONE, ZONE_ID, canonical_key
from nodeless.model.pods import LabelSelector, PodAffinityTerm, PodShape, TopologySpreadConstraint
from nodeless.model.requirements import IN, Requirement
from nodeless.model.taints import Toleration
from nodeless.scheduling.pods.selecting import Namespaces, PodSelector
from nodeless.scheduling.spread.sharing import ENDLESS

HARD = "DoNotSchedule"


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """The nodes on which a spread constraint counts pods, and whose domains must be balanced."""

    alternatives: tuple[tuple[Requirement, ...], ...]
    """What the pod requires of nodes and their names (any of them); one empty alternative: every node."""
    tolerations: tuple[Toleration, ...] | None
    """Nodes with a taint outside these are left out; None: taints play no part."""
    keys: tuple[str, ...]
    """Labels that a node must bear to take part."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.alternatives, self.tolerations, self.keys)))

    def __hash__(self) -> int:
        """Kept: each of hundreds of terms would be looked at again for every pod that is counted."""
        return self._hash


@dataclass(frozen=True, slots=True)
class TopologyGroup:
    """What is counted in each domain of a topology key."""

    key: str
    pod_selectors: tuple[PodSelector, ...]
    """A pod counts when all of them select it."""
    inverse_anti_affinity: bool = False
    """Count the pods that carry the one pod selector as a required anti-affinity term instead."""
    repels: bool = False
    """Read as "must be zero": a pod whose domain is not certain counts in each that is possible."""
    nodes: NodeFilter | None = None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        own = (self.key, self.pod_selectors, self.inverse_anti_affinity, self.repels, self.nodes)
        object.__setattr__(self, "_hash", hash(own))

    def __hash__(self) -> int:
        """Kept, for topology groups are looked up for every pod that is counted."""
        return self._hash


@dataclass(frozen=True, slots=True)
class Spread:
    """Not more than `max_skew` pods above the emptiest domain."""

    topology_group: TopologyGroup
    max_skew: int
    min_domains: int
    counts_itself: bool
    soft: bool


@dataclass(frozen=True, slots=True)
class Affinity:
    """Only where every topology group has counted a pod; `weight` None: required."""

    topology_groups: tuple[TopologyGroup, ...]
    counts_itself: bool
    weight: int | None


@dataclass(frozen=True, slots=True)
class AntiAffinity:
    """Only where the topology group has counted no pod; `weight` None: required."""

    topology_group: TopologyGroup
    counts_itself: bool
    weight: int | None


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything that other pods mean to a pod."""

    spread: tuple[Spread, ...] = ()
    affinity: tuple[Affinity, ...] = ()
    anti_affinity: tuple[AntiAffinity, ...] = ()
    repelled_by: tuple[TopologyGroup, ...] = ()
    """Topology groups of pods that carry an anti-affinity term which selects this pod."""

    def __bool__(self) -> bool:
        return bool(self.spread or self.affinity or self.anti_affinity or self.repelled_by)

    def topology_groups(self) -> Iterator[TopologyGroup]:
        yield from (rule.topology_group for rule in self.spread)
        yield from (topology_group for rule in self.affinity for topology_group in rule.topology_groups)
        yield from (rule.topology_group for rule in self.anti_affinity)
        yield from self.repelled_by

    def closing(self) -> Iterator[TopologyGroup]:
        """What closes domains to a pod with these rules when more is counted there."""
        yield from (rule.topology_group for rule in self.spread)
        yield from (rule.topology_group for rule in self.anti_affinity)
        yield from self.repelled_by

    def most_in_a_domain(self) -> int:
        """How many pods with these rules one empty domain takes when the others stay empty."""
        alone = [1 for rule in self.anti_affinity if rule.counts_itself]
        return min([*alone, *(rule.max_skew for rule in self.spread if rule.counts_itself)], default=ENDLESS)

    def hard(self) -> "Rules":
        """Without preferences."""
        return replace(
            self,
            spread=tuple(rule for rule in self.spread if not rule.soft),
            affinity=tuple(rule for rule in self.affinity if rule.weight is None),
            anti_affinity=tuple(rule for rule in self.anti_affinity if rule.weight is None),
        )


NO_RULES = Rules()


def has_rules(shape: PodShape) -> bool:
    return bool(shape.spread or shape.affinity or shape.anti_affinity)


def carried(shape: PodShape, namespace: str, namespaces: Namespaces) -> tuple[TopologyGroup, ...]:
    """The topology groups that count a pod as carrier of its required anti-affinity terms."""
    return tuple(
        TopologyGroup(
            _domain_key(term.topology_key),
            (PodSelector.of(term, namespace, namespaces),),
            inverse_anti_affinity=True,
            repels=True,
        )
        for term in shape.anti_affinity
        if term.weight is None
    )


def rules_of(shape: PodShape, namespace: str, labels: Mapping[str, str], namespaces: Namespaces) -> Rules:
    """The rules that a pod itself declares; `repelled_by` is left empty."""
    required = [term for term in shape.affinity if term.weight is None]
    affinity: list[Affinity] = []
    if required:
        known = tuple(PodSelector.of(term, namespace, namespaces) for term in required)
        keys = dict.fromkeys(_domain_key(term.topology_key) for term in required)
        affinity.append(_affinity(tuple(keys), known, namespace, labels, None))
    for term in shape.affinity:
        if term.weight is not None:
            wanted = PodSelector.of(term, namespace, namespaces)
            affinity.append(
                _affinity((_domain_key(term.topology_key),), (wanted,), namespace, labels, term.weight)
            )
    return Rules(
        spread=tuple(_spread(constraint, shape, namespace, labels) for constraint in shape.spread),
        affinity=tuple(affinity),
        anti_affinity=tuple(
            _anti_affinity(term, namespace, labels, namespaces) for term in shape.anti_affinity
        ),
    )


def _affinity(
    keys: tuple[str, ...],
    pod_selectors: tuple[PodSelector, ...],
    namespace: str,
    labels: Mapping[str, str],
    weight: int | None,
) -> Affinity:
    itself = all(pod_selector.selects(namespace, labels) for pod_selector in pod_selectors)
    return Affinity(tuple(TopologyGroup(key, pod_selectors) for key in keys), itself, weight)


def _anti_affinity(
    term: PodAffinityTerm, namespace: str, labels: Mapping[str, str], namespaces: Namespaces
) -> AntiAffinity:
    pod_selector = PodSelector.of(term, namespace, namespaces)
    topology_group = TopologyGroup(_domain_key(term.topology_key), (pod_selector,), repels=True)
    return AntiAffinity(topology_group, pod_selector.selects(namespace, labels), term.weight)


def _spread(
    constraint: TopologySpreadConstraint, shape: PodShape, namespace: str, labels: Mapping[str, str]
) -> Spread:
    selector = constraint.selector
    pinned = tuple((key, IN, (labels[key],)) for key in sorted(constraint.match_label_keys) if key in labels)
    if selector is not None and pinned:
        selector = LabelSelector(selector.match_labels, (*selector.match_expressions, *pinned))
    pod_selector = PodSelector(selector, (namespace,))
    soft = constraint.when_unsatisfiable != HARD
    return Spread(
        TopologyGroup(
            _domain_key(constraint.topology_key),
            (pod_selector,),
            nodes=_filter(constraint, shape, soft=soft),
        ),
        max(1, constraint.max_skew),
        constraint.min_domains or 1,
        pod_selector.selects(namespace, labels),
        soft,
    )


def _filter(constraint: TopologySpreadConstraint, shape: PodShape, *, soft: bool) -> NodeFilter:
    alternatives: tuple[tuple[Requirement, ...], ...] = ((),)
    if constraint.node_affinity_policy == "Honor":
        selector = tuple(Requirement.of(key, IN, (value,)) for key, value in shape.node_selector)
        asked = [(*term.expressions, *term.fields) for term in shape.required_terms]
        # A term that asks for nothing matches no node.
        terms = [expressions for expressions in asked if expressions] if asked else [()]
        alternatives = tuple((*selector, *expressions) for expressions in terms)
    keys = {
        _domain_key(other.topology_key)
        for other in shape.spread
        if (other.when_unsatisfiable != HARD) == soft
    }
    tolerations = shape.tolerations if constraint.node_taints_policy == "Honor" else None
    return NodeFilter(alternatives, tolerations, tuple(sorted(keys)))


def _domain_key(topology_key: str) -> str:
    """The label that tells domains apart: a zone has one name and one id, so names do for both."""
    key = canonical_key(topology_key)
    return ZONE if key == ZONE_ID else key
