"""NodeOverlays among files: `plan` goes by them, `validate` warns of them, the guide's recipes plan."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from nodeless.cli.main import app
from tests.api.manifests import ec2_node_class, node_pool, requirement
from tests.controllers.planning import a_workload, nodeless, report
from tests.scheduling.factories import pods, pool

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "node-overlays.md"
RECIPES = {
    manifest["metadata"]["name"]: manifest
    for block in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    for manifest in yaml.safe_load_all(block)
}
TYPES = ("m5.large", "m5.xlarge", "c5.large")


def an_overlay(name="cheap", *types, **spec):
    lines = [requirement("node.kubernetes.io/instance-type", "In", *types)] if types else []
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {"requirements": lines, **spec},
    }


def a_pool(*types, name="default", lines=()):
    lines = [requirement("karpenter.sh/capacity-type", "In", "on-demand"), *lines]
    lines += [requirement("node.kubernetes.io/instance-type", "In", *types)] if types else []
    made = node_pool(template={"requirements": lines})
    made["metadata"]["name"] = name
    return made


def asking(name, number, **resources):
    """A Deployment whose pods ask for some of a device."""
    amounts = {key: str(value) for key, value in resources.items()}
    limits = {"requests": {"cpu": "1", **amounts}, "limits": amounts}
    pod = {"containers": [{"name": "c", "image": "i", "resources": limits}]}
    return a_workload(name=name, replicas=number, pod=pod)


def validate(path):
    return CliRunner().invoke(app, ["validate", str(path)])


def launches(made):
    counted = Counter()
    for each in made["launches"]:
        counted[each["instance_type"]] += each["count"]
    return counted


def test_a_plan_goes_by_the_prices_of_the_files_overlays_and_says_so(file):
    given = (ec2_node_class(), a_pool(*TYPES), a_workload(replicas=1))
    plain = report(file(*given))
    laid = report(file(*given, an_overlay("cheap", "m5.xlarge", price="0.001")))

    assert "m5.xlarge" not in launches(plain)
    assert launches(laid) == {"m5.xlarge": 1}
    assert laid["cost"]["addedByPart"]["instance"] == 0.001
    notes = [note for note in laid["notes"] if "NodeOverlay" in note]
    assert notes == [
        "NodeOverlays apply, in this order: cheap; the controller applies them only if the feature gate "
        "NodeOverlay is on (settings.featureGates.nodeOverlay)"
    ]


def test_overlays_that_do_not_count_are_noted_and_change_nothing(file):
    twins = [an_overlay(name, "m5.xlarge", price=price) for name, price in (("b", "0.5"), ("a", "0.001"))]
    idle = an_overlay("x", "no.type")
    made = report(file(ec2_node_class(), a_pool(*TYPES), a_workload(replicas=1), *twins, idle))

    assert "m5.xlarge" not in launches(made)
    (contradiction,) = [note for note in made["notes"] if note.startswith("NodeOverlay a has no effect: ")]
    assert "conflict with NodeOverlay b" in contradiction
    assert "NodeOverlay x matches no instance type of any pool" in made["notes"]


def test_a_what_if_adds_an_overlay(file):
    given = file(ec2_node_class(), a_pool(*TYPES), a_workload(replicas=1))
    more = file(an_overlay("cheap", "m5.xlarge", price="0.001"), name="more.yaml")

    assert launches(report(given, "--what-if", f"add={more}")) == {"m5.xlarge": 1}


def test_a_what_if_on_a_saved_cluster_lays_overlays_over_what_its_pools_buy(saved, file):
    path = saved(pool(), *pods(1))
    more = file(an_overlay("cheap", "2xlarge", price="0.001"), name="more.yaml")
    made = report("--snapshot", path, "--what-if", f"add={more}")

    assert launches(report("--snapshot", path)) != {"2xlarge": 1}
    assert launches(made) == {"2xlarge": 1}


def test_an_overlay_that_breaks_rules_ends_a_plan_with_its_line(file):
    result = nodeless(file(ec2_node_class(), a_pool(), a_workload(), an_overlay("bad", price="cheap")))

    assert result.exit_code == 2
    assert "NodeOverlay/bad: spec.price" in result.stderr


def test_time_sliced_gpus_are_shared_as_the_guide_has_it(file):
    lines = [requirement("karpenter.k8s.aws/instance-gpu-name", "In", "t4")]
    given = (
        ec2_node_class(),
        a_pool(name="shared-gpus", lines=lines),
        asking("infer", 8, **{"nvidia.com/gpu": 1}),
    )
    laid = report(file(*given, RECIPES["time-sliced-1"]))

    assert sum(launches(laid).values()) == 2
    assert laid["cost"]["perHour"]["added"] < report(file(*given))["cost"]["perHour"]["added"] / 2
    assert laid["unplaced"] == []


def test_parts_of_gpus_are_planned_as_the_guide_has_it(file):
    both = a_pool("p4d.24xlarge", "p4de.24xlarge", name="mig")
    given = (ec2_node_class(), both, asking("notebook", 60, **{"nvidia.com/mig-1g.5gb": 1}))

    assert report(file(*given))["launches"] == []
    made = report(file(*given, RECIPES["mig-1g-5gb"]))
    assert launches(made) == {"p4d.24xlarge": 2}
    assert made["unplaced"] == []


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_the_recipes_of_the_guide_are_valid(file, recipe):
    result = validate(file(RECIPES[recipe]))

    assert (result.exit_code, "warning" in result.stdout) == (0, False), result.stdout


def test_validate_warns_of_overlays_that_contradict_and_of_one_that_means_nothing(file):
    twins = [an_overlay(name, "m5.xlarge", priceAdjustment="-10%") for name in ("b", "a")]
    given = file(ec2_node_class(), a_pool(*TYPES), *twins, an_overlay("x", "no.type", price="1"))
    result = validate(given)

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    (told,) = [line for line in lines if "no effect: conflict with NodeOverlay b" in line]
    assert "spec.weight" in told
    assert "m5.xlarge in NodePool/default" in told
    (unused,) = [line for line in lines if "matches no instance type of any pool in the files" in line]
    assert "spec.requirements" in unused


def test_validate_sees_a_contradiction_without_a_pool_in_the_files(file):
    twins = [an_overlay(name, price="1") for name in ("b", "a")]

    assert "no effect: conflict with NodeOverlay b" in validate(file(*twins)).stdout
    assert "matches no instance type" not in validate(file(an_overlay("x", "no.type", price="1"))).stdout


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"price": "1", "priceAdjustment": "+1"}, "price and priceAdjustment exclude each other"),
        ({"capacity": {"cpu": "4"}}, "is what the instance type itself has"),
        ({"colour": "red"}, "colour"),
    ],
    ids=str,
)
def test_validate_refuses_what_the_api_server_would_refuse(file, spec, said):
    result = validate(file(an_overlay("bad", **spec)))

    assert result.exit_code == 1
    assert said in result.stdout


def test_convert_leaves_them(file):
    result = CliRunner().invoke(app, ["convert", str(file(an_overlay(), node_pool(), ec2_node_class()))])

    assert result.exit_code == 0
    assert "NodeOverlay/cheap: skipped: it does not convert to v1" in result.stderr
