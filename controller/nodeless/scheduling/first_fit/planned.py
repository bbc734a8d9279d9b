"""The nodes of a plan, out of those that a solve has filled."""

from collections.abc import Collection, Iterable, Mapping, Set
from types import MappingProxyType

from nodeless.model.identity import places_of_same
from nodeless.model.plan import Alternative, PlannedNode
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirements
from nodeless.model.resources import Resources
from nodeless.scheduling.capacity.diversity import chosen_rows, lowered
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim
from nodeless.scheduling.devices import without_devices
from nodeless.scheduling.pods.eligibility import POOL_KEYS
from nodeless.scheduling.pods.volumes import without_attachments


def planned(
    nodes: Iterable[InFlightNodeClaim],
    max_alternatives: int,
    beyond: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> tuple[PlannedNode | None, ...]:
    """The nodes to launch, each with its types, cheapest first; nodes that are alike share them.

    None stands for a node of which what is left of its types does not meet the pool's minValues. What a type
    has by devices alone (`beyond`: by resource, names of such types) is not asked of the cloud.
    """
    some = list(nodes)
    memo: dict[object, _NodeTemplate | None] = {}
    asked = _asked_of_the_cloud(some[0].table.table.axis.names) if some else None
    result: list[PlannedNode | None] = [None] * len(some)
    # Twins share their arrays.
    for twins in places_of_same([(node.table, node.terms, node.types, node.used) for node in some]):
        known = _template_and_requests(some[twins[0]], memo, max_alternatives, asked)
        if known is not None:
            known = _without(known, beyond)
            for twin in twins:
                result[twin] = _planned_node(some[twin], *known)
    return tuple(result)


def _asked_of_the_cloud(names: Iterable[str]) -> Set[str] | None:
    """The resources of instances, without those of drivers that run on them; None: all of them."""
    every = dict.fromkeys(names, 1)
    kept = without_devices(without_attachments(every))
    return kept.keys() if len(kept) < len(every) else None


def _template_and_requests(
    node: InFlightNodeClaim,
    memo: "dict[object, _NodeTemplate | None]",
    max_alternatives: int,
    asked: Set[str] | None,
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
    if asked is None:
        return template, requests
    return template, {name: amount for name, amount in requests.items() if name in asked}


def _without(
    known: "tuple[_NodeTemplate, Resources]", beyond: Mapping[str, Collection[str]]
) -> "tuple[_NodeTemplate, Resources]":
    template, requests = known
    names = {alternative.instance_type for alternative in template[2]}
    served = {name for name, types in beyond.items() if name in requests and not names.isdisjoint(types)}
    if not served:
        return known
    return template, {name: amount for name, amount in requests.items() if name not in served}


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
