"""`nodeless plan`, `why` and `top` on a running cluster: the real API server, no controller."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

from nodeless.cli.main import app
from tests.controllers.process import settings
from tests.controllers.world import CLAIMS, POOLS, a_pod, a_provisioner, a_template
from tests.kube.test_autoscaler_status import OF_YAML

pytestmark = pytest.mark.cluster


@pytest.fixture
def pending(api, cluster):
    """Makes pods that the real scheduler refuses, and waits until it has."""

    def make(spec=None, **sizes):
        for name, cpu in sizes.items():
            api.create(a_pod(name, cluster, cpu=cpu, **(spec or {})))
        for name in sizes:
            path = f"/api/v1/namespaces/{cluster}/pods/{name}"
            api.wait(lambda path=path: _refused(api.get(path)), what=f"the scheduler to refuse {path}")

    return make


@pytest.fixture
def autoscaler(api, cluster):
    """A Cluster Autoscaler where it is installed as a rule, and what it says of its groups."""
    pod = a_pod("cluster-autoscaler", "kube-system", cpu="100m")
    pod["spec"]["containers"][0]["image"] = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0"
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": OF_YAML},
    }
    api.wait("/api/v1/namespaces/kube-system/serviceaccounts/default")
    for manifest in (pod, status):
        api.create(manifest)
    yield
    api.delete(api.path_of(pod), grace_seconds=0)
    api.delete(api.path_of(status))


def _refused(pod):
    return any(each.get("reason") == "Unschedulable" for each in pod["status"].get("conditions", ()))


def test_another_autoscaler_of_a_running_cluster_is_warned_of_with_its_groups(
    api, eks, cluster, nodeless, autoscaler
):
    api.create(settings(cluster))
    result = nodeless("plan", "--json")

    assert result.exit_code == 0, result.output
    (warned,) = [note for note in json.loads(result.stdout)["notes"] if "[OtherAutoscaler]" in note]
    assert warned.startswith(
        "warning: Cluster Autoscaler also serves this cluster (kube-system/cluster-autoscaler"
    )
    assert "it can take pods of Provisioner/default (batch, eks-web-0aca, " in warned
    assert "hint: use taints to separate its groups" in warned


def test_a_running_cluster_is_advised_on_and_nothing_is_changed(api, eks, cluster, nodeless, pending):
    """What pools do not allow yet is asked of AWS: nothing else could save money."""
    api.create(settings(cluster))
    large = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge"]}
    api.patch(f"{POOLS}/default", {"spec": {"requirements": [large]}})
    pending(web="1500m")
    before = api.list(POOLS)
    result = nodeless("advise", "--json")

    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    assert made["now"]["perHour"] == pytest.approx(0.096 + 0.192, rel=0.05)
    alone = {advice["code"]: advice["alone"]["perHour"] for advice in made["advice"]}
    assert {"AllowAnyType", "AllowArm64", "AllowNewerTypes"} <= set(alone)
    assert min(alone.values()) > 0
    assert made["together"]["perHour"] >= max(alone.values()) - 0.0001
    hint = "the cluster has no metrics-server; hint: give --prometheus or --usage"
    assert f"use of pods is not known: {hint}" in made["notes"]
    assert not api.list(CLAIMS)
    assert api.list(POOLS) == before


def test_a_running_cluster_is_planned_and_nothing_is_changed(api, eks, cluster, nodeless, pending):
    api.create(settings(cluster))
    pending(web="3", huge="64")
    before = api.list(POOLS)
    result = nodeless("plan", "--json")

    assert result.exit_code == 1, result.output
    made = json.loads(result.stdout)
    (landing,) = [each for each in made["landings"] if each["workload"]["name"] == "web"]
    assert landing["on_new"] == [["new-1", 1]]
    assert made["launches"][0]["instance_type"] == "m5.xlarge"
    assert made["cost"]["perHour"]["before"] == pytest.approx(0.096 + 20 * 0.08 / 730)
    assert made["cost"]["lowerBoundPerHour"] <= made["cost"]["perHour"]["added"]
    assert made["unplaced"][0]["pods"] == [f"{cluster}/huge"]
    assert not api.list(CLAIMS)
    assert api.list(POOLS) == before


def test_a_running_cluster_is_planned_with_what_its_preferences_cost(api, eks, cluster, nodeless, pending):
    api.create(settings(cluster))
    # The existing node is another type, so that the scheduler refuses them.
    apart = {
        "nodeSelector": {"node.kubernetes.io/instance-type": "m5.xlarge"},
        "topologySpreadConstraints": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "maxSkew": 1,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {},
            }
        ],
    }
    pending(apart, one="1", two="1", three="1")
    result = nodeless("plan", "--json")

    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    (cost,) = made["preferences"]["costs"]
    assert (cost["name"], cost["pods"]) == ("ScheduleAnyway over hosts", 3)
    # Three nodes instead of one.
    assert cost["price"]["share"] == pytest.approx(2.0)
    assert cost["price"]["extra"] == pytest.approx(made["cost"]["perHour"]["added"] * 2 / 3)


def test_why_tells_of_pods_and_nodes_of_a_running_cluster(api, eks, cluster, nodeless, pending):
    api.create(settings(cluster))
    pending(web="3", huge="64")

    placed = json.loads(nodeless("why", f"{cluster}/web", "--json").stdout)
    assert placed["placed"]
    assert placed["launch"]["instance_type"] == "m5.xlarge"
    refused = nodeless("why", f"{cluster}/huge")
    assert refused.exit_code == 1
    assert "cpu: 64 requested, but the largest matching instance type (m5.xlarge) allocates" in refused.stdout
    assert "would fit: request cpu " in refused.stdout
    stands = nodeless("why", f"n1-{cluster}")
    assert stands.exit_code == 0
    assert "m5.large, on-demand, us-east-1a, Provisioner/default, 0.0982 USD/h" in stands.stdout
    assert f"{cluster}/old (Pod): 1 pod" in stands.stdout


def test_manifests_can_be_added_to_a_running_cluster(api, eks, cluster, nodeless, tmp_path):
    api.create(settings(cluster))
    path = tmp_path / "more.yaml"
    path.write_text(yaml.safe_dump_all([a_pod(f"more-{number}", cluster, cpu="3") for number in range(2)]))
    result = nodeless("plan", "--json", "--what-if", f"add={path}")

    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    assert sum(landing["pods"] for landing in made["landings"]) == 2
    assert f"as if: add={path}" in made["notes"]
    assert not [
        pod for pod in api.list(f"/api/v1/namespaces/{cluster}/pods") if "more" in pod["metadata"]["name"]
    ]


def test_the_labels_of_namespaces_say_whom_pods_must_be_beside(api, eks, cluster, nodeless, pending):
    api.create(settings(cluster))
    api.patch(f"/api/v1/namespaces/{cluster}", {"metadata": {"labels": {"example.com/team": cluster}}})
    pending(web="2500m")

    def beside_web(name, team):
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": "web"}},
            "namespaceSelector": {"matchLabels": {"example.com/team": team}},
        }
        rule = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        api.create(a_pod(name, cluster, cpu="500m", affinity=rule))
        path = f"/api/v1/namespaces/{cluster}/pods/{name}"
        api.wait(lambda: _refused(api.get(path)), what=f"the scheduler to refuse {path}")

    beside_web("near", cluster)
    beside_web("lost", "another-team")
    made = json.loads(nodeless("plan", "--json").stdout)
    on_new = {each["workload"]["name"]: each["on_new"] for each in made["landings"]}
    assert on_new == {"web": [["new-1", 1]], "near": [["new-1", 1]], "lost": []}
    assert [each["pods"] for each in made["unplaced"]] == [[f"{cluster}/lost"]]


def test_without_settings_the_bundled_catalog_is_used_and_that_is_said(aws, cluster, nodeless, pending):
    pending(web="3")
    result = nodeless("plan")

    assert result.exit_code == 0, result.output
    assert "settings not known: " in result.stderr
    assert "AWS cannot be asked, so the bundled catalog is used" in result.stderr
    assert "prices of us-east-1, " in result.stdout
    assert "m5.xlarge" in result.stdout


def test_why_of_what_the_cluster_does_not_have(api, eks, cluster, nodeless):
    api.create(settings(cluster))
    result = nodeless("why", f"{cluster}/wob")

    assert result.exit_code == 2
    assert f"{cluster}/wob is neither pod, workload, node nor pool; hint: there is " in result.stderr


def test_a_changed_pool_tells_which_nodes_it_would_replace_and_what_that_costs(
    api, eks, cluster, nodeless, claimed, tmp_path
):
    made = settings(cluster)
    made["data"]["featureGates.driftEnabled"] = "true"
    api.create(made)
    file = tmp_path / "pools.yaml"

    file.write_text(yaml.safe_dump_all([a_provisioner(), a_template()]))
    unchanged = nodeless("drift", file)
    assert unchanged.exit_code == 0, unchanged.output
    assert "no node would drift" in unchanged.stdout

    larger = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge"]}
    file.write_text(yaml.safe_dump(a_provisioner(requirements=[larger])))
    result = nodeless("drift", file, "--json")

    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    (node,) = told["drifting"]
    assert (node["node"], node["reason"], node["pods"], node["replaced"]) == (
        f"n1-{cluster}",
        "RequirementsDrifted",
        1,
        True,
    )
    assert [launch["instance_type"] for launch in told["launches"]] == ["m5.xlarge"]
    assert told["costPerHour"]["difference"] == pytest.approx(0.096)
    assert api.get(f"{POOLS}/default")["spec"]["requirements"] != [larger], "nothing was applied"


def test_a_pool_that_would_be_deleted_is_named_or_refused_with_those_that_there_are(
    api, eks, cluster, nodeless, claimed, tmp_path
):
    api.create(settings(cluster))
    saved = tmp_path / "cluster.json"
    saved.write_bytes(nodeless("snapshot").stdout_bytes)
    uid = api.get(f"{POOLS}/default")["metadata"]["uid"]
    gone = "1 node would end and 1 pod move: Provisioner/default is removed [PoolRemoved]"
    of_snapshot = ("--snapshot", saved)
    for more in (("Provisioner/default",), (uid,), ("Provisioner/default", *of_snapshot)):
        told = nodeless("drift", "--removed", *more)
        assert told.exit_code == 0, told.output
        assert gone in told.stdout

    others = nodeless("drift", "--removed", "00000000-another-cluster", *of_snapshot)
    assert "no node would drift" in others.stdout
    unknown = nodeless("drift", "--removed", "NodePool/old", *of_snapshot)
    assert unknown.exit_code == 2
    assert "NodePool/old: there is no such pool; hint: there are Provisioner/default" in unknown.stderr
    assert "nothing to compare; hint: give files, or --removed" in nodeless("drift").stderr


def test_a_changed_pool_is_told_of_a_saved_situation_too(api, eks, cluster, nodeless, claimed, tmp_path):
    api.create(settings(cluster))
    saved, pools = tmp_path / "cluster.json", tmp_path / "pools.yaml"
    saved.write_bytes(nodeless("snapshot").stdout_bytes)
    larger = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge"]}
    pools.write_text(yaml.safe_dump(a_provisioner(requirements=[larger])))
    result = nodeless("drift", pools, "--snapshot", saved)
    assert result.exit_code == 0, result.output
    assert "1 node would drift and stay: label node.kubernetes.io/instance-type=m5.large" in result.stdout


def test_top_shows_the_nodes_of_a_running_cluster_until_it_is_ended(api, eks, cluster, nodeless, pending):
    api.create(settings(cluster))
    pending(web="3", huge="64")

    printed = nodeless("top").stdout
    assert f"\nn1-{cluster} " in printed
    assert "to launch: 1 node for 1 pod, +" in printed
    assert "1 pod cannot be placed: see `nodeless plan`" in printed


@pytest.fixture
def heard():
    """Ctrl-C ends children, also where a shell runs the tests in the background and has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_top_is_refreshed_on_a_terminal_until_ctrl_c(api, eks, cluster, control_plane, heard):
    api.create(settings(cluster))
    screen, end = pty.openpty()
    options = (
        "--kubeconfig",
        control_plane.kubeconfig,
        "--controller-namespace",
        cluster,
        "--region",
        "us-east-1",
    )
    command = [sys.executable, "-m", "nodeless", "top", "--seconds", "1", *map(str, options)]
    shown = b""
    with subprocess.Popen(command, stdout=end, stderr=end, env={**os.environ, "COLUMNS": "200"}) as process:
        os.close(end)
        while shown.count(b"USD/month") < 2:
            shown += os.read(screen, 65536)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the last reader of a terminal is told so
            while os.read(screen, 65536):
                pass
    os.close(screen)
    assert process.returncode == 0, shown
    assert f"n1-{cluster}".encode() in shown


def checked(control_plane, *arguments):
    return CliRunner().invoke(app, ["validate", *arguments, "--kubeconfig", str(control_plane.kubeconfig)])


def test_objects_of_a_running_cluster_are_checked_by_name(api, eks, cluster, control_plane):
    result = checked(control_plane, "provisioner/default", "awsnodetemplates/default")

    assert result.exit_code == 0, result.output
    assert "Provisioner/default: Provisioner/default: valid" in result.stdout
    assert "AWSNodeTemplate/default: AWSNodeTemplate/default: valid" in result.stdout

    nowhere = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.nowhere"]}
    api.patch(f"{POOLS}/default", {"spec": {"requirements": [nowhere]}})
    (warned,) = re.findall(
        r"^Provisioner/default:(\d+):\d+: warning: spec.requirements\[0\].* \[NoInstanceTypes\]$",
        checked(control_plane, "provisioner/default").stdout,
        re.MULTILINE,
    )
    assert int(warned) > 5


def test_an_object_that_is_not_there_is_named_with_those_that_are(api, eks, cluster, control_plane):
    result = checked(control_plane, "provisioner/other")
    assert result.exit_code == 2
    assert "Provisioner/other: there is no such object; hint: there is Provisioner/default" in result.stderr


@pytest.mark.parametrize("line", ["nodeless why provisioner/", "nodeless top provisioner/def"])
def test_names_of_a_running_cluster_are_completed(api, eks, cluster, control_plane, line):
    def is_completed() -> bool:
        ended = subprocess.run(
            [sys.executable, "-m", "nodeless"],
            capture_output=True,
            text=True,
            check=True,
            env={
                **os.environ,
                "KUBECONFIG": str(control_plane.kubeconfig),
                "COMP_WORDS": line,
                "COMP_CWORD": "2",
                "_NODELESS_COMPLETE": "complete_bash",
            },
        )
        assert ended.stderr == ""
        return "provisioner/default" in ended.stdout.split()

    # A busy cluster may take longer than a person at a shell waits; then nothing is said, and they ask again.
    api.wait(is_completed, what="the name to be completed")
