"""Large numbers: work grows with what differs, not with pods; memory and effort have bounds."""

import json
import subprocess
import sys
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.api.packing_problem import read_problem
from nodeless.model.labels import HOSTNAME, ZONE
from nodeless.scheduling import Policy, solve
from tests.scheduling.factories import instance_type, plan, pods, pool, snapshot, spread
from tests.scheduling.feasibility import Checker
from tests.scheduling.made_problems import batch_problem


def answer(folder, problem: Mapping[str, object], *options: str):
    """What `nodeless solve` prints about a problem, in a process of its own."""
    path = folder / "problem.json"
    path.write_text(json.dumps(problem))
    command = [sys.executable, "-m", "nodeless", "solve", "--problem", str(path), "--json", *options]
    printed = subprocess.run(command, capture_output=True, check=False, text=True)
    assert not printed.stderr
    return json.loads(printed.stdout)


@pytest.mark.large
@pytest.mark.parametrize("improve", ["0", "1"], ids=["fast", "full"])
def test_a_hundred_thousand_pods_in_a_thousand_shapes_find_their_place_in_little_memory(tmp_path, improve):
    problem = batch_problem(100_000, 1000)
    result = answer(tmp_path, problem, "--improve", improve)
    assert result["unscheduledPods"] == 0
    assert result["scheduledNew"] == 100_000
    assert result["maxRssMiB"] < 300
    assert Checker(problem, None).faults(result) == []


@pytest.mark.large
@pytest.mark.drawn("a million pods")
@pytest.mark.timeout(900)
def test_a_million_replicas_neither_hang_nor_exhaust_memory(tmp_path):
    problem = batch_problem(1_000_000, 1)
    problem["pods"][0]["requests"] = {"cpu": "100m", "memory": "128Mi"}
    result = answer(tmp_path, problem)
    assert result["scheduledNew"] == 1_000_000
    assert result["maxRssMiB"] < 1000


@pytest.mark.large
@pytest.mark.drawn("a million pods")
@pytest.mark.timeout(900)
def test_a_million_pods_in_two_thousand_shapes_take_less_than_a_gibibyte(tmp_path):
    result = answer(tmp_path, batch_problem(1_000_000, 2000), "--improve", "0")
    assert result["scheduledNew"] == 1_000_000
    assert result["maxRssMiB"] < 1024


TYPES = tuple(instance_type(f"t{cpu}", cpu, 4 * cpu) for cpu in (2, 4, 8, 16, 32))


def work(policy, *things):
    """The numbers of nodes planned, and of times that room was counted for one or more pods of a class."""
    counted = 0

    def count(frame, event, _argument):
        nonlocal counted
        counted += event == "call" and frame.f_code.co_name == "how_many"

    sys.setprofile(count)
    try:
        nodes = len(plan(*things, types=TYPES, policy=policy).new_nodes)
    finally:
        sys.setprofile(None)
    return nodes, counted


@pytest.mark.parametrize("time_box", [0.0, 1.0], ids=["fast", "full"])
@pytest.mark.parametrize("rules", [{}, {"spread": (spread(ZONE),)}], ids=["plain", "spread"])
def test_nodes_that_come_out_alike_are_filled_once(time_box, rules):
    def classes(number):
        return [pods(number, f"{cpu}m", f"{cpu}Mi", name=f"w{cpu}", **rules) for cpu in (700, 1100, 2500)]

    few, little = work(Policy(time_box=time_box), *classes(300))
    many, much = work(Policy(time_box=time_box), *classes(3000))
    assert many > 8 * few
    assert much < 2 * little


WORKLOADS = st.lists(
    st.tuples(
        st.integers(1, 300),
        st.sampled_from(["1m", "130m", "700m", "3", "31"]),
        st.sampled_from(["0", "1Ki", "900Mi", "7Gi", "100Gi"]),
        st.sampled_from([(), (spread(ZONE),), (spread(HOSTNAME, skew=2),)]),
    ),
    min_size=1,
    max_size=12,
)


LIMITS = st.sampled_from([None, {"cpu": "40"}, {"cpu": "900", "nodes": "30"}])


@settings(deadline=None, max_examples=20)
@given(WORKLOADS, LIMITS, st.sampled_from([0.05, 0.3]))
def test_a_search_spends_no_more_than_its_time_box(workloads, limits, time_box):
    left = []

    def look(frame, event, _argument):
        if event == "return" and frame.f_code.co_name == "repack" and "effort" in frame.f_locals:
            left.append(frame.f_locals["effort"].left)

    wanted = [
        pods(count, cpu, memory, name=f"w{index}", labels={"app": "web"}, spread=rules)
        for index, (count, cpu, memory, rules) in enumerate(workloads)
    ]
    sys.setprofile(look)
    try:
        plan(
            *wanted,
            pool("first", weight=9, limits=limits),
            pool("second"),
            types=TYPES,
            policy=Policy(time_box=time_box),
        )
    finally:
        sys.setprofile(None)
    # The step that is under way when the effort ends is finished.
    assert all(rest > -0.1 for rest in left)


def entered_by(seen, catalog) -> tuple[int, int]:
    """How many functions of Python a solve enters, and the nodes that it plans."""
    entered = 0

    def count(_frame, event, _argument):
        nonlocal entered
        entered += event == "call"

    sys.setprofile(count)
    try:
        nodes = solve(seen, catalog, Policy(time_box=0.0)).new_nodes
    finally:
        sys.setprofile(None)
    return entered, len(nodes)


def calls(problem: Mapping[str, object]) -> tuple[int, int]:
    read = read_problem(problem)
    return entered_by(read.snapshot, read.catalog)


def test_a_further_replica_of_a_static_pool_costs_little_however_many_types_it_may_become():
    types = tuple(instance_type(f"t{cpu}", cpu, 4 * cpu) for cpu in range(2, 62))

    def of_each(replicas):
        seen = snapshot(pods(10), pool("default"), pool("static", replicas=replicas))
        return entered_by(seen, dict.fromkeys(seen.pools, types))[0]

    of_each(1)
    assert of_each(200) - of_each(20) < 180 * 900


def test_a_further_pod_of_a_known_shape_costs_one_look_and_a_further_node_little():
    def of_each(number):
        problem = batch_problem(100, 100)
        for entry in problem["pods"]:
            entry["count"] = number
        return calls(problem)

    of_each(1)
    (few, nodes), (many, more_nodes) = of_each(20), of_each(200)
    # The look at a pod: whether it waits, and for our nodes.
    assert many - few < 2 * 18_000 + 60 * (more_nodes - nodes)
