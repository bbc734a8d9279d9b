"""Which nodes are opened: as few as possible, each the cheapest type that holds its pods."""

import pytest

from nodeless.model.instance_types import Offering
from nodeless.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, PROVISIONER_NAME, SPOT, ZONE
from nodeless.model.pods import HostPort
from nodeless.model.taints import Taint, Toleration
from nodeless.scheduling import Policy
from tests.scheduling.factories import FAMILY, instance_type, needs, new_types, plan, pods, pool, term

ARM = instance_type("arm", 16, 128, arch="arm64")


def test_small_pods_share_the_cheapest_node_that_holds_them():
    result = plan(pods(5, "10m", "10Mi"))
    assert new_types(result) == ["small"]
    assert result.new_nodes[0].pods == tuple(f"default/web-{i}" for i in range(5))


def test_five_pods_of_one_cpu_take_one_node_of_the_next_size():
    assert new_types(plan(pods(5, "1"))) == ["xlarge"]


def test_what_exceeds_the_largest_type_goes_on_a_second_node_of_the_right_size():
    assert new_types(plan(pods(17, "1"))) == ["2xlarge", "large"]


def test_forty_pods_fill_twenty_nodes_when_each_holds_two():
    only = instance_type("default", 4, 4)
    result = plan(pods(40, "0", "1800M"), types=(only,))
    assert new_types(result) == ["default"] * 20


def test_no_node_holds_more_pods_than_its_type_allows():
    single = instance_type("single-pod", 4, 4, pods=1)
    assert new_types(plan(pods(3, "10m"), types=(single,))) == ["single-pod"] * 3


def test_a_large_and_a_small_pod_that_fit_no_common_node_get_two_types():
    types = tuple(instance_type(f"type-{i}", i + 1, 2 * (i + 1)) for i in range(5))
    assert new_types(plan(pods(1, "4500m", name="big"), pods(1, "1", name="small"), types=types)) == [
        "type-4",
        "type-1",
    ]


def test_the_cheapest_type_wins_even_when_it_is_larger_and_all_are_kept_in_order_of_price():
    types = (
        instance_type("small", 1, 1, price=2.0),
        instance_type("medium", 2, 2, price=3.0),
        instance_type("large", 4, 4, price=1.0),
    )
    (node,) = plan(pods(1, "1m"), types=types).new_nodes
    assert [alternative.instance_type for alternative in node.alternatives] == ["large", "small", "medium"]


def test_equal_prices_are_decided_by_name():
    types = tuple(instance_type(name, 4, 4, price=1.0) for name in ("b", "c", "a"))
    (node,) = plan(pods(1), types=types).new_nodes
    assert [alternative.instance_type for alternative in node.alternatives] == ["a", "b", "c"]


def test_the_cheapest_types_are_kept_when_there_are_more_than_may_be():
    types = tuple(instance_type(f"t{i:03}", 4, 4, price=1.0 + i) for i in range(80))
    (node,) = plan(pods(1), types=types, policy=Policy(max_alternatives=7)).new_nodes
    assert [alternative.instance_type for alternative in node.alternatives] == [f"t{i:03}" for i in range(7)]


def test_spot_is_bought_where_it_is_cheaper_and_allowed():
    assert plan(pods(1)).new_nodes[0].alternatives[0].offering.capacity_type == SPOT
    on_demand = plan(pods(1), pool("default", needs(CAPACITY_TYPE, "In", ON_DEMAND)))
    assert on_demand.new_nodes[0].alternatives[0].offering.capacity_type == ON_DEMAND


def test_sold_out_offerings_are_passed_over():
    sold_out = instance_type("cheap", 4, 4, offerings=(Offering("z1", SPOT, 0.01, available=False),))
    assert new_types(plan(pods(1), types=(sold_out, *FAMILY))) == ["medium"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({ARCH: "amd64"}, {ARCH: "arm64"}),
        ({ZONE: "z1"}, {ZONE: "z2"}),
        ({INSTANCE_TYPE: "small"}, {INSTANCE_TYPE: "large"}),
    ],
)
def test_pods_that_select_different_nodes_get_different_nodes(first, second):
    result = plan(
        pods(1, "100m", name="a", selector=first),
        pods(1, "100m", name="b", selector=second),
        types=(*FAMILY, ARM),
    )
    assert len(result.new_nodes) == 2
    for node in result.new_nodes:
        wanted = first if node.pods == ("default/a-0",) else second
        assert all(node.requirements[key].values == {value} for key, value in wanted.items())


def test_rq_13_an_older_spelling_of_the_zone_label_selects_the_zone():
    result = plan(pods(1, selector={"failure-domain.beta.kubernetes.io/zone": "z3"}))
    assert result.new_nodes[0].alternatives[0].offering.zone == "z3"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (needs(ARCH, "In", "arm64"), ["arm"]),
        (needs(ARCH, "NotIn", "amd64"), ["arm"]),
        (needs("example.com/cores", "Gt", "8"), ["arm"]),
        (needs("example.com/cores", "Lt", "16"), ["big"]),
        (needs("example.com/fast", "Exists"), ["arm"]),
        (needs("example.com/fast", "DoesNotExist"), ["big"]),
        (needs("example.com/fast", "NotIn", "yes"), ["big"]),
    ],
    ids=str,
)
def test_every_operator_chooses_among_the_labels_that_types_carry(expression, expected):
    types = (
        instance_type(
            "big",
            8,
            64,
            labels=[needs("example.com/cores", "In", "8"), needs("example.com/fast", "DoesNotExist")],
        ),
        instance_type(
            "arm",
            16,
            128,
            arch="arm64",
            labels=[needs("example.com/cores", "In", "16"), needs("example.com/fast", "In", "yes")],
        ),
    )
    assert new_types(plan(pods(1, required_terms=(term(expression),)), types=types)) == expected


def test_a_label_of_the_pool_can_be_selected_and_is_kept_in_the_requirements():
    result = plan(pods(1, selector={"team": "blue"}), pool("default", needs("team", "In", "blue", "red")))
    assert result.new_nodes[0].requirements["team"] == needs("team", "In", "blue")


def test_pods_with_compatible_labels_of_ones_own_share_a_node_and_others_do_not():
    teams = pool("default", needs("team", "Exists"))
    either = pods(1, "100m", name="either", required_terms=(term(needs("team", "In", "a", "b")),))
    only_b = pods(1, "100m", name="b", selector={"team": "b"})
    only_c = pods(1, "100m", name="c", selector={"team": "c"})
    assert [node.pods for node in plan(teams, either, only_b).new_nodes] == [
        ("default/b-0", "default/either-0")
    ]
    assert len(plan(teams, only_b, only_c).new_nodes) == 2


def test_a_label_that_must_exist_and_differ_needs_a_pool_that_defines_it():
    both = pods(1, required_terms=(term(needs("team", "Exists"), needs("team", "NotIn", "red")),))
    assert plan(both).refusals[0].code == "RequirementsConflict"
    assert len(plan(both, pool("default", needs("team", "In", "red", "blue"))).new_nodes) == 1


def test_the_heaviest_pool_takes_all_unless_another_is_selected():
    pools = [pool("plain"), pool("light", weight=20), pool("heavy", weight=100)]
    picky = pods(1, name="picky", selector={PROVISIONER_NAME: "plain"})
    assert [node.pool.name for node in plan(pools, pods(3)).new_nodes] == ["heavy"]
    assert [node.pool.name for node in plan(pools, picky).new_nodes] == ["plain"]


def test_pools_of_equal_weight_are_tried_by_name():
    assert plan([pool("b"), pool("a"), pool("c")], pods(1)).new_nodes[0].pool.name == "a"


def test_a_pool_that_is_being_deleted_makes_no_nodes():
    assert plan([pool("a", deletion_timestamp=1.0), pool("b")], pods(1)).new_nodes[0].pool.name == "b"


@pytest.mark.parametrize(
    ("toleration", "placed"),
    [
        (Toleration("team", "Exists"), True),
        (Toleration("team", "Equal", "blue", "NoSchedule"), True),
        (Toleration("team", "Equal", "red"), False),
        (Toleration("crew", "Exists"), False),
    ],
)
def test_a_tainted_pool_takes_pods_that_tolerate_it(toleration, placed):
    tainted = pool("default", taints=(Taint("team", "NoSchedule", "blue"),))
    result = plan(tainted, pods(1, tolerations=(toleration,)))
    assert bool(result.new_nodes) is placed


def test_startup_taints_keep_no_pod_away():
    assert plan(pool("default", startup_taints=(Taint("cni", "NoSchedule"),)), pods(1)).new_nodes


def test_pods_with_the_same_host_port_get_a_node_each_and_another_protocol_shares():
    web = pods(2, "10m", host_ports=(HostPort("", 80, "TCP"),))
    dns = pods(1, "10m", name="dns", host_ports=(HostPort("", 80, "UDP"),))
    assert len(plan(web).new_nodes) == 2
    assert len(plan(web[:1], dns).new_nodes) == 1


@pytest.mark.parametrize(("address", "nodes"), [("0.0.0.0", 2), ("::", 2), ("10.0.0.1", 2), ("10.0.0.2", 1)])
def test_host_ports_on_different_addresses_share_a_node(address, nodes):
    one = pods(1, "10m", name="one", host_ports=(HostPort("10.0.0.1", 80, "TCP"),))
    two = pods(1, "10m", name="two", host_ports=(HostPort(address, 80, "TCP"),))
    assert len(plan(one, two).new_nodes) == nodes


def test_gpus_are_bought_for_those_who_ask_and_an_unknown_resource_of_zero_is_no_matter():
    gpu = instance_type("gpu", 8, 32, **{"nvidia.com/gpu": "1"})
    result = plan(pods(1, extra={"nvidia.com/gpu": "1"}), types=(*FAMILY, gpu))
    assert new_types(result) == ["gpu"]
    assert new_types(plan(pods(1, extra={"example.com/unknown": "0"}))) == ["medium"]


def test_the_plan_counts_requests_of_pods_and_daemons_and_the_price():
    result = plan(pods(2, "1", "1Gi"))
    (node,) = result.new_nodes
    assert node.requests == {"cpu": 2000, "memory": 2 * 2**30, "pods": 2}
    assert result.cost_per_hour == node.price == node.alternatives[0].offering.price
