"""Of plans at the same price the one with fewer nodes is taken, whatever limits and other nodes there are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.model.labels import ARCH
from nodeless.scheduling import Policy
from tests.scheduling.factories import instance_type, new_types, node, plan, pods, pool, running

SEARCHED = Policy(time_box=0.1)
#: Twice the size is twice the price.
SIZES = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16}
LINEAR = tuple(instance_type(name, cpu, 4 * cpu, price=0.05 * cpu) for name, cpu in SIZES.items())
LIMITS = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(["200", "1000"]), "memory": st.just("900Gi"), "nodes": st.just("90")}
)


def figures(result):
    return (
        round(sum(new.alternatives[0].offering.price for new in result.new_nodes), 6),
        len(result.new_nodes),
        sum(len(new.pods) for new in result.new_nodes),
    )


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 14), st.sampled_from(["600m", "1000m", "1300m", "2500m"]), LIMITS, st.integers(0, 3))
def test_limits_that_are_far_away_and_full_nodes_change_neither_price_nor_number(number, cpu, limits, full):
    work = pods(number, cpu)
    others = [node(f"n{each}", "2") for each in range(full)]
    busy = [running(each, f"n{index}") for index, each in enumerate(pods(full, "1900m", name="busy"))]
    free = plan(work, pool(), types=LINEAR, policy=SEARCHED)
    limited = plan(work, pool(limits=limits), others, busy, types=LINEAR, policy=SEARCHED)
    assert figures(limited) == figures(free)


def test_five_pods_of_one_processor_get_one_node_and_not_two():
    result = plan(pods(5, "1000m"), pool(limits={"cpu": "1000"}), types=LINEAR, policy=SEARCHED)
    assert new_types(result) == ["2xlarge"]


@pytest.mark.parametrize(("limit", "types"), [("7", {"four"}), ("8", {"eight"}), ("15", {"eight"})])
def test_nodes_become_one_only_within_the_limit(limit, types):
    kinds = (instance_type("four", 4, 16, price=0.2), instance_type("eight", 8, 32, price=0.4))
    result = plan(pods(5, "1000m"), pool(limits={"cpu": limit}), types=kinds, policy=SEARCHED)
    assert set(new_types(result)) == types
    assert len(result.new_nodes) == 1


@pytest.mark.parametrize(("number", "cpu"), [(12, "1000m"), (4, "600m"), (10, "600m"), (5, "1300m")])
def test_pods_of_another_architecture_make_no_more_nodes_of_those_beside_them(number, cpu):
    """Their own nodes apart: not every node may hold every pod that there is."""
    kinds = [
        instance_type(f"{arch}.{name}", size, 4 * size, arch=arch, price=0.05 * size)
        for name, size in SIZES.items()
        for arch in ("amd64", "arm64")
    ]
    work = pods(number, cpu, selector={ARCH: "amd64"})
    others = pods(3, "1500m", name="other", selector={ARCH: "arm64"})
    alone, beside = (plan(each, types=kinds, policy=SEARCHED) for each in (work, [*work, *others]))
    own = [kind for kind in new_types(beside) if kind.startswith("amd64")]
    assert sorted(own) == sorted(new_types(alone))
