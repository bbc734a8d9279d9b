"""Given a plan, what would it be if something were otherwise?"""

import json
from importlib import resources

import pytest
from typer.testing import CliRunner

from nodeless import __version__
from nodeless.cli.commands.files import Offer, situation_of_files
from nodeless.cli.main import app
from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from nodeless.explain.decisions import Situation, write
from nodeless.explain.what_if import changed
from nodeless.model.instance_types import Offering
from nodeless.model.subnets import SubnetRoom
from nodeless.scheduling import Policy
from tests.api.manifests import ec2_node_class, node_pool, node_template, provisioner
from tests.controllers.planning import (
    EXAMPLES,
    SETTINGS,
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


def a_member_with_a_volume(name, node, zone="us-east-1a"):
    """A running member of a StatefulSet with its claim, and the volume of that in one zone."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    place = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return (
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "ownerReferences": [owner]},
            "spec": {
                "nodeName": node,
                "containers": [container],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}],
            },
            "status": {"phase": "Running"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"data-{name}", "namespace": "shop"},
            "spec": {"volumeName": f"pv-{name}", "storageClassName": "gp3", "accessModes": ["ReadWriteOnce"]},
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{name}"},
            "spec": {
                "storageClassName": "gp3",
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{name}"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [place]}]}},
            },
        },
    )


def test_further_members_of_a_stateful_set_have_volumes_of_their_own(file):
    """Not that of the youngest member, which is in one zone and may be attached to one node only."""
    size = {"cpu": "1", "memory": "8Gi", "pods": "29"}
    labels = {"topology.kubernetes.io/zone": "us-east-1a"}
    there = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels},
        "status": {"allocatable": size},
    }
    member, claim, volume = a_member_with_a_volume("db-0", "n1")
    given = file(provisioner(), node_template(), there, member, claim, volume)
    scaled = ("--what-if", "scale=sts/db:3", "--what-if", "without-zone=us-east-1a")
    its_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    for more in ((), ("--what-if", f"add={file(its_class, name='class.yaml')}")):
        made = report(given, *more, *scaled)
        assert made["complete"], made["unplaced"]
        assert not uses(made, "zones", "us-east-1a")

    _, kept, its_volume = a_member_with_a_volume("db-1", "n1")
    after_a_scale_down = file(
        provisioner(), node_template(), there, member, claim, volume, kept, its_volume, name="kept.yaml"
    )
    assert len(report(after_a_scale_down, *scaled)["unplaced"]) == 1


def test_a_zone_that_is_added_has_addresses_where_those_of_the_others_are_gone():
    zones = tuple(Offering(zone, "on-demand", 1.0) for zone in ("az-1a", "az-1b"))
    full = {"Provisioner/default": tuple(SubnetRoom(f"subnet-{each.zone}", each.zone, 0) for each in zones)}
    seen = snapshot(pool(), pods(2))
    small = dict.fromkeys(seen.pools, (instance_type("one", 4, 16, offerings=zones),))
    situation = Situation(seen, small, Policy(subnets=full), 0.0)

    assert len(situation.plan().refusals) == 2
    (made,) = changed(situation, "with-zone=az-1c").plan().new_nodes
    assert made.alternatives[0].offering.zone == "az-1c"


def test_a_zone_that_is_added_sells_what_another_zone_sells_where_one_has_no_price():
    zones = (Offering("az-1a", "on-demand", 1.0), Offering("az-1b", "on-demand", 0.0, available=False))
    seen = snapshot(pool(), pods(1))
    sold = dict.fromkeys(seen.pools, (instance_type("one", 4, 16, offerings=zones),))
    situation = changed(Situation(seen, sold, Policy(), 0.0), "with-zone=az-1c")
    (made,) = changed(situation, "without-zone=az-1a").plan().new_nodes
    assert (made.alternatives[0].offering.zone, made.price) == ("az-1c", 1.0)


def test_a_percentage_of_no_price_is_no_price():
    unpriced = Offering("az-1a", "on-demand", 0.0, available=False)
    seen = snapshot(pool(), pods(1))
    sold = dict.fromkeys(seen.pools, (instance_type("one", 4, 16, offerings=(unpriced,)),))
    ((kind,),) = changed(Situation(seen, sold, Policy(), 0.0), "price=one:-20%").catalog.values()
    assert not kind.offerings[0].price_known
    ((kind,),) = changed(Situation(seen, sold, Policy(), 0.0), "price=one:0.3").catalog.values()
    assert kind.offerings[0].price_known


def test_pods_and_pools_can_be_added_to_manifests(file):
    tainted = a_workload(name="batch", replicas=2, pod={"nodeSelector": {"team": "data"}})
    pool = {**provisioner(labels={"team": "data"}), "metadata": {"name": "data"}}
    more = file(tainted, a_workload(replicas=5), pool, name="more.yaml")
    made = report(file(provisioner(), node_template(), a_workload(replicas=3)), "--what-if", f"add={more}")

    assert made["complete"]
    assert (pods_of(made, "web"), pods_of(made, "batch")) == (5, 2)
    assert "Provisioner/data" in {launch["pool"] for launch in made["launches"]}


def test_a_workload_that_is_added_takes_the_place_of_the_one_of_its_name(file):
    given = file(provisioner(), node_template(), a_workload(replicas=3, cpu="1"))
    larger = file(a_workload(replicas=3, cpu="4"), name="larger.yaml")
    fewer = file(a_workload(replicas=1, cpu="1"), name="fewer.yaml")
    made = report(given, "--what-if", f"add={larger}")

    assert made["complete"]
    assert pods_of(made, "web") == 3
    assert made["cost"]["perHour"]["added"] > 2 * report(given)["cost"]["perHour"]["added"]
    assert pods_of(report(given, "--what-if", f"add={fewer}"), "web") == 1


def test_pods_that_run_keep_their_requests_and_a_note_says_so(file):
    size = {"cpu": "8", "memory": "32Gi", "pods": "58"}
    there = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": size}}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
    running_pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-1", "namespace": "shop", "ownerReferences": [owner]},
        "spec": {**a_workload()["spec"]["template"]["spec"], "nodeName": "n1"},
        "status": {"phase": "Running"},
    }
    given = file(provisioner(), node_template(), there, running_pod, a_workload(replicas=2))
    larger = file(a_workload(replicas=2, cpu="4"), name="larger.yaml")

    made = report(given, "--what-if", f"add={larger}")
    (note,) = [note for note in made["notes"] if "other requests" in note]
    assert note == "shop/web (Deployment): 1 running pod has other requests than the file; it stays as it is"
    same = report(given, "--what-if", f"add={file(a_workload(replicas=2), name='same.yaml')}")
    assert not [note for note in same["notes"] if "other requests" in note]


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


def with_data(**data):
    return {**SETTINGS, "data": {f"nodeless.{name}": text for name, text in data.items()}}


A_FIFTH_LESS = with_data(priceAdjustments='[{"percent": -20}]')


def buying(*types, **more):
    """A NodePool of some types on demand."""
    asked = {"node.kubernetes.io/instance-type": list(types), "karpenter.sh/capacity-type": ["on-demand"]}
    terms = [{"key": key, "operator": "In", "values": values} for key, values in asked.items()]
    return node_pool(template={"requirements": terms}, **more)


def saved_of(*files):
    """A snapshot file of what manifests describe."""
    sold = bundled_catalog()
    situation = situation_of_files(list(map(str, files)), Offer(sold, sold.all_zones[:3]), [])
    path = files[0].with_suffix(".json")
    path.write_bytes(write(situation, __version__))
    return path


@pytest.mark.parametrize("keep", [lambda given: (given,), lambda given: ("--snapshot", saved_of(given))])
def test_what_is_added_is_priced_by_the_settings_of_the_situation(file, keep):
    def of_team(name):
        bought = {**buying("m5.xlarge", metadata={"labels": {"team": name}}), "metadata": {"name": name}}
        return bought, a_workload(name=name, pod={"nodeSelector": {"team": name}})

    given = file(*of_team("web"), ec2_node_class(), A_FIFTH_LESS)
    more = file(*of_team("data"), name="more.yaml")
    made = report(*keep(given), "--what-if", f"add={more}")

    assert {launch["pool"] for launch in made["launches"]} == {"NodePool/web", "NodePool/data"}
    (price,) = {launch["price"] for launch in made["launches"]}
    discounts = [part["dollars"] for launch in made["launches"] for part in launch["parts"][1:2]]
    assert discounts == [pytest.approx(-0.2 * 0.192)] * 2
    assert price < 0.192


@pytest.mark.parametrize(
    ("adjustment", "change", "instance", "adjusted"),
    [
        ({"percent": -20}, "0.30", 0.30, -0.06),
        ({"percent": -100}, "0.30", 0.30, -0.30),
        ({"percent": -20}, "-50%", 0.096, -0.0192),
        ({"dollars": 0.01}, "0.30", 0.30, 0.01),
        ({"price": 0.05}, "0.30", 0.30, -0.25),
        ({"percent": -20, "pools": ["another"]}, "0.30", 0.30, 0.0),
    ],
)
def test_adjustments_are_of_the_price_that_is_asked_about(file, adjustment, change, instance, adjusted):
    settings = with_data(priceAdjustments=json.dumps([adjustment]))
    given = file(buying("m5.xlarge"), ec2_node_class(), a_workload(), settings)
    (launch,) = report(given, "--what-if", f"price=m5.xlarge:{change}")["launches"]

    parts = {part["name"]: part["dollars"] for part in launch["parts"] if part["dollars"] is not None}
    assert parts.pop("adjustments", 0.0) == pytest.approx(adjusted)
    assert parts == pytest.approx({"instance": instance, "volumes": 1.6 / 730})
    assert launch["price"] == pytest.approx(instance + adjusted + 1.6 / 730)


def test_drift_prices_a_changed_pool_by_the_settings_of_the_snapshot(file):
    labels = {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m5.xlarge",
        "topology.kubernetes.io/zone": "us-east-1a",
    }
    there = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}}
    snapshot_file = saved_of(file(buying("m5.xlarge"), ec2_node_class(), there, A_FIFTH_LESS))
    changed_pool = file(buying("m5.xlarge", "m5.2xlarge"), ec2_node_class(), name="changed.yaml")
    result = CliRunner().invoke(
        app, ["drift", str(changed_pool), "--snapshot", str(snapshot_file), "--output", "json"]
    )

    assert result.exit_code == 0, result.output
    cost = json.loads(result.stdout)["costPerHour"]
    assert cost["before"] == pytest.approx(0.8 * 0.192, abs=0.01)
    assert cost["difference"] == pytest.approx(0)


def test_drift_of_a_snapshot_of_another_region_takes_its_catalog(file, saved, tmp_path):
    changed_pool = file(node_pool(), ec2_node_class(), name="changed.yaml")
    given = ["drift", str(changed_pool), "--snapshot", str(saved(pool(), pods(1)))]
    refused = CliRunner().invoke(app, given)
    assert refused.exit_code == 2
    assert "hint: give --catalog" in refused.output

    # The zones of the snapshot are z1, z2 and z3.
    bundled = resources.files("nodeless.cloudprovider.aws").joinpath("catalog.json").read_text()
    catalog = tmp_path / "catalog.json"
    catalog.write_text(bundled.replace("us-east-1a", "z1").replace("us-east-1b", "z2"))
    result = CliRunner().invoke(app, [*given, "--catalog", str(catalog), "--spot-percent", "30"])
    assert result.exit_code == 0, result.output
    alone = CliRunner().invoke(app, ["drift", str(changed_pool), "--catalog", str(catalog)])
    assert "--catalog needs --snapshot" in alone.output


@pytest.mark.parametrize("with_workload", [True, False])
def test_settings_that_price_otherwise_are_refused(file, with_workload):
    snapshot_file = saved_of(file(node_pool(), ec2_node_class(), a_workload()))
    book = '{"addresses": {"ipv4": 0.006}}'
    dearer = with_data(nodeFee="0.02", priceAdjustments='[{"percent": 5}]', priceBook=book)
    volumes = with_data(priceBook='{"addresses": {"ipv4": 0.004}}', cpuCredits="standard")
    more = [a_workload(name="more")] if with_workload else []
    for settings, names in (
        (dearer, "another nodeless.priceAdjustments, nodeless.priceBook; hint:"),
        (volumes, "another nodeless.cpuCredits, nodeless.priceBook; hint:"),
    ):
        added = file(settings, *more, name="more.yaml")
        result = nodeless("--snapshot", snapshot_file, "--what-if", f"add={added}")
        assert result.exit_code == 2
        assert "more.yaml: settings replace those of the situation as a whole" in result.stderr
        assert names in result.stderr


def test_settings_alone_may_be_added(file):
    given = file(buying("m5.xlarge"), ec2_node_class(), a_workload(), A_FIFTH_LESS)
    data = {**A_FIFTH_LESS["data"], "nodeless.nodeFee": "0.5"}
    more = file({**A_FIFTH_LESS, "data": data}, name="more.yaml")
    before, after = report(given), report(given, "--what-if", f"add={more}")

    added = after["cost"]["perHour"]["added"] - before["cost"]["perHour"]["added"]
    assert added == pytest.approx(0.5 * nodes_of(after))


def test_settings_among_manifests_say_how_disruption_is_judged(file):
    settings = {**SETTINGS, "data": {"nodeless.spotToSpotConsolidation": "true"}}
    plain, settled = (
        saved_of(file(node_pool(), *more, name=f"{len(more)}.yaml")) for more in ([], [settings])
    )
    assert json.loads(plain.read_bytes())["disruption"] == {}
    assert json.loads(settled.read_bytes())["disruption"] == {"spot_to_spot": True}


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
