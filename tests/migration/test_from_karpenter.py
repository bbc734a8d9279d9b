"""Pools of Karpenter, of every generation: what they are in v1, both bills, and labels of old names."""

import pytest

from tests.migration.running import (
    classes_of,
    faults_of,
    migrate,
    migration,
    pools_of,
    requirement,
    written,
)
from tests.migration.test_pods import SOLD, VOLUME, a_pod

PROVISIONER = {
    "apiVersion": "karpenter.sh/v1alpha5",
    "kind": "Provisioner",
    "metadata": {"name": "default", "uid": "u", "resourceVersion": "7"},
    "spec": {
        "providerRef": {"name": "default"},
        "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}
        ],
    },
}
TEMPLATE = {
    "apiVersion": "karpenter.k8s.aws/v1alpha1",
    "kind": "AWSNodeTemplate",
    "metadata": {"name": "default"},
    "spec": {
        "amiFamily": "AL2",
        "subnetSelector": {"karpenter.sh/discovery": "shop"},
        "securityGroupSelector": {"karpenter.sh/discovery": "shop"},
    },
}
TERMS = [{"tags": {"karpenter.sh/discovery": "shop"}}]
CLASS = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "nodes",
        "subnetSelectorTerms": TERMS,
        "securityGroupSelectorTerms": TERMS,
    },
}


def a_node_pool(version="v1", **reference):
    return {
        "apiVersion": f"karpenter.sh/{version}",
        "kind": "NodePool",
        "metadata": {
            "name": "default",
            "uid": "u",
            "generation": 3,
            "creationTimestamp": "2025-01-01T00:00:00Z",
        },
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {"kind": "EC2NodeClass", "name": "default", **reference},
                    "requirements": PROVISIONER["spec"]["requirements"],
                }
            }
        },
        "status": {"resources": {"cpu": "2"}},
    }


def a_node(name, label, pool="default"):
    size = {"cpu": "1930m", "memory": "7Gi", "pods": "29"}
    labels = {"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "us-east-1a"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**labels, label: pool, "karpenter.sh/capacity-type": "on-demand"},
        },
        "spec": {"providerID": f"aws:///us-east-1a/i-{name}"},
        "status": {"allocatable": size, "capacity": size},
    }


def dump(folder, *objects):
    return written(folder, "cluster.yaml", {"apiVersion": "v1", "kind": "List", "items": list(objects)})


def test_provisioners_become_pools_of_v1_and_their_pods_are_planned_anew(tmp_path):
    old = "karpenter.sh/provisioner-name"
    pods = [
        a_pod(
            "a",
            nodeName="n1",
            nodeSelector={old: "default"},
            annotations={"karpenter.sh/do-not-evict": "true"},
        ),
        a_pod("b", nodeName="n2"),
    ]
    made = migration(
        dump(tmp_path, PROVISIONER, TEMPLATE, a_node("n1", old), a_node("n2", old), *pods), "--role", "r"
    )

    assert faults_of(made["manifests"]) == []
    pool = pools_of(made)["default"]
    assert requirement(pool, "node.kubernetes.io/instance-type") == ("In", ["m5.large"])
    assert "uid" not in pool["metadata"]
    assert classes_of(made)["default"]["spec"]["role"] == "r"
    price = SOLD.on_demand["m5.large"] + VOLUME
    assert made["cost"]["perHour"]["before"] == pytest.approx(2 * price, abs=1e-6)
    assert made["cost"]["perHour"]["after"] == pytest.approx(price, abs=1e-6)
    codes = {one["code"]: one for one in made["differences"]}
    assert "karpenter.sh/nodepool: default" in codes["GroupLabel"]["change"]
    assert "DoNotEvict" in codes
    assert made["steps"][-1]["title"].startswith("Replace the nodes that Karpenter v0")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_pools_of_later_generations_are_taken_over(tmp_path, version):
    reference = (
        {"group": "karpenter.k8s.aws"} if version == "v1" else {"apiVersion": "karpenter.k8s.aws/v1beta1"}
    )
    node_class = CLASS
    if version == "v1beta1":
        spec = {name: value for name, value in CLASS["spec"].items() if name != "amiSelectorTerms"}
        node_class = {
            **CLASS,
            "apiVersion": "karpenter.k8s.aws/v1beta1",
            "spec": {**spec, "amiFamily": "AL2023"},
        }
    pods = [a_pod("a", nodeName="n1")]
    objects = (a_node_pool(version, **reference), node_class, a_node("n1", "karpenter.sh/nodepool"), *pods)
    made = migration(dump(tmp_path, *objects))

    assert faults_of(made["manifests"]) == []
    assert {one["apiVersion"].rpartition("/")[2] for one in made["manifests"]} == {"v1"}
    assert all("status" not in one and "uid" not in one["metadata"] for one in made["manifests"])
    assert made["cost"]["perHour"]["before"] == pytest.approx(SOLD.on_demand["m5.large"] + VOLUME, abs=1e-6)
    assert all(step["undo"] and step["check"] for step in made["steps"])


def test_objects_are_stored_as_v1_before_the_definitions_come_that_have_only_v1(tmp_path):
    """The API server refuses definitions without a version in which objects are stored."""
    reference = {"apiVersion": "karpenter.k8s.aws/v1beta1"}
    older = migration(dump(tmp_path, a_node_pool("v1beta1", **reference), CLASS))["steps"]
    assert "Upgrade Karpenter to v1" in older[0]["title"]
    assert ".status.storedVersions" in older[0]["commands"][0]
    latest = migration(dump(tmp_path, a_node_pool(group="karpenter.k8s.aws"), CLASS))["steps"]
    assert not [step for step in latest if "Upgrade Karpenter" in step["title"]]


def undo_of(made):
    return [command for step in made["steps"] for command in step["undo"]]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_way_back_from_karpenters_pools_deletes_none_of_them(tmp_path, version):
    reference = (
        {"group": "karpenter.k8s.aws"} if version == "v1" else {"apiVersion": "karpenter.k8s.aws/v1beta1"}
    )
    made = migration(
        dump(tmp_path, a_node_pool(version, **reference), CLASS, a_node("n1", "karpenter.sh/nodepool"))
    )

    undo = undo_of(made)
    assert not [line for line in undo if "kubectl delete" in line or "helm uninstall" in line]
    rollback = undo.index("helm rollback karpenter --namespace karpenter")
    # Karpenter would never take it off: a pool that is deleted would stay, and its nodes would run on.
    assert "kubectl get nodepools,provisioners -o name" in undo[rollback + 1]
    assert '{"metadata":{"finalizers":null}}' in undo[rollback + 1]
    commands = [command for step in made["steps"] for command in step["commands"]]
    assert any("--take-ownership --force-conflicts" in command for command in commands)
    assert any("--reset-then-reuse-values" in command for command in commands)
    assert not [step for step in made["steps"] if "launches nothing" in step["check"]]


def test_the_way_back_from_provisioners_deletes_only_the_pools_in_their_place(tmp_path):
    beside = a_node_pool(group="karpenter.k8s.aws")
    beside["metadata"]["name"] = "beside"
    beside["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "beside"
    its_class = {**CLASS, "metadata": {"name": "beside"}}
    made = migration(dump(tmp_path, PROVISIONER, TEMPLATE, beside, its_class), "--role", "r")

    undo = undo_of(made)
    (deletion,) = [line for line in undo if line.startswith("kubectl delete")]
    assert "nodepool/default" in deletion
    assert "nodepool/beside" not in deletion
    assert not [line for line in undo if "helm uninstall" in line]


def test_what_v1_cannot_say_is_a_fault_with_its_place(tmp_path):
    path = dump(tmp_path, PROVISIONER, TEMPLATE)
    ended = migrate(path)
    assert ended.exit_code == 2
    assert f"{path}:" in ended.stderr
    assert "AWSNodeTemplate/default: not converted" in ended.stderr


def test_a_pool_with_a_fault_is_refused_with_its_place(tmp_path):
    pool = a_node_pool(group="karpenter.k8s.aws")
    pool["spec"]["weight"] = 1000
    ended = migrate(dump(tmp_path, pool, CLASS))
    assert ended.exit_code == 2
    assert "NodePool/default: spec.weight: 1000" in ended.stderr
