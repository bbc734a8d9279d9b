"""What holds for every plan, on random clusters; `worlds` checks without the solver's own code."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.model.resources import fits, subtract, total
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import find_untolerated
from nodeless.scheduling import Policy, pods_to_place, solve
from tests.scheduling.factories import node, pods, pool, snapshot
from tests.scheduling.worlds import (
    DAEMONS,
    TYPES,
    broken_promise,
    existing_things,
    hard,
    pools_of,
    workloads,
)

BY_NAME = {kind.name: kind for kind in TYPES}
WORLDS = st.builds(snapshot, workloads(), pools_of(), existing_things(), DAEMONS)
ONE_PLAN = """
from tests.scheduling.factories import *
wanted = pods(9, "700m", selector={ZONE: "z2"}) + pods(4, "2", name="db") + pods(2, "900", name="huge")
pools = [pool("x"), pool("y", weight=3, limits={"cpu": "9"})]
print(plan(wanted, [node("b"), node("a")], pools, daemon("d", "1")))
"""
PATIENT = settings(deadline=None, max_examples=150)


def plan(seen, types=TYPES):
    return solve(seen, dict.fromkeys(seen.pools, types), Policy())


def in_order(entries, *, backwards):
    """The same mapping, iterated by key or against it (an immutable map iterates by hash)."""
    return dict(sorted(entries.items(), reverse=backwards))


def rearranged(seen, *, backwards):
    return Snapshot(
        **{
            name: in_order(getattr(seen, name), backwards=backwards)
            for name in ("pods", "pods_of_node", "nodes", "claims", "pools", "daemon_sets")
        }
    )


def every_eligible_pod_is_placed_once_or_refused_once(seen, result):
    answers = Counter(key for new in result.new_nodes for key in new.pods)
    answers.update(result.placements.keys())
    answers.update(refusal.pod for refusal in result.refusals)
    assert answers == Counter(pod.key for pod in pods_to_place(seen, 0.0))


def pods_of_a_new_node_run_on_each_of_its_alternatives(seen, result):
    for new in result.new_nodes:
        prices = [alternative.offering.price for alternative in new.alternatives]
        assert prices == sorted(prices)
        for alternative in new.alternatives:
            kind = BY_NAME[alternative.instance_type]
            assert broken_promise(seen, new, kind, alternative.offering) is None


def pods_on_existing_nodes_find_room_there(seen, result):
    for name in set(result.placements.values()):
        there = seen.nodes[name]
        coming = [seen.pods[key] for key, target in result.placements.items() if target == name]
        free = subtract(there.allocatable, total(pod.requests for pod in seen.pods_on(name)))
        assert fits(total(pod.requests for pod in coming), free)
        assert not there.unschedulable
        assert all(find_untolerated(hard(there.taints), pod.shape.tolerations) is None for pod in coming)
        ports = [port for pod in coming for port in pod.shape.host_ports]
        assert len(ports) == len(set(ports))


def no_launch_can_exceed_a_limit(seen, result):
    for one in seen.pools.values():
        planned = [new for new in result.new_nodes if new.pool == one.reference]
        living = [
            there
            for there in seen.nodes.values()
            if there.labels["karpenter.sh/provisioner-name"] == one.name
        ]
        for name, limit in (one.limits or {}).items():
            if name == "nodes":
                assert len(planned) == 0 or len(planned) + len(living) <= limit
                continue
            most = sum(
                max(BY_NAME[a.instance_type].capacity[name] for a in new.alternatives) for new in planned
            )
            assert not planned or most + sum(there.capacity[name] for there in living) <= limit


def a_refused_pod_has_a_code_and_a_text(_seen, result):
    for refusal in result.refusals:
        assert refusal.code
        assert str(refusal)
        assert [reason.pool for reason in refusal.reasons] or refusal.message


@settings(deadline=None, max_examples=200)
@given(WORLDS)
def test_a_plan_keeps_its_promises_and_the_order_of_anything_changes_nothing(seen):
    """All that holds for every plan, on the same plans: to make them is what takes the time."""
    forwards, backwards = rearranged(seen, backwards=False), rearranged(seen, backwards=True)
    result = plan(forwards)
    for promise in (
        every_eligible_pod_is_placed_once_or_refused_once,
        pods_of_a_new_node_run_on_each_of_its_alternatives,
        pods_on_existing_nodes_find_room_there,
        no_launch_can_exceed_a_limit,
        a_refused_pod_has_a_code_and_a_text,
    ):
        promise(seen, result)
    assert repr(result) == repr(plan(backwards, types=tuple(reversed(TYPES))))


def test_the_hash_seed_changes_nothing():
    plans = {
        subprocess.run(
            [sys.executable, "-c", ONE_PLAN],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(plans) == 1
    assert "PlannedNode" in plans.pop()


@PATIENT
@given(
    st.integers(1, 60), st.sampled_from(["100m", "700m", "1", "3"]), st.sampled_from(["1", "3", "8", "64"])
)
def test_a_free_node_more_never_makes_equal_pods_dearer(number, cpu, free):
    wanted = pods(number, cpu)
    before = plan(snapshot(wanted, pool()))
    after = plan(snapshot(wanted, pool(), node("free", cpu=free)))
    assert after.cost_per_hour <= before.cost_per_hour


@PATIENT
@given(WORLDS)
def test_free_room_for_everybody_costs_nothing(seen):
    plain = {key: pod for key, pod in seen.pods.items() if not pod.shape.required_terms and not pod.node_name}
    plain = {key: pod for key, pod in plain.items() if not pod.shape.host_ports}
    free = node(
        "free", cpu="10000", memory="10000Gi", allocatable={"cpu": 10**7, "memory": 2**44, "pods": 9999}
    )
    result = plan(snapshot(list(plain.values()), list(seen.pools.values()), free))
    assert result.cost_per_hour == 0
    assert set(result.placements) == set(plain)
