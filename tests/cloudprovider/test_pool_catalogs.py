"""What each pool may buy: an error that nobody expects concerns the pool that it comes from alone."""

from dataclasses import replace

from nodeless.cloudprovider.pool_catalogs import pool_catalogs, pools_sold
from nodeless.model import events
from nodeless.model.pools import NodeClass, Reference
from nodeless.model.snapshot import Snapshot
from nodeless.state import apply
from tests.factories import a_pool
from tests.scheduling.factories import FAMILY

BAD, GOOD = Reference("EC2NodeClass", "bad"), Reference("EC2NodeClass", "good")


def two_pools():
    snapshot = Snapshot()
    for node_class in (BAD, GOOD):
        pool = replace(a_pool(), reference=Reference("NodePool", node_class.name), node_class=node_class)
        snapshot = apply(snapshot, events.NodeClassSeen(NodeClass(node_class)))
        snapshot = apply(snapshot, events.PoolSeen(pool))
    return snapshot


class Broken:
    """A cloud with a defect that one node class meets."""

    async def list_sold_types(self, _pool, node_class):
        return self.answer(node_class, FAMILY)

    async def billed_catalog(self, _pool, node_class, _named=frozenset()):
        return self.answer(node_class, FAMILY)

    def answer(self, node_class, found):
        if node_class.reference == BAD:
            raise IndexError("tuple index out of range")
        return found


async def test_an_unexpected_error_of_one_pool_leaves_the_others_what_they_may_buy():
    catalog, problems = await pool_catalogs(Broken(), two_pools())

    assert catalog == {"NodePool/good": FAMILY}
    assert list(problems) == ["NodePool/bad"]
    assert "IndexError: tuple index out of range (answer, line" in problems["NodePool/bad"]
    assert "; hint: report this as a bug" in problems["NodePool/bad"]


async def test_an_unexpected_error_of_one_pool_leaves_the_others_what_is_sold_to_them():
    sold, problems = await pools_sold(Broken(), two_pools())

    assert [(pool.key, types) for pool, types in sold] == [("NodePool/good", FAMILY)]
    assert list(problems) == ["NodePool/bad"]
