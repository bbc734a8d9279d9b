"""A pass ends whatever the pods are, and a greedy tenant takes time from none but itself."""

import random
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from nodeless.model.plan import Plan
from nodeless.model.snapshot import Snapshot
from nodeless.solve import Policy, pods_to_place, solve
from nodeless.solve.meter import Meter, Shares
from nodeless.solve.placing.packing import Packing
from tests.hostile_pods import KINDS, hostile_pod, pending
from tests.solve.factories import NOW, node, pods, pool, running, snapshot
from tests.solve.hostile_batches import HONEST, every_type, honest_pods

TYPES = every_type()[::8]


def planned(seen: Snapshot, types=TYPES, **policy) -> Plan:
    return solve(seen, dict.fromkeys(seen.pools, types), Policy(**{"time_box": 0.0, **policy}), NOW)


def hostile(kind, number, seed=1):
    chance = random.Random(f"{kind} {seed}")
    return [pending(hostile_pod(chance, f"h-{each}", kind=kind)) for each in range(number)]


def answers(result: Plan) -> Counter[str]:
    found = Counter(key for node in result.new_nodes for key in node.pods)
    found.update(result.placements.keys())
    found.update(refusal.pod for refusal in result.refusals)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_honest_pods_get_their_nodes_beside_hostile_ones_and_every_pod_an_answer(kind):
    seen = snapshot(honest_pods(random.Random(kind), 12), hostile(kind, 25), pool())
    result = planned(seen, deadline=2.0)
    assert answers(result) == Counter(pod.key for pod in pods_to_place(seen))
    refused = {refusal.pod for refusal in result.refusals}
    assert not any(key.startswith(f"{HONEST}/") for key in refused)


@pytest.mark.parametrize("deadline", [0.0, 0.02, 0.2])
def test_what_has_no_time_is_set_aside_with_that_reason_and_no_pod_is_forgotten(deadline):
    seen = snapshot(honest_pods(random.Random(5), 12), hostile("everything", 25), pool())
    result = planned(seen, deadline=deadline)
    assert answers(result) == Counter(pod.key for pod in pods_to_place(seen))
    aside = [each for each in result.refusals if each.code == "PlanningTookTooLong"]
    assert aside
    assert all("more than its share" in str(each) for each in aside)


def test_the_same_pods_are_set_aside_in_every_run():
    seen = snapshot(honest_pods(random.Random(5), 12), hostile("everything", 25), pool())
    assert planned(seen, deadline=0.2) == planned(seen, deadline=0.2)


@pytest.mark.parametrize("seed", range(3))
def test_a_pod_that_waits_for_nobody_over_every_type_costs_next_to_nothing(seed):
    lonely = hostile("spread_and_lonely", 1, seed)
    result = planned(snapshot(lonely, pool()), every_type(), deadline=0.5)
    assert [each.code for each in result.refusals] == ["PodAffinity"]


def test_pods_that_took_too_long_before_come_after_the_others():
    honest, greedy = honest_pods(random.Random(7), 12), hostile("many_spreads", 25)
    late = frozenset(pod.key for pod in honest)
    result = planned(snapshot(honest, greedy, pool()), deadline=0.05, late=late)
    first = planned(snapshot(honest, greedy, pool()), deadline=0.05)
    refused = [sum(each.pod in late for each in plan.refusals) for plan in (result, first)]
    assert refused[0] >= refused[1] == 0


def test_a_batch_without_hostile_pods_is_planned_as_if_there_were_no_deadline():
    seen = snapshot(honest_pods(random.Random(3), 30), pool())
    assert planned(seen) == planned(seen, deadline=1e9)


@dataclass(frozen=True)
class Some:
    pods: tuple[str, ...]


def test_a_tenant_with_many_classes_leaves_another_its_half():
    greedy = [Some((f"greedy/{each}",)) for each in range(1000)]
    honest = Some(("honest/one",))
    meter = Meter()
    shares = Shares(meter, 8.0, [*greedy, honest])
    for each in greedy:
        shares.begin(each)
        while not meter.over:
            meter.spend(0.001)
        assert shares.end(each)
    assert meter.spent < 4.0 + 2.0 + 1000 * 0.001
    shares.begin(honest)
    meter.spend(1.9)
    assert not shares.end(honest)


def test_when_the_box_is_used_up_only_tenants_begin_that_have_not_had_their_part():
    greedy = [Some((f"greedy/{each}",)) for each in range(1000)]
    honest = [Some((f"honest/{each}",)) for each in range(3)]
    meter = Meter()
    shares = Shares(meter, 8.0, [*greedy, *honest])
    begun = 0
    for each in greedy:
        if shares.may_begin(each):
            begun += 1
            shares.begin(each)
            meter.spend(0.1)
            shares.end(each)
    assert meter.spent < 8.0 + 0.2
    assert begun < len(greedy)
    for each in honest:
        assert shares.may_begin(each)
        shares.begin(each)
        meter.spend(0.1)
        shares.end(each)


@pytest.mark.parametrize("seed", range(2))
def test_what_a_pass_over_pods_of_all_kinds_does_stays_near_its_box(monkeypatch, seed):
    meters = []

    def kept(*arguments):
        meters.append(Meter(*arguments))
        return meters[-1]

    monkeypatch.setattr("nodeless.solve.solver.Meter", kept)
    chance = random.Random(seed)
    greedy = [pending(hostile_pod(chance, f"h-{each}")) for each in range(80)]
    planned(snapshot(honest_pods(chance, 12), greedy, pool()), deadline=0.5)
    assert meters[0].spent < 1.5


def test_pods_with_more_rules_than_there_is_time_for_are_set_aside_evenly_by_namespace(monkeypatch):
    monkeypatch.setattr("nodeless.solve.pods.crowding.PAIRS", 10_000)
    honest = honest_pods(random.Random(2), 20)
    seen = snapshot(honest, hostile("many_neighbours", 60), pool())
    result = planned(seen, deadline=0.5)
    assert answers(result) == Counter(pod.key for pod in pods_to_place(seen))
    aside = {each.pod for each in result.refusals if each.code == "PlanningTookTooLong"}
    assert aside
    assert not any(key.startswith(f"{HONEST}/") for key in aside)


def test_running_pods_with_more_terms_than_there_is_time_for_keep_nobody_from_a_plan(monkeypatch):
    monkeypatch.setattr("nodeless.solve.pods.crowding.PAIRS", 2_000)
    crowd = [
        running(replace(each, name=f"r-{number}"), "full")
        for number, each in enumerate(hostile("many_neighbours", 60))
    ]
    full = node("full", "4", "16Gi", labels={"karpenter.sh/provisioner-name": "default"})
    honest = honest_pods(random.Random(2), 5)
    result = planned(snapshot(honest, crowd, full, pool()))
    assert answers(result) == Counter(pod.key for pod in honest)


def test_those_that_were_set_aside_share_what_is_left():
    many = [Some((f"greedy/{each}",)) for each in range(4)]
    meter = Meter()
    shares = Shares(meter, 8.0, many)
    for behind in (3, 2, 1, 0):
        shares.begin_again(behind)
        before = meter.spent
        while not meter.over:
            meter.spend(0.01)
        shares.end(many[behind])
        assert 1.9 < meter.spent - before < 2.1


def test_a_fault_in_the_planning_of_one_class_is_kept_to_its_pods(monkeypatch):
    place = Packing.place

    def faulty(self, some, waiting, **fields):
        if some.pods[0].startswith("default/cursed"):
            raise KeyError("nobody foresaw this")
        return place(self, some, waiting, **fields)

    monkeypatch.setattr(Packing, "place", faulty)
    others = honest_pods(random.Random(9), 6)
    cursed = [*pods(2, "900m", name="cursed"), *pods(1, "800m", name="cursed-too")]
    result = planned(snapshot(others, cursed, pool()))
    told = {each.pod: each for each in result.refusals}
    assert set(told) == {pod.key for pod in cursed}
    assert {each.code for each in told.values()} == {"PlanningFailed"}
    assert "KeyError: 'nobody foresaw this' (faulty" in str(told["default/cursed-0"])
    assert result.new_nodes == planned(snapshot(others, pool())).new_nodes


def test_where_the_search_for_a_cheaper_plan_fails_the_floor_plan_stays(monkeypatch):
    def faulty(*_arguments):
        raise ZeroDivisionError("no price")

    seen = snapshot(honest_pods(random.Random(9), 6), pool())
    monkeypatch.setattr("nodeless.solve.solver.repack", faulty)
    result = planned(seen, time_box=0.1)
    assert not result.refusals
    assert ["ZeroDivisionError" in each for each in result.faults] == [True]
