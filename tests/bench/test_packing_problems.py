"""Problems with known answers: the labs' outcome, as few nodes as the reference needs, or a lower price."""

import json

import pytest

from bench.packing import checker, read
from nodeless.cli.commands.packing import answer_to
from nodeless.scheduling import FEWEST_NODES, Policy, solve
from tests.scheduling.problems import FOLDER, load


def plan_of(name):
    problem = load(name)
    return solve(problem.snapshot, problem.catalog, Policy(packing=FEWEST_NODES))


def test_five_pods_of_one_cpu_get_one_2xlarge_and_leave_the_medium_alone():
    plan = plan_of("lab-5x1cpu")
    assert [(node.instance_type, len(node.pods)) for node in plan.new_nodes] == [("t3a.2xlarge", 5)]
    assert not plan.placements
    assert not plan.refusals


def test_five_pods_of_half_a_cpu_put_one_on_the_medium_and_four_on_an_xlarge():
    plan = plan_of("lab-5x500m")
    assert [(node.instance_type, len(node.pods)) for node in plan.new_nodes] == [("t3a.xlarge", 4)]
    assert list(plan.placements.values()) == ["lab-node"]
    assert not plan.refusals


@pytest.mark.parametrize(
    "name",
    [
        "batch-diverse",
        "cpu-memory-skew",
        "existing-nodes",
        "gpu-mix",
        "limits",
        "spread-and-anti-affinity",
        "taints",
        "upstream-mix-2k",
        "web-fleet",
    ],
)
def test_about_as_few_nodes_as_the_reference_needs_and_no_pod_left(name):
    plan = plan_of(name)
    reference = read(FOLDER / "karpenter.json")[name]
    assert not plan.refusals
    assert len(plan.new_nodes) <= reference["newNodeCount"] * 1.05
    assert sum(len(node.pods) for node in plan.new_nodes) + len(plan.placements) == reference["pods"]


PRICED = [
    "batch-diverse",
    "cpu-memory-skew",
    "existing-nodes",
    "gpu-mix",
    "limits",
    "spread-and-anti-affinity",
    "taints",
    "web-fleet",
]


@pytest.mark.parametrize("name", PRICED)
@pytest.mark.parametrize(
    "improve", [pytest.param(0.0, id="fast"), pytest.param(1.0, id="full", marks=pytest.mark.drawn)]
)
def test_a_plan_at_the_lowest_price_can_be_carried_out_and_costs_less(name, improve):
    reference = read(FOLDER / "karpenter.json")[name]
    answer = answer_to(load(name), improve=improve)
    assert checker(FOLDER / f"{name}.json.gz").faults(answer) == []
    assert answer["unscheduledPods"] == 0
    assert answer["totalHourlyPrice"] < reference["totalHourlyPrice"]
    if improve:
        assert answer["totalHourlyPrice"] <= reference["achievable"] * 1.015
        assert answer["totalHourlyPrice"] >= reference["lowerBound"] - 1e-6


@pytest.mark.parametrize("name", [name for name in PRICED if name != "spread-and-anti-affinity"])
def test_what_the_reference_answered_passes_the_same_check(name):
    answer = read(FOLDER / "solutions" / f"{name}.json.gz")
    assert checker(FOLDER / f"{name}.json.gz").faults(json.loads(json.dumps(answer))) == []
