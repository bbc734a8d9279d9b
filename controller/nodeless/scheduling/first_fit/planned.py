"""The nodes of a plan, out of those that a solve has filled."""

from collections.abc import Iterable

from nodeless.model.identity import places_of_same
from nodeless.model.plan import Alternative, PlannedNode
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirements
from nodeless.model.resources import Resources
from nodeless.scheduling.capacity.diversity import chosen_rows, lowered
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim
from nodeless.scheduling.pods.eligibility import POOL_KEYS
from nodeless.scheduling.pods.volumes import without_attachments


def planned(nodes: Iterable[InFlightNodeClaim], max_alternatives: int) -> tuple[PlannedNode | None, ...]:
    """The nodes to launch, each with its types, cheapest first; nodes that are alike share them.

    None stands for a node of which what is left of its types does not meet the pool's minValues.
    """
    some = list(nodes)
    memo: dict[object, _NodeTemplate | None] = {}
    result: list[PlannedNode | None] = [None] * len(some)
    # Twins share their arrays.
    for twins in places_of_same([(node.table, node.terms, node.types, node.used) for node in some]):
        known = _template_and_requests(some[twins[0]], memo, max_alternatives)
        if known is not None:
            for twin in twins:
                result[twin] = _planned_node(some[twin], *known)
    return tuple(result)


def _template_and_requests(
    node: InFlightNodeClaim, memo: "dict[object, _NodeTemplate | None]", max_alternatives: int
) -> "tuple[_NodeTemplate, Resources] | None":
    by_price = tuple(node.by_price())
    alike = (node.table, node.terms, by_price)
    if alike not in memo:
        memo[alike] = _template(node, by_price, max_alternatives)
    template = memo[alike]
    if template is None:
        return None
    table = node.table
    requests = table.table.axis.resources(node.used + table.daemons[template[0][0]])
    return template, without_attachments(requests)


_NodeTemplate = tuple[tuple[int, ...], Requirements, tuple[Alternative, ...], bool]
"""Rows of the types, what is required, the types, and whether minValues were lowered."""


def _template(
    node: InFlightNodeClaim, by_price: tuple[int, ...], max_alternatives: int
) -> _NodeTemplate | None:
    table, types, terms = node.table, node.table.table, node.terms
    rows = chosen_rows(types, list(by_price), table.wanted, terms.requirements, max_alternatives)
    relaxed = lowered(types, rows, table.wanted, terms.requirements)
    if relaxed is not None and table.least:
        return None
    alternatives = tuple(
        Alternative(types.types[row].name, offering)
        for row, offering in zip(rows, types.cheapest_offerings(rows, terms.requirements), strict=True)
    )
    required = _without_implied(relaxed or terms.requirements, table.pool)
    return tuple(rows), required, alternatives, relaxed is not None


def _planned_node(node: InFlightNodeClaim, template: _NodeTemplate, requests: Resources) -> PlannedNode:
    _, requirements, alternatives, relaxed = template
    pool = node.table.pool
    return PlannedNode(
        pool=pool.reference,
        node_class=pool.node_class,
        requirements=requirements,
        requests=requests,
        pods=tuple(sorted(node.pods)),
        alternatives=alternatives,
        min_values_relaxed=relaxed,
    )


def _without_implied(requirements: Requirements, pool: Pool) -> Requirements:
    """Without the labels that name pools, unless the pool's own requirements speak of them."""
    return Requirements(
        requirement
        for requirement in requirements.values()
        if requirement.key in pool.requirements or requirement.key not in POOL_KEYS
    )
