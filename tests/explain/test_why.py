"""Why a node is what it is."""

from dataclasses import replace

from nodeless.explain import why
from nodeless.explain.why import one_line
from nodeless.model.bill import Bill, BillPart, PriceSource
from tests.scheduling.factories import FAMILY, instance_type, plan, pods, pool


def test_the_chosen_type_its_price_and_the_next_three():
    types = tuple(instance_type(f"t{i}", 4, 4, price=1.0 + i / 10) for i in range(6))
    (new,) = plan(pods(2, "1"), types=types).new_nodes
    assert why(new).splitlines() == [
        "2 pods of Provisioner/default need cpu 2, pods 2 with their daemons",
        "cheapest that holds them: t0, spot in z1, 0.5000 USD/h",
        "next: t1, spot in z1, 0.5500 USD/h (+10.0 %)",
        "next: t2, spot in z1, 0.6000 USD/h (+20.0 %)",
        "next: t3, spot in z1, 0.6500 USD/h (+30.0 %)",
        "and 2 other types",
    ]


def test_a_replica_of_a_static_pool_says_so_and_how_many_pods_it_has_room_for():
    types = (instance_type("t", 4, 4, price=1.0),)
    (taken,) = plan(pool("batch", replicas=1), pods(2, "1"), types=types).new_nodes
    assert why(taken).splitlines() == [
        "one of the replicas of Provisioner/batch, which has room for 2 pods",
        "cheapest of the pool: t, spot in z1, 0.5000 USD/h",
        "no other instance type holds its daemons on the same terms",
    ]
    (empty,) = plan(pool("batch", replicas=1), types=types).new_nodes
    assert why(empty).splitlines()[0] == "one of the replicas of Provisioner/batch"


def billed(*parts, price, instance=0.1):
    """A planned node whose intended offering has such a bill."""
    (new,) = plan(pods(1), types=(instance_type("a", 4, 4, price=1.0),)).new_nodes
    offering = replace(new.alternatives[0].offering, price=price, bill=Bill(instance, parts))
    return replace(new, alternatives=(replace(new.alternatives[0], offering=offering),))


def bill_of(node):
    return [line for line in why(node).splitlines() if line.startswith("bill: ")]


def test_a_price_is_told_with_its_parts():
    node = billed(
        BillPart("adjustments", -0.02),
        BillPart("volumes", 0.0022, "20 GiB gp3"),
        BillPart("public IPv4", None, "subnets decide"),
        price=0.0822,
    )
    assert bill_of(node) == [
        "bill: 0.0822 = instance 0.1000 - adjustments 0.0200 + volumes 0.0022 (20 GiB gp3), "
        "not known: public IPv4 (subnets decide)"
    ]


def test_what_a_price_holds_beyond_its_bill_is_the_fee_of_the_node():
    node = billed(BillPart("volumes", 0.0022), price=0.1122)
    assert bill_of(node) == ["bill: 0.1122 = instance 0.1000 + volumes 0.0022 + node fee 0.0100"]


def test_an_instance_alone_has_no_bill_to_tell():
    assert bill_of(billed(price=0.1)) == []


def test_the_note_on_a_claim_tells_the_bill_in_one_of_its_lines():
    lines = one_line(billed(BillPart("volumes", 0.0022, "4 GiB gp3, 20 GiB gp3"), price=0.1022)).split("; ")
    assert "bill: 0.1022 = instance 0.1000 + volumes 0.0022 (4 GiB gp3, 20 GiB gp3)" in lines


def test_the_note_says_where_each_price_is_from():
    volumes = BillPart("volumes", 0.0022, sources=(PriceSource("AWS's EBS prices", "2021-07-14"),))
    node = billed(volumes, price=0.1122)
    listed = replace(node.alternatives[0].offering, source=PriceSource("catalog of us-east-1", "2026-11-21"))
    node = replace(node, alternatives=(replace(node.alternatives[0], offering=listed),))
    assert one_line(node).split("; ")[3] == (
        "prices: instance by catalog of us-east-1 (2026-11-21), volumes by AWS's EBS prices (2021-07-14), "
        "node fee by nodeless.nodeFee"
    )


def test_equal_prices_are_called_so():
    types = tuple(instance_type(name, 4, 4, price=1.0) for name in ("a", "b"))
    assert why(plan(pods(1), types=types).new_nodes[0]).splitlines()[-1].endswith("(same price)")


def test_a_node_without_alternative_says_so():
    (new,) = plan(pods(12, "1"), types=FAMILY).new_nodes
    assert why(new).splitlines()[-1] == "no other instance type holds them on the same terms"


def test_one_pod_is_told_as_one():
    (alone,) = plan(pods(1, "1"), types=FAMILY).new_nodes
    held, chosen, *_ = why(alone).splitlines()
    assert held.startswith("1 pod of Provisioner/default needs cpu 1, ")
    assert held.endswith(" with its daemons")
    assert chosen.startswith("cheapest that holds it: ")
