"""Claims on devices among files: `plan` plans what the guide shows, `validate` names faults of devices."""

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from nodeless.cli.main import app
from nodeless.model.labels import DEVICES
from tests.api.manifests import ec2_node_class, node_pool, requirement
from tests.controllers.planning import report

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "devices.md"
BLOCKS = [
    list(yaml.safe_load_all(block))
    for block in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
]


def example(kind, name):
    """The block of the guide that has an object."""
    return next(
        block
        for block in BLOCKS
        if any((each["kind"], each["metadata"]["name"]) == (kind, name) for each in block)
    )


def a_pool(name, *types):
    lines = [requirement("karpenter.sh/capacity-type", "In", "on-demand")]
    lines += [requirement("node.kubernetes.io/instance-type", "In", *types)] if types else []
    made = node_pool(template={"requirements": lines})
    made["metadata"]["name"] = name
    return made


def launches(made):
    return {each["instance_type"]: each["count"] for each in made["launches"]}


def test_the_first_example_of_the_guide_is_planned(file):
    """Two GPUs of more than 40Gi for each of six pods: one node of eight holds four of them."""
    types = ("g6.xlarge", "g6e.12xlarge", "p5.48xlarge")
    made = report(file(ec2_node_class(), a_pool("gpus", *types), *example("Deployment", "llm")))
    assert launches(made) == {"g6e.12xlarge": 3}
    assert made["unplaced"] == []


def test_shared_gpus_are_planned_as_the_user_says_in_the_guide(file):
    """Eight pods, four to a GPU; without the overlay each takes a GPU of its own."""
    block = example("NodeOverlay", "shared-l4")
    given = (ec2_node_class(), a_pool("shared", "g6.xlarge", "g6.2xlarge"))
    made = report(file(*given, *block))
    assert sum(launches(made).values()) == 2
    assert made["unplaced"] == []
    without = [each for each in block if each["kind"] != "NodeOverlay"]
    assert sum(launches(report(file(*given, *without))).values()) == 8


def test_the_overlay_of_the_guide_is_valid(file):
    (overlay,) = [each for each in example("NodeOverlay", "shared-l4") if each["kind"] == "NodeOverlay"]
    result = CliRunner().invoke(app, ["validate", str(file(overlay))])
    assert (result.exit_code, "warning" in result.stdout) == (0, False), result.stdout


@pytest.mark.parametrize("valid", [True, False])
def test_devices_that_break_rules_are_named_with_their_place(file, valid):
    overlay = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {
            "name": "odd",
            "annotations": {
                DEVICES: yaml.safe_dump([{"driver": "x.com", "devices": [{"count": 1 if valid else 0}]}])
            },
        },
        "spec": {"requirements": []},
    }
    result = CliRunner().invoke(app, ["validate", str(file(overlay))])
    assert result.exit_code == (0 if valid else 1)
    assert valid or f"metadata.annotations[{DEVICES}][0].devices[0].count" in result.stdout.replace('"', "")
