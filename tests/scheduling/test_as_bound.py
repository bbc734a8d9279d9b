"""Where nobody nominates pods to their nodes: the plan that is cheapest as kube-scheduler will bind it."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from operator import sub
from random import Random

import pytest

from nodeless.model.labels import ZONE
from nodeless.model.plan import Plan
from nodeless.model.pods import Owner, Pod
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from nodeless.scheduling.as_bound import cheapest_as_bound
from tests.scheduling.factories import beside, instance_type, node, pods, pool, snapshot, spread

#: Large types cost a little more by CPU: so plans have several nodes.
TYPES = (
    *(instance_type(f"m{cpu}", cpu, 4 * cpu, price=0.05 * cpu**1.06) for cpu in (1, 2, 4, 8, 16, 32)),
    *(instance_type(f"c{cpu}", cpu, 2 * cpu, price=0.042 * cpu**1.06) for cpu in (2, 4, 8, 16, 32)),
)
NOMINATED = Policy(time_box=0.2)
ALONE = replace(NOMINATED, as_bound=True)
#: Those are nominated that hard topology spread allows to be.
WITHOUT_SPREAD = replace(NOMINATED, nominates=True)
SEEDS = [*range(6)]


def aged(made: Iterable[Pod]) -> list[Pod]:
    """Pods of ReplicaSets in the order in which they came."""
    return [
        replace(pod, owners=(Owner("apps/v1", "ReplicaSet", pod.labels["app"]),), created_at=float(at))
        for at, pod in enumerate(made)
    ]


def cluster(seed: int) -> Snapshot:
    chance = Random(seed)
    made: list[Pod] = []
    for index in range(chance.randint(3, 9)):
        cpu, memory = (
            chance.choice(("250m", "700m", "1", "1900m", "3")),
            chance.choice(("512Mi", "1Gi", "5Gi")),
        )
        app, number = f"app{index}", chance.randint(2, 30)
        rules = chance.choice(
            (
                {},
                {},
                {"spread": (spread(ZONE, app),)},
                {"anti_affinity": (beside("kubernetes.io/hostname", app),)},
            )
        )
        made += pods(number, cpu, memory, name=app, **rules)
    chance.shuffle(made)
    return snapshot(aged(made), pool(), [node("there", "8", "32Gi")] if chance.random() < 0.5 else [])


def planned(seen: Snapshot, policy: Policy, types=TYPES):
    return solve(seen, dict.fromkeys(seen.pools, types), policy)


@cache
def plan_for(seed: int, policy: Policy) -> Plan:
    """What several tests compare of a cluster, planned once."""
    return planned(cluster(seed), policy)


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_loses_a_place_and_prices_are_the_catalog_s(seed):
    usual, alone = plan_for(seed, NOMINATED), plan_for(seed, ALONE)
    assert {each.pod for each in alone.refusals} <= {each.pod for each in usual.refusals}
    listed = {(kind.name, each) for kind in TYPES for each in kind.offerings}
    bought = {(each.instance_type, each.offering) for new in alone.new_nodes for each in new.alternatives}
    assert bought <= listed
    assert alone.cost_per_hour >= usual.cost_per_hour - 1e-9 or len(alone.new_nodes) <= len(usual.new_nodes)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_chosen_spills_nothing_or_costs_less_with_its_spill(seed):
    first = plan_for(seed, replace(ALONE, packing=FEWEST_NODES))
    chosen = plan_for(seed, ALONE)
    if not first.spill and chosen.spill:
        # What spills costs something, so a dearer plan that is kept may not be cheaper than the chosen one.
        assert chosen.cost_per_hour < first.cost_per_hour


def test_some_plan_is_given_up_for_what_it_spills():
    assert any(
        plan_for(seed, ALONE).cost_per_hour > plan_for(seed, NOMINATED).cost_per_hour + 1e-9 for seed in SEEDS
    )


def test_a_plan_that_spills_nothing_stays_as_it_is():
    seen = snapshot(aged(pods(6, "1", "1Gi")), pool())
    usual, alone = planned(seen, NOMINATED), planned(seen, ALONE)
    assert alone == usual
    assert alone.spill == ()


@pytest.mark.parametrize(
    ("number", "policy", "made"),
    [
        (4, ALONE, 6),
        (400, ALONE, 2),
        (400, replace(ALONE, time_box=0.0), 6),
        (400, replace(ALONE, most_new_nodes=1), 6),
    ],
    ids=["few pods", "hundreds", "a first-fit plan", "a replacement"],
)
def test_other_plans_are_made_only_where_what_spills_costs_a_part_worth_it(number, policy, made):
    """The first plan, one for the pod that spills, and four others."""
    plans = []

    def planner(_snapshot, _catalog, policy):
        plans.append(policy)
        return Plan(new_nodes=first.new_nodes[:1]) if len(plans) == 1 else replace(first, spill=())

    seen = snapshot(aged(pods(number, "7", name="web")), pool())
    first = replace(planned(seen, NOMINATED, TYPES[:4]), spill=("default/web-0",))
    cheapest_as_bound(first, seen, dict.fromkeys(seen.pools, TYPES[:4]), policy, planner)
    assert 1 + len(plans) == made


def test_pods_that_fill_a_node_to_the_brim_beside_a_larger_one_spill():
    """The scheduler puts small pods on the emptier node, where the large one was meant to be."""
    small, large = pods(7, "1", name="small"), pods(1, "7", name="large")
    seen = snapshot(aged([*small, *large]), pool())
    types = (instance_type("eight", 8, 32),)
    tight = planned(seen, replace(ALONE, packing=FEWEST_NODES), types)
    assert len(tight.new_nodes) == 2
    assert tight.spill == ("default/large-0",)


def test_the_scheduler_takes_pods_of_a_higher_priority_first():
    small, large = pods(7, "1", name="small"), pods(1, "7", name="large")
    urgent = [replace(pod, priority=1000) for pod in large]
    seen = snapshot(aged([*small, *urgent]), pool())
    tight = planned(seen, replace(ALONE, packing=FEWEST_NODES), (instance_type("eight", 8, 32),))
    assert tight.spill == ()


def test_required_rules_hold_while_pods_are_bound():
    """One on each of four nodes; small ones that came first leave room everywhere."""
    apart = pods(4, "2", name="apart", anti_affinity=(beside("kubernetes.io/hostname", "apart"),))
    seen = snapshot(aged([*pods(8, "500m", name="small"), *apart]), pool())
    plan = planned(seen, replace(ALONE, packing=FEWEST_NODES), (instance_type("four", 4, 16),))
    assert len(plan.new_nodes) == 4
    assert plan.spill == ()


def test_a_pod_goes_only_where_its_zone_is():
    zoned = pods(3, "1", name="zoned", selector={ZONE: "z2"})
    seen = snapshot(aged([*pods(3, "1", name="other", selector={ZONE: "z1"}), *zoned]), pool())
    plan = planned(seen, replace(ALONE, packing=FEWEST_NODES), (instance_type("four", 4, 16),))
    assert len(plan.new_nodes) == 2
    assert plan.spill == ()


def of_spread_workloads(seed: int) -> Snapshot:
    """Workloads of different sizes, each spread over the zones."""
    chance = Random(f"spread {seed}")
    made: list[Pod] = []
    for index in range(4):
        cpu, memory = chance.choice(("100m", "500m", "1", "2", "4")), chance.choice(("512Mi", "2Gi", "8Gi"))
        made += pods(
            chance.randint(15, 45), cpu, memory, name=f"app{index}", spread=(spread(ZONE, f"app{index}"),)
        )
    return snapshot(aged(made), pool())


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_chosen_for_spread_pods_spills_nothing_or_costs_less_with_its_spill(seed):
    seen = of_spread_workloads(seed)
    first, chosen = (
        planned(seen, replace(WITHOUT_SPREAD, packing=FEWEST_NODES)),
        planned(seen, WITHOUT_SPREAD),
    )
    assert chosen.refusals == ()
    if not first.spill and chosen.spill:
        assert chosen.cost_per_hour < first.cost_per_hour


def test_a_plan_is_given_up_for_what_spread_pods_would_spill():
    def cost(policy: Policy) -> list[float]:
        return [planned(of_spread_workloads(seed), policy).cost_per_hour for seed in SEEDS]

    assert max(map(sub, cost(WITHOUT_SPREAD), cost(NOMINATED))) > 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_where_all_pods_can_be_nominated_the_plan_stays_as_it_is(seed):
    seen = of_spread_workloads(seed)
    free = [replace(pod, shape=replace(pod.shape, spread=())) for pod in seen.pods.values()]
    assert planned(snapshot(free, pool()), WITHOUT_SPREAD) == planned(snapshot(free, pool()), NOMINATED)


@pytest.mark.parametrize(("policy", "spilled"), [(ALONE, 1), (WITHOUT_SPREAD, 0)], ids=["alone", "nominated"])
def test_what_is_nominated_keeps_its_place_from_pods_that_cannot_be(policy, spilled):
    """The large pod's room is taken by small ones only where nobody keeps it."""
    where = {ZONE: "z1"}
    small = pods(7, "1", name="small", selector=where, spread=(spread(ZONE, "small"),))
    seen = snapshot(aged([*small, *pods(1, "7", name="large", selector=where)]), pool())
    tight = planned(seen, replace(policy, packing=FEWEST_NODES), (instance_type("eight", 8, 32),))
    assert len(tight.new_nodes) == 2
    assert len(tight.spill) == spilled


@pytest.mark.parametrize("packing", [LOWEST_PRICE, FEWEST_NODES])
def test_the_same_plan_comes_out_again(packing):
    seen, policy = cluster(3), replace(ALONE, packing=packing)
    assert planned(seen, policy) == planned(seen, policy)
