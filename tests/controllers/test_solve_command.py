"""`nodeless solve`: a packing problem from a file, its answer on stdout."""

import gzip
import json

import pytest
from typer.testing import CliRunner

from nodeless.cli.main import app

KIND = {
    "name": "four",
    "capacity": {"cpu": "4", "memory": "8Gi", "pods": "20"},
    "requirements": {
        "node.kubernetes.io/instance-type": ["four"],
        "topology.kubernetes.io/zone": ["a"],
        "karpenter.sh/capacity-type": ["on-demand"],
    },
    "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 0.2}],
}
PROBLEM = {
    "name": "small",
    "catalogue": "types.json",
    "nodePools": [{"name": "default"}],
    "pods": [{"name": "web", "count": 5, "requests": {"cpu": "1"}}],
}


def solve(folder, problem, *arguments):
    (folder / "types.json").write_text(json.dumps({"instanceTypes": [KIND]}))
    path = folder / "problem.json.gz"
    path.write_bytes(gzip.compress(json.dumps(problem).encode()))
    return CliRunner().invoke(app, ["solve", "--problem", str(path), *arguments])


def test_the_answer_tells_nodes_pods_price_and_time(tmp_path):
    answer = json.loads(solve(tmp_path, PROBLEM, "--json").stdout)
    assert (answer["problem"], answer["newNodeCount"], answer["scheduledNew"]) == ("small", 2, 5)
    assert answer["totalHourlyPrice"] == pytest.approx(0.4)
    assert sum(node["count"] * node["pods"][0]["count"] for node in answer["newNodes"]) == 5
    assert {"instanceType", "zone", "capacityType", "nodePool", "price"} <= set(answer["newNodes"][0])
    assert answer["solveSeconds"] > 0


def test_without_json_it_is_one_line(tmp_path):
    result = solve(tmp_path, PROBLEM, "--improve", "0")
    assert result.exit_code == 0
    assert result.stdout.startswith("small: 2 nodes for 5 of 5 pods, 0.4000 USD/h")


def test_pods_that_fit_nowhere_are_told_with_the_reason_and_by_the_exit_code(tmp_path):
    large = {"name": "large", "requests": {"cpu": "40"}}
    result = solve(tmp_path, {**PROBLEM, "pods": [large]}, "--json")
    assert result.exit_code == 1
    (refused,) = json.loads(result.stdout)["unschedulable"]
    assert (refused["name"], refused["count"]) == ("large", 1)
    assert "cpu: 40 requested" in refused["error"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodepools": []}, "nodepools: is not known"),
        (
            {"pods": [{"name": "web", "request": {}}]},
            "pods[0].request: is not known; hint: did you mean requests",
        ),
        ({"pods": [{"count": 2}]}, "pods[0].name: is required"),
        ({"pods": [{"name": "web", "count": -1}]}, "pods[0].count: -1 must not be negative"),
        ({"pods": [{"name": "web", "requests": {"cpu": "many"}}]}, "many"),
        ({"nodePools": "default"}, 'nodePools: "default" must be a list'),
        (
            {"nodePools": [{"name": "x", "requirements": [{"key": "a", "operator": "Near"}]}]},
            "unknown operator 'Near'",
        ),
        ({"catalogue": "none.json"}, "cannot be read"),
    ],
)
def test_a_wrong_problem_is_refused_with_the_path_of_the_fault(tmp_path, change, words):
    result = solve(tmp_path, {**PROBLEM, **change})
    assert result.exit_code == 2
    assert words in result.stderr


def test_an_unknown_packing_is_wrong_use(tmp_path):
    result = solve(tmp_path, PROBLEM, "--packing", "tight")
    assert result.exit_code == 2
    assert "hint: use lowest-price or fewest-nodes" in result.stderr
