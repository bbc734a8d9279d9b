"""`nodeless plan`: a member that is left empty (`nodeSelector:`) is absent, as the API server has it."""

import pytest

from tests.api.manifests import node_template, provisioner
from tests.controllers.planning import a_workload, nodeless, report

POD_MEMBERS = (
    "affinity",
    "ephemeralContainers",
    "hostNetwork",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "overhead",
    "priority",
    "priorityClassName",
    "resourceClaims",
    "resources",
    "schedulerName",
    "securityContext",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
)
CONTAINER_MEMBERS = ("args", "env", "livenessProbe", "ports", "resources", "securityContext", "volumeMounts")
EXPRESSION = {"key": "kubernetes.io/arch", "operator": "Exists", "values": None}
TERM = {"matchExpressions": [EXPRESSION], "matchFields": None}
NESTED = (
    {"affinity": {"nodeAffinity": None, "podAffinity": None, "podAntiAffinity": None}},
    {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}}},
    {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": None,
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]},
            }
        }
    },
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}}},
    {"tolerations": [{"operator": "Exists", "key": None, "value": None, "effect": None}]},
    {"volumes": [{"name": "tmp", "emptyDir": None, "persistentVolumeClaim": None, "ephemeral": None}]},
    {"topologySpreadConstraints": [{"topologyKey": "topology.kubernetes.io/zone", "labelSelector": None}]},
)


def placed(file, *manifests):
    made = report(file(provisioner(), node_template(), *manifests))
    assert made["complete"]
    return sum(landing["pods"] for landing in made["landings"])


@pytest.mark.parametrize("member", POD_MEMBERS)
def test_an_empty_member_of_a_pod_is_absent(file, member):
    workload, pod = a_workload(pod={member: None}), a_workload(name="x", pod={member: None})
    bare = {**pod, "apiVersion": "v1", "kind": "Pod", "spec": pod["spec"]["template"]["spec"]}

    assert placed(file, workload, bare) == 2


@pytest.mark.parametrize("member", CONTAINER_MEMBERS)
def test_an_empty_member_of_a_container_is_absent(file, member):
    container = {"name": "c", "image": "i", member: None}

    first = {**container, "name": "first"}
    assert placed(file, a_workload(pod={"containers": [container], "initContainers": [first]})) == 1


@pytest.mark.parametrize("listed", ["requests", "limits", "claims"])
def test_empty_resources_are_absent(file, listed):
    container = {"name": "c", "resources": {listed: None}}
    amounts = {"name": "d", "resources": {"requests": {"cpu": "1", "memory": None}, "limits": {"cpu": None}}}

    assert placed(file, a_workload(pod={"containers": [container, amounts]})) == 1


@pytest.mark.parametrize("pod", NESTED)
def test_an_empty_member_further_down_is_absent(file, pod):
    assert placed(file, a_workload(pod=pod)) == 1


@pytest.mark.parametrize(
    "member", ["labels", "annotations", "ownerReferences", "finalizers", "namespace", "uid"]
)
@pytest.mark.parametrize("kind", ["Pod", "Deployment", "DaemonSet", "PersistentVolumeClaim", "StorageClass"])
def test_empty_metadata_is_absent(file, kind, member):
    workload = a_workload()
    specs = {
        "Pod": ("v1", {"spec": workload["spec"]["template"]["spec"]}),
        "Deployment": ("apps/v1", {"spec": workload["spec"]}),
        "DaemonSet": ("apps/v1", {"spec": workload["spec"]}),
        "PersistentVolumeClaim": ("v1", {"spec": {"storageClassName": None, "volumeName": None}}),
        "StorageClass": ("storage.k8s.io/v1", {"provisioner": "ebs.csi.aws.com", "allowedTopologies": None}),
    }
    api_version, rest = specs[kind]
    metadata = {"name": "given", member: None}
    given = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}

    assert placed(file, given, a_workload(name="other")) == 1 + (kind in ("Pod", "Deployment"))


@pytest.mark.parametrize("member", ["replicas", "paused", "strategy", "selector", "volumeClaimTemplates"])
def test_an_empty_member_of_a_workload_is_absent(file, member):
    assert placed(file, a_workload("StatefulSet", **{member: None})) == 1


def test_an_empty_label_is_an_empty_string(file):
    """Kubernetes keeps the key of a map of strings: a selector still asks for the label."""
    selecting = a_workload(pod={"nodeSelector": {"kubernetes.io/arch": None}})

    assert nodeless(file(provisioner(), node_template(), selecting)).exit_code == 1


@pytest.mark.parametrize("member", ["containers", "tolerations", "volumes", "topologySpreadConstraints"])
def test_an_empty_item_of_a_list_is_a_fault(file, member):
    path = file(provisioner(), node_template(), a_workload(pod={member: [None]}))
    result = nodeless(path)

    assert result.exit_code == 2
    assert f"{path}:" in result.stderr
    assert f"spec.template.spec.{member}[" in result.stderr
