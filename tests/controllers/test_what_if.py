"""Given a plan, what would it be if something were otherwise?"""

import json

import pytest

from nodeless import __version__
from nodeless.explain.decisions import Situation, write
from nodeless.explain.what_if import changed
from nodeless.model.instance_types import Offering
from nodeless.model.subnets import SubnetRoom
from nodeless.scheduling import Policy
from tests.api.manifests import ec2_node_class, node_pool, node_template, provisioner
from tests.controllers.planning import (
    EXAMPLES,
    a_workload,
    nodeless,
    nodes_of,
    pods_of,
    report,
    types_of,
    uses,
)
from tests.scheduling.factories import FAMILY, instance_type, node, pods, pool, running, snapshot


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ("scale=deploy/web:20", lambda made: pods_of(made, "web") == 20),
        ("scale=shop/deployment/web:0", lambda made: pods_of(made, "web") == 0),
        ("remove=cronjob/nightly", lambda made: pods_of(made, "nightly") == 0),
        ("without-pool=batch", lambda made: not made["complete"]),
        ("without-type=*a.*", lambda made: not any("a." in name for name in types_of(made))),
        ("only-type=m5.*", lambda made: all(name.startswith("m5.") for name in types_of(made))),
        ("without-zone=us-east-1a", lambda made: not uses(made, "zones", "us-east-1a")),
        ("without-spot", lambda made: not uses(made, "capacity_type", "spot") and not made["complete"]),
        ("price=m7i.xlarge:0.001", lambda made: "m7i.xlarge" in types_of(made)),
        ("limit=general:cpu=8", lambda made: not made["complete"]),
        ("node-fee=5", lambda made: made["cost"]["perHour"]["added"] > 5 * nodes_of(made)),
    ],
)
def test_a_plan_can_be_made_as_if(change, holds):
    made = report(EXAMPLES / "pools.yaml", EXAMPLES / "workloads.yaml", "--what-if", change)

    assert holds(made), made
    assert f"as if: {change}" in made["notes"]


def test_a_zone_can_be_added(file):
    zonal = a_workload(pod={"nodeSelector": {"topology.kubernetes.io/zone": "us-east-1d"}})
    given = file(provisioner(), node_template(), zonal)

    assert not report(given)["complete"]
    made = report(given, "--what-if", "with-zone=us-east-1d")
    assert made["complete"]
    assert made["launches"][0]["zones"] == ["us-east-1d"]


def test_a_zone_that_is_added_has_addresses_where_those_of_the_others_are_gone():
    zones = tuple(Offering(zone, "on-demand", 1.0) for zone in ("az-1a", "az-1b"))
    full = {"Provisioner/default": tuple(SubnetRoom(f"subnet-{each.zone}", each.zone, 0) for each in zones)}
    seen = snapshot(pool(), pods(2))
    small = dict.fromkeys(seen.pools, (instance_type("one", 4, 16, offerings=zones),))
    situation = Situation(seen, small, Policy(subnets=full), 0.0)

    assert len(situation.plan().refusals) == 2
    (made,) = changed(situation, "with-zone=az-1c").plan().new_nodes
    assert made.alternatives[0].offering.zone == "az-1c"


def test_pods_and_pools_can_be_added_to_manifests(file):
    tainted = a_workload(name="batch", replicas=2, pod={"nodeSelector": {"team": "data"}})
    pool = {**provisioner(labels={"team": "data"}), "metadata": {"name": "data"}}
    more = file(tainted, a_workload(replicas=5), pool, name="more.yaml")
    made = report(file(provisioner(), node_template(), a_workload(replicas=3)), "--what-if", f"add={more}")

    assert made["complete"]
    assert (pods_of(made, "web"), pods_of(made, "batch")) == (5, 2)
    assert "Provisioner/data" in {launch["pool"] for launch in made["launches"]}


def test_pods_and_pools_can_be_added_to_a_snapshot(saved, file):
    more = file(a_workload(replicas=2), node_pool(), ec2_node_class(), name="more.yaml")
    made = report("--snapshot", saved(pools := pool(), catalog={pools.key: ()}), "--what-if", f"add={more}")

    assert made["complete"]
    assert {launch["pool"] for launch in made["launches"]} == {"NodePool/default"}
    assert any(
        note.startswith("types of NodePool/default: as us-east-1 sold them on ") for note in made["notes"]
    )


def test_a_pool_that_is_added_needs_a_catalog_of_the_clusters_region(saved, file):
    more = file(node_pool(), ec2_node_class(), name="more.yaml")
    result = nodeless("--snapshot", saved(pool(), pods(1)), "--what-if", f"add={more}")

    assert result.exit_code == 2
    assert "the catalog of us-east-1 has none of the cluster's zones (z1, z2, z3); hint: give --catalog" in (
        result.stderr
    )


def test_a_snapshot_is_planned_and_a_node_can_be_taken_away(tmp_path):
    seen = snapshot(pools := pool(), node("n1"), [running(pod, "n1") for pod in pods(2, name="old")], pods(1))
    path = tmp_path / "cluster.json"
    path.write_bytes(write(Situation(seen, {pools.key: FAMILY}, Policy(), 0.0), __version__))

    assert report("--snapshot", path)["landings"][0]["on_existing"] == [["n1", 1]]
    without = report("--snapshot", path, "--what-if", "without-node=n1")
    assert sum(landing["pods"] for landing in without["landings"]) == 3
    assert len(without["launches"]) == 1


@pytest.fixture
def in_two_namespaces(file):
    several = (a_workload(namespace=name, replicas=2) for name in ("shop", "blog"))
    return file(node_pool(), ec2_node_class(), *several)


def landed(made):
    return {each["workload"]["namespace"]: each["pods"] for each in made["landings"]}


def test_a_workload_is_scaled_in_the_namespace_asked_about(in_two_namespaces):
    change = "--what-if", "scale=deploy/web:5"
    assert landed(report(in_two_namespaces, *change)) == {"shop": 5, "blog": 5}
    assert landed(report(in_two_namespaces, *change, "-n", "shop")) == {"shop": 5}
    named = "--what-if", "scale=blog/deploy/web:5"
    assert landed(report(in_two_namespaces, *named, "-n", "blog")) == {"blog": 5}


def test_a_workload_of_another_namespace_is_not_scaled(in_two_namespaces):
    refused = nodeless(in_two_namespaces, "--what-if", "remove=deploy/web", "-n", "docs")
    assert refused.exit_code == 2
    assert "remove=deploy/web: no such workload in namespace docs; hint: there is blog/web" in refused.stderr


def test_the_pods_of_one_namespace_are_planned_alone_and_the_others_counted(in_two_namespaces):
    made = report(in_two_namespaces, "-n", "shop")
    assert landed(made) == {"shop": 2}
    assert "pods of namespace shop alone: 2 pending pods of others left out" in made["notes"]


def test_what_is_added_without_a_namespace_is_in_the_one_asked_about(in_two_namespaces, tmp_path):
    more = a_workload(name="more")
    del more["metadata"]["namespace"]
    path = tmp_path / "more.yaml"
    path.write_text(json.dumps(more))
    made = report(in_two_namespaces, "--what-if", f"add={path}", "-n", "shop")
    assert {each["workload"]["name"] for each in made["landings"]} == {"web", "more"}
    assert landed(made).keys() == {"shop"}
