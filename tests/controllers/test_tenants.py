"""Namespaces whose pods take long to plan come after the others."""

from nodeless.controllers.provisioning.deferred_pods import DeferredPods
from nodeless.controllers.provisioning.tenants import DEADLINE, HEAVY_SECONDS, HEAVY_WORK, LATELY, Tenants
from nodeless.model.labels import ZONE
from nodeless.model.plan import Plan
from nodeless.operator.metrics import Metrics
from nodeless.scheduling import Policy, solve, with_placeholders
from nodeless.scheduling.pods.requests import request_of
from tests.scheduling.factories import FAMILY, node, pods, pool, snapshot, spread
from tests.scheduling.test_provisioning_requests import BOOKED, a_request, asked

SLOW = {"greedy": HEAVY_WORK + 1, "modest": HEAVY_WORK / 10}


def placed(turn):
    return set() if turn is None else {key.partition("/")[0] for key in turn.pods}


def test_who_took_long_is_planned_after_the_others_for_a_while():
    tenants = Tenants()
    tenants.note(Plan(work=SLOW), 100.0)
    assert tenants.heavy(100.0) == {"greedy"}
    assert tenants.heavy(100.0 + HEAVY_SECONDS) == frozenset()


def test_the_pass_of_such_namespaces_is_short_where_others_place_pods_too():
    tenants = Tenants()
    tenants.note(Plan(work=SLOW), 100.0)
    assert tenants.deadline({"greedy"}, 100.0) == DEADLINE
    assert tenants.deadline({"greedy"}, 100.0 + LATELY) is None


def test_who_is_alone_in_the_cluster_has_all_the_time():
    tenants = Tenants()
    tenants.note(Plan(work={"greedy": 5.0}), 100.0)
    assert tenants.deadline({"greedy"}, 101.0) is None


def test_heavy_namespaces_get_a_turn_of_their_own():
    seen = snapshot(pods(2, namespace="greedy"), pods(2, namespace="modest"), pool())
    turns = DeferredPods(Metrics(), None).turns(seen, 0.0, {"greedy"})
    assert placed(turns.first) == {"modest"}
    assert placed(turns.second) == {"greedy", "modest"}
    assert turns.late == {"greedy/web-0", "greedy/web-1"}


def test_room_that_is_booked_for_them_is_kept_from_the_first_turn_on():
    booked = a_request(3, conditions=(BOOKED,))
    seen = with_placeholders(asked(node("one", cpu="4"), pods(3, "1", namespace="modest"), requests=[booked]))
    turns = DeferredPods(Metrics(), None).turns(seen, 0.0, {booked.namespace})
    plan = solve(turns.first, {}, Policy())
    assert [request_of(pod) for pod in plan.placements].count(booked.key) == 3


def test_without_them_everybody_is_in_one_turn():
    seen = snapshot(pods(2, namespace="one"), pods(2, namespace="other"), pool())
    turns = DeferredPods(Metrics(), None).turns(seen, 0.0)
    assert (placed(turns.first), turns.second) == ({"one", "other"}, None)


def test_a_plan_tells_whose_pods_its_work_was_for():
    greedy = [
        pods(
            3, f"{100 + each}m", name=f"web-{each}", namespace="greedy", spread=(spread(ZONE, f"web-{each}"),)
        )
        for each in range(40)
    ]
    seen = snapshot(greedy, pods(3, namespace="modest"), pool())
    plan = solve(seen, dict.fromkeys(seen.pools, FAMILY), Policy(time_box=0))
    assert plan.work["greedy"] > 10 * plan.work["modest"] > 0


def test_a_flood_of_namespaces_is_forgotten():
    tenants = Tenants()
    for number in range(30):
        tenants.note(Plan(work={f"ns-{number}-{each}": 5.0 for each in range(1000)}), float(number))
    assert len(tenants.heavy(30.0)) <= 10_000
    tenants.note(Plan(), 30.0 + HEAVY_SECONDS)
    assert not tenants.heavy(30.0 + HEAVY_SECONDS)
    assert not tenants._heavy
