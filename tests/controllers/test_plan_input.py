"""Given input that `nodeless plan` cannot use, what is told?"""

import json
import os
import re

import pytest
from typer.testing import CliRunner

from nodeless.cli.main import app
from tests.api.manifests import (
    ec2_node_class_v1beta1,
    node_claim_v1beta1,
    node_pool,
    node_pool_v1beta1,
    node_template,
    provisioner,
)
from tests.controllers.planning import EXAMPLES, SETTINGS, a_workload, nodeless, report


@pytest.mark.parametrize(
    ("manifest", "line", "told"),
    [
        (a_workload(replicas=-1), 9, "spec.replicas: -1 is not a number of pods; hint: 0 to 1000000"),
        (a_workload(replicas=10**9), 9, "is not a number of pods"),
        (a_workload(cpu="much"), 17, "containers[0].resources.requests.cpu: 'much'"),
        (a_workload(pod={"nodeSelector": {"a": 1}}), 19, "spec.template.spec.nodeSelector"),
        ({**a_workload(), "spec": {}}, 6, "spec.template: is required"),
        (
            a_workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": []}}]),
            12,
            "StatefulSet/web: ",
        ),
        (
            a_workload("StatefulSet", volumeClaimTemplates="data"),
            19,
            "volumeClaimTemplates: 'data' is not a list",
        ),
        (node_pool(weight=101), 14, "NodePool/default: spec.weight: 101"),
        ({"kind": "Nodepool", "apiVersion": "karpenter.sh/v1"}, 1, "NodePool"),
        ({"metadata": {}}, 1, "not a Kubernetes object"),
        (
            {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": 3},
            1,
            "metadata: 3 must be an object",
        ),
        (node_pool_v1beta1(weight=101), 14, "NodePool/default: spec.weight: 101"),
        (
            node_pool_v1beta1(template={"kubelet": {"maxPods": 3}}),
            11,
            "not converted: spec.template.spec.kubelet: moves to the node class in v1",
        ),
    ],
)
def test_a_fault_is_told_with_file_and_line_and_exit_code_2(file, manifest, line, told):
    path = file(manifest)
    result = nodeless(path)

    assert result.exit_code == 2
    found = [each for each in result.stderr.splitlines() if each.startswith(f"{path}:") and told in each]
    assert found, result.stderr
    assert abs(int(found[0].removeprefix(f"{path}:").split(":")[0]) - line) <= 3


def a_container(name="c", **resources):
    return {"name": name, "image": "i", "resources": resources}


@pytest.mark.parametrize(
    ("containers", "told"),
    [
        (
            [a_container(request={"cpu": "1"})],
            "resources.request: is not a known field; hint: did you mean requests?",
        ),
        ([a_container(cpu="1")], "containers[0].resources.cpu: is not a known field"),
        (
            [a_container(requests={"nvidia.com/gpu": 1})],
            "requests.nvidia.com/gpu: nvidia.com/gpu has no limit of the same amount; hint: a limit alone",
        ),
        (
            [a_container(requests={"example.com/fpga": 1}, limits={"example.com/fpga": 2})],
            "example.com/fpga has no limit of the same amount",
        ),
        ([a_container("a"), a_container("a")], "containers[1].name: another container is called a, too"),
    ],
)
def test_resources_and_names_that_the_api_server_refuses_are_told(file, containers, told):
    result = nodeless(file(a_workload(pod={"containers": containers})))

    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


def test_every_fault_of_a_pod_template_is_told_at_once(file):
    containers = [
        a_container("a", requests={"cpu": "0.5x", "memory": "12Gb"}),
        a_container("a", requests={"memory": "1gi"}, limits={"memory": "2gb"}),
    ]
    path = file(a_workload(pod={"containers": containers}))
    faults = ("[0].resources.requests.cpu", "[0].resources.requests.memory", "[1].name")
    faults += ("[1].resources.requests.memory", "[1].resources.limits.memory")
    told, validated = nodeless(path).stderr, CliRunner().invoke(app, ["validate", str(path)]).stdout
    for fault in faults:
        assert f"spec.template.spec.containers{fault}: " in told
        assert f"spec.template.spec.containers{fault}: " in validated


@pytest.mark.parametrize(
    "resources",
    [
        {"limits": {"nvidia.com/gpu": 1}},
        {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": 1}},
        {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}, "claims": []},
        {"requests": {"requests.kubernetes.io/x": 1}},
    ],
)
def test_resources_that_the_api_server_takes_are_read(file, resources):
    given = file(provisioner(), node_template(), a_workload(pod={"containers": [a_container(**resources)]}))

    assert nodeless(given).exit_code in (0, 1)


def test_pods_with_scheduling_gates_wait_and_are_said_to(file):
    """The scheduler does not look at them, and neither does the controller."""
    gated = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    workload = a_workload(replicas=3, pod=gated)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "alone"},
        "spec": {**gated, "containers": [a_container()]},
    }
    made = report(file(provisioner(), node_template(), workload, pod, a_workload(name="other")))

    assert [landing["workload"]["name"] for landing in made["landings"]] == ["other"]
    told = "for the scheduling gate kueue.x-k8s.io/admission, and nothing is launched before"
    assert f"Deployment/web: 3 pods wait {told}" in made["notes"]
    assert f"Pod/alone: 1 pod waits {told}" in made["notes"]


def test_a_list_without_items_is_empty(tmp_path):
    path = tmp_path / "given.json"
    path.write_text('{"apiVersion": "v1", "kind": "List", "items": null}')

    assert "it contains no object" in nodeless(path).stderr


def test_every_fault_of_every_file_is_told_at_once(file):
    first, second = file(a_workload(replicas="x")), file(a_workload(name="api", cpu="1x"), name="other.yaml")
    broken = file(name="broken.yaml")
    broken.write_text("a: [1,\nb: }")
    result = nodeless(first, second, broken)

    assert result.exit_code == 2
    assert all(f"{path}:" in result.stderr for path in (first, second, broken))
    assert "3 faults in the manifests" in result.stderr


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_what_windows_writes_is_read(file, encoding):
    path = file(provisioner(), node_template(), a_workload())
    path.write_bytes(path.read_text().replace("\n", "\r\n").encode(encoding))

    assert nodeless(path).exit_code == 0


def test_an_object_given_twice_is_told(file):
    result = nodeless(file(a_workload(), a_workload()))

    assert (result.exit_code, "it is at" in result.stderr) == (2, True)


def test_objects_of_one_name_and_kind_in_two_groups_are_two(file):
    """Operators call their kinds Service, Gateway or Cluster, too."""

    def named(version, kind):
        spec = {"template": a_workload()["spec"]["template"]} if "knative" in version else {}
        return {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}

    versions = ("serving.knative.dev/v1", "v1", "networking.istio.io/v1", "gateway.networking.k8s.io/v1")
    given = [named(version, "Service") for version in versions]

    assert nodeless(file(provisioner(), node_template(), *given)).exit_code == 0
    older = a_workload() | {"apiVersion": "extensions/v1beta1"}
    assert "it is at" in nodeless(file(provisioner(), node_template(), a_workload(), older)).stderr


def test_pods_of_generated_names_are_as_many_as_there_are(file):
    spec = {"containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "job-"}, "spec": spec}
    named = pod | {"metadata": {"name": "job-1"}}
    made = report(file(provisioner(), node_template(), pod, named, pod, pod))

    assert sorted(landing["workload"]["name"] for landing in made["landings"]) == [
        "job-0",
        "job-1",
        "job-2",
        "job-3",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["nowhere.yaml"],
            "nowhere.yaml cannot be read: No such file or directory; hint: give YAML or JSON files",
        ),
        (["-"], "-: it contains no object; hint: the command that made the input may have failed"),
        (["--kubeconfig", "nowhere"], "or give manifests or --snapshot, which need no cluster"),
        ([EXAMPLES, "--html", "nowhere/report.html"], "nowhere/report.html cannot be written: No such file"),
        (["--snapshot", "nowhere.json"], "nowhere.json cannot be read"),
        ([EXAMPLES, "--snapshot", "x"], "exclude each other"),
        ([EXAMPLES, "--zones", "eu-west-1a"], "'eu-west-1a' is not a zone of the catalog"),
        ([EXAMPLES, "--catalog", EXAMPLES / "pools.yaml"], "not JSON"),
        ([EXAMPLES, "--what-if", "scael=deploy/web:3"], "did you mean scale?"),
        ([EXAMPLES, "--what-if", "scale=deploy/wob:3"], "no such workload; hint: there is shop/nightly"),
        ([EXAMPLES, "--what-if", "scale=deploy/web:many"], "not a number of pods"),
        ([EXAMPLES, "--what-if", "scale=deploy/web:²"], "not a number of pods"),
        ([EXAMPLES, "--what-if", f"scale=deploy/web:{'1' * 5000}"], "not a number of pods"),
        ([EXAMPLES, "--what-if", "without-type=m55.*"], "matches nothing"),
        ([EXAMPLES, "--what-if", "price=m5.large:cheap"], "not a price"),
        ([EXAMPLES, "--what-if", "limit=general:cpu=many"], "limit=general:cpu=many: "),
        ([EXAMPLES, "--what-if", "add"], "change 'add' needs something to work on; hint: add=FILE"),
        ([EXAMPLES, "--what-if", "add=nowhere.yaml"], "nowhere.yaml cannot be read: No such file"),
        ([EXAMPLES, "--what-if", "with-zone=us-east-1a"], "pools buy there already"),
        ([EXAMPLES, "--what-if", "with-zone=eu-west-1a"], "hint: a zone of the region of us-east-1a"),
        ([EXAMPLES, "--what-if", "packing=tight"], "hint: use lowest-price or fewest-nodes"),
        ([EXAMPLES, "--what-if", "node-fee=-1"], "node-fee=-1: not a price; hint: node-fee=0.01"),
    ],
)
def test_input_that_cannot_be_used_is_told_with_exit_code_2(arguments, told, monkeypatch):
    monkeypatch.setitem(os.environ, "KUBECONFIG", "put back afterwards")
    result = nodeless(*arguments)

    assert result.exit_code == 2
    assert told in result.stderr


def test_settings_that_cannot_be_used_are_told_with_their_line(file):
    result = nodeless(file({**SETTINGS, "data": {"nodeless.packing": "tight"}}))

    assert result.exit_code == 2
    assert re.search(
        r"given.yaml:\d+:\d+: .*nodeless.packing.*'tight'.*lowest-price or fewest-nodes", result.stderr
    )


def test_pools_of_v1beta1_are_planned_as_they_convert_and_said_to_be(file):
    kubelet = {"maxPods": 3}
    path = file(
        a_workload(replicas=4), node_pool_v1beta1(template={"kubelet": kubelet}), ec2_node_class_v1beta1()
    )
    result = nodeless(path, "--json")

    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert {launch["pool"] for launch in report["launches"]} == {"NodePool/default"}
    notes = [note for note in report["notes"] if "is read as `nodeless convert` writes it in v1" in note]
    assert [note.split(": ")[1] for note in notes] == ["NodePool/default", "EC2NodeClass/default"]
    assert all(note.startswith(f"{path}:") for note in notes)


def test_a_claim_of_v1beta1_in_a_dump_is_the_node_that_it_became(file):
    """As a claim without its status it would be a second node, and pods that wait would go there."""
    labels = {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/zone": "us-east-1a",
    }
    instance = "aws:///us-east-1a/i-0123456789abcdef0"
    claim = node_claim_v1beta1()
    claim["metadata"] |= {"name": "default-abc", "uid": "u", "creationTimestamp": "2024-05-01T00:00:00Z"}
    claim["metadata"]["labels"] = labels
    claim["status"] = {"providerID": instance, "nodeName": "n1"}
    full = {"cpu": "100m", "memory": "1Gi", "pods": "29"}
    there = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels},
        "spec": {"providerID": instance},
        "status": {"allocatable": full, "capacity": full},
    }
    path = file(node_pool_v1beta1(), ec2_node_class_v1beta1(), claim, there, a_workload(replicas=1))
    made = report(path)

    assert [node["name"] for node in made["nodes"] if node["state"] != "new"] == ["n1"]
    assert sum(launch["count"] for launch in made["launches"]) == 1


@pytest.mark.parametrize(
    ("version", "kind", "told"),
    [
        ("eks.amazonaws.com/v1", "NodeClass", "is the node class of EKS Auto Mode"),
        ("karpenter.sh/v1alpha5", "Machine", "is a node of Karpenter v0.28 to v0.31"),
    ],
)
def test_a_kind_that_is_not_read_is_noted_with_its_line_and_the_rest_is_planned(file, version, kind, told):
    other = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {}}
    path = file(a_workload(), node_pool(), other)
    result = nodeless(path, "--json")

    assert result.exit_code == 0, result.output
    (note,) = [note for note in json.loads(result.stdout)["notes"] if told in note]
    assert re.match(rf"{re.escape(str(path))}:\d+:\d+: {kind}/x: warning: kind: ", note)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("replicas: !!int x", ":2:11: error: not YAML: 'x' is not a number"),
        ("replicas: 0x_", ":2:11: error: not YAML: '0x_' is not a number"),
        ("replicas: !!float x", ":2:11: error: not YAML: 'x' is not a number"),
        ("replicas: !!bool maybe", ":2:11: error: not YAML: 'maybe' is not a boolean"),
        ("spec: {~: 3}", ":2:8: error: not YAML: a key is empty"),
        ("kind: a", ":2:1: error: not YAML: kind is given twice"),
        ("items: 3", ":2:8: error: the items of a List are not a list"),
    ],
)
def test_what_no_one_can_read_is_told_with_its_line(tmp_path, text, told):
    path = tmp_path / "given.yaml"
    path.write_text(f"kind: List\n{text}\n")
    result = nodeless(path)

    assert (result.exit_code, f"{path}{told}" in result.stderr) == (2, True), result.output


@pytest.mark.parametrize("data", [3, ["a"]])
def test_settings_that_are_no_object_are_told_with_their_line(file, data):
    assert re.search(
        r"given.yaml:\d+:\d+: error: data: .* is not an object \[InvalidObject\]",
        nodeless(file({**SETTINGS, "data": data})).stderr,
    )
