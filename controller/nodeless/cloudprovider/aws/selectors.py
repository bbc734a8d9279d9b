"""Selector terms of a node class as EC2 filters. Pure.

A term's members must all match; terms are alternatives, so each is a call of its own
and the answers are united.
"""

from collections.abc import Sequence
from typing import Any

from nodeless.cloudprovider import NodeClassUnresolved
from nodeless.model.pools import EC2_NODE_CLASS, NodeClass, SelectorTerm

#: Karpenter v1's reasons for what selects nothing.
IMAGES_NOT_FOUND = "AMINotFound"
_REASONS = {
    "subnetSelector": "SubnetsNotFound",
    "securityGroupSelector": "SecurityGroupsNotFound",
    "amiSelector": IMAGES_NOT_FOUND,
}


def filters_of(term: SelectorTerm, *, id_filter: str, name_filter: str) -> list[dict[str, Any]]:
    """EC2 filters, all of which must match; `*` as the only pattern asks for the tag's key alone."""
    filters: list[dict[str, Any]] = []
    if term.ids:
        filters.append({"Name": id_filter, "Values": list(term.ids)})
    if term.names:
        filters.append({"Name": name_filter, "Values": list(term.names)})
    for key, patterns in term.tags:
        if patterns == ("*",):
            filters.append({"Name": "tag-key", "Values": [key]})
        else:
            filters.append({"Name": f"tag:{key}", "Values": list(patterns)})
    return filters


def describe(terms: Sequence[SelectorTerm]) -> str:
    """The terms as a reader wrote them: `karpenter.sh/discovery=demo`, alternatives joined by `or`."""
    return " or ".join(_describe(term) for term in terms) or "(empty)"


def _describe(term: SelectorTerm) -> str:
    parts = [f"{key}={','.join(patterns)}" for key, patterns in term.tags]
    parts += [f"ids={','.join(term.ids)}"] if term.ids else []
    parts += [f"names={','.join(term.names)}"] if term.names else []
    parts += [f"parameters={','.join(term.parameters)}"] if term.parameters else []
    parts += [f"owners={','.join(term.owners)}"] if term.owners else []
    return ", ".join(parts)


def nothing_selected(
    node_class: NodeClass, field: str, terms: Sequence[SelectorTerm], nouns: str, region: str
) -> NodeClassUnresolved:
    """The error for a selector that matches nothing; `field` as v1alpha1 spells it, `nouns` as `subnets`."""
    name = f"{field}Terms" if node_class.reference.kind == EC2_NODE_CLASS else field
    selector = describe(terms)
    if not terms:
        message, hint = f"{name} is empty, no {nouns} can be found", f"set spec.{name}"
    else:
        message = f"no {nouns} match {name} {selector} in {region or 'the region'}"
        hint = f"tag the {nouns} with {selector}, or correct spec.{name}"
    return NodeClassUnresolved(node_class.reference, name, message, hint, _REASONS.get(field, "NotFound"))
