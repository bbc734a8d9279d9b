"""Wishes of a class are hard at first, then given up one after the other.

1. Of the preferred node affinity terms, heaviest first, those are kept that some node could
   satisfy together with the ones kept before; the others are given up at once.
2. Required node affinity terms are alternatives, tried in their order at every step; where nodes are
   chosen by price, the one with the cheapest nodes first.
3. What cannot be placed gives up preferred pod affinity, the heaviest first, then preferred
   pod anti-affinity, the heaviest first;
4. then the kept preferred node affinity terms, the lightest first;
5. then topology spread with ScheduleAnyway, in the order of the pod's list;
6. last, PreferNoSchedule taints are tolerated, and 1 to 5 are tried again.

The order of the kinds is Karpenter's. Room on nodes that exist is not bound by preferences, as
kube-scheduler would not leave it unused for them (`filling`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from nodeless.scheduling.capacity.pool_table import PoolTable, Terms
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import Amounts, PodClass
from nodeless.scheduling.pods.constraints import NodeRequirements, with_expressions
from nodeless.scheduling.pods.rules import Affinity, AntiAffinity, Rules

#: Seconds for each expression of requirements that are made.
_WISH = 1.5e-6

Rank = Callable[[PoolTable, PodClass, Terms, Amounts], float | None]
"""What room for a pod costs on fresh nodes under terms, given how many each type holds; None: no matter."""


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """What is asked of a new node at one step of the relaxation."""

    node_requirements: NodeRequirements
    rules: Rules
    soft_taints: bool
    """PreferNoSchedule taints are tolerated."""


def attempts(pods: PodClass, tables: Sequence[PoolTable], rank: Rank, meter: Meter) -> Iterator[Attempt]:
    """Everything that may be tried for a class, in order; `rank` tells what alternatives cost.

    It ends early when the class has used its share of the pass.
    """
    for soft in _softness(pods, tables):
        kept: list[tuple[NodeRequirements, ...]] = [pods.demand.required]
        for _, expressions in pods.demand.preferred:
            if meter.over:
                return
            meter.spend(
                _WISH
                * sum(len(node_requirements.expressions) + len(expressions) for node_requirements in kept[-1])
            )
            wanted = with_expressions(kept[-1], expressions)
            if any(_possible(pods, node_requirements, tables, soft=soft) for node_requirements in wanted):
                kept.append(wanted)
        for alternatives, rules in _steps(kept, pods.rules):
            for node_requirements in _cheapest_first(pods, alternatives, tables, rank, soft=soft):
                yield Attempt(node_requirements, rules, soft)
            beside, others = beside_daemons(pods, alternatives, rules)
            for node_requirements in _cheapest_first(pods, beside, tables, rank, soft=soft):
                yield Attempt(node_requirements, others, soft)


def beside_daemons(
    pods: PodClass, alternatives: tuple[NodeRequirements, ...], rules: Rules
) -> tuple[tuple[NodeRequirements, ...], Rules]:
    """What is asked of a node whose DaemonSets satisfy a class's affinity, and the rules that are left."""
    daemon_rules = pods.daemon_rules
    if daemon_rules is None or not daemon_rules.beside:
        return (), rules
    left = tuple(rule for rule in rules.affinity if rule != daemon_rules.affinity)
    beside = tuple(
        node_requirements
        for expressions in daemon_rules.beside
        for node_requirements in with_expressions(alternatives, expressions)
    )
    return beside, replace(rules, affinity=left)


def _cheapest_first(
    pods: PodClass,
    alternatives: tuple[NodeRequirements, ...],
    tables: Sequence[PoolTable],
    rank: Rank,
    *,
    soft: bool,
) -> Sequence[NodeRequirements]:
    """Alternatives by the least price of room for a pod, in the first pool that accepts them."""
    if len(alternatives) == 1:
        return alternatives
    prices = []
    for node_requirements in alternatives:
        found = (
            (table, fresh)
            for table in tables
            if table.refuses(pods.shape.tolerations, soft=soft) is None
            and (fresh := table.fresh(pods, node_requirements)) is not None
        )
        table, fresh = next(found, (None, None))
        if table is None or fresh is None:
            prices.append(float("inf"))
            continue
        price = rank(table, pods, *fresh)
        if price is None:
            return alternatives
        prices.append(price)
    order = sorted(range(len(alternatives)), key=lambda index: (round(prices[index], 9), index))
    return [alternatives[index] for index in order]


def _steps(
    kept: Sequence[tuple[NodeRequirements, ...]], rules: Rules
) -> Iterator[tuple[tuple[NodeRequirements, ...], Rules]]:
    yield kept[-1], rules
    for affinity in _heaviest_first(rules.affinity):
        rules = replace(rules, affinity=tuple(rule for rule in rules.affinity if rule is not affinity))
        yield kept[-1], rules
    for anti in _heaviest_first(rules.anti_affinity):
        rules = replace(rules, anti_affinity=tuple(rule for rule in rules.anti_affinity if rule is not anti))
        yield kept[-1], rules
    for alternatives in reversed(kept[:-1]):
        yield alternatives, rules
    for spread in [rule for rule in rules.spread if rule.soft]:
        rules = replace(rules, spread=tuple(rule for rule in rules.spread if rule is not spread))
        yield kept[0], rules


def _heaviest_first(
    rules: "Sequence[Affinity] | Sequence[AntiAffinity]",
) -> "list[Affinity | AntiAffinity]":
    return sorted((rule for rule in rules if rule.weight is not None), key=lambda rule: -(rule.weight or 0))


def _softness(pods: PodClass, tables: Sequence[PoolTable]) -> tuple[bool, ...]:
    """Whether tolerating PreferNoSchedule taints opens any pool to the class."""
    tolerations = pods.shape.tolerations
    gains = any(
        table.refuses(tolerations, soft=False) is not None and table.refuses(tolerations, soft=True) is None
        for table in tables
    )
    return (False, True) if gains else (False,)


def _possible(
    pods: PodClass, node_requirements: NodeRequirements, tables: Sequence[PoolTable], *, soft: bool
) -> bool:
    """Whether some pool could make a node for one pod of the class, limits aside."""
    return any(
        table.refuses(pods.shape.tolerations, soft=soft) is None
        and table.fresh(pods, node_requirements) is not None
        for table in tables
    )
