"""A release of Karpenter becomes one of nodeless by the commands of the guide, and goes back: nodes stay."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from localenv.binaries import control_plane_binaries
from localenv.control_plane import ControlPlane
from localenv.karpenter import karpenter_charts
from localenv.kubernetes import KubernetesApi
from localenv.kubernetes.connection import kubeconfig
from localenv.ports import free_port
from localenv.progress import StreamReport
from tests.charts import karpenter_objects as left_by_karpenter
from tests.charts.conftest import CHART, ROOT, HelmFailed, settings_of
from tests.charts.guide import commands
from tests.controllers.process import NODELESS, a_cluster
from tests.controllers.world import CLAIMS, NODES, Kubelets, Network, a_pod

pytestmark = pytest.mark.cluster

GUIDE = ROOT / "docs" / "guides" / "migrate-from-karpenter.md"
NAMESPACE = "karpenter"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/karpenter"
PODS = "/api/v1/namespaces/default/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
IMAGE = {"ACCOUNT": "123456789012", "REGION": "us-east-1", "TAG": "0.1.0"}
#: What somebody gave Karpenter's chart; `webhook` is of its chart until v0.36, and stays in values files.
VALUES = {
    "replicas": 3,
    "webhook": {"enabled": False},
    "serviceAccount": {
        "annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/karpenter"}
    },
    "controller": {
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}},
        "image": {"repository": "mirror.example/karpenter/controller", "digest": "sha256:" + "a" * 64},
    },
    "settings": {
        "clusterName": "demo",
        "clusterEndpoint": "https://demo.example",
        "batchIdleDuration": "200ms",
        "featureGates": {"spotToSpotConsolidation": True},
    },
}


@pytest.fixture(scope="module")
def charts_of_karpenter() -> Path:
    return karpenter_charts(StreamReport())


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of this test's own, whose definitions are Karpenter's at first."""
    with ControlPlane.start(tmp_path / "control-plane") as plane:
        yield plane


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[KubernetesApi]:
    client = plane.client()
    yield client
    client.close()


@pytest.fixture
def network(aws_process, plane, monkeypatch) -> Network:
    aws_process.reset()
    for name, value in aws_process.environment().items():
        monkeypatch.setenv(name, value)
    network = Network(aws_process)
    a_cluster(plane, aws_process, network)
    return network


class User:
    """Somebody with the programs of the guide, in a checkout."""

    def __init__(self, plane, helm_program, folder):
        self.kubeconfig, self._folder = plane.kubeconfig, folder
        programs = folder / "bin"
        programs.mkdir()
        (programs / "helm").symlink_to(helm_program)
        (programs / "kubectl").symlink_to(control_plane_binaries()["kubectl"])
        self._path = f"{programs}:/usr/bin:/bin"

    def run(self, command):
        """What a command of the guide writes, with values for what it leaves to the reader."""
        for name, value in IMAGE.items():
            command = command.replace(name, value)
        environment = {"PATH": self._path, "HOME": str(self._folder), "KUBECONFIG": str(self.kubeconfig)}
        done = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def user(plane, helm_program, tmp_path) -> User:
    return User(plane, helm_program, tmp_path)


def install_karpenter(user, charts, folder):
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(VALUES))
    where = f"--namespace {NAMESPACE} --create-namespace"
    user.run(f"helm install karpenter-crd {charts / 'karpenter-crd'} {where}")
    user.run(f"helm install karpenter {charts / 'karpenter'} {where} --values {file}")


def give_it_a_node(api, network):
    """Pool, class, claim, instance, node and a pod on it, as they are while Karpenter runs."""
    api.create(left_by_karpenter.a_node_class())
    pool = api.create(left_by_karpenter.a_node_pool())
    api.create(left_by_karpenter.an_overlay())
    image = network.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    instance = left_by_karpenter.launch(network, image)
    claim = api.create(left_by_karpenter.a_claim(pool))
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"status": left_by_karpenter.a_claim_status(instance, now)}
    api.patch(f"{CLAIMS}/{left_by_karpenter.CLAIM}", status, subresource="status")
    api.create(left_by_karpenter.a_node(instance, claim))
    api.create(a_pod("web", "default", nodeName=instance["PrivateDnsName"]))
    return instance


@pytest.fixture
def controller(plane, api, aws_process, tmp_path) -> Iterator:
    """Start and stop what the Deployment says, with the rights of its service account, in place of a pod."""
    started = []

    def start():
        deployment = api.get(DEPLOYMENT)
        spec = deployment["spec"]["template"]["spec"]
        account = plane.client()
        token = account.token(NAMESPACE, spec["serviceAccountName"])
        account.close()
        file = tmp_path / "controller.kubeconfig"
        authority = plane.certificate_authority.read_bytes()
        file.write_text(json.dumps(kubeconfig(plane.endpoint, authority, {"token": token})))
        fields = {
            "metadata.namespace": NAMESPACE,
            "metadata.name": "karpenter-0",
            "status.podIP": "127.0.0.1",
        }
        given = {
            each["name"]: each["value"]
            if "value" in each
            else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
            for each in spec["containers"][0]["env"]
        }
        ports = {"METRICS_PORT": str(free_port()), "HEALTH_PROBE_PORT": str(free_port())}
        environment = {**os.environ, **aws_process.environment(), **given, **ports, "KUBECONFIG": str(file)}
        log = tmp_path / "controller.log"
        with log.open("w") as output:
            started.append(
                subprocess.Popen([NODELESS, "run"], env=environment, stdout=output, stderr=subprocess.STDOUT)
            )
        return log

    def stop():
        for process in started:
            process.kill()
            process.wait()

    yield start, stop
    stop()


def owned(definition):
    metadata = definition["metadata"]
    return (
        metadata.get("labels", {}).get("app.kubernetes.io/managed-by"),
        metadata.get("annotations", {}).get("meta.helm.sh/release-name"),
    )


def uids(api):
    """What must be the same objects before and after, by kind and name."""
    paths = (left_by_karpenter.POOLS, left_by_karpenter.NODE_CLASSES, CLAIMS, NODES, PODS)
    found = [(path, each["metadata"]) for path in paths for each in api.list(path)]
    return {(path, each["name"]): each["uid"] for path, each in found if "deletionTimestamp" not in each}


def test_a_release_of_karpenter_becomes_ours_in_place_and_its_nodes_go_on(
    user, api, network, controller, charts_of_karpenter, tmp_path
):
    install_karpenter(user, charts_of_karpenter, tmp_path)
    instance = give_it_a_node(api, network)
    kubelets = Kubelets(api, network)
    kubelets.turn()
    before = uids(api)

    for command in commands(GUIDE, "### With Helm"):
        user.run(command)

    made = {each["metadata"]["name"]: each for each in api.list(CRDS)}
    ours = (
        "nodepools.karpenter.sh",
        "nodeclaims.karpenter.sh",
        "nodeoverlays.karpenter.sh",
        "ec2nodeclasses.karpenter.k8s.aws",
    )
    assert {owned(made[name]) for name in ours} == {("Helm", "karpenter-crd")}
    assert {"provisioners.karpenter.sh", "capacitybuffers.autoscaling.x-k8s.io"} <= set(made)
    assert api.find("/apis/karpenter.sh/v1alpha1/nodeoverlays/discount") is not None
    deployment = api.get(DEPLOYMENT)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "123456789012.dkr.ecr.us-east-1.amazonaws.com/nodeless:0.1.0"
    assert deployment["spec"]["replicas"] == 3
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "512Mi"}
    account = api.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/karpenter")
    assert "eks.amazonaws.com/role-arn" in account["metadata"]["annotations"]
    config = api.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/karpenter-global-settings")
    data = settings_of({("ConfigMap", NAMESPACE, "karpenter-global-settings"): config})
    assert data["aws.clusterName"] == "demo"
    assert data["batchIdleDuration"] == "200ms"
    assert data["nodeless.spotToSpotConsolidation"] == "true"

    start, stop = controller
    log = start()
    # More than the node of before has room for: nodeless launches for it, from the same pool.
    api.create(a_pod("large", "default", cpu="1500m"))

    def runs():
        kubelets.turn()
        return api.get("/api/v1/namespaces/default/pods/large")["status"].get("phase") == "Running"

    api.wait(runs, timeout=90, what=f"the pod to run; see {log}")
    assert before.items() <= uids(api).items()
    assert instance["InstanceId"] in network.instances()
    assert len(network.instances()) == 2

    # The claim is its own: deleted, it is drained and its instance terminated.
    api.delete(f"{CLAIMS}/{left_by_karpenter.CLAIM}")

    def gone():
        kubelets.turn()
        return instance["InstanceId"] not in network.instances()

    api.wait(gone, timeout=90, what=f"the instance of Karpenter's claim to be terminated; see {log}")
    assert "Traceback" not in log.read_text()

    kept = {name: uid for name, uid in uids(api).items() if name[0] != PODS}
    # As the first of the commands does with its pod.
    stop()
    for command in commands(GUIDE, "## Back"):
        user.run(command)
    assert kept.items() <= uids(api).items()
    # Karpenter has none on its pools, and takes off none: one that is deleted would stay for ever.
    assert not [pool for pool in api.list(left_by_karpenter.POOLS) if pool["metadata"].get("finalizers")]
    back = api.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]
    assert back["image"].startswith("mirror.example/karpenter/controller")
    assert "awsnodetemplates.karpenter.k8s.aws" in {each["metadata"]["name"] for each in api.list(CRDS)}

    for release in ("karpenter", "karpenter-crd"):
        user.run(f"helm uninstall {release} --namespace {NAMESPACE}")
    assert kept.items() <= uids(api).items()


@pytest.mark.parametrize(
    "repository", ["public.ecr.aws/karpenter/controller", "mirror.example/karpenter/controller"]
)
def test_an_upgrade_that_would_run_karpenters_image_is_refused_with_what_to_do(charts, repository):
    values = {"settings": {"clusterName": "demo"}, "controller": {"image": {"repository": repository}}}
    with pytest.raises(HelmFailed, match=r"is Karpenter's controller; hint: .*--reset-then-reuse-values"):
        charts.run("template", "karpenter", CHART, *charts.values(values))


def test_an_upgrade_with_karpenters_own_defaults_for_values_is_refused(charts, charts_of_karpenter):
    values = yaml.safe_load((charts_of_karpenter / "karpenter" / "values.yaml").read_text())
    values["settings"]["clusterName"] = "demo"
    with pytest.raises(HelmFailed, match="is Karpenter's controller"):
        charts.run("template", "karpenter", CHART, *charts.values(values))


def leaves(values, path=""):
    for key, value in values.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, dict) and value:
            yield from leaves(value, name)
        else:
            yield name, value


def differences(theirs, ours):
    """Values of Karpenter's chart that ours lacks, or that it gives another default."""
    here = dict(leaves(ours))
    return {name for name, value in leaves(theirs) if name not in here or here[name] != value}


#: Of a patch release after the module.
LATER = {"settings.awsFeatureGates"}


def test_the_charts_page_lists_what_differs_from_karpenters_chart(charts_of_karpenter):
    theirs = yaml.safe_load((charts_of_karpenter / "karpenter" / "values.yaml").read_text())
    ours = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = [
        line.split("`")[1]
        for line in (CHART / "README.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    assert rows == sorted(rows)
    found = differences(theirs, ours)
    unlisted = {name for name in found if not any(f"{name}.".startswith(f"{row}.") for row in rows)}
    assert unlisted == set()
    idle = {row for row in rows if not any(f"{name}.".startswith(f"{row}.") for name in found)}
    assert idle == LATER


def test_all_values_of_karpenters_chart_are_accepted(charts, charts_of_karpenter):
    values = yaml.safe_load((charts_of_karpenter / "karpenter" / "values.yaml").read_text())
    values["settings"] |= {"clusterName": "demo", "awsFeatureGates": {"nodeClassCEL": False}}
    values["controller"]["image"] = {"repository": "r.example/nodeless", "tag": "1"}
    made = charts.render(values)
    assert made["Deployment", NAMESPACE, "karpenter"]["spec"]["replicas"] == 2
