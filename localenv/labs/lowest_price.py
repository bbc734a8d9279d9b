"""The third article's two tests, second and third run: as cheap as possible.

From the size large up, the lowest price gives the article's nodes again: two smaller ones cost as much as
one and have a volume more. With the whole family the small sizes are open too: what nodeless does by default.

Prices are those of nodes, the article's as well: a t3a earns a part of its CPU, and pods that use what they
request pay for the rest. By the price of its instance a small one costs a sixteenth of the article's node, by
its bill a fifth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from math import fsum
from typing import NamedTuple

from localenv.labs.cluster_view import NodeRow
from localenv.labs.fewest_nodes import STATIC_TYPE, FewestNodes
from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from nodeless.cloudprovider.aws.offline_catalogs import offline_catalogs
from nodeless.cloudprovider.billing.terms import BillTerms
from nodeless.explain.bill import bill_line, sums
from nodeless.model import events
from nodeless.model.bill import ADDRESSES, PARTS, BillPart
from nodeless.model.labels import ON_DEMAND, PLANNED_BECAUSE
from nodeless.model.pools import AWS_NODE_TEMPLATE, PROVISIONER, NodeClass, Pool, Reference
from nodeless.model.snapshot import Snapshot
from nodeless.state import apply

#: Words of a claim's note that say why its type was chosen.
_REASON = "cheapest that holds "


class LargeAndUp(FewestNodes):
    """The article's promises, kept by price alone."""

    name = "lowest-price-large-and-up"
    title = "Lowest price, sizes large and up: equal prices, so fewer nodes, as with the fewest nodes"
    provisioner = "lowest-price/provisioner-large-and-up.yaml"


class LowestPrice(FewestNodes):
    """The default, beside the article's price."""

    name = "lowest-price"
    title = "Lowest price, the whole family: what nodeless does by default, beside the article's price"
    provisioner = "lowest-price/provisioner.yaml"

    def steps(self) -> None:
        self.begin()
        self.five_pods("1")
        self._cheaper("test 1", than="t3a.2xlarge", pods=5)
        self._check_reasons("test 1")
        self.empty("the nodes go when they are empty")
        self.five_pods("500m")
        self._cheaper("test 2", than="t3a.xlarge", pods=4)
        self._check_reasons("test 2")

    def _cheaper(self, test: str, than: str, pods: int) -> None:
        """The pods that the t3a.medium has no room for are on new nodes that cost less than the article's."""
        article = bill_of([than])

        def look() -> str:
            new = [node for node in self.view().instances if node.instance_type != STATIC_TYPE]
            ours = bill_of([node.instance_type for node in new])
            holding = sum(name.startswith("inflate-") for node in new for name in node.pods)
            if holding != pods or not 0 < ours.dollars < article.dollars:
                return ""
            saved = 1 - ours.dollars / article.dollars
            return (
                f"{_count_types(new)}, USD/h: {ours.text}\n"
                f"{saved:.0%} less than the article's {than}: {article.text}"
            )

        self.expect(
            f"{test}: {pods} pods on new nodes, for less than the article's one {than}", look, seconds=5
        )

    def _check_reasons(self, test: str) -> None:
        """Each claim says why its node is of this type, and what the next ones cost."""

        def look() -> str:
            notes = [claim["metadata"].get("annotations", {}) for claim in self.claims()]
            told = [note.get(PLANNED_BECAUSE, "") for note in notes]
            return "\n".join(sorted(set(told))) if told and all(_REASON in text for text in told) else ""

        self.expect(f"{test}: the claims say why each node is what it is", look)


class NodeBill(NamedTuple):
    """What nodes cost together: dollars an hour, and the same in words, by its parts."""

    dollars: float
    text: str


def bill_of(types: Sequence[str]) -> NodeBill:
    """The bill of on-demand nodes of the lab's template, one of each instance type named."""
    bills = [node_bills()[name] for name in types]
    dollars = fsum(price for price, _ in bills)
    together = [BillPart(each.name, each.dollars) for each in sums(parts for _, parts in bills)]
    # What a part consists of ("4 GiB gp3, 20 GiB gp3") is told of one node only.
    return NodeBill(dollars, bill_line(dollars, bills[0][1] if len(bills) == 1 else together))


@cache
def node_bills() -> Mapping[str, tuple[float, tuple[BillPart, ...]]]:
    """On-demand prices of nodes of the lab's template in dollars an hour, and their parts, by type."""
    template = NodeClass(Reference(AWS_NODE_TEMPLATE, "default"), ami_family="Bottlerocket")
    pool = Pool(Reference(PROVISIONER, "default"), template.reference)
    seen = Snapshot()
    for event in (events.PoolSeen(pool), events.NodeClassSeen(template)):
        seen = apply(seen, event)
    # The subnets of nodes are private.
    terms = BillTerms(parts=frozenset(PARTS) - {ADDRESSES})
    catalog, _ = offline_catalogs(bundled_catalog(), seen, bundled_catalog().all_zones, terms)
    return {
        instance_type.name: (offering.price, offering.parts)
        for instance_type in catalog[pool.key]
        for offering in instance_type.offerings
        if offering.capacity_type == ON_DEMAND
    }


def _count_types(nodes: list[NodeRow]) -> str:
    counts = Counter(node.instance_type for node in nodes)
    return ", ".join(f"{number} x {name}" for name, number in sorted(counts.items()))
