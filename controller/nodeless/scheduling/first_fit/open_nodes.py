"""The nodes that a solve has opened, with what a search for room needs as arrays.

Invariant: row i of each array describes `nodes[i]`.
"""

from collections.abc import Sequence

import numpy as np

from nodeless.model.requirements import Requirements
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim, Part
from nodeless.scheduling.capacity.supply import ReservationManager
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass
from nodeless.scheduling.pods.constraints import NodeRequirements
from nodeless.scheduling.spread.sharing import Option
from nodeless.scheduling.topology.growing import Growing
from nodeless.scheduling.topology.node_filter import ExpectedNode
from nodeless.scheduling.topology.tracking import Topology

#: The domain of a node that may still come up in several.
_UNDECIDED = -1
#: The domain of a node that will not bear the label.
_ABSENT = -2


class OpenNodes:
    """Nodes in the order in which they were opened."""

    def __init__(self, resources: int, topology: Topology, supply: ReservationManager) -> None:
        self.supply = supply
        self.nodes: list[InFlightNodeClaim] = []
        self._topology = topology
        self._slack = Growing(resources)
        self._domain = {key: Growing(fill=_UNDECIDED) for key in topology.keys}
        self._ids: dict[str, int] = {}
        self._last: Part | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def append(self, node: InFlightNodeClaim) -> int:
        """Add a node; returns its index."""
        self.nodes.append(node)
        self._describe(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def adopt(self, node: InFlightNodeClaim) -> None:
        """Add a node with its pods."""
        index = self.append(node)
        for part in node.parts:
            self._count(part.pods, index, part.count)

    def refresh(self) -> None:
        """Nodes were narrowed by others."""
        for index in range(len(self.nodes)):
            self._describe(index)

    def repeat(self, pods: PodClass, waiting: Sequence[str]) -> InFlightNodeClaim:
        """Add a node like the last one, which holds as many pods of one class."""
        node = self.nodes[-1].twin(waiting)
        self._count(pods, self.append(node), len(waiting))
        return node

    def place(self, index: int, asked: Part, waiting: Sequence[str], want: int, start: int = 0) -> int:
        """Place at most `want` of the waiting pods on a node; returns how many.

        Args:
            index: The node.
            asked: The class and what is asked for it; its count plays no part.
            waiting: Keys of pods, in order.
            want: The most to place.
            start: The first of them that waits still.
        """
        pods, node = asked.pods, self.nodes[index]
        node_requirements: NodeRequirements | None = asked.node_requirements
        scarce = not self.supply.is_unchanged
        if scarce:
            node_requirements = self.supply.bind(asked.node_requirements, self.supply.way_of(node))
            want = min(want, self.supply.takes(node))
        count = node.place(pods, node_requirements, want) if node_requirements is not None else 0
        if node_requirements is not None and count:
            if scarce:
                self.supply.filled(node, count)
            node.pods.extend(waiting[start : start + count])
            node.parts.append(self._part(asked, node_requirements, count))
            self._describe(index)
            self._count(pods, index, count)
        return count

    def _part(self, asked: Part, node_requirements: NodeRequirements, count: int) -> Part:
        """What is asked, for so many pods; nodes that take as many of a class one after another share it."""
        last = self._last
        if (
            last is None
            or last.count != count
            or last.pods is not asked.pods
            or last.node_requirements is not node_requirements
            or last.rules is not asked.rules
            or last.tables is not asked.tables
        ):
            last = self._last = Part(asked.pods, node_requirements, asked.rules, asked.tables, count)
        return last

    def _count(self, pods: PodClass, index: int, number: int) -> None:
        if self._topology.counts_on_node(pods.adds, index):
            node = self.nodes[index]
            expected_node = ExpectedNode(node.table, node.terms.requirements)
            self._topology.count_on_node(pods.adds, index, expected_node, number)

    def roomy(self, requests: Amounts) -> Mask:
        """The nodes whose largest remaining type may hold one more such pod."""
        mask: Mask = np.logical_and.reduce(self._slack.first(len(self.nodes)) >= requests, axis=1)
        return mask

    def may_be(self, keys: Sequence[str], option: Option) -> Mask:
        """The nodes that are in an option's domains, or may still be."""
        mask: Mask = np.ones(len(self.nodes), dtype=np.bool_)
        for key, value in zip(keys, option, strict=True):
            domain = self._domain[key].first(len(self.nodes))
            wanted = _ABSENT if value is None else self._id(value)
            mask = mask & ((domain == wanted) | (domain == _UNDECIDED))
        return mask

    def best(
        self, index: int, pods: PodClass, by_option: Sequence[NodeRequirements], options: Sequence[int]
    ) -> int | None:
        """The option that keeps the node cheapest; equal prices by the order of the options."""
        if len(options) == 1:
            return options[0]
        priced = [(self.nodes[index].price(pods, by_option[i]), i) for i in options]
        price, option = min(priced, default=(float("inf"), -1))
        return option if price < float("inf") else None

    def _describe(self, index: int) -> None:
        node = self.nodes[index]
        self._slack.write(index, node.slack)
        for key, column in self._domain.items():
            column.write(index, self._domain_of(node.terms.requirements, key))

    def _domain_of(self, requirements: Requirements, key: str) -> int:
        label = requirements.get(key)
        if label is None or label.complement or len(label.values) > 1:
            return _UNDECIDED
        return self._id(next(iter(label.values))) if label.values else _ABSENT

    def _id(self, value: str) -> int:
        return self._ids.setdefault(value, len(self._ids))
