"""Spot or on-demand for pods that say how much work an interruption loses."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.api.lost_work import LONGEST
from nodeless.model import events
from nodeless.model.bill import HOURS_A_MONTH
from nodeless.model.buffers import CapacityBuffer, PodSource
from nodeless.model.gangs import GangSize
from nodeless.model.instance_types import Offering
from nodeless.model.labels import CAPACITY_TYPE, GANG_SIZE, LOST_WORK, ON_DEMAND, RESERVED, SPOT
from nodeless.model.lost_work import USUAL_INTERRUPTIONS, InterruptionRate
from nodeless.model.plan import Plan
from nodeless.model.pods import Owner
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from nodeless.scheduling.pods.lost_work import invalid_lost_work, lost_work
from nodeless.state import apply
from nodeless.state.saving import build_value, plain
from tests.scheduling.factories import instance_type, needs, node, pods, pool, snapshot, term
from tests.scheduling.test_provisioning_requests import a_request

BOTH = pytest.mark.parametrize("packing", [LOWEST_PRICE, FEWEST_NODES])
#: Two interruptions in a hundred hours of an instance.
OFTEN = (InterruptionRate(per_month=0.02 * HOURS_A_MONTH),)
EITHER = needs(CAPACITY_TYPE, "In", SPOT, ON_DEMAND)


def sold(name="gpu", cpu=4, on_demand=12.0, spot=10.0, **fields):
    """A type that holds three pods of a core for each four cores."""
    offerings = (Offering("z1", SPOT, spot), Offering("z1", ON_DEMAND, on_demand))
    return instance_type(name, cpu, 64, offerings=fields.pop("offerings", offerings), **fields)


def losing(hours, number=1, cpu="3", *, gang=0, **fields):
    """Pods of which each loses so many hours of work; a gang of `gang` of them."""
    said = {LOST_WORK: hours if isinstance(hours, str) else f"{hours}h"}
    job = (Owner("batch/v1", "Job", "train", controller=True),)
    if gang:
        said[GANG_SIZE] = str(gang)
    return [replace(pod, annotations=said, owners=job) for pod in pods(number, cpu, name="train", **fields)]


def planned(*things, types=None, **policy):
    seen = snapshot(*things) if things and not hasattr(things[0], "pods_of_node") else things[0]
    seen = seen if seen.pools else snapshot(pool("default", EITHER), *things)
    policy.setdefault("spot_interruptions", OFTEN)
    return solve(seen, dict.fromkeys(seen.pools, types or (sold(),)), Policy(**policy))


def bought(plan):
    return [new.alternatives[0].offering.capacity_type for new in plan.new_nodes]


@BOTH
def test_a_pod_that_loses_more_than_spot_saves_is_planned_on_demand(packing):
    # 0.02 interruptions an hour lose 10 h at 10 USD/h: 2 USD/h, which is what spot saves.
    plan = planned(losing(10), packing=packing)
    assert bought(plan) == [ON_DEMAND]
    (chosen,) = plan.choices
    assert chosen.pods == ("default/train-0",)
    assert (chosen.lost_work.choice.expected, chosen.lost_work.choice.saving) == pytest.approx((2.0, 2.0))


def test_a_node_for_it_is_asked_for_on_demand_alone():
    types = (sold(), sold("other", on_demand=12.5, spot=10.5))
    (new,) = planned(losing(20), types=types).new_nodes
    assert len(new.alternatives) == 2
    assert {each.offering.capacity_type for each in new.alternatives} == {ON_DEMAND}
    assert not new.requirements[CAPACITY_TYPE].allows(SPOT)


@BOTH
def test_a_pod_that_loses_less_stays_on_spot_and_the_plan_says_so(packing):
    plan = planned(losing(9), packing=packing)
    assert bought(plan) == [SPOT]
    (chosen,) = plan.choices
    assert not chosen.lost_work.choice.on_demand


def test_a_saved_plan_reads_as_it_was():
    plan = planned(losing(10, 2, gang=2))
    assert plan.choices
    assert build_value(Plan, plain(plan)) == plan


def test_nothing_is_chosen_for_pods_that_say_nothing():
    plan = planned(pods(3, "3"))
    assert set(bought(plan)) == {SPOT}
    assert plan.choices == ()


def test_pods_that_say_something_are_planned_apart_from_their_like_that_do_not():
    plan = planned(losing(10), pods(1, "3"))
    assert sorted(bought(plan)) == [ON_DEMAND, SPOT]


def test_without_a_rate_the_usual_one_counts():
    hours = math.ceil(2 / 10 / (USUAL_INTERRUPTIONS / HOURS_A_MONTH))
    assert bought(planned(losing(hours), spot_interruptions=())) == [ON_DEMAND]
    assert bought(planned(losing(hours - 1), spot_interruptions=())) == [SPOT]


def test_the_first_rate_that_concerns_a_type_counts():
    rates = (
        InterruptionRate(pools=("other",), per_month=1000.0),
        InterruptionRate(instance_types=("g*",), per_month=0.0),
        *OFTEN,
    )
    assert bought(planned(losing(100), spot_interruptions=rates)) == [SPOT]
    assert bought(planned(losing(100), spot_interruptions=rates[2:])) == [ON_DEMAND]


@pytest.mark.parametrize(("calm", "capacity_type"), [(11.0, ON_DEMAND), (9.9, SPOT)])
def test_the_type_that_a_plan_would_buy_on_spot_counts(calm, capacity_type):
    rates = (InterruptionRate(instance_types=("calm",), per_month=0.0), *OFTEN)
    types = (sold(), sold("calm", spot=calm))
    # A plan knows prices alone: it would not buy the calm type for 11 USD/h where another costs 10.
    assert bought(planned(losing(10), types=types, spot_interruptions=rates)) == [capacity_type]


def test_each_member_of_a_gang_pays_for_interruptions_of_all_its_nodes():
    # Five nodes of one pod each: five times the interruptions.
    assert bought(planned(losing(2, 5, gang=5))) == [ON_DEMAND] * 5
    assert bought(planned(losing(2, 5))) == [SPOT] * 5


def test_a_gang_on_one_node_is_interrupted_as_a_pod_is():
    wide = (sold(cpu=16, on_demand=12.0, spot=10.0),)
    assert bought(planned(losing(9, 5, gang=5), types=wide)) == [SPOT]
    assert bought(planned(losing(10, 5, gang=5), types=wide)) == [ON_DEMAND]


def test_the_size_of_a_gang_may_be_its_jobs():
    seen = snapshot(pool("default", EITHER), losing(2, 5))
    job = GangSize("Job", "default", "train", 5)
    seen = replace(seen, gang_sizes=seen.gang_sizes.set(job.key, job))
    assert bought(planned(seen)) == [ON_DEMAND] * 5


def test_pods_that_say_on_which_capacity_they_run_are_left_alone():
    on_spot = planned(losing(1000, selector={CAPACITY_TYPE: SPOT}))
    by_term = planned(losing(1000, required_terms=(term(needs(CAPACITY_TYPE, "In", SPOT)),)))
    for plan in (on_spot, by_term):
        assert bought(plan) == [SPOT]
        assert plan.choices == ()


def test_a_pods_own_preference_for_spot_is_weaker_than_what_it_loses():
    wish = ((100, term(needs(CAPACITY_TYPE, "In", SPOT))),)
    assert bought(planned(losing(10, preferred_terms=wish))) == [ON_DEMAND]
    assert bought(planned(losing(9, preferred_terms=wish))) == [SPOT]


def test_that_preferences_are_ignored_changes_no_bill():
    assert bought(planned(losing(10), ignore_preferences=True)) == [ON_DEMAND]


CALM = pool("calm", needs(CAPACITY_TYPE, "In", ON_DEMAND), limits={"cpu": "0"})
SPOT_ONLY = pool("spot", needs(CAPACITY_TYPE, "In", SPOT))


@pytest.mark.parametrize("pools", [(SPOT_ONLY,), (CALM, SPOT_ONLY)])
def test_a_pod_has_its_place_where_on_demand_cannot_be_had(pools):
    plan = planned(*pools, losing(1000))
    assert bought(plan) == [SPOT]
    assert not plan.refusals


def test_a_plan_tells_that_on_demand_was_better_and_cannot_be_had():
    (lost,) = planned(CALM, SPOT_ONLY, losing(1000)).relaxations
    assert lost.code == "OnDemandForLostWork"
    assert lost.pods == ("default/train-0",)


def test_what_is_sold_out_on_demand_is_had_on_spot():
    gone = (Offering("z1", SPOT, 10.0), Offering("z1", ON_DEMAND, 12.0, available=False))
    plan = planned(losing(1000), types=(sold(offerings=gone),))
    assert bought(plan) == [SPOT]
    assert plan.choices == ()


def test_reserved_capacity_is_as_good_as_on_demand():
    reserved = Offering("z1", RESERVED, 0.001, reservation="cr-1", remaining=1)
    offered = (Offering("z1", SPOT, 10.0), Offering("z1", ON_DEMAND, 12.0), reserved)
    anywhere = pool("default", needs(CAPACITY_TYPE, "In", SPOT, ON_DEMAND, RESERVED))
    plan = planned(anywhere, losing(10, 2), types=(sold(offerings=offered),))
    assert sorted(bought(plan)) == [ON_DEMAND, RESERVED]


def test_room_that_is_there_is_used_first():
    labels = {**node("n").labels, CAPACITY_TYPE: SPOT}
    plan = planned(pool("default", EITHER), node("n", labels=labels), losing(1000))
    assert plan.placements == {"default/train-0": "n"}


def test_the_heavier_pools_are_compared():
    heavy = pool("heavy", EITHER, weight=10)
    light = pool("light", EITHER)
    seen = snapshot(heavy, light, losing(10))
    cheap_elsewhere = {heavy.key: (sold(),), light.key: (sold(on_demand=11.0, spot=1.0),)}
    plan = solve(seen, cheap_elsewhere, Policy(spot_interruptions=OFTEN))
    assert bought(plan) == [ON_DEMAND]
    assert [new.pool.name for new in plan.new_nodes] == ["heavy"]


@pytest.mark.parametrize(
    "said", ["banana", "-10h", "", "10", "Never", f"{LONGEST + 1}s", "90000h", "1.5h", "9" * 5000]
)
def test_a_value_that_is_no_such_duration_is_ignored(said):
    (pod,) = losing(said)
    assert lost_work(pod) == 0
    assert "nodeless.dev/lost-work=" in invalid_lost_work(pod)
    assert planned([pod]) == planned([replace(pod, annotations={})])


def test_good_values_are_read():
    for said, seconds in (("10h", 36000), ("1h30m", 5400), ("0s", 0), (f"{LONGEST}s", LONGEST)):
        (pod,) = losing(said)
        assert (lost_work(pod), invalid_lost_work(pod)) == (seconds, None)


PRICES = st.integers(1, 400).map(lambda cents: cents / 100)
DRAWN = settings(deadline=None, max_examples=150)


@DRAWN
@given(
    on_demand=PRICES,
    spot=PRICES,
    hours=st.integers(0, 200),
    per_month=st.floats(0, 100, allow_nan=False),
    members=st.integers(1, 6),
    per_node=st.integers(1, 3),
    packing=st.sampled_from([LOWEST_PRICE, FEWEST_NODES]),
)
def test_the_choice_is_on_demand_exactly_when_the_formula_says_so(
    on_demand, spot, hours, per_month, members, per_node, packing
):
    types = (sold(cpu=4 * per_node, on_demand=on_demand, spot=spot),)
    rates = (InterruptionRate(per_month=per_month),)
    given_pods = losing(hours, members, cpu="3500m", gang=members)
    plan = planned(given_pods, types=types, spot_interruptions=rates, packing=packing)
    nodes = math.ceil(members / per_node)
    expected = per_month / 730 * nodes * hours * spot / per_node
    saving = (on_demand - spot) / per_node
    assert not plan.refusals
    assert sum(len(new.pods) for new in plan.new_nodes) == members
    if abs(expected - saving) < 1e-9:
        return
    assert set(bought(plan)) == {ON_DEMAND if expected > saving else SPOT}
    for chosen in plan.choices:
        choice = chosen.lost_work.choice
        assert (choice.expected, choice.saving) == pytest.approx((expected, saving), abs=1e-9)


@DRAWN
@given(
    hours=st.lists(st.sampled_from(["0s", "1h", "10h", "1000h", "banana"]), min_size=1, max_size=6),
    limit=st.sampled_from([None, "0", "4", "8"]),
    capacity_types=st.sampled_from([(SPOT,), (ON_DEMAND,), (SPOT, ON_DEMAND)]),
)
def test_a_pod_that_has_a_place_without_the_annotation_has_one_with_it(hours, limit, capacity_types):
    pools = [
        pool("calm", needs(CAPACITY_TYPE, "In", ON_DEMAND), limits=None if limit is None else {"cpu": limit}),
        pool("open", needs(CAPACITY_TYPE, "In", *capacity_types)),
    ]
    some = [
        replace(losing(said)[0], name=f"train-{number}", uid=f"train-{number}")
        for number, said in enumerate(hours)
    ]
    with_it = planned(*pools, some)
    without = planned(*pools, [replace(pod, annotations={}) for pod in some])
    assert not without.refusals
    assert not with_it.refusals
    assert {key for new in with_it.new_nodes for key in new.pods} == {pod.key for pod in some}


@DRAWN
@given(
    hours=st.lists(st.sampled_from([0, 1, 9, 11, 100]), min_size=1, max_size=5),
    others=st.integers(0, 4),
    cpus=st.lists(st.sampled_from(["500m", "1", "3"]), min_size=5, max_size=5),
    packing=st.sampled_from([LOWEST_PRICE, FEWEST_NODES]),
)
def test_beside_other_pods_those_that_lose_too_much_are_still_on_demand(hours, others, cpus, packing):
    some = [
        replace(losing(lost, cpu=cpu)[0], name=f"train-{number}", uid=f"train-{number}")
        for number, (lost, cpu) in enumerate(zip(hours, cpus, strict=False))
    ]
    plan = planned(some, pods(others, "700m"), types=(sold(), sold("wide", 8, 24.0, 20.0)), packing=packing)
    kept = {
        key
        for new in plan.new_nodes
        for key in new.pods
        if new.alternatives[0].offering.capacity_type != SPOT
    }
    assert not plan.refusals
    assert {pod.key for pod, lost in zip(some, hours, strict=True) if lost > 10} <= kept
    if not any(lost > 10 for lost in hours):
        assert not kept


@pytest.mark.parametrize(
    ("said", "number", "expected"),
    [
        ({}, 1, SPOT),
        ({LOST_WORK: "10h"}, 1, ON_DEMAND),
        ({LOST_WORK: "2h"}, 1, SPOT),
        ({LOST_WORK: "2h", GANG_SIZE: "5"}, 5, ON_DEMAND),
    ],
)
@pytest.mark.parametrize("asks", ["request", "buffer"])
def test_room_that_is_asked_for_ahead_is_where_its_pods_would_be_planned(asks, said, number, expected):
    template = PodSource("PodTemplate", "default", "chunk", pods(1, "3")[0].shape, annotations=said)
    if asks == "buffer":
        named = {"source": template.key, "source_kind": template.kind}
        asking = events.CapacityBufferSeen(CapacityBuffer("default", "spare", replicas=number, **named))
    else:
        asking = events.ProvisioningRequestSeen(a_request(number, source=template))
    seen = apply(apply(snapshot(pool("default", EITHER)), events.PodSourceSeen(template)), asking)
    assert bought(planned(seen)) == [expected] * number
