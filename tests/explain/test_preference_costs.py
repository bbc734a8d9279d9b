"""A plan tells what its soft rules cost: the difference to the plan that is made without them."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from nodeless.explain.answers import answer
from nodeless.explain.decisions import Situation
from nodeless.explain.page import page
from nodeless.explain.preference_costs import (
    MOST_PLANS,
    MOST_PODS,
    MOST_WORK,
    NOTHING,
    Outcome,
    Trying,
    most_plans,
    preference_costs,
    priced_groups,
    rule_groups,
)
from nodeless.explain.report import report
from nodeless.model.bill import HOURS_A_MONTH
from nodeless.model.labels import HOSTNAME, INSTANCE_TYPE, LOST_WORK, ZONE
from nodeless.model.lost_work import InterruptionRate
from nodeless.model.pods import Owner
from nodeless.model.taints import Taint, Toleration
from nodeless.model.workloads import Workload
from nodeless.scheduling import Policy
from tests.scheduling.factories import beside, instance_type, needs, node, pods, pool, snapshot, spread, term

#: Of the large one, which holds what eight small ones do, spot costs less than of three small ones.
TYPES = (instance_type("small", 1, 4, price=0.1), instance_type("large", 8, 32, price=0.28))
HOSTS_APART = spread(HOSTNAME, soft=True)
RATHER_NOT_BESIDE = beside(HOSTNAME, weight=50)
RATHER_SMALL = (10, term(needs(INSTANCE_TYPE, "In", "small")))


def deployed(number, cpu="900m", name="web", **fields):
    """Pods of a Deployment."""
    owner = (Owner("apps/v1", "Deployment", name, controller=True),)
    annotations = fields.pop("annotations", {})
    made = pods(number, cpu, name=name, **fields)
    return [replace(pod, owners=owner, annotations=annotations) for pod in made]


def situation_of(*things, types=TYPES, pools=None, **policy):
    seen = snapshot(*things, pools or pool())
    return Situation(seen, dict.fromkeys(seen.pools, types), Policy(**policy), 0.0)


def costs_of(situation, trying=Trying.AUTO):
    return preference_costs(situation, situation.plan(), trying)


def price(*things, **options):
    """What a plan costs an hour, made apart from the figure that is looked at."""
    return situation_of(*things, **options).plan().cost_per_hour


def extras(costs):
    """Dollars an hour by rule."""
    return {cost.name: pytest.approx(cost.price.extra) for cost in costs.costs}


def test_a_soft_spread_over_hosts_is_told_with_its_price():
    costs = costs_of(situation_of(deployed(4, spread=(HOSTS_APART,))))
    dearer = price(deployed(4, spread=(HOSTS_APART,))) - price(deployed(4))
    # Four small nodes instead of the large one, all of them spot.
    assert dearer == pytest.approx(4 * 0.05 - 0.14)
    assert extras(costs) == {"ScheduleAnyway over hosts": dearer}
    (cost,) = costs.costs
    assert (cost.code, cost.key, cost.pods) == ("ScheduleAnyway", HOSTNAME, 4)
    assert cost.price.share == pytest.approx(dearer / price(deployed(4)))
    assert cost.price.extra_per_month == pytest.approx(HOURS_A_MONTH * dearer)
    assert costs.lines() == ("ScheduleAnyway over hosts: +43 %, 44 USD a month (4 x web)",)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("preferred pod anti-affinity over hosts", {"anti_affinity": (RATHER_NOT_BESIDE,)}),
        (f"preferred node affinity {INSTANCE_TYPE}", {"preferred_terms": (RATHER_SMALL,)}),
    ],
)
def test_each_kind_of_soft_rule_is_named_as_its_author_knows_it(name, fields):
    assert extras(costs_of(situation_of(deployed(4, **fields)))) == {name: 4 * 0.05 - 0.14}


def test_to_prefer_the_company_of_a_pod_in_a_dear_zone_has_its_price():
    # Spot is sold in z1 and z2 only.
    first = deployed(1, name="first", selector={ZONE: "z3"})
    beside_it = deployed(4, affinity=(beside(ZONE, "first", weight=1),))
    dearer = price(first, beside_it) - price(first, deployed(4))
    assert dearer > 0
    assert extras(costs_of(situation_of(first, beside_it))) == {"preferred pod affinity over zones": dearer}


def test_a_taint_that_pods_rather_avoid_has_its_price():
    cheap, dear = needs(INSTANCE_TYPE, "In", "large"), needs(INSTANCE_TYPE, "In", "small")
    tainted = pool("cheap", cheap, taints=(Taint("team", "PreferNoSchedule", "batch"),))
    tolerant = (Toleration("team", "Exists"),)
    both = [*deployed(4), *deployed(2, name="batch", tolerations=tolerant)]
    dearer = price(both, pools=[tainted, pool("dear", dear)]) - price(
        both, pools=[pool("cheap", cheap), pool("dear", dear)]
    )
    assert dearer > 0
    costs = costs_of(situation_of(both, pools=[tainted, pool("dear", dear)]))
    assert extras(costs) == {"PreferNoSchedule taint team=batch": dearer}
    # Of those alone that do not tolerate it.
    assert [(workload.name, number) for workload, number in costs.costs[0].workloads] == [("web", 4)]


def test_on_demand_for_lost_work_has_its_price():
    often = (InterruptionRate(per_month=0.05 * HOURS_A_MONTH),)
    losing = deployed(4, annotations={LOST_WORK: "100h"})
    dearer = price(losing, spot_interruptions=often) - price(deployed(4), spot_interruptions=often)
    assert dearer > 0
    costs = costs_of(situation_of(losing, spot_interruptions=often))
    assert extras(costs) == {"on-demand for lost work": dearer}


def test_nothing_is_told_where_preferences_cost_nothing():
    free = deployed(4, spread=(spread(ZONE, skew=8, soft=True),), affinity=(beside(HOSTNAME, weight=5),))
    assert costs_of(situation_of(free), Trying.ALWAYS) == NOTHING
    assert costs_of(situation_of(deployed(4)), Trying.ALWAYS) == NOTHING
    assert costs_of(situation_of(), Trying.ALWAYS) == NOTHING


def test_required_rules_are_no_preferences():
    hard = deployed(4, spread=(spread(HOSTNAME),), anti_affinity=(beside(HOSTNAME),))
    assert costs_of(situation_of(hard), Trying.ALWAYS) == NOTHING


def test_rules_that_are_ignored_cost_nothing():
    soft = deployed(4, spread=(HOSTS_APART,))
    assert costs_of(situation_of(soft, ignore_preferences=True), Trying.ALWAYS) == NOTHING


def test_of_two_rules_that_ask_for_the_same_only_both_together_cost():
    costs = costs_of(situation_of(deployed(4, spread=(HOSTS_APART,), anti_affinity=(RATHER_NOT_BESIDE,))))
    assert costs.costs == ()
    assert costs.together.extra == pytest.approx(4 * 0.05 - 0.14)
    assert costs.lines() == (
        "all 2 together (preferred pod anti-affinity over hosts, ScheduleAnyway over hosts): "
        "+43 %, 44 USD a month",
    )


def test_the_sum_is_that_of_a_plan_without_all_of_them():
    web = deployed(6, spread=(HOSTS_APART,), selector={ZONE: "z1"})
    api = deployed(5, name="api", preferred_terms=(RATHER_SMALL,), selector={ZONE: "z2"})
    costs = costs_of(situation_of(web, api))
    bare = price(deployed(6, selector={ZONE: "z1"}), deployed(5, name="api", selector={ZONE: "z2"}))
    assert costs.together.extra == pytest.approx(price(web, api) - bare)
    assert [cost.name for cost in costs.costs] == [
        "ScheduleAnyway over hosts",
        f"preferred node affinity {INSTANCE_TYPE}",
    ]
    assert costs.lines()[-1].startswith("all 2 together: +")


def test_pods_that_have_room_on_existing_nodes_add_nothing():
    room = [node("n1", "4"), node("n2", "4")]
    assert costs_of(situation_of(room, deployed(4, spread=(HOSTS_APART,))), Trying.ALWAYS) == NOTHING


def test_only_what_existing_nodes_do_not_hold_counts():
    room, soft = node("n1", "2"), deployed(6, spread=(HOSTS_APART,))
    dearer = price(room, soft) - price(room, deployed(6))
    assert dearer > 0
    assert extras(costs_of(situation_of(room, soft))) == {"ScheduleAnyway over hosts": dearer}


def test_a_plan_with_many_kinds_of_rules_says_which_were_not_tried_each_by_itself():
    kinds = tuple((1, term(needs(f"example.com/rack-{kind}", "In", "a"))) for kind in range(MOST_PLANS + 5))
    situation = situation_of(deployed(4, spread=(HOSTS_APART,), preferred_terms=kinds))
    quick, whole = costs_of(situation), costs_of(situation, Trying.ALWAYS)
    assert quick.together == whole.together
    assert whole.untried == ()
    assert extras(whole) == {"ScheduleAnyway over hosts": 4 * 0.05 - 0.14}
    assert len(quick.untried) > 5
    assert quick.lines()[-1].startswith("not tried each by itself, as the plan is large: ")
    assert quick.lines()[-1].endswith(" others; hint: --preference-costs always")


def test_a_huge_plan_is_not_made_again_unless_it_is_asked_for():
    rather_large = (10, term(needs(INSTANCE_TYPE, "In", "large")))
    situation = situation_of(deployed(MOST_PODS + 1, "1m", preferred_terms=(rather_large,)), time_box=0.0)
    costs, name = costs_of(situation), f"preferred node affinity {INSTANCE_TYPE}"
    assert costs.untried == costs.rules == (name,)
    assert costs.lines() == (f"not tried, as the plan is large: {name}; hint: --preference-costs always",)
    assert list(extras(costs_of(situation, Trying.ALWAYS))) == [name]


def test_plans_that_are_much_work_are_made_again_less_often():
    assert most_plans(Policy(), 100) == MOST_PLANS
    assert most_plans(Policy(), 100, work=3.0) == MOST_WORK // 4
    assert most_plans(Policy(), 100, work=100.0) == 0
    assert most_plans(Policy(time_box=0.0), 0) == MOST_PLANS


def test_prices_of_plans_that_leave_other_pods_without_a_place_say_nothing():
    situation = situation_of(deployed(4, spread=(HOSTS_APART,)))
    groups = rule_groups(situation, sorted(situation.snapshot.pods))
    refusing = Outcome(0.1, Counter([Workload("default", "Deployment", "web")]))
    assert priced_groups(Outcome(0.2), groups, lambda _: refusing) == NOTHING
    assert priced_groups(Outcome(0.2), groups, lambda _: Outcome(0.1)).costs[0].price.share == 1.0


def test_where_all_together_say_nothing_and_no_plan_is_left_for_each_that_is_told():
    web, other = (
        deployed(2, spread=(HOSTS_APART,)),
        deployed(2, name="other", preferred_terms=(RATHER_SMALL,)),
    )
    situation = situation_of(web, other)
    groups = rule_groups(situation, list(situation.snapshot.pods))
    refusing = Outcome(0.1, Counter({Workload("Deployment", "default", "late"): 1}))
    costs = priced_groups(Outcome(0.2), groups, lambda _: refusing, most=1)
    assert set(costs.untried) == {str(group.rule) for group in groups}
    assert len(costs.lines()) == 1


def test_a_plan_that_buys_nothing_without_a_rule_has_no_share():
    situation = situation_of(deployed(4, spread=(HOSTS_APART,)))
    groups = rule_groups(situation, sorted(situation.snapshot.pods))
    costs = priced_groups(Outcome(0.2), groups, lambda _: Outcome(0.0))
    assert costs.lines() == ("ScheduleAnyway over hosts: 146 USD a month (4 x web)",)


def test_never_is_never():
    assert costs_of(situation_of(deployed(4, spread=(HOSTS_APART,))), Trying.NEVER) == NOTHING


def test_a_pod_and_its_node_are_answered_with_what_preferences_of_their_workloads_cost():
    web = deployed(6, spread=(HOSTS_APART,), selector={ZONE: "z1"})
    api = deployed(5, name="api", preferred_terms=(RATHER_SMALL,), selector={ZONE: "z2"})
    situation = situation_of(web, api)
    plan = situation.plan()
    told = "preference: ScheduleAnyway over hosts: "
    said = answer(situation, plan, "pod/web-0")
    assert [line for line in said.lines if line.startswith("preference: ")] == [
        f"{told}+41 %, 117 USD a month (6 x web)"
    ]
    assert [cost.name for cost in said.facts["preferences"].costs] == ["ScheduleAnyway over hosts"]
    home = next(
        f"new-{number}" for number, planned in enumerate(plan.new_nodes, 1) if "default/web-0" in planned.pods
    )
    assert any(line.startswith(told) for line in answer(situation, plan, home).lines)
    assert "preferences" not in answer(situation, plan, "pod/web-0", trying=Trying.NEVER).facts


def test_the_page_tells_them_and_names_cannot_become_markup():
    rules = {"spread": (HOSTS_APART,), "preferred_terms": ((1, term(needs("<script>alert(1)", "Exists"))),)}
    situation = situation_of(deployed(4, name="<b>web", labels={"app": "web"}, **rules))
    plan = situation.plan()
    costs = replace(preference_costs(situation, plan), untried=("<script>alert(1)",))
    made = page(report(situation, plan, preferences=costs), datetime(2026, 1, 2, tzinfo=UTC))
    assert "What preferences cost" in made
    assert "<bdi>ScheduleAnyway over hosts: +43 %, 44 USD a month (4 x &lt;b&gt;web)</bdi>" in made
    assert "&lt;script&gt;alert(1)" in made
    assert "<script>alert" not in made
    assert "<b>web" not in made
