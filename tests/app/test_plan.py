"""`nodeless plan`, run as a user runs it: manifests in, a plan, its cost and reasons out."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from nodeless import __version__
from nodeless.app.cli import app
from nodeless.explain.decisions import Situation, write
from nodeless.explain.what_if import changed
from nodeless.model.instance_types import Offering
from nodeless.model.subnets import SubnetRoom
from nodeless.solve import Policy
from tests.api.manifests import ec2_node_class, node_pool, node_template, provisioner
from tests.solve.factories import FAMILY, claim, instance_type, node, pods, pool, running, snapshot

EXAMPLES = Path(__file__).parents[2] / "examples" / "plan"


def nodeless(*arguments, stdin=""):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)], input=stdin)


def report(*arguments, stdin=""):
    return json.loads(nodeless(*arguments, "--json", stdin=stdin).stdout)


@pytest.fixture
def file(tmp_path):
    def write_file(*manifests, name="given.yaml"):
        path = tmp_path / name
        path.write_text(yaml.safe_dump_all(manifests))
        return path

    return write_file


def a_workload(kind="Deployment", name="web", cpu="1", namespace="shop", **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    pod = {"containers": [container], **spec.pop("pod", {})}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    body = {"template": template, **spec}
    if kind == "CronJob":
        body = {"jobTemplate": {"spec": body}}
    group = "batch/v1" if kind.endswith("Job") else "apps/v1"
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": body,
    }


def test_the_examples_are_planned_with_exit_code_1_for_the_server_that_has_no_place():
    result = nodeless(EXAMPLES)

    assert result.exit_code == 1, result.output
    assert "prices of us-east-1, " in result.stdout
    assert re.search(r"shop/web \(Deployment\) +12 +new-", result.stdout)
    assert "Not placed: 2 pods of shop/model-server (Deployment)" in result.stdout
    assert "NodePool/general: kubernetes.io/arch In [arm64] does not overlap" in result.stdout
    assert "would fit: let NodePool/general allow kubernetes.io/arch arm64" in result.stdout
    assert "Placed 24 of 26 pods." in result.stdout
    assert not [line for line in result.stdout.splitlines() if line != line.rstrip()]


def test_what_all_have_a_place_exits_with_0():
    result = nodeless(EXAMPLES / "pools.yaml", EXAMPLES / "workloads.yaml")

    assert result.exit_code == 0, result.output
    assert "Not placed" not in result.stdout


@pytest.mark.parametrize(
    ("kind", "spec", "number"),
    [
        ("Deployment", {"replicas": 3}, 3),
        ("Deployment", {}, 1),
        ("ReplicaSet", {"replicas": 2}, 2),
        ("StatefulSet", {"replicas": 2}, 2),
        ("Job", {"parallelism": 4, "completions": 2}, 2),
        ("Job", {"suspend": True}, 0),
        ("CronJob", {"parallelism": 5}, 5),
    ],
)
def test_every_workload_becomes_its_pods(file, kind, spec, number):
    made = report(file(provisioner(), node_template(), a_workload(kind, **spec)))

    assert sum(landing["pods"] for landing in made["landings"]) == number
    assert all(landing["workload"]["kind"] == kind for landing in made["landings"])


def test_daemon_sets_take_their_part_of_every_new_node(file):
    agent = a_workload("DaemonSet", "agent", cpu="700m")
    made = report(file(provisioner(), node_template(), a_workload(), agent))

    (new,) = made["nodes"]
    assert new["daemons"]["cpu"] == 700


def a_buffer(name, namespace="shop", **spec):
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def test_room_is_planned_for_capacity_buffers_too(file):
    web = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
    path = file(
        provisioner(),
        node_template(),
        a_workload(replicas=4),
        a_buffer("headroom", scalableRef=web, percentage=50),
        a_buffer("lost", podTemplateRef={"name": "nowhere"}, replicas=1),
        a_buffer("empty", scalableRef=web),
    )

    assert [
        (landing["workload"]["kind"], landing["workload"]["name"], landing["pods"])
        for landing in report(path)["landings"]
    ] == [("CapacityBuffer", "headroom", 2), ("Deployment", "web", 4)]
    told = nodeless(path).stdout
    assert "capacity buffer shop/lost keeps no room: PodTemplate/shop/nowhere does not exist" in told
    assert "capacity buffer shop/empty keeps no room: replicas, percentage and limits make no pod" in told


@pytest.mark.parametrize("pools", [(provisioner(), node_template()), (node_pool(), ec2_node_class())])
def test_pools_of_both_generations_make_nodes(file, pools):
    made = report(file(*pools, a_workload(replicas=2)))

    assert made["complete"]
    assert made["launches"][0]["pool"] == f"{pools[0]['kind']}/default"


def test_a_list_on_stdin_with_nodes_and_running_pods_is_a_cluster(file):
    machine = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "labels": {
                "node.kubernetes.io/instance-type": "m5.xlarge",
                "topology.kubernetes.io/zone": "us-east-1a",
                "karpenter.sh/capacity-type": "on-demand",
                "karpenter.sh/provisioner-name": "default",
                "karpenter.sh/initialized": "true",
                "karpenter.sh/registered": "true",
            },
        },
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
        "status": {"allocatable": {"cpu": "4", "memory": "14Gi", "pods": "58"}, "capacity": {"cpu": "4"}},
    }
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    run = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "old", "namespace": "shop"},
        "spec": {"nodeName": "n1", "containers": [container]},
        "status": {"phase": "Running"},
    }
    wanting = {**run, "metadata": {"name": "young"}, "spec": {"containers": [container]}, "status": {}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [machine, run, wanting]}

    made = report("-", file(provisioner(), node_template()), stdin=yaml.safe_dump(listed))

    assert made["launches"] == []
    assert made["landings"][0]["on_standing"] == [["n1", 1]]
    assert made["cost"]["perHour"] == {"before": 0.192, "added": 0, "after": 0.192}


def test_pods_of_a_workload_that_are_there_are_not_made_again(file):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f", "controller": True, "uid": "u"}
    there = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-5f-x",
            "namespace": "shop",
            "labels": {"pod-template-hash": "5f"},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    made = report(file(provisioner(), node_template(), a_workload(replicas=3), there))

    assert sum(landing["pods"] for landing in made["landings"]) == 3


def test_what_is_not_in_the_files_is_assumed_and_said(file):
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3"}}
    stateful = a_workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[claim])
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}}
    result = nodeless(file(node_pool(), stateful, service))

    assert result.exit_code == 0, result.output
    assert "EC2NodeClass/default of NodePool/default is not in the files" in result.stdout
    assert "storage class gp3 is not in the files" in result.stdout
    assert "play no part: Service (1)" in result.stdout


@pytest.mark.parametrize(
    ("manifest", "line", "told"),
    [
        (a_workload(replicas=-1), 9, "spec.replicas: -1 is no number of pods; hint: 0 to 1000000"),
        (a_workload(replicas=10**9), 9, "is no number of pods"),
        (a_workload(cpu="much"), 17, "containers[0].resources.requests.cpu: 'much'"),
        (a_workload(pod={"nodeSelector": {"a": 1}}), 19, "spec.template.spec.nodeSelector"),
        ({**a_workload(), "spec": {}}, 6, "spec.template: is required"),
        (node_pool(weight=101), 14, "NodePool/default: spec.weight: 101"),
        ({"kind": "Nodepool", "apiVersion": "karpenter.sh/v1"}, 1, "NodePool"),
        ({"metadata": {}}, 1, "no Kubernetes object"),
    ],
)
def test_a_fault_is_told_with_file_and_line_and_exit_code_2(file, manifest, line, told):
    path = file(manifest)
    result = nodeless(path)

    assert result.exit_code == 2
    found = [each for each in result.stderr.splitlines() if each.startswith(f"{path}:") and told in each]
    assert found, result.stderr
    assert abs(int(found[0].removeprefix(f"{path}:").split(":")[0]) - line) <= 3


def test_every_fault_of_every_file_is_told_at_once(file):
    first, second = file(a_workload(replicas="x")), file(a_workload(name="api", cpu="1x"), name="other.yaml")
    broken = file(name="broken.yaml")
    broken.write_text("a: [1,\nb: }")
    result = nodeless(first, second, broken)

    assert result.exit_code == 2
    assert all(f"{path}:" in result.stderr for path in (first, second, broken))
    assert "3 faults in the manifests" in result.stderr


def test_an_object_given_twice_is_told(file):
    result = nodeless(file(a_workload(), a_workload()))

    assert (result.exit_code, "stands at" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere.yaml"], "nowhere.yaml cannot be read: No such file or directory; hint: give a file or"),
        (["-"], "-: no object in it; hint: what made the input may have failed"),
        (["--kubeconfig", "nowhere"], "or give manifests or --snapshot, which need no cluster"),
        ([EXAMPLES, "--html", "nowhere/report.html"], "nowhere/report.html cannot be written: No such file"),
        (["--snapshot", "nowhere.json"], "nowhere.json cannot be read"),
        ([EXAMPLES, "--snapshot", "x"], "exclude each other"),
        ([EXAMPLES, "--zones", "eu-west-1a"], "'eu-west-1a' is no zone of the catalogue"),
        ([EXAMPLES, "--catalogue", EXAMPLES / "pools.yaml"], "not JSON"),
        ([EXAMPLES, "--what-if", "scael=deploy/web:3"], "did you mean scale?"),
        ([EXAMPLES, "--what-if", "scale=deploy/wob:3"], "no such workload; hint: there is shop/nightly"),
        ([EXAMPLES, "--what-if", "scale=deploy/web:many"], "no number of pods"),
        ([EXAMPLES, "--what-if", "without-type=m55.*"], "matches nothing"),
        ([EXAMPLES, "--what-if", "price=m5.large:cheap"], "no price"),
        ([EXAMPLES, "--what-if", "limit=general:cpu=many"], "limit=general:cpu=many: "),
        ([EXAMPLES, "--what-if", "add"], "change 'add' needs something to work on; hint: add=FILE"),
        ([EXAMPLES, "--what-if", "add=nowhere.yaml"], "nowhere.yaml cannot be read: No such file"),
        ([EXAMPLES, "--what-if", "with-zone=us-east-1a"], "pools buy there already"),
        ([EXAMPLES, "--what-if", "with-zone=eu-west-1a"], "hint: a zone of the region of us-east-1a"),
        ([EXAMPLES, "--what-if", "packing=tight"], "hint: use lowest-price or fewest-nodes"),
        ([EXAMPLES, "--what-if", "node-fee=-1"], "node-fee=-1: no price; hint: node-fee=0.01"),
    ],
)
def test_input_that_cannot_be_used_is_told_with_exit_code_2(arguments, told, monkeypatch):
    monkeypatch.setitem(os.environ, "KUBECONFIG", "put back afterwards")
    result = nodeless(*arguments)

    assert result.exit_code == 2
    assert told in result.stderr


def types_of(made):
    return {launch["instance_type"] for launch in made["launches"] for _ in range(launch["count"])}


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


def nodes_of(made):
    return sum(launch["count"] for launch in made["launches"])


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


def test_a_pool_that_is_added_needs_a_catalogue_of_the_clusters_region(saved, file):
    more = file(node_pool(), ec2_node_class(), name="more.yaml")
    result = nodeless("--snapshot", saved(pool(), pods(1)), "--what-if", f"add={more}")

    assert result.exit_code == 2
    assert (
        "the catalogue of us-east-1 has none of the cluster's zones (z1, z2, z3); hint: give --catalogue"
        in (result.stderr)
    )


SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "karpenter-global-settings"}}


def test_settings_among_the_manifests_count(file):
    web = [provisioner(), node_template(), a_workload(replicas=40)]
    fewest = {**SETTINGS, "data": {"nodeless.packing": "fewest-nodes", "nodeless.nodeFee": "1"}}
    given = file(*web)
    plain, settled = report(given), report(file(*web, fewest, name="settled.yaml"))

    assert nodes_of(settled) < nodes_of(plain)
    assert settled["cost"]["perHour"]["added"] > nodes_of(settled)
    assert not [note for note in settled["notes"] if "ConfigMap" in note]
    assert nodes_of(report(given, "--what-if", "packing=fewest-nodes")) < nodes_of(plain)


def test_settings_that_cannot_be_used_are_told_with_their_line(file):
    result = nodeless(file({**SETTINGS, "data": {"nodeless.packing": "tight"}}))

    assert result.exit_code == 2
    assert re.search(
        r"given.yaml:\d+: .*nodeless.packing.*'tight'.*lowest-price or fewest-nodes", result.stderr
    )


def pods_of(made, name):
    return sum(each["pods"] for each in made["landings"] if each["workload"]["name"] == name)


def uses(made, member, value):
    return any(value in launch[member] for launch in made["launches"])


@pytest.fixture
def saved(tmp_path):
    """Writes a snapshot of things, all pools buying FAMILY unless a catalogue is given."""

    def write_snapshot(*things, catalog=None):
        seen = snapshot(*things)
        bought = dict.fromkeys(seen.pools, FAMILY) if catalog is None else catalog
        path = tmp_path / "cluster.json"
        path.write_bytes(write(Situation(seen, bought, Policy(), 0.0), __version__))
        return path

    return write_snapshot


def test_a_snapshot_is_planned_and_a_node_can_be_taken_away(tmp_path):
    seen = snapshot(pools := pool(), node("n1"), [running(pod, "n1") for pod in pods(2, name="old")], pods(1))
    path = tmp_path / "cluster.json"
    path.write_bytes(write(Situation(seen, {pools.key: FAMILY}, Policy(), 0.0), __version__))

    assert report("--snapshot", path)["landings"][0]["on_standing"] == [["n1", 1]]
    without = report("--snapshot", path, "--what-if", "without-node=n1")
    assert sum(landing["pods"] for landing in without["landings"]) == 3
    assert len(without["launches"]) == 1


def test_the_page_stands_alone_and_shows_every_node(tmp_path):
    path = tmp_path / "report.html"
    result = nodeless(EXAMPLES, "--html", path)
    page = path.read_text()

    assert f"report written to {path}" in result.stderr
    assert "<svg" in page
    assert "shop/web (Deployment): " in page
    assert not re.findall(r"(?:src|href)=|url\(|@import|<script", page)
    assert page.count("<html") == page.count("</html>") == 1


def test_the_page_names_what_would_come_next_and_what_stands(tmp_path, saved):
    path = tmp_path / "report.html"
    many = [pods(1, name=f"one-{number}") for number in range(30)]
    nodeless("--snapshot", saved(pool(), node("n1"), many), "--html", path)
    page = path.read_text()

    assert re.search(r'<span class="next">\w+ \d+\.\d{4} <small>\+\d+\.\d %</small>', page)
    assert '<i class="badge existing"></i>existing' in page
    assert "and 6 others: point at a piece for its name" in page


def test_names_in_the_page_are_escaped(tmp_path, file):
    path = tmp_path / "report.html"
    nodeless(file(provisioner(), node_template(), a_workload(name="<b>&web")), "--html", path)

    assert "<b>&web" not in path.read_text()
    assert "&lt;b&gt;&amp;web" in path.read_text()


@pytest.fixture
def wishing(file):
    """Two pods that would rather be in a zone where no pool makes nodes."""
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1f"]}
    term = {"weight": 8, "preference": {"matchExpressions": [zone]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    return file(provisioner(), node_template(), a_workload(replicas=2, pod={"affinity": affinity}))


GIVEN_UP = (
    "preferred node affinity topology.kubernetes.io/zone In [us-east-1f] (weight 8): "
    "no pool can make such a node"
)


def test_what_pods_gave_up_for_their_place_is_told(wishing, tmp_path):
    path = tmp_path / "report.html"
    result = nodeless(wishing, "--html", path)

    assert result.exit_code == 0, result.output
    assert f"  2 x web: {GIVEN_UP} [PreferredNodeAffinity]" in result.stdout
    assert GIVEN_UP in path.read_text()
    (lost,) = report(wishing)["given_up"]
    assert (lost["code"], lost["message"], len(lost["pods"])) == ("PreferredNodeAffinity", GIVEN_UP, 2)


def test_why_of_a_pod_tells_what_it_gave_up(wishing):
    assert f"given up: {GIVEN_UP} [PreferredNodeAffinity]" in why("web-0", wishing).stdout
    told = json.loads(why("shop/web-0", wishing, "--json").stdout)
    assert [lost["message"] for lost in told["given_up"]] == [GIVEN_UP]
    assert told["node"]["name"] == "new-1"
    assert len(told["launch"]["next_best"]) == 3
    assert all(each["price"] >= told["launch"]["price"] for each in told["launch"]["next_best"])


def test_why_of_a_refused_pod_is_data_too():
    told = json.loads(why("shop/model-server-0", EXAMPLES, "--json").stdout)

    assert told["placed"] is False
    assert {each["code"] for each in told["unplaced"]["obstacles"]} == {
        "TaintNotTolerated",
        "RequirementsConflict",
    }
    assert "drop kubernetes.io/arch In [arm64] from the pod" in told["unplaced"]["remedies"]


def test_a_name_that_several_namespaces_have_is_asked_back(file):
    several = (a_workload(namespace=namespace) for namespace in ("shop", "blog"))
    result = why("web-0", file(provisioner(), node_template(), *several))

    assert result.exit_code == 2
    assert "web-0 is the name of several pods; hint: say which: blog/web-0, shop/web-0" in result.stderr


def test_nothing_pending_is_no_failure(file):
    result = nodeless(file(provisioner(), node_template()))

    assert result.exit_code == 0
    assert "Nothing to plan" in result.stdout


def why(*arguments):
    return CliRunner().invoke(app, ["why", *map(str, arguments)])


def test_why_a_pod_has_no_place_and_what_would_help():
    result = why("shop/model-server-0", EXAMPLES)

    assert result.exit_code == 1, result.output
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[1] == "has no place"
    assert "would fit: let NodePool/general allow kubernetes.io/arch arm64" in lines
    assert "would fit: drop kubernetes.io/arch In [arm64] from the pod" in lines


def test_why_a_pod_lands_where_it_does_and_why_the_node_is_what_it_is():
    pod, machine = why("nightly-0", EXAMPLES), why("new-1", EXAMPLES, "--json")

    assert (pod.exit_code, machine.exit_code) == (0, 0)
    assert re.search(r"lands on new-\d+, a new node of Provisioner/batch", pod.stdout)
    told = json.loads(machine.stdout)["reasons"]
    assert any(line.startswith("cheapest that holds them: ") for line in told)
    assert sum(line.startswith("next: ") for line in told) == 3


def test_why_of_a_node_that_stands(tmp_path):
    seen = snapshot(own := pool(), node("n1"), [running(pod, "n1") for pod in pods(2)])
    path = tmp_path / "cluster.json"
    path.write_bytes(write(Situation(seen, {own.key: FAMILY}, Policy(), 0.0), __version__))

    assert "default/web-0 (Pod): 1 pod" in why("n1", "--snapshot", path).stdout
    assert "runs on n1" in why("web-0", "--snapshot", path).stdout


def test_why_of_a_node_that_stands_tells_what_its_claim_remembers(saved):
    because = "1 pod of Provisioner/default needs cpu 1; next: large, spot in z1, 0.5 USD/h"
    own = claim("default-abcde", annotations={"nodeless.dev/planned-because": because})
    told = why("default-abcde", "--snapshot", saved(pool(), own)).stdout

    assert "when it was planned: 1 pod of Provisioner/default needs cpu 1\n" in told
    assert "when it was planned: next: large, spot in z1, 0.5 USD/h\n" in told


def test_why_of_what_is_not_there_names_what_is_near():
    result = why("new-99", EXAMPLES)

    assert result.exit_code == 2
    assert "new-99 is neither pod nor node; hint: there is new-" in result.stderr
    assert "hint: there is shop/web-0, shop/web-1, " in why("web", EXAMPLES).stderr
