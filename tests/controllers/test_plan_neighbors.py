"""`nodeless plan` and `validate` of files in which another autoscaler stands, too."""

import json

import pytest
from typer.testing import CliRunner

from nodeless.cli.main import app
from tests.api.manifests import ec2_node_class, node_pool, node_pool_v1beta1
from tests.controllers.planning import a_workload, nodeless, report
from tests.controllers.test_neighbors import AUTOSCALER, KARPENTER, of_auto_mode
from tests.factories import a_pod as a_model_pod
from tests.factories import a_pool
from tests.kube.test_autoscaler_status import OF_YAML, a_status

CODE = "[OtherAutoscaler]"


def a_program(image, *command, replicas=1, kind="Deployment"):
    workload = a_workload(kind, "other", namespace="kube-system", replicas=replicas)
    workload["spec"]["template"]["spec"]["containers"][0] |= {"image": image, "command": [*command]}
    return workload


def warned(path):
    """The warnings of `validate` about another autoscaler, by the object that they are at."""
    result = CliRunner().invoke(app, ["validate", str(path), "-o", "json"])
    assert result.exit_code in (0, 1), result.output
    return {
        entry["object"]: fault
        for entry in json.loads(result.stdout)["objects"]
        for fault in entry["faults"]
        if fault["code"] == "OtherAutoscaler"
    }


def noted(path):
    return [note for note in report(path)["notes"] if note.endswith(CODE)]


def test_groups_are_those_of_flags_of_the_status_and_of_nodes(file):
    member = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "ip-1", "labels": {"alpha.eksctl.io/nodegroup-name": "old"}},
    }
    given = file(
        node_pool(),
        ec2_node_class(),
        a_program(AUTOSCALER, "./cluster-autoscaler", "--nodes=1:9:flagged"),
        a_status(OF_YAML),
        member,
        a_workload(replicas=3),
    )
    (note,) = noted(given)
    assert (
        "it can take pods of NodePool/default (old, batch, eks-web-0aca and 1 other, 4 pods at present)"
        in note
    )
    fault = warned(given)["NodePool/default"]
    assert (fault["severity"], fault["path"]) == ("warning", "metadata.name")
    assert "its node groups old, batch, eks-web-0aca and 1 other can take pods" in fault["message"]
    assert "scale it to 0" in fault["hint"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_karpenter_among_the_files_is_told_of_and_one_that_is_scaled_to_nothing_is_not(file, kind):
    running = file(node_pool(), ec2_node_class(), a_program(KARPENTER, kind=kind))
    assert "it serves NodePool/default itself, too" in warned(running)["NodePool/default"]["message"]
    stopped = file(node_pool(), ec2_node_class(), a_program(KARPENTER, kind=kind, replicas=0))
    assert warned(stopped) == {}
    assert noted(stopped) == []


def test_pools_of_auto_mode_are_told_of_at_ours_of_any_generation(file):
    given = file(node_pool_v1beta1(), of_auto_mode(), a_workload())
    assert list(warned(given)) == ["NodePool/default"]
    (note,) = noted(file(node_pool(), ec2_node_class(), of_auto_mode(), a_workload()))
    assert "EKS Auto Mode also serves this cluster (NodePool general-purpose)" in note
    assert "(general-purpose, 1 pod at present)" in note


def test_what_cannot_be_read_beside_it_hides_no_neighbor(file):
    broken = a_workload(replicas="many")
    assert list(warned(file(node_pool(), ec2_node_class(), broken, a_program(KARPENTER)))) == [
        "NodePool/default"
    ]


def test_files_without_another_autoscaler_have_no_such_line(file):
    given = file(node_pool(), ec2_node_class(), a_workload())
    assert (warned(given), noted(given)) == ({}, [])


def test_a_saved_cluster_tells_of_the_neighbor_that_was_there(saved):
    given = saved(a_pool(), a_model_pod("other", program="karpenter"))
    result = nodeless("--snapshot", given)
    assert "Karpenter also serves this cluster (default/other (Pod))" in " ".join(result.stdout.split())
