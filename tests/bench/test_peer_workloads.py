"""What both controllers are given by `make bench ARGS=--peer`."""

import math

import pytest

from bench.peer.comparison import table
from bench.peer.meter import Cost
from bench.peer.workloads import draw


def pods_of(manifest):
    spec = manifest["spec"]
    return spec.get("replicas", spec.get("completions", 0))


@pytest.mark.parametrize("seed", range(5))
def test_the_same_seed_gives_the_same_work_and_another_one_another(seed):
    assert draw(seed, 200) == draw(seed, 200)
    assert draw(seed, 200) != draw(seed + 1, 200)


@pytest.mark.parametrize("pods", [40, 200, 1000])
def test_no_more_pods_than_asked_for_run_at_once(pods):
    for seed in range(20):
        workloads = draw(seed, pods)
        running = [sum(pods_of(manifest) for manifest in workload.made) for workload in workloads]
        assert 0.9 * pods <= max(running) <= 1.1 * pods, seed


@pytest.mark.parametrize("seed", range(20))
def test_who_makes_something_finds_no_room_that_another_has_paid_for(seed):
    assert all(workload.empty == bool(workload.made) for workload in draw(seed, 200))


def test_what_is_scaled_rolled_or_ended_was_made_before():
    for seed in range(20):
        made = set()
        for workload in draw(seed, 200):
            if workload.empty:
                made = {each["metadata"]["name"] for each in workload.made}
            assert {*workload.scaled, *workload.rolled} <= made


def test_pods_of_some_deployments_take_a_while_to_end_and_have_the_time_for_it():
    seen = set()
    for seed in range(5):
        mixed = next(workload for workload in draw(seed, 200) if workload.name == "mixed Deployments")
        for spec in (each["spec"]["template"]["spec"] for each in mixed.made):
            hook = spec["containers"][0].get("lifecycle", {}).get("preStop", {})
            seconds = hook.get("sleep", {}).get("seconds", 0)
            assert not seconds or spec["terminationGracePeriodSeconds"] > seconds
            seen.add(seconds)
    assert {0, 5, 20} <= seen


def test_a_wait_is_that_of_the_pod_at_its_part():
    cost = Cost(waits=[float(number) for number in range(100)])
    assert (cost.wait(0.5), cost.wait(0.99), cost.wait(1.0)) == (50.0, 99.0, 99.0)
    assert Cost().wait(0.99) == 0.0


def test_the_table_has_a_row_for_each_workload_and_controller():
    found = {"karpenter": [Cost(dollars=1.0)] * 2, "nodeless": [Cost(dollars=math.pi)] * 2}
    assert table(["mixed", "to zero"], found).row_count == 4
