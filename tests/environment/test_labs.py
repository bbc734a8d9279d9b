"""Given the whole environment, the labs of the articles keep every promise."""

from __future__ import annotations

import pytest

from localenv.environment import Environment
from localenv.labs import LABS, Lab, run_lab

pytestmark = pytest.mark.environment


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_lab_keeps_every_promise(environment: Environment, lab: type[Lab]) -> None:
    result = run_lab(lab(environment))

    assert result.checks
    assert [(check.text, check.detail) for check in result.checks if not check.ok] == []
    document = result.to_json()
    assert set(document) == {"name", "ok", "nodes", "timeline", "costPerHour"}
    assert document["ok"] is True
    assert list(document["timeline"]) == ["pending", "decided", "launched", "registered", "running"]
    assert sorted(document["timeline"].values()) == list(document["timeline"].values())
    assert document["costPerHour"]["after"] > document["costPerHour"]["before"]
    instances = [node for node in document["nodes"] if node["instanceType"] != "fargate"]
    assert instances
    assert all(node["pricePerHour"] > 0 and node["zone"] for node in instances)
