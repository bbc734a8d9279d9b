"""Reservations and subnets: what there is only so much of."""

from dataclasses import replace

import pytest

from nodeless.model.instance_types import Offering
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    PROVISIONER_NAME,
    RESERVED,
    SPOT,
    ZONE,
)
from nodeless.model.requirements import Requirements
from nodeless.model.subnets import SubnetRoom
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy
from tests.scheduling.factories import (
    FAMILY,
    claim,
    codes,
    instance_type,
    needs,
    plan,
    pods,
    pool,
    spread,
)

BOTH = pytest.mark.parametrize("packing", [LOWEST_PRICE, FEWEST_NODES])
ANY = pool("default", needs(CAPACITY_TYPE, "In", ON_DEMAND, SPOT, RESERVED))


def with_reservation(name="large", slots=2, zone="z2", identifier="cr-1"):
    """The family with so many instances of one type reserved."""
    return tuple(
        replace(
            kind,
            offerings=(
                *kind.offerings,
                Offering(zone, RESERVED, kind.offerings[-1].price / 1e7, True, identifier, slots),
            ),
        )
        if kind.name == name
        else kind
        for kind in FAMILY
    )


def reserved(result):
    return [new for new in result.new_nodes if new.alternatives[0].offering.reservation]


def subnets(**free):
    """One subnet a zone with so many addresses."""
    rooms = tuple(SubnetRoom(f"subnet-{zone}", zone, left) for zone, left in free.items())
    return {ANY.key: rooms}


def zones(result):
    """Pods by the zone of their node."""
    found = {}
    for new in result.new_nodes:
        assert {each.offering.zone for each in new.alternatives} == {new.alternatives[0].offering.zone}
        zone = new.alternatives[0].offering.zone
        found[zone] = found.get(zone, 0) + len(new.pods)
    return found


@BOTH
def test_what_is_reserved_is_used_before_anything_is_bought(packing):
    result = plan(pods(6), ANY, types=with_reservation(), policy=Policy(packing=packing))
    assert [new.instance_type for new in reserved(result)] == ["large", "large"]
    assert result.cost_per_hour < 1e-6


@BOTH
def test_what_a_reservation_does_not_hold_is_bought_in_the_same_pass(packing):
    result = plan(pods(9), ANY, types=with_reservation(), policy=Policy(packing=packing))
    assert sum(len(new.pods) for new in reserved(result)) == 6
    others = [new for new in result.new_nodes if new not in reserved(result)]
    assert sum(len(new.pods) for new in others) == 3
    assert all(each.offering.capacity_type != RESERVED for new in others for each in new.alternatives)


def test_a_reserved_node_is_bound_to_its_reservation_type_and_zone():
    (new,) = reserved(plan(pods(1), ANY, types=with_reservation(slots=1)))
    wanted = {key: new.requirements[key].values for key in (CAPACITY_TYPE, CAPACITY_RESERVATION_ID)}
    assert wanted == {CAPACITY_TYPE: {RESERVED}, CAPACITY_RESERVATION_ID: {"cr-1"}}
    assert new.requirements[ZONE].values == {"z2"}
    assert [each.instance_type for each in new.alternatives] == ["large"]


@BOTH
@pytest.mark.parametrize("kept", ["cr-1", "cr-2", "cr-3"])
@pytest.mark.parametrize("less", [{"interruptible": True}, {"reservation_type": "capacity-block"}])
def test_at_equal_price_a_reservation_that_stays_is_used_before_one_that_goes(packing, kept, less):
    names = ("cr-1", "cr-2", "cr-3")
    more = tuple(
        replace(Offering("z2", RESERVED, 1e-8, True, name, 2), **({} if name == kept else less))
        for name in names
    )
    types = tuple(
        replace(kind, offerings=(*kind.offerings, *more)) if kind.name == "large" else kind for kind in FAMILY
    )
    (new,) = plan(pods(1), ANY, types=types, policy=Policy(packing=packing)).new_nodes
    assert new.requirements[CAPACITY_RESERVATION_ID].values == {kept}


@BOTH
def test_a_cheaper_interruptible_reservation_is_used_before_a_dearer_one_that_stays(packing):
    lent = Offering("z2", RESERVED, 1e-9, True, "cr-9", 1, "default", True)
    types = tuple(
        replace(kind, offerings=(*kind.offerings, lent)) if kind.name == "medium" else kind
        for kind in with_reservation()
    )
    first, *_ = reserved(plan(pods(1), ANY, types=types, policy=Policy(packing=packing)))
    assert first.requirements[CAPACITY_RESERVATION_ID].values == {"cr-9"}


def test_two_reservations_of_one_type_and_zone_are_counted_each():
    once = with_reservation(slots=1)
    twice = tuple(
        replace(kind, offerings=(*kind.offerings, Offering("z2", RESERVED, 1e-8, True, "cr-2", 1)))
        if kind.name == "large"
        else kind
        for kind in once
    )
    result = plan(pods(6), ANY, types=twice)
    held = sorted(next(iter(new.requirements[CAPACITY_RESERVATION_ID].values)) for new in result.new_nodes)
    assert held == ["cr-1", "cr-2"]
    assert sorted(new.alternatives[0].offering.reservation for new in result.new_nodes) == held


def test_a_pool_that_does_not_name_reserved_capacity_leaves_it_alone():
    own = pool("default", needs(CAPACITY_TYPE, "In", ON_DEMAND))
    assert not reserved(plan(pods(6), own, types=with_reservation()))


def test_a_pod_that_must_not_run_there_leaves_the_slot_to_others():
    far = pods(3, name="far", selector={ZONE: "z1"})
    result = plan(pods(3), far, ANY, types=with_reservation(slots=1))
    (new,) = reserved(result)
    assert all(key.startswith("default/web") for key in new.pods)
    assert not result.refusals


def test_a_pod_may_choose_its_reservation():
    (new,) = plan(
        pods(1, selector={CAPACITY_RESERVATION_ID: "cr-1"}), ANY, types=with_reservation("2xlarge")
    ).new_nodes
    assert new.alternatives[0].offering.reservation == "cr-1"
    other = plan(pods(1, selector={CAPACITY_RESERVATION_ID: "cr-9"}), ANY, types=with_reservation())
    assert codes(other) == ["RequirementsConflict"]
    bought = plan(pods(1, selector={CAPACITY_RESERVATION_ID: "cr-1"}), pool())
    assert codes(bought) == ["RequirementsConflict"]


def test_a_claim_that_is_not_launched_yet_holds_its_slot():
    wanted = Requirements([needs(CAPACITY_RESERVATION_ID, "In", "cr-1"), needs(INSTANCE_TYPE, "In", "large")])
    waiting = claim("default-aaaaa", requirements=wanted)
    result = plan(pods(9), waiting, ANY, types=with_reservation(slots=2))
    assert len(reserved(result)) == 1
    launched = replace(waiting, provider_id="aws:///z2/i-1", allocatable={"cpu": 0})
    assert len(reserved(plan(pods(9), launched, ANY, types=with_reservation(slots=2)))) == 2


def test_used_up_reservations_are_the_reason_where_nothing_else_is_allowed():
    own = pool("default", needs(CAPACITY_TYPE, "In", RESERVED))
    result = plan(pods(4), own, types=with_reservation(slots=1))
    assert sum(len(new.pods) for new in result.new_nodes) == 3
    (refusal,) = result.refusals
    assert refusal.code == "CapacityExhausted"
    assert "cr-1" in str(refusal)


def test_a_reservation_with_nothing_left_is_not_for_sale():
    assert not reserved(plan(pods(3), ANY, types=with_reservation(slots=0)))


@BOTH
def test_nodes_go_where_subnets_have_addresses(packing):
    types = (instance_type("two", 2, 8, price=1.0),)
    policy = Policy(packing=packing, subnets=subnets(z1=4, z2=100, z3=0))
    result = plan(pods(10, "900m"), ANY, types=types, policy=policy)
    assert not result.refusals
    # z1: a node with two pods takes three addresses, and one is left.
    assert zones(result) in ({"z1": 2, "z2": 8}, {"z2": 10})


@BOTH
def test_no_more_pods_are_planned_than_there_are_addresses_for(packing):
    types = (instance_type("big", 16, 64, price=1.0),)
    policy = Policy(packing=packing, subnets=subnets(z1=4, z2=6, z3=1))
    result = plan(pods(10, "100m"), ANY, types=types, policy=policy)
    assert zones(result) == {"z1": 3, "z2": 5}
    assert codes(result) == ["CapacityExhausted"] * 2
    assert "IP addresses" in str(result.refusals[0])


def of_nodes_alone(**free):
    """Subnets of which pods take no addresses."""
    return {
        key: tuple(replace(room, pods_take_addresses=False) for room in rooms)
        for key, rooms in subnets(**free).items()
    }


@BOTH
def test_where_pods_take_no_addresses_of_subnets_nodes_alone_are_counted(packing):
    types = (instance_type("big", 16, 64, price=1.0),)
    policy = Policy(packing=packing, subnets=of_nodes_alone(z1=1, z2=1, z3=0))
    result = plan(pods(40, "700m"), ANY, types=types, policy=policy)
    assert not result.refusals
    assert sorted(node.alternatives[0].offering.zone for node in result.new_nodes) == ["z1", "z2"]
    too_many = plan(pods(50, "700m"), ANY, types=types, policy=policy)
    assert len(too_many.new_nodes) == 2
    assert set(codes(too_many)) == {"CapacityExhausted"}
    assert "no subnet in z1, z2, z3 has free IP addresses for a node;" in str(too_many.refusals[0])


def test_one_address_for_each_pod_is_plenty_where_pods_take_none():
    plenty = of_nodes_alone(z1=40, z2=40, z3=40)
    assert plan(pods(40), ANY, policy=Policy(subnets=plenty)) == plan(pods(40), ANY, policy=Policy())


def test_addresses_of_a_subnet_are_shared_by_the_pools_that_use_it():
    first, second = ANY, pool("second", needs("team", "In", "b"))
    room = (SubnetRoom("subnet-1", "z1", 5),)
    policy = Policy(packing=FEWEST_NODES, subnets={first.key: room, second.key: room})
    own = {PROVISIONER_NAME: "default"}
    wanted = [*pods(3, "100m", selector=own), *pods(3, "100m", name="b", selector={"team": "b"})]
    result = plan(wanted, first, second, policy=policy)
    assert sum(len(new.pods) + 1 for new in result.new_nodes) <= 5
    assert len(result.refusals) == 3


def test_each_node_keeps_to_one_of_the_subnets_of_its_zone():
    rooms = (SubnetRoom("subnet-a", "z1", 3), SubnetRoom("subnet-b", "z1", 4))
    policy = Policy(packing=FEWEST_NODES, subnets={ANY.key: rooms})
    result = plan(pods(9, "100m"), ANY, policy=policy)
    assert sorted(len(new.pods) for new in result.new_nodes) == [2, 3]


def test_plenty_of_addresses_leaves_the_plan_as_it_is():
    plenty = subnets(z1=250, z2=250, z3=250)
    assert plan(pods(40), ANY, policy=Policy(subnets=plenty)) == plan(pods(40), ANY, policy=Policy())


def test_a_spread_over_zones_stops_where_a_zone_has_no_addresses():
    policy = Policy(packing=FEWEST_NODES, subnets=subnets(z1=20, z2=20, z3=0))
    result = plan(pods(12, "100m", spread=(spread(ZONE),)), ANY, policy=policy)
    assert all(count <= 1 for count in zones(result).values())
    assert len(result.refusals) == 10
