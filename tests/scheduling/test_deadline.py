"""A pass ends whatever the pods are, and a greedy tenant takes time from none but itself."""

import json
import random
from collections import Counter
from dataclasses import dataclass, replace

import pytest
from typer.testing import CliRunner

from nodeless.cli.main import app
from nodeless.explain.decisions import Situation
from nodeless.explain.report import report
from nodeless.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, ZONE
from nodeless.model.plan import Plan
from nodeless.model.pods import LabelSelector, PodAffinityTerm
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import Policy, pods_to_place, solve
from nodeless.scheduling.first_fit.packing import Packing
from nodeless.scheduling.meter import Meter, Shares
from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.spread.backtracking_search import BacktrackingSearch
from nodeless.scheduling.spread.sharing import ENDLESS, Limit
from tests.hostile_pods import KINDS, hostile_pod, pending
from tests.scheduling.factories import (
    NOW,
    instance_type,
    needs,
    node,
    pods,
    pool,
    running,
    selecting,
    snapshot,
    spread,
    term,
)
from tests.scheduling.hostile_batches import HONEST, every_type, honest_pods

TYPES = every_type()[::8]
#: A packing problem of one type and one pod, as `nodeless solve` reads it.
ONE_POD = {
    "name": "one pod",
    "instanceTypes": [
        {
            "name": "a.xlarge",
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "20"},
            "requirements": {INSTANCE_TYPE: ["a.xlarge"], ZONE: ["z1"], CAPACITY_TYPE: [ON_DEMAND]},
            "offerings": [{"zone": "z1", "capacityType": ON_DEMAND, "price": 0.2}],
        }
    ],
    "nodePools": [{"name": "default"}],
    "pods": [{"name": "web", "requests": {"cpu": "1"}}],
}


def planned(seen: Snapshot, types=TYPES, **policy) -> Plan:
    return solve(seen, dict.fromkeys(seen.pools, types), Policy(**{"time_box": 0.0, **policy}))


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
    assert answers(result) == Counter(pod.key for pod in pods_to_place(seen, 0.0))
    refused = {refusal.pod for refusal in result.refusals}
    assert not any(key.startswith(f"{HONEST}/") for key in refused)


@pytest.mark.parametrize("deadline", [0.0, 0.02, 0.2])
def test_what_has_no_time_is_set_aside_with_that_reason_and_no_pod_is_forgotten(deadline):
    seen = snapshot(honest_pods(random.Random(5), 12), hostile("everything", 25), pool())
    result = planned(seen, deadline=deadline)
    assert answers(result) == Counter(pod.key for pod in pods_to_place(seen, 0.0))
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

    def kept(**fields):
        meters.append(Meter(**fields))
        return meters[-1]

    monkeypatch.setattr("nodeless.scheduling.solver.Meter", kept)
    chance = random.Random(seed)
    greedy = [pending(hostile_pod(chance, f"h-{each}")) for each in range(80)]
    planned(snapshot(honest_pods(chance, 12), greedy, pool()), deadline=0.5)
    assert meters[0].spent < 1.5


def test_pods_with_more_rules_than_there_is_time_for_are_set_aside_evenly_by_namespace(monkeypatch):
    monkeypatch.setattr("nodeless.scheduling.pods.crowding.PAIRS", 10_000)
    honest = honest_pods(random.Random(2), 20)
    seen = snapshot(honest, hostile("many_neighbors", 60), pool())
    result = planned(seen, deadline=0.5)
    assert answers(result) == Counter(pod.key for pod in pods_to_place(seen, 0.0))
    aside = {each.pod for each in result.refusals if each.code == "PlanningTookTooLong"}
    assert aside
    assert not any(key.startswith(f"{HONEST}/") for key in aside)


def test_running_pods_with_more_terms_than_there_is_time_for_keep_nobody_from_a_plan(monkeypatch):
    monkeypatch.setattr("nodeless.scheduling.pods.crowding.PAIRS", 2_000)
    crowd = [
        running(replace(each, name=f"r-{number}"), "full")
        for number, each in enumerate(hostile("many_neighbors", 60))
    ]
    full = node("full", "4", "16Gi", labels={"karpenter.sh/provisioner-name": "default"})
    honest = honest_pods(random.Random(2), 5)
    result = planned(snapshot(honest, crowd, full, pool()))
    assert answers(result) == Counter(pod.key for pod in honest)


def test_those_that_were_set_aside_share_what_is_left():
    many = [Some((f"greedy/{each}",)) for each in range(4)]
    meter = Meter()
    shares = Shares(meter, 8.0, many)
    shares.try_again(many)
    for each in many:
        shares.begin_again(each)
        before = meter.spent
        while not meter.over:
            meter.spend(0.01)
        shares.end(each)
        assert 1.9 < meter.spent - before < 2.1


def test_who_was_stopped_may_use_what_its_namespace_has_left_when_others_have_used_up_the_rest():
    greedy, honest = [Some((f"greedy/{each}",)) for each in range(50)], Some(("honest/one",))
    quick = [Some((f"honest/{each}",)) for each in range(20)]
    meter = Meter()
    shares = Shares(meter, 8.0, [*quick, honest, *greedy])
    for each in (honest, *greedy):
        shares.begin(each)
        while not meter.over:
            meter.spend(0.01)
        assert shares.end(each)
    shares.try_again([*greedy, honest])
    for each in greedy:
        if shares.begin_again(each):
            while not meter.over:
                meter.spend(0.01)
            shares.end(each)
    assert shares.begin_again(honest)
    meter.spend(1.8)
    assert not shares.end(honest)


def test_work_for_others_is_counted_but_nobody_is_charged_for_it():
    meter = Meter(most_common=1.0)
    shares = Shares(meter, 0.8, [Some(("honest/one",)), Some(("other/one",))])
    honest = shares.members[0]
    shares.begin(honest)
    with meter.for_others():
        meter.spend(0.9)
        assert meter.common_left
    with meter.for_others(0.5):
        meter.spend(0.2)
    assert not meter.common_left
    assert not shares.end(honest)
    assert meter.spent == pytest.approx(1.1)
    assert meter.charged == pytest.approx(0.1)


def test_who_opens_the_first_node_does_not_pay_for_what_pods_of_others_ask_for():
    chance = random.Random(1)
    names = [kind.name for kind in every_type()]
    greedy = [
        replace(each, namespace="greedy")
        for number in range(400)
        for each in pods(
            1,
            f"{100 + number}m",
            name=f"g-{number}",
            required_terms=(term(needs(INSTANCE_TYPE, "NotIn", *chance.sample(names, 100))),),
            spread=(spread(ZONE, f"g-{number}"),),
        )
    ]
    honest = [
        each
        for number in range(5)
        for each in pods(3, "4", name=f"shop-{number}", namespace=HONEST, spread=(spread(ZONE, soft=True),))
    ]
    result = planned(snapshot(honest, greedy, pool()), every_type(), deadline=0.1)
    aside = {each.pod.partition("/")[0] for each in result.refusals if each.code == "PlanningTookTooLong"}
    assert aside == {"greedy"}


@pytest.mark.parametrize("common", [0.0, 0.1])
def test_domains_are_decided_for_the_rules_of_others_until_that_takes_too_long(monkeypatch, common):
    monkeypatch.setattr("nodeless.scheduling.solver._COMMON", common)
    everybody = PodAffinityTerm(
        topology_key=ARCH, selector=selecting(app="shop"), namespace_selector=LabelSelector((), ())
    )
    nosy = [
        replace(each, namespace="nosy")
        for each in pods(1, "100m", name="nosy", selector={ZONE: "us-east-1b"}, affinity=(everybody,))
    ]
    honest = pods(3, "4", name="shop", namespace=HONEST, selector={ZONE: "us-east-1a"})
    result = planned(snapshot(honest, nosy, pool()))
    decided = [ARCH in each.requirements for each in result.new_nodes if f"{HONEST}/shop-0" in each.pods]
    assert decided == [common > 0]
    assert {each.pod for each in result.refusals} <= {"nosy/nosy-0"}


def test_a_step_of_a_walk_looks_at_the_domains_of_each_limit_no_more_than_a_few_times(monkeypatch):
    looks = []
    emptiest = Limit.emptiest

    def counted(self, domains):
        looks.append(self)
        return emptiest(self, domains)

    monkeypatch.setattr(Limit, "emptiest", counted)
    values = [f"d{each}" for each in range(40)]
    limits = [Limit(at, {}, values, ENDLESS, 1) for at in range(2)]
    options = [(value, other) for value in values for other in values]
    walk = BacktrackingSearch(limits, range(len(options)), options, [ENDLESS] * len(options), ordered=True)
    assert sum(walk.run(30).values()) == 30
    assert len(looks) <= 4 * len(limits) * (1 + len(walk.steps))


def a_label_for_each(number):
    """Pods that each want a label of their own, of a pool that lets them choose."""
    wanted = [pods(1, "500m", name=f"a-{each}", selector={"team": f"t{each}"}) for each in range(number)]
    return snapshot(wanted, pool("default", needs("team", "Exists")))


def test_where_there_are_too_many_shapes_the_floor_plan_stays_without_a_bound(monkeypatch):
    monkeypatch.setattr("nodeless.scheduling.solver._SHAPES", 1e-6)
    monkeypatch.setattr("nodeless.scheduling.solver._BOUND", 1e-6)
    seen = a_label_for_each(20)
    result = planned(seen, time_box=0.5)
    assert not result.refusals
    assert result.lower_bound is None
    assert result.new_nodes == planned(seen).new_nodes


def test_the_search_for_a_cheaper_plan_counts_the_estimates_that_it_makes(monkeypatch):
    monkeypatch.setattr("nodeless.scheduling.optimizer.work_budget._COVERED", 0)
    done = []
    estimate = Cover.at_most

    def counted(self, values, left, rows):
        done.append(len(rows) * len(left))
        return estimate(self, values, left, rows)

    monkeypatch.setattr(Cover, "at_most", counted)
    planned(a_label_for_each(60), every_type(), time_box=0.1)
    assert sum(done) * 20e-9 < 0.1 + max(done) * 20e-9


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


@pytest.fixture
def search_that_fails(monkeypatch):
    def faulty(*_arguments):
        raise ZeroDivisionError("no price")

    monkeypatch.setattr("nodeless.scheduling.solver.repack", faulty)


@pytest.mark.usefixtures("search_that_fails")
def test_where_the_search_for_a_cheaper_plan_fails_the_first_fit_plan_stays():
    result = planned(snapshot(honest_pods(random.Random(9), 6), pool()), time_box=0.1)
    assert not result.refusals
    assert ["ZeroDivisionError" in each for each in result.faults] == [True]


@pytest.mark.usefixtures("search_that_fails")
def test_a_search_that_fails_is_a_note_of_the_plan_and_of_the_answer(tmp_path):
    seen = snapshot(honest_pods(random.Random(9), 6), pool())
    types = dict.fromkeys(seen.pools, (instance_type("a.xlarge", 4, 16),))
    situation = Situation(seen, types, Policy(), NOW)
    (note,) = report(situation, situation.plan()).notes
    assert "a step of planning failed, and the plan was made without it: ZeroDivisionError" in note

    path = tmp_path / "problem.json"
    path.write_text(json.dumps(ONE_POD))
    solved = CliRunner().invoke(app, ["solve", "--problem", str(path), "--json"])
    assert solved.exit_code == 0
    assert "nodeless: note: a step of planning failed" in solved.stderr
    assert json.loads(solved.stdout)["faults"] == [note]
