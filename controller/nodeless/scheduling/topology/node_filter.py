"""Whether a node that is being filled takes part in a spread constraint: yes, no, or not known yet.

Kubernetes counts pods and domains of a constraint only on nodes that the pod's node affinity
accepts, whose taints it tolerates (where the policies say so), and that bear all its topology
keys. Of a node to come some labels are open until it is narrowed further or launched.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    NODE_NAME,
    OS,
    WELL_KNOWN,
    ZONE,
)
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.taints import find_untolerated
from nodeless.scheduling.capacity.in_flight_node import may_satisfy
from nodeless.scheduling.capacity.pool_table import LATER_LABELS, PoolTable, prefers_only
from nodeless.scheduling.pods.rules import NodeFilter

#: Labels that every node bears, whatever is known of it.
ON_EVERY_NODE = frozenset((HOSTNAME, ZONE, CAPACITY_TYPE, INSTANCE_TYPE, ARCH, OS))
#: What a node is called; no pod knows it of a node to come.
NAMES = frozenset((HOSTNAME, NODE_NAME))


@dataclass(frozen=True, slots=True)
class ExpectedNode:
    """What is known of a node to come: its pool, and the requirements gathered on it."""

    table: PoolTable
    requirements: Requirements


def matches_node_filter(nodes: NodeFilter, node: ExpectedNode) -> bool | None:
    """Whether the node will be one of the filter's; None where it may be or not."""
    if nodes.tolerations is not None:
        hard = [taint for taint in node.table.pool.taints if not prefers_only(taint)]
        if find_untolerated(hard, nodes.tolerations) is not None:
            return False
    verdicts = [
        all_hold([_holds(expression, node) for expression in expressions])
        for expressions in nodes.alternatives
    ]
    return all_hold([any_holds(verdicts), *(_bears(key, node) for key in nodes.keys)])


def _holds(expression: Requirement, node: ExpectedNode) -> bool | None:
    if expression.key in NAMES:
        return LATER_LABELS[expression.key](expression)
    label = node.requirements.get(expression.key)
    if label is None and _open(expression.key, node):
        return None
    return may_satisfy(expression, label)


def _bears(key: str, node: ExpectedNode) -> bool | None:
    if key in ON_EVERY_NODE:
        return True
    label = node.requirements.get(key)
    if label is None:
        return None if _open(key, node) else False
    if label.is_empty():
        return False
    return None if label.allows_absence() else True


def _open(key: str, node: ExpectedNode) -> bool:
    """Whether a label that no requirement speaks of may come with the instance."""
    return key in WELL_KNOWN or node.table.table.carries(key)


def all_hold(verdicts: Sequence[bool | None]) -> bool | None:
    """The conjunction of verdicts of which some are not known."""
    return False if False in verdicts else None if None in verdicts else True


def any_holds(verdicts: Sequence[bool | None]) -> bool | None:
    """The disjunction of verdicts of which some are not known."""
    return True if True in verdicts else None if None in verdicts else False
