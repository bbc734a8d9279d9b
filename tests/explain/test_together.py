"""A plan tells what keeping pods together costs."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from nodeless.cli.main import app
from nodeless.explain.decisions import Situation
from nodeless.explain.report import report
from nodeless.model.labels import HOSTNAME, ZONE
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy
from tests.scheduling.factories import FAMILY, NOW, beside, instance_type, pods, pool, snapshot

#: Two nodes with one pod cost less than the one that holds both.
STEEP = (instance_type("one", 2, 4, price=0.1), instance_type("two", 4, 8, price=0.25))


def reported(*things, types=FAMILY, packing=LOWEST_PRICE):
    seen = snapshot(pool(), *things)
    situation = Situation(seen, dict.fromkeys(seen.pools, types), Policy(packing=packing), NOW)
    return report(situation, situation.plan())


def pair(cpu):
    return pods(1, cpu, name="redis"), pods(1, cpu, affinity=(beside(HOSTNAME, "redis"),))


def test_the_price_of_a_pair_is_told_beside_that_of_two_nodes():
    made = reported(*pair("1500m"), types=STEEP)
    assert made.complete
    (each,) = made.together
    # Spot at half price: 0.125 for the large one, 0.05 for each of the small ones.
    assert each.extra == pytest.approx(0.125 - 2 * 0.05)
    assert "by kubernetes.io/hostname: 0.0250 USD/h more than apart" in str(each)


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
def test_what_costs_nothing_is_told_as_well(packing):
    made = reported(pods(3, "100m", affinity=(beside(ZONE),)), packing=packing)
    assert all("no more than apart" in str(each) for each in made.together)
    assert made.together


def test_nothing_is_told_where_pods_are_left_out():
    alone = pods(1, "64", affinity=(beside(HOSTNAME, "nobody"),))
    assert reported(pods(1, "1", name="redis"), alone).together == ()
    assert reported(pods(2, "1")).together == ()


def deployment(name, cpu, beside_app=None):
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": beside_app}}}
            ]
        }
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [{"name": "main", "image": name, "resources": {"requests": {"cpu": cpu}}}],
                    **({"affinity": affinity} if beside_app else {}),
                },
            },
        },
    }


def test_nodeless_plan_places_a_pod_beside_the_one_it_needs_and_says_what_that_costs(tmp_path):
    provisioner = {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": {"provider": {"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}},
    }
    objects = [provisioner, deployment("redis", "1"), deployment("web", "1", beside_app="redis")]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    outcome = CliRunner().invoke(app, ["plan", str(tmp_path)])
    assert outcome.exit_code == 0, outcome.output
    assert "Placed 2 of 2 pods." in outcome.output
    assert "Kept together by required pod affinity" in outcome.output
    assert "by kubernetes.io/hostname:" in outcome.output
    document = json.loads(CliRunner().invoke(app, ["plan", str(tmp_path), "--json"]).output)
    assert document["complete"]
    assert document["together"][0]["keys"] == [HOSTNAME]
