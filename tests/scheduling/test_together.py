"""Pods that must share a node share one under every packing, however large they are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.model.labels import HOSTNAME, ZONE
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy
from tests.scheduling.factories import FAMILY, beside, instance_type, needs, plan, pods, pool, spread, term

BOTH = pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
#: Types of three families, as a cloud sells them: the cheapest node is seldom the one that groups need.
MIXED = (
    *FAMILY,
    *(instance_type(f"c{cpu}", cpu, 2 * cpu, price=0.07 * cpu) for cpu in (1, 2, 4, 8, 16, 48)),
    *(instance_type(f"r{cpu}", cpu, 8 * cpu, price=0.13 * cpu) for cpu in (2, 4, 8, 16, 64)),
)


def placed(*things, packing, types=FAMILY):
    return plan(*things, types=types, policy=Policy(packing=packing, time_box=0))


def homes(result):
    return {key: index for index, new in enumerate(result.new_nodes) for key in new.pods}


@BOTH
@pytest.mark.parametrize("cpu", ["1", "1500m", "3", "7"])
def test_a_pod_finds_room_beside_another_of_its_size(cpu, packing):
    result = placed(
        pods(1, cpu, name="redis"), pods(1, cpu, affinity=(beside(HOSTNAME, "redis"),)), packing=packing
    )
    assert not result.refusals
    assert [new.pods for new in result.new_nodes] == [("default/redis-0", "default/web-0")]


@BOTH
@pytest.mark.parametrize("replicas", [2, 3, 6, 8])
def test_a_group_that_wants_itself_shares_one_node(replicas, packing):
    result = placed(pods(replicas, "1500m", "2Gi", affinity=(beside(HOSTNAME),)), packing=packing)
    assert not result.refusals
    assert [len(new.pods) for new in result.new_nodes] == [replicas]


@pytest.mark.parametrize("replicas", [2, 3, 6, 8])
def test_a_group_is_no_larger_a_node_than_it_needs(replicas):
    group = pods(replicas, "1500m", "2Gi", affinity=(beside(HOSTNAME),))
    result = placed(group, packing=LOWEST_PRICE, types=MIXED)
    holds = [kind for kind in MIXED if kind.allocatable["cpu"] >= replicas * 1500]
    holds = [kind for kind in holds if kind.allocatable["memory"] >= replicas * 2 * 2**30]
    cheapest = min(offering.price for kind in holds for offering in kind.offerings)
    assert result.cost_per_hour == pytest.approx(cheapest)


@BOTH
@pytest.mark.parametrize("order", [("db", "web", "cache", "ui"), ("ui", "cache", "web", "db")])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (1, 2, 3, 4), (4, 3, 2, 1), (8, 1, 1, 4)])
def test_a_chain_of_large_pods_is_placed_at_once(order, sizes, packing):
    wants = {"web": "db", "cache": "web", "ui": "cache"}
    batch = [
        pods(1, str(size), name=name, affinity=(beside(HOSTNAME, wants[name]),) if name in wants else ())
        for name, size in zip(order, sizes, strict=True)
    ]
    result = placed(batch, packing=packing)
    assert not result.refusals
    assert len(set(homes(result).values())) == 1


@BOTH
@pytest.mark.parametrize("cpu", ["1", "4", "8"])
def test_a_large_pod_finds_its_target_among_spread_pods(cpu, packing):
    result = placed(
        pods(10, "1", spread=(spread(HOSTNAME),)),
        pods(1, cpu, name="target"),
        pods(1, cpu, name="friend", affinity=(beside(HOSTNAME, "target"),)),
        packing=packing,
        types=MIXED,
    )
    assert not result.refusals
    assert homes(result)["default/friend-0"] == homes(result)["default/target-0"]


@BOTH
@pytest.mark.parametrize("zone", [None, "z3"])
@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
@pytest.mark.parametrize("cpu", ["1", "3", "5"])
def test_large_pods_that_want_each_other_share_one_domain(cpu, key, zone, packing):
    terms = (term(needs(ZONE, "In", zone)),) if zone else ()
    result = placed(pods(3, cpu, "1Gi", affinity=(beside(key),), required_terms=terms), packing=packing)
    assert not result.refusals
    zones = {new.requirements[ZONE].values for new in result.new_nodes if ZONE in new.requirements}
    assert zone is None or zones == {frozenset((zone,))}
    assert len(result.new_nodes) == 1 or (key == ZONE and len(zones) == 1)


@BOTH
def test_a_node_grows_no_further_than_the_limit_of_its_pool(packing):
    group = [pods(1, "1", name="redis"), pods(1, "1", affinity=(beside(HOSTNAME, "redis"),))]
    assert not placed(group, pool(limits={"cpu": "4"}), packing=packing).refusals
    short = placed(group, pool(limits={"cpu": "3"}), packing=packing)
    assert len(short.refusals) == 1
    assert all(new.instance_type in ("small", "medium") for new in short.new_nodes)


@pytest.mark.parametrize("lead", ["2", "3", "4"])
@pytest.mark.parametrize("member", ["6500m", "7"])
def test_of_groups_of_which_one_goes_without_it_is_the_same_one(lead, member):
    batch = [
        pods(1, lead, "0Gi", name="a", affinity=(beside(HOSTNAME, "c"),)),
        pods(1, member, "0Gi", name="b", affinity=(beside(HOSTNAME, "d"),)),
        pods(2, member, "0Gi", name="c", affinity=(beside(HOSTNAME, "c"),)),
        pods(2, member, "0Gi", name="d", affinity=(beside(ZONE, "d"),)),
    ]
    fewest, cheapest = (
        {refusal.pod for refusal in placed(batch, packing=packing).refusals}
        for packing in (FEWEST_NODES, LOWEST_PRICE)
    )
    assert fewest == cheapest


SIZES = st.sampled_from(["50m", "300m", "1", "1500m", "4", "7", "15"])


@st.composite
def groups(draw):
    """Workloads of which some must be beside others, or beside themselves."""
    names = ["a", "b", "c", "d"][: draw(st.integers(2, 4))]
    batch = []
    for name in names:
        wanted = draw(st.sampled_from([None, *names]))
        key = draw(st.sampled_from([HOSTNAME, HOSTNAME, ZONE]))
        rules = (beside(key, wanted),) if wanted else ()
        batch.append(
            pods(
                draw(st.integers(1, 4)),
                draw(SIZES),
                f"{draw(st.integers(0, 9))}Gi",
                name=name,
                affinity=rules,
            )
        )
    return batch


@settings(deadline=None, max_examples=60)
@given(groups(), st.sampled_from([FAMILY, MIXED]))
def test_what_the_fewest_nodes_place_the_lowest_price_places(batch, types):
    fewest = placed(batch, packing=FEWEST_NODES, types=types)
    cheapest = placed(batch, packing=LOWEST_PRICE, types=types)
    refused = {refusal.pod for refusal in fewest.refusals}
    assert {refusal.pod for refusal in cheapest.refusals} <= refused
