"""What is paid for already is used first, as far as it reaches; the rest is bought at list prices."""

import os
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeless.model.bill import COMMITMENTS, LICENSE, WINDOWS, Bill, BillPart
from nodeless.model.commitments import Commitment
from nodeless.model.events import ClaimSeen, NodeSeen, PodSeen, PoolSeen
from nodeless.model.instance_types import Offering
from nodeless.model.labels import (
    CAPACITY_TYPE,
    DISRUPTED_TAINT,
    EKS_CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    LOST_WORK,
    ON_DEMAND,
    OS,
    PROVISIONER_NAME,
    SPOT,
    ZONE,
)
from nodeless.model.requirements import Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.model.subnets import SubnetRoom
from nodeless.model.taints import Taint, Toleration
from nodeless.scheduling import LOWEST_PRICE, Policy, solve
from nodeless.scheduling.capacity.coverage import most_worth, running_coverage
from nodeless.scheduling.committed import cheapest_with_commitments
from nodeless.state import apply
from tests.scheduling.exact import best
from tests.scheduling.factories import (
    beside,
    claim,
    instance_type,
    needs,
    node,
    pods,
    pool,
    running,
    snapshot,
    spread,
    term,
)

TYPES = (
    instance_type("a.medium", 1, 4, price=0.06),
    instance_type("a.large", 2, 8, price=0.1),
    instance_type("b.xlarge", 4, 4, price=0.16),
    instance_type("a.xlarge", 4, 16, price=0.22),
    instance_type("a.2xlarge", 8, 32, price=0.4),
    instance_type("a.4xlarge", 16, 64, price=0.9),
)
BY_NAME = {kind.name: kind for kind in TYPES}
POOL = pool("default")
NEVER_SPOT = pool("default", needs(CAPACITY_TYPE, "In", ON_DEMAND))


def savings_plan(dollars, name="plan", **fields):
    return Commitment(name, dollars=dollars, **fields)


def reserved(kind, instances=1, name="reserved", **fields):
    return Commitment(name, instance_types=(kind,), instances=instances, **fields)


def planned(seen, *commitments, types=TYPES, **policy):
    return solve(seen, dict.fromkeys(seen.pools, types), Policy(commitments=commitments, **policy))


def launched(plan):
    """Type, capacity type and price of each new node."""
    return sorted(
        (new.instance_type, new.alternatives[0].offering.capacity_type, round(new.price, 6))
        for new in plan.new_nodes
    )


def covered(plan):
    """Dollars that are off by commitments."""
    parts = [part for new in plan.new_nodes for part in new.alternatives[0].offering.parts]
    return -sum(part.dollars for part in parts if part.name == COMMITMENTS)


def up(name, kind="a.xlarge", *, capacity_type=ON_DEMAND, held=0, cpu="3", **fields):
    """A node of the pool and its claim, full of pods so that no other has room there."""
    labels = {**node(name).labels, INSTANCE_TYPE: kind, ZONE: "z1", CAPACITY_TYPE: capacity_type}
    own = node(
        name, labels=labels, allocatable=BY_NAME[kind].allocatable, capacity=BY_NAME[kind].capacity, **fields
    )
    launched_as = claim(f"claim-{name}", labels=labels, provider_id=own.provider_id, node_name=name)
    return [own, launched_as, [running(pod, name) for pod in pods(held, cpu, name=f"on-{name}")]]


def cluster(*things):
    seen = Snapshot()
    kinds = {"Node": NodeSeen, "NodeClaim": ClaimSeen, "Pod": PodSeen, "Pool": PoolSeen}
    flat = list(things)
    while flat:
        thing = flat.pop(0)
        if isinstance(thing, list):
            flat[:0] = thing
        else:
            seen = apply(seen, kinds[type(thing).__name__](thing))
    return seen


def test_reserved_instances_are_used_although_spot_is_cheaper():
    plan = planned(snapshot(pods(1, "3"), POOL), reserved("a.xlarge"))
    assert launched(plan) == [("a.xlarge", ON_DEMAND, 0.0)]
    assert covered(plan) == pytest.approx(0.22)


def test_what_is_planned_for_a_commitment_is_launched_for_nothing_else():
    plan = planned(snapshot(pods(1, "1500m"), POOL), savings_plan(0.5, instance_types=("a.*",)))
    (new,) = plan.new_nodes
    assert new.requirements[CAPACITY_TYPE].values == {ON_DEMAND}
    assert {each.instance_type.partition(".")[0] for each in new.alternatives} == {"a"}
    assert {each.offering.capacity_type for each in new.alternatives} == {ON_DEMAND}


def test_beyond_the_reserved_instances_the_rest_is_bought_at_list_prices():
    plan = planned(snapshot(pods(4, "3", "14Gi"), POOL), reserved("a.xlarge", 3))
    assert launched(plan) == [*[("a.xlarge", ON_DEMAND, 0.0)] * 3, ("a.xlarge", SPOT, 0.11)]


def test_what_a_large_node_leaves_of_a_commitment_covers_a_small_one():
    plan = planned(snapshot(pods(7, "1500m"), POOL), reserved("a.large", 3, size_flexible=True))
    assert covered(plan) == pytest.approx(0.3, abs=0.03)


def test_a_savings_plan_covers_a_part_of_what_it_does_not_reach():
    plan = planned(snapshot(pods(1, "6"), NEVER_SPOT), savings_plan(0.1, discount=50))
    assert launched(plan) == [("a.2xlarge", ON_DEMAND, 0.2)]


def test_those_pods_get_what_is_paid_for_that_would_cost_the_most_elsewhere():
    """A pod that may run on spot saves half as much as one that may not."""
    waiting = [
        pods(1, "3", "14Gi", name="any"),
        pods(1, "3", "14Gi", name="never", selector={CAPACITY_TYPE: ON_DEMAND}),
    ]
    plan = planned(snapshot(waiting, POOL), reserved("a.xlarge"))
    assert {new.pods: round(new.price, 6) for new in plan.new_nodes} == {
        ("default/any-0",): 0.11,
        ("default/never-0",): 0.0,
    }


def test_nodes_that_run_have_used_their_part_of_a_commitment():
    there = [up(name, held=1) for name in ("n1", "n2")]
    waiting = pods(2, "3", "14Gi")
    assert covered(planned(cluster(there, waiting, NEVER_SPOT), reserved("a.xlarge", 2))) == 0
    assert covered(planned(cluster(there, waiting, NEVER_SPOT), reserved("a.xlarge", 3))) == pytest.approx(
        0.22
    )


@pytest.mark.parametrize(
    "change",
    [
        {"taints": (Taint(DISRUPTED_TAINT, "NoSchedule"),)},
        {"deletion_timestamp": 1.0},
    ],
)
def test_a_node_that_leaves_frees_what_it_used(change):
    going, its_claim, on_it = up("n1", held=1)
    seen = cluster(replace(going, **change), its_claim, on_it, NEVER_SPOT)
    plan = planned(seen, reserved("a.xlarge"))
    assert launched(plan) == [("a.xlarge", ON_DEMAND, 0.0)]


def test_nodes_on_spot_use_nothing():
    seen = cluster(up("n1", capacity_type=SPOT, held=1), pods(1, "3", "14Gi"), POOL)
    assert covered(planned(seen, reserved("a.xlarge"))) == pytest.approx(0.22)


@pytest.mark.parametrize(
    ("group", "left"), [("SPOT", 1), ("CAPACITY_BLOCK", 1), ("ON_DEMAND", 0), ("UNKNOWN", 0)]
)
def test_nodes_of_managed_node_groups_use_commitments_on_demand_alone(group, left):
    labels = {INSTANCE_TYPE: "a.xlarge", ZONE: "z1", EKS_CAPACITY_TYPE: group}
    theirs = node("theirs", labels=labels, provider_id="")
    found = running_coverage(cluster(theirs, NEVER_SPOT), {NEVER_SPOT.key: TYPES}, [reserved("a.xlarge")])
    assert found.left == {"reserved": left}


def test_nodes_that_are_not_ours_use_commitments_too():
    labels = {INSTANCE_TYPE: "a.xlarge", ZONE: "z1"}
    theirs = node("theirs", labels=labels, provider_id="", taints=(Taint("theirs", "NoSchedule"),))
    seen = cluster(theirs, pods(1, "3", "14Gi"), NEVER_SPOT)
    assert covered(planned(seen, reserved("a.xlarge"))) == 0


def test_a_node_of_a_type_that_no_pool_buys_uses_its_reserved_instance():
    labels = {INSTANCE_TYPE: "a.3xlarge", ZONE: "z1"}
    theirs = node("theirs", labels=labels, provider_id="", taints=(Taint("theirs", "NoSchedule"),))
    seen = cluster(theirs, pods(1, "3", "14Gi"), NEVER_SPOT)
    reservation = reserved("a.xlarge", 4, size_flexible=True)
    assert covered(planned(seen, reservation)) == pytest.approx(0.22)
    assert covered(planned(seen, replace(reservation, instances=3))) == 0


@pytest.mark.parametrize(("capacity_type", "left"), [(ON_DEMAND, 0), (SPOT, 1)])
def test_a_claim_without_an_instance_counts_as_what_it_will_most_likely_get(capacity_type, left):
    asked = Requirements([needs(INSTANCE_TYPE, "In", "a.xlarge"), needs(CAPACITY_TYPE, "In", capacity_type)])
    starting = claim("starting", requirements=asked)
    seen = cluster(starting, pods(3, "3", "14Gi"), POOL)
    assert covered(planned(seen, reserved("a.xlarge"))) == pytest.approx(0.22 * left)


def test_reserved_instances_of_a_zone_are_launched_there():
    plan = planned(snapshot(pods(1, "3", "14Gi"), POOL), reserved("a.xlarge", zones=("z3",)))
    (new,) = plan.new_nodes
    assert new.requirements[ZONE].values == {"z3"}
    assert new.price == 0


def test_pools_with_min_values_are_planned_at_list_prices():
    """EC2 chooses among all types of such a node, so what is launched may not be covered."""
    flexible = replace(needs(INSTANCE_TYPE, "Exists"), min_values=3)
    plan = planned(snapshot(pods(1, "500m"), pool("default", flexible)), reserved("a.4xlarge"))
    assert launched(plan) == [("a.medium", SPOT, 0.03)]


def test_commitments_pay_for_the_instance_alone():
    def billed(kind):
        volumes = BillPart("volumes", 0.01)
        offerings = tuple(
            each.billed(Bill(each.price, (BillPart("adjustments", -0.02), volumes)))
            for each in kind.offerings
        )
        return replace(kind, offerings=offerings)

    plan = planned(
        snapshot(pods(1, "3", "14Gi"), POOL), reserved("a.xlarge"), types=tuple(map(billed, TYPES))
    )
    assert launched(plan) == [("a.xlarge", ON_DEMAND, 0.01)]
    assert covered(plan) == pytest.approx(0.2)


@pytest.mark.parametrize(("adjustment", "paid"), [(-0.1, 0.15), (0.1, 0.25), (-0.4, 0.0)])
def test_a_savings_plan_is_used_up_at_list_prices_whatever_the_user_pays(adjustment, paid):
    """Half of 0.4 is 0.2, so a plan of 0.1 covers half of the node, whatever that costs."""

    def adjusted(kind):
        offerings = tuple(
            each.billed(Bill(each.price, (BillPart("adjustments", adjustment),))) for each in kind.offerings
        )
        return replace(kind, offerings=offerings)

    seen = snapshot(pods(1, "6"), NEVER_SPOT)
    plan = planned(seen, savings_plan(0.1, discount=50), types=(adjusted(BY_NAME["a.2xlarge"]),))
    assert launched(plan) == [("a.2xlarge", ON_DEMAND, paid)]


def billed_as(platform, types=TYPES, license_price=0.0):
    parts = (BillPart(LICENSE, license_price),) if license_price else ()
    return tuple(
        replace(
            kind,
            offerings=tuple(each.billed(Bill(each.price, parts, platform)) for each in kind.offerings),
        )
        for kind in types
    )


WINDOWS_POOL = pool("windows", needs(CAPACITY_TYPE, "In", ON_DEMAND))
SYSTEMS = {NEVER_SPOT.key: TYPES, WINDOWS_POOL.key: billed_as(WINDOWS, license_price=0.18)}


@pytest.mark.parametrize(("platform", "prices"), [("", [0.0, 0.4]), (WINDOWS, [0.22, 0.0])])
def test_reserved_instances_are_planned_for_their_platform_alone(platform, prices):
    """Those for Windows pay the license, too."""
    seen = snapshot(
        pods(1, "3", "14Gi", selector={PROVISIONER_NAME: "default"}),
        pods(1, "3", "14Gi", name="iis", selector={PROVISIONER_NAME: "windows"}),
        NEVER_SPOT,
        WINDOWS_POOL,
    )
    plan = solve(seen, SYSTEMS, Policy(commitments=(reserved("a.xlarge", 2, platform=platform),)))
    found = {new.pool.name: round(new.price, 6) for new in plan.new_nodes}
    assert [found["default"], found["windows"]] == prices


def test_a_savings_plan_reaches_for_fewer_nodes_whose_license_it_pays_for():
    """Half off the instance of 0.22 and none off its license of 0.18: 0.29, of which 0.145 are a half."""
    seen = snapshot(pods(1, "3", "14Gi"), WINDOWS_POOL)
    types = tuple(kind for kind in SYSTEMS[WINDOWS_POOL.key] if kind.name == "a.xlarge")
    (offering,) = {
        each.bill.instance for kind in types for each in kind.offerings if each.capacity_type == ON_DEMAND
    }
    rate = offering / 2 + 0.18
    plan = solve(seen, {WINDOWS_POOL.key: types}, Policy(commitments=(savings_plan(rate / 2, discount=50),)))
    (new,) = plan.new_nodes
    assert new.price == pytest.approx((offering + 0.18) / 2)
    ran = node(
        "ran", labels={INSTANCE_TYPE: "a.xlarge", ZONE: "z1", OS: "windows", PROVISIONER_NAME: "windows"}
    )
    left = running_coverage(
        cluster(ran, WINDOWS_POOL), {WINDOWS_POOL.key: types}, [savings_plan(1.0, discount=50)]
    ).left
    assert left == {"plan": pytest.approx(1 - rate)}


@pytest.mark.parametrize(
    ("labels", "left"),
    [({OS: "windows"}, 0), ({OS: "linux"}, 1), ({}, 1), ({OS: "windows", PROVISIONER_NAME: "windows"}, 0)],
)
def test_nodes_use_reserved_instances_of_their_platform(labels, left):
    theirs = node("theirs", labels={INSTANCE_TYPE: "a.xlarge", ZONE: "z1", **labels}, provider_id="")
    seen = cluster(theirs, NEVER_SPOT, WINDOWS_POOL)
    assert running_coverage(seen, SYSTEMS, [reserved("a.xlarge", platform=WINDOWS)]).left["reserved"] == left
    linux = running_coverage(seen, SYSTEMS, [reserved("a.xlarge")])
    assert linux.left["reserved"] == 1 - left


def test_a_node_of_nobody_uses_a_savings_plan_at_the_price_of_its_system():
    """0.22 for the instance and 0.18 for its license, as the pool with Windows knows."""
    windows = tuple(
        replace(kind, requirements=Requirements([needs(OS, "In", "windows")]))
        for kind in SYSTEMS[WINDOWS_POOL.key]
    )
    theirs = node("theirs", labels={INSTANCE_TYPE: "a.xlarge", ZONE: "z1", OS: "windows"}, provider_id="")
    seen = cluster(theirs, NEVER_SPOT, WINDOWS_POOL)
    catalog = {NEVER_SPOT.key: TYPES, WINDOWS_POOL.key: windows}
    found = running_coverage(seen, catalog, [savings_plan(1.0)])
    assert found.left == {"plan": pytest.approx(1 - 0.4)}


def test_the_fee_of_a_node_is_paid_for_a_covered_one_too():
    plan = planned(snapshot(pods(1, "3", "14Gi"), POOL), reserved("a.xlarge"), node_fee=0.03)
    assert launched(plan) == [("a.xlarge", ON_DEMAND, 0.03)]


def test_rules_between_pods_hold_between_covered_nodes_and_others():
    apart = pods(3, "3", anti_affinity=(beside(ZONE, "web"),))
    plan = planned(snapshot(apart, POOL), reserved("b.xlarge", 2))
    zones = [new.alternatives[0].offering.zone for new in plan.new_nodes]
    assert sorted(zones) == ["z1", "z2", "z3"]
    assert not plan.refusals
    assert covered(plan) == pytest.approx(0.32)


def test_a_spread_counts_covered_nodes():
    spreading = pods(6, "3", "14Gi", spread=(spread(ZONE),))
    plan = planned(snapshot(spreading, NEVER_SPOT), reserved("a.xlarge", 3))
    zones = [new.alternatives[0].offering.zone for new in plan.new_nodes for _ in new.pods]
    assert sorted(zones) == ["z1", "z1", "z2", "z2", "z3", "z3"]
    assert covered(plan) == pytest.approx(0.66)


def test_pods_keep_apart_by_a_label_of_the_users_own():
    """The covered node has one value of it, so the other pods get the others."""
    rack = "example.com/rack"
    racks = pool("default", needs(rack, "In", "r1", "r2", "r3"))
    apart = pods(3, "3", "14Gi", anti_affinity=(beside(rack, "web"),))
    plan = planned(snapshot(apart, racks), reserved("a.xlarge"))
    values = [new.requirements[rack].values for new in plan.new_nodes]
    assert sorted(map(sorted, values)) == [["r1"], ["r2"], ["r3"]]
    assert covered(plan) == pytest.approx(0.22)


def test_preferences_are_told_that_pods_on_covered_nodes_and_on_others_gave_up():
    """No pool is on the moon: the pods of both nodes are there in vain."""
    moon = needs("example.com/planet", "In", "moon")
    wishing = [
        pods(1, "3", "14Gi", name=name, preferred_terms=((1, term(moon)),), selector={ZONE: zone})
        for name, zone in (("covered", "z1"), ("bought", "z2"))
    ]
    plan = planned(snapshot(wishing, POOL), reserved("a.xlarge", zones=("z1",)))
    plain = planned(snapshot(wishing, POOL))
    assert covered(plan) == pytest.approx(0.22)
    assert plan.relaxed_preferences().keys() == {"default/covered-0", "default/bought-0"}
    assert plan.relaxed_preferences() == plain.relaxed_preferences()


def test_choices_are_told_at_list_prices_of_pods_on_nodes_that_are_bought():
    """An interruption loses less than spot saves: but for the covered node, they are on spot."""
    losing = [replace(pod, annotations={LOST_WORK: "1h"}) for pod in pods(3, "3", "14Gi")]
    plan = planned(snapshot(losing, POOL), reserved("a.xlarge"))
    assert sorted(kind for _, kind, _ in launched(plan)) == [ON_DEMAND, SPOT]
    assert covered(plan) == pytest.approx(0.22)
    bought = {key for new in plan.new_nodes if new.price for key in new.pods}
    (choice,) = plan.choices
    assert set(choice.pods) == bought
    assert choice.lost_work == planned(snapshot(losing, POOL)).choices[0].lost_work


def test_types_on_spot_that_a_covered_node_may_be_instead_keep_their_price():
    """With minValues, EC2 may launch any of them."""
    types = (
        instance_type("a.xlarge", 4, 16, offerings=(Offering("z1", ON_DEMAND, 0.2),)),
        instance_type("b.xlarge", 4, 16, offerings=(Offering("z1", SPOT, 0.3),)),
    )
    flexible = pool("default", replace(needs(INSTANCE_TYPE, "Exists"), min_values=2))
    plan = planned(snapshot(pods(1, "3"), flexible), savings_plan(0.1), types=types)
    (new,) = plan.new_nodes
    assert [(each.instance_type, each.offering.price) for each in new.alternatives] == [
        ("a.xlarge", pytest.approx(0.1)),
        ("b.xlarge", 0.3),
    ]


def test_nodes_that_are_planned_count_in_what_is_used():
    seen = snapshot(pods(2, "3", "14Gi"), POOL)
    commitments = (reserved("a.xlarge", 4),)
    plan = planned(seen, *commitments)
    catalog = {POOL.key: TYPES}
    assert running_coverage(seen, catalog, commitments).left == {"reserved": 4}
    assert running_coverage(seen, catalog, commitments, plan.new_nodes).left == {"reserved": 2}
    on_spot = planned(seen).new_nodes
    assert running_coverage(seen, catalog, commitments, on_spot).left == {"reserved": 4}


def test_pods_that_must_be_together_stay_together():
    leader = pods(1, "1500m", name="leader")
    followers = pods(2, "1500m", name="follower", affinity=(beside(HOSTNAME, "leader"),))
    plan = planned(snapshot(leader, followers, POOL), reserved("a.large"))
    assert len(plan.new_nodes) == 1
    assert not plan.refusals


def test_limits_of_pools_count_covered_nodes():
    limited = pool("default", limits={"cpu": "8"})
    plan = planned(snapshot(pods(4, "3", "14Gi"), limited), reserved("a.xlarge"))
    assert launched(plan) == [("a.xlarge", ON_DEMAND, 0.0), ("a.xlarge", SPOT, 0.11)]
    assert len(plan.refusals) == 2


@pytest.mark.parametrize("addresses", [6, 7, 8])
def test_addresses_of_subnets_are_counted_over_covered_nodes_and_others(addresses):
    """The covered node and its two pods take three of them."""
    rooms = {POOL.key: (SubnetRoom("subnet-1", "z1", addresses),)}
    plan = planned(snapshot(pods(6, "3", "14Gi"), POOL), reserved("a.2xlarge"), subnets=rooms)
    assert sum(1 + len(new.pods) for new in plan.new_nodes) <= addresses
    assert covered(plan) == pytest.approx(0.4)


def test_pods_on_covered_nodes_leave_all_addresses_that_they_do_not_take():
    rooms = {POOL.key: (SubnetRoom("subnet-1", "z1", 3, pods_take_addresses=False),)}
    plan = planned(snapshot(pods(6, "3", "14Gi"), POOL), reserved("a.2xlarge"), subnets=rooms)
    assert not plan.refusals
    assert len(plan.new_nodes) == 3
    assert covered(plan) == pytest.approx(0.4)


def test_a_fault_among_commitments_leaves_the_plan_without_them():
    class Broken(Commitment):
        def concerns(self, *_):
            raise RuntimeError("broken book")

    for pools in ([POOL], [POOL, pool("static", replicas=2)]):
        seen = snapshot(pods(2), *pools)
        plan = planned(seen, Broken("broken", dollars=1))
        assert plan.new_nodes == planned(seen).new_nodes
        assert len(plan.faults) == len(pools)
        assert all("broken book" in fault for fault in plan.faults)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_fault_in_one_more_plan_leaves_what_was_found_and_no_proof(failing):
    """Of 3 USD/h the reserved instances cover about a half."""
    seen, made = snapshot([pods(60, cpu, memory, name=name) for name, cpu, memory in _MIXED], NEVER_SPOT), []

    def planner(*arguments):
        made.append(arguments)
        if len(made) == failing + 1:
            raise RuntimeError("one more plan")
        return solve(*arguments)

    commitments = reserved("a.large", 90, size_flexible=True), savings_plan(1.0, discount=28)
    plan = cheapest_with_commitments(seen, {NEVER_SPOT.key: TYPES}, Policy(commitments=commitments), planner)
    (fault,) = plan.faults
    assert "one more plan" in fault
    assert covered(plan) > 0.5 * (plan.cost_per_hour + covered(plan))
    assert not plan.proved_cheapest


@pytest.mark.parametrize(
    "commitments",
    [
        (reserved("b.xlarge"), savings_plan(0.01, instance_types=("a.*",))),
        (savings_plan(0.066, discounts=(("b.*", 70), ("a.*", 20))),),
    ],
)
def test_another_type_that_may_be_launched_is_covered_no_further_than_it_would_be(commitments):
    """EC2 would take a.xlarge, whose list price is lower."""
    types = (instance_type("a.xlarge", 4, 16, price=0.2), instance_type("b.xlarge", 4, 16, price=0.22))
    seen = snapshot(pods(1, "3", "14Gi"), NEVER_SPOT)
    (new,) = planned(seen, *commitments, types=types).new_nodes
    shown = {each.instance_type: each.offering.price for each in new.alternatives}
    assert shown["b.xlarge"] == pytest.approx(0.0)
    alone = replace(new, alternatives=tuple(each for each in new.alternatives if "a." in each.instance_type))
    used = running_coverage(seen, {NEVER_SPOT.key: types}, commitments, [alone])
    off = -sum(part.dollars for parts in used.parts.values() for part in parts)
    assert 0.2 >= shown["a.xlarge"] >= 0.2 - off > 0.1


def test_nodes_of_static_pools_use_commitments_and_pods_what_they_leave():
    static = pool("static", needs(INSTANCE_TYPE, "In", "a.xlarge"), needs(CAPACITY_TYPE, "In", ON_DEMAND))
    tainted = replace(static, replicas=2, taints=(Taint("static", "NoSchedule"),))
    plan = planned(snapshot(pods(1, "500m"), NEVER_SPOT, tainted), reserved("a.xlarge", 2))
    assert launched(plan) == [
        ("a.medium", ON_DEMAND, 0.06),
        ("a.xlarge", ON_DEMAND, 0.0),
        ("a.xlarge", ON_DEMAND, 0.0),
    ]
    assert plan.proved_cheapest


def test_more_pods_with_a_place_are_worth_more_than_what_is_paid_for():
    """Within the limit, five of the pods fit on what is bought, and four on the reserved instances."""
    limited = pool("default", limits={"cpu": "8"})
    plan = planned(snapshot(pods(6, "1500m"), limited), reserved("b.xlarge", 2))
    assert len(plan.refusals) == 1
    assert launched(plan) == [("a.2xlarge", SPOT, 0.2)]


@pytest.mark.parametrize(
    ("commitment", "dollars"),
    [
        (savings_plan(0.3, discount=40), 0.5),
        (savings_plan(0.3), 0.3),
        (savings_plan(0.3, discounts=(("a.*", 40), ("*", 70))), 1.0),
        (savings_plan(0.3, discounts=(("a.*", 40),)), 0.5),
        (reserved("a.large", 3), 0.3),
        (reserved("a.large", 2, size_flexible=True), 0.24),
        (reserved("m9x.large", 2), 0.0),
    ],
)
def test_a_commitment_covers_so_many_dollars_at_most(commitment, dollars):
    """Of the family a, a medium instance has the highest price for its size: 0.06 for two units."""
    (worth,) = most_worth({POOL.key: TYPES[:-1]}, [commitment])
    assert commitment.amount * worth == pytest.approx(dollars)


def test_a_commitment_for_what_no_pool_buys_changes_nothing():
    seen = snapshot(pods(3, "3"), POOL)
    assert planned(seen, reserved("m9x.large"), savings_plan(1, region="far-away-1")) == planned(seen)


def test_without_commitments_one_plan_is_made():
    made = []

    def planner(*_):
        made.append(1)
        return planned(snapshot(pods(1), POOL))

    cheapest_with_commitments(snapshot(pods(1), POOL), {POOL.key: TYPES}, Policy(), planner)
    assert made == [1]


def test_commitments_count_in_their_terms():
    policy = Policy(commitments=(savings_plan(1, end=10.0), savings_plan(1, "later", start=10.0)))
    assert [each.name for each in policy.at(9.0).commitments] == ["plan"]
    assert [each.name for each in policy.at(10.0).commitments] == ["later"]
    assert Policy().at(0.0) == Policy()


SIZES = st.sampled_from(["100m", "500m", "1", "1500m", "3", "6", "7900m", "15"])
WHERE = st.sampled_from([{}, {}, {ZONE: "z1"}, {CAPACITY_TYPE: ON_DEMAND}])
BATCHES = st.lists(
    st.builds(
        lambda number, cpu, memory, where, name: pods(number, cpu, memory, selector=where, name=name),
        st.integers(1, 3),
        SIZES,
        st.sampled_from(["0", "1Gi", "3Gi", "14Gi"]),
        WHERE,
        st.sampled_from("abcd"),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda made: made[0].name,
)
AMOUNTS = st.sampled_from([0.05, 0.2, 0.5, 2.0])
COMMITMENTS_DRAWN = st.lists(
    st.one_of(
        st.builds(
            lambda dollars, less: savings_plan(dollars, discount=less), AMOUNTS, st.sampled_from([0, 28, 50])
        ),
        st.builds(lambda dollars: savings_plan(dollars, discount=40, instance_types=("a.*",)), AMOUNTS),
        st.builds(lambda dollars: savings_plan(dollars, discounts=(("a.2xlarge", 50), ("b.*", 28))), AMOUNTS),
        st.builds(
            lambda kind, number, zones: reserved(kind.name, number, zones=zones),
            st.sampled_from(TYPES),
            st.sampled_from([1, 2, 5]),
            st.sampled_from([(), ("z1",)]),
        ),
        st.builds(
            lambda kind, number: reserved(kind, number, size_flexible=True),
            st.sampled_from(["a.large", "a.xlarge"]),
            st.sampled_from([0.5, 1, 2, 5]),
        ),
    ),
    min_size=1,
    max_size=3,
).map(lambda some: tuple(replace(each, name=f"c{number}") for number, each in enumerate(some)))


@settings(
    deadline=None,
    max_examples=int(os.environ.get("COMMITTED_WORLDS", "40")),
    derandomize="COMMITTED_WORLDS" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(BATCHES, COMMITMENTS_DRAWN)
def test_an_integer_program_finds_nothing_much_cheaper_and_nothing_below_the_bound(batch, commitments):
    seen = snapshot(batch, POOL)
    known = best(seen, TYPES, commitments)
    plan = planned(seen, *commitments, packing=LOWEST_PRICE)
    plain = planned(seen, packing=LOWEST_PRICE)
    assert not plan.faults
    assert sum(len(new.pods) for new in plan.new_nodes) == known.placed
    assert plan.cost_per_hour >= known.price - 1e-6
    assert plan.lower_bound is not None
    # Whole nodes are proved with what rounding leaves.
    assert plan.lower_bound <= known.price + 1e-5
    assert plan.cost_per_hour <= plain.cost_per_hour + 1e-6
    # What is not covered is bought; a node of the margin may be covered in part, or be another one.
    assert plan.cost_per_hour <= 1.15 * known.price + 0.1


@settings(
    deadline=None,
    max_examples=int(os.environ.get("COMMITTED_WORLDS", "20")),
    derandomize="COMMITTED_WORLDS" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(BATCHES, COMMITMENTS_DRAWN, st.sampled_from(["a.large", "a.xlarge"]), st.integers(1, 3))
def test_nothing_is_below_the_bound_beside_nodes_of_static_pools(batch, commitments, kind, replicas):
    """To the program, the nodes are those of pods that nothing else holds, and that nothing fits beside."""
    of_one_type = needs(INSTANCE_TYPE, "In", kind), needs(CAPACITY_TYPE, "In", ON_DEMAND)
    theirs = pool("static", *of_one_type, taints=(Taint("static", "NoSchedule"),))
    seen = snapshot(batch, POOL, replace(theirs, replicas=replicas))
    whole = pods(
        replicas,
        f"{BY_NAME[kind].allocatable['cpu']}m",
        name="whole",
        selector={PROVISIONER_NAME: "static"},
        tolerations=(Toleration("static", "Exists"),),
    )
    known = best(snapshot(batch, whole, POOL, theirs), TYPES, commitments)
    plan = planned(seen, *commitments, packing=LOWEST_PRICE)
    assert not plan.faults
    assert sum(len(new.pods) for new in plan.new_nodes) + replicas == known.placed
    assert plan.lower_bound <= known.price + 1e-5
    assert plan.cost_per_hour >= known.price - 1e-6
    plain = planned(seen, packing=LOWEST_PRICE)
    assert plain.lower_bound <= best(snapshot(batch, whole, POOL, theirs), TYPES, ()).price + 1e-5


def test_the_bound_beside_nodes_of_static_pools_tells_how_good_a_plan_is():
    batch = [pods(60, cpu, memory, name=name) for name, cpu, memory in _MIXED]
    of_one_type = needs(INSTANCE_TYPE, "In", "a.xlarge"), needs(CAPACITY_TYPE, "In", ON_DEMAND)
    theirs = pool("static", *of_one_type, taints=(Taint("static", "NoSchedule"),))
    seen = snapshot(batch, POOL, replace(theirs, replicas=20))
    for dollars in (1.0, 5.0, 50.0):
        plan = planned(seen, savings_plan(dollars, discount=28))
        assert 0.9 * plan.cost_per_hour <= plan.lower_bound <= plan.cost_per_hour
    alone = planned(snapshot(POOL, replace(theirs, replicas=2)), savings_plan(0.1, discount=28))
    assert 0 < alone.cost_per_hour < 2 * 0.22
    assert alone.proved_cheapest


def test_the_bound_tells_how_good_a_plan_is_where_a_commitment_reaches_for_some_pods():
    """By the bounds without commitments and with endless ones alone, three quarters might be saved."""
    batch = [pods(60, cpu, memory, name=name) for name, cpu, memory in _MIXED]
    plain = planned(snapshot(batch, POOL))
    plan = planned(snapshot(batch, POOL), savings_plan(plain.cost_per_hour / 2, discount=50))
    assert 0 < plan.cost_per_hour < 0.6 * plain.cost_per_hour
    assert 0.9 * plan.cost_per_hour < plan.lower_bound <= plan.cost_per_hour


def with_volumes(dollars, types=TYPES):
    volumes = (BillPart("volumes", dollars),)
    return tuple(
        replace(kind, offerings=tuple(each.billed(Bill(each.price, volumes)) for each in kind.offerings))
        for kind in types
    )


@pytest.mark.parametrize("amount", [100.0, 1000.0])
def test_an_ample_commitment_does_not_hide_what_another_one_leaves_to_be_paid(amount):
    batch = [pods(60, cpu, memory, name=name) for name, cpu, memory in _MIXED[1:]]
    plans = (
        savings_plan(amount, name="ample", instance_types=("b.*",), discount=50),
        savings_plan(1.0, name="scarce", instance_types=("a.*",), discount=28),
    )
    plan = planned(snapshot(batch, NEVER_SPOT), *plans)
    assert 0.98 * plan.cost_per_hour < plan.lower_bound <= plan.cost_per_hour


@pytest.mark.parametrize("dollars", [100.0, 1000.0])
def test_the_bound_beside_an_ample_savings_plan_is_what_nodes_cost_beside_their_instances(dollars):
    batch = [pods(60, cpu, memory, name=name) for name, cpu, memory in _MIXED]
    types = with_volumes(0.0022)
    plan = planned(snapshot(batch, POOL), savings_plan(dollars, discount=50), types=types)
    assert 0.99 * plan.cost_per_hour <= plan.lower_bound <= plan.cost_per_hour


def test_the_bound_knows_that_units_of_a_commitment_are_worth_more_in_some_sizes_than_in_others():
    """Of a medium instance a normalized unit is worth 0.03, of a 2xlarge 0.025, and of spot nothing."""
    batch = [pods(60, cpu, memory, name=name) for name, cpu, memory in _MIXED]
    plan = planned(snapshot(batch, POOL), reserved("a.large", 60, size_flexible=True))
    assert 0.9 * plan.cost_per_hour < plan.lower_bound <= plan.cost_per_hour


def test_each_commitment_has_a_worth_of_its_own_in_the_bound():
    """No pod fits the type of the first: it must not count as what the second leaves to be paid."""
    batch = [pods(60, cpu, memory, name=name) for name, cpu, memory in _MIXED]
    commitments = reserved("a.medium", 150, name="small"), savings_plan(0.5, discount=28)
    plan = planned(snapshot(batch[1:], POOL), *commitments)
    assert 0.9 * plan.cost_per_hour < plan.lower_bound <= plan.cost_per_hour


def test_the_nodes_are_taken_that_a_commitment_reaches_for():
    """10 USD/h reach for all pods on 2xlarge, and not on 4xlarge, which have less to pay beside."""
    batch = [pods(60, cpu, memory, name=name) for name, cpu, memory in _MIXED]
    types = with_volumes(0.0022)
    plan = planned(snapshot(batch, POOL), savings_plan(10.0, discount=50), types=types)
    assert plan.cost_per_hour < 0.12


_MIXED = [("a", "500m", "1Gi"), ("b", "1", "3Gi"), ("c", "1500m", "8Gi"), ("d", "3", "2Gi")]
