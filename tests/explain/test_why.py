"""Why a node is what it is."""

from nodeless.explain import why
from tests.scheduling.factories import FAMILY, instance_type, plan, pods


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
