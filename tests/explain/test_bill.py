"""The bill of what runs: which nodes are in it, at whose price, and what of it is not known."""

from dataclasses import replace
from functools import reduce

import pytest

from nodeless.explain.bill import pool_bills, term_notes
from nodeless.explain.fill import existing_nodes
from nodeless.model.bill import Bill, BillPart
from nodeless.model.commitments import Commitment
from nodeless.model.events import ClaimSeen, NodeSeen, PoolSeen
from nodeless.model.instance_types import Offering
from nodeless.model.labels import CAPACITY_TYPE, EKS_CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from nodeless.model.nodes import Node
from nodeless.model.plan import Plan
from nodeless.model.pools import Reference
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.pricing import priced
from nodeless.state import apply
from tests.factories import a_claim, a_launched_claim, a_pool
from tests.scheduling.factories import instance_type

POOL = a_pool()
OTHER = replace(POOL, reference=Reference(POOL.reference.kind, "other"))
LABELS = {INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a", CAPACITY_TYPE: "on-demand"}
VOLUMES = BillPart("volumes", 0.002, "20 GiB gp3")


def claims(*found):
    return reduce(apply, [PoolSeen(POOL), *map(ClaimSeen, found)], Snapshot())


def claim(name="a", **labels):
    return a_launched_claim(name, labels={**LABELS, **labels})


def sold(*parts, price=0.1, pool=POOL, **fields):
    offering = Offering("us-east-1a", "on-demand", price, **fields)
    if parts:
        bill = Bill(price, parts)
        offering = replace(offering, price=bill.total, bill=bill)
    return {pool.key: (instance_type("m5.large", offerings=(offering,)),)}


def test_the_bill_of_a_pool_is_the_sum_of_its_nodes_by_part():
    bill = pool_bills(claims(claim("a"), claim("b")), sold(VOLUMES), node_fee=0.01)[POOL.name]
    assert bill.parts == pytest.approx({"instance": 0.2, "volumes": 0.004, "node fee": 0.02})
    assert bill.total == pytest.approx(0.224)
    assert not any(bill.unknown.values())


def test_a_claim_without_an_instance_costs_nothing_yet():
    bill = pool_bills(claims(a_claim("waits")), sold(VOLUMES))[POOL.name]
    assert (bill.nodes, bill.total, dict(bill.parts), dict(bill.unknown)) == (0, 0.0, {}, {})


def test_a_node_that_ends_costs_until_it_is_gone():
    ending = replace(claim(), deletion_timestamp=1.0)
    assert pool_bills(claims(ending), sold(VOLUMES))[POOL.name].total == pytest.approx(0.102)


def test_a_node_whose_pool_buys_nothing_any_more_costs_what_others_pay():
    assert pool_bills(claims(claim()), sold(pool=OTHER))[POOL.name].total == pytest.approx(0.1)


def test_a_sold_out_offering_has_its_price():
    assert pool_bills(claims(claim()), sold(available=False))[POOL.name].total == pytest.approx(0.1)


def test_an_instance_that_is_paid_for_already_is_known_to_be_free():
    free = Offering(
        "us-east-1a", "on-demand", 0.002, bill=Bill(0.1, (BillPart("adjustments", -0.1), VOLUMES))
    )
    bill = pool_bills(claims(claim()), {POOL.key: (instance_type("m5.large", offerings=(free,)),)})[POOL.name]
    assert bill.total == pytest.approx(0.002)
    assert not any(bill.unknown.values())


def test_a_node_of_unknown_price_is_in_no_sum():
    bill = pool_bills(claims(claim("a"), claim("b", **{INSTANCE_TYPE: "x"})), sold(), 0.01)[POOL.name]
    assert bill.parts == pytest.approx({"instance": 0.1, "node fee": 0.01})
    assert bill.unknown == {"instance": 1, "node fee": 0}


def test_a_part_of_which_some_volumes_are_not_known_is_told_once_a_node():
    unknown = BillPart("volumes", None, "b: no price of gp9"), BillPart("volumes", None, "c: no price of gp9")
    bill = pool_bills(claims(claim("a"), claim("b")), sold(VOLUMES, *unknown))[POOL.name]
    assert bill.unknown == {"instance": 0, "volumes": 2}
    assert bill.parts["volumes"] == pytest.approx(0.004)


def test_a_fee_gives_no_price_to_what_nobody_prices():
    catalog = priced(sold(price=0.0, available=False), [POOL], (), 0.02)
    (offering,) = catalog[POOL.key][0].offerings
    assert not offering.price_known


@pytest.mark.parametrize(
    ("labels", "capacity_type", "price"),
    [
        ({EKS_CAPACITY_TYPE: "SPOT"}, "spot", 0.04),
        ({EKS_CAPACITY_TYPE: "ON_DEMAND"}, "on-demand", 0.1),
        ({EKS_CAPACITY_TYPE: "CAPACITY_BLOCK"}, "reserved", None),
        ({EKS_CAPACITY_TYPE: "SPOT", CAPACITY_TYPE: "on-demand"}, "on-demand", 0.1),
        ({}, "", 0.1),
    ],
)
def test_a_node_of_a_managed_node_group_costs_what_its_capacity_type_does(labels, capacity_type, price):
    node = Node("theirs", labels={INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a", **labels})
    offerings = (Offering("us-east-1a", "spot", 0.04), Offering("us-east-1a", "on-demand", 0.1))
    catalog = {POOL.key: (instance_type("m5.large", offerings=offerings),)}
    (fill,) = existing_nodes(apply(claims(), NodeSeen(node)), catalog, Plan())
    assert (fill.capacity_type, fill.price) == (capacity_type, price)


def test_commitments_that_do_not_count_now_are_told_with_their_day():
    day = 86400.0
    some = [
        Commitment("old", dollars=1, end=day),
        Commitment("new", dollars=1, start=3.5 * day),
        Commitment("now", dollars=1, start=day, end=3 * day),
    ]
    assert list(term_notes(some, 2 * day)) == [
        "commitment old ended 1970-01-02",
        "commitment new begins 1970-01-04T12:00:00Z",
    ]
