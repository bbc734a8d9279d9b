"""Spot or on-demand for workloads that say what an interruption loses: plan, why and documents say which."""

import json
import re

import pytest

from tests.api.manifests import node_template, provisioner
from tests.controllers.planning import SETTINGS, a_workload, nodeless, report, why


def losing_work(lost, per_month):
    """A workload that says what an interruption loses, and the settings that say how often there is one."""
    workload = a_workload(replicas=3)
    workload["spec"]["template"]["metadata"]["annotations"] = {"nodeless.dev/lost-work": lost}
    rates = {"nodeless.spotInterruptions": json.dumps([{"perMonth": per_month}])}
    return workload, {**SETTINGS, "data": rates}


EITHER = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}


def a_pool_of_both():
    return provisioner(requirements=[EITHER])


@pytest.mark.parametrize(("per_month", "capacity_type"), [(0.05, "spot"), (200, "on-demand")])
def test_a_workload_that_loses_work_is_planned_where_that_is_cheapest(file, per_month, capacity_type):
    path = file(a_pool_of_both(), node_template(), *losing_work("10h", per_month))
    made = report(path)

    assert {launch["capacity_type"] for launch in made["launches"]} == {capacity_type}
    (chosen,) = made["chosen"]
    assert (chosen["capacity_type"], chosen["lost_seconds"], len(chosen["pods"])) == (capacity_type, 36000, 3)
    assert (chosen["expected"] >= chosen["saving"]) == (capacity_type == "on-demand")
    assert re.fullmatch(
        rf"{capacity_type}: an interruption loses 10h of work, "
        r"\d\.\d{4} USD/h expected at [\d.]+ a month, spot saves \d\.\d{4} USD/h",
        chosen["message"],
    )
    text = nodeless(path).stdout
    assert "Spot or on-demand for each pod, by what interruptions lose" in text
    assert chosen["message"] in " ".join(text.split())
    (answered, *_) = [why(key, path).stdout for key in chosen["pods"]]
    assert chosen["message"] in " ".join(answered.split())


def test_a_plan_without_lost_work_says_nothing_of_it(file):
    path = file(a_pool_of_both(), node_template(), a_workload())
    assert "chosen" not in report(path)
    assert "interruptions" not in nodeless(path).stdout


@pytest.mark.parametrize("lost", ["banana", "-1h", "20000h"])
def test_lost_work_that_cannot_be_read_is_noted(file, lost):
    made = report(file(a_pool_of_both(), node_template(), *losing_work(lost, 200)))
    assert {launch["capacity_type"] for launch in made["launches"]} == {"spot"}
    assert "chosen" not in made
    hint = "hint: write hours of work such as 10h, 8760h at most"
    assert f"shop/web (Deployment): nodeless.dev/lost-work={lost!r} is ignored; {hint}" in made["notes"]
