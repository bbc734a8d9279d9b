"""The charts on a real API server: what Helm installs, upgrades, takes over and leaves."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from tests.charts.conftest import CHART, DEFINITIONS, ROOT, Helm, HelmFailed

pytestmark = pytest.mark.cluster

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_AUTHORITY = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()


@pytest.fixture(scope="module")
def own_control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of these tests' own: they install and remove what others need."""
    with ControlPlane.start(tmp_path_factory.mktemp("charts")) as plane:
        yield plane


@pytest.fixture
def cluster(own_control_plane: ControlPlane) -> Iterator[KubernetesApi]:
    client = own_control_plane.client()
    yield client
    client.close()


@pytest.fixture
def installer(
    own_control_plane: ControlPlane, cluster: KubernetesApi, helm_program: Path, tmp_path: Path
) -> Iterator[Helm]:
    """Helm on that cluster; its releases are gone after the test, and the definitions that it leaves."""
    helm = Helm(helm_program, tmp_path, own_control_plane.kubeconfig)
    yield helm
    for release in yaml.safe_load(helm.run("list", "--all-namespaces", "--output", "yaml")):
        helm.run("uninstall", release["name"], "--namespace", release["namespace"])
    for definition in cluster.list(_CRDS):
        path = f"{_CRDS}/{definition['metadata']['name']}"
        cluster.delete(path)
        # After a failure the API server tries again after a time that doubles.
        cluster.wait_gone(path, timeout=240)


def install(helm: Helm, values: dict | None = None, *arguments: str) -> str:
    settings = {"clusterName": "demo", **((values or {}).get("settings") or {})}
    given = helm.values({**(values or {}), "settings": settings})
    where = ("--namespace", "karpenter", "--create-namespace")
    return helm.run("upgrade", "--install", "karpenter", CHART, *where, *given, *arguments)


def install_definitions(helm: Helm, *arguments: str) -> str:
    where = ("--namespace", "karpenter", "--create-namespace")
    return helm.run("upgrade", "--install", "karpenter-crd", DEFINITIONS, *where, *arguments)


def test_the_api_server_accepts_every_object(installer, cluster):
    install_definitions(installer)
    notes = install(installer)
    assert "kubectl delete nodepools,provisioners --all" in notes
    assert "needs a role by EKS Pod Identity" in notes
    deployment = cluster.get("/apis/apps/v1/namespaces/karpenter/deployments/karpenter")
    assert deployment["spec"]["replicas"] == 2
    served = {each["spec"]["names"]["kind"] for each in cluster.list(_CRDS)}
    assert {"NodePool", "NodeClaim", "EC2NodeClass", "Provisioner", "AWSNodeTemplate"} <= served


def test_an_upgrade_keeps_certificate_and_authority_of_the_running_controller(installer, cluster):
    install(installer)
    secret = "/api/v1/namespaces/karpenter/secrets/karpenter-cert"
    cluster.patch(secret, {"data": {"tls.crt": _AUTHORITY}})
    webhook = f"{_WEBHOOKS}/validation.webhook.karpenter.sh"
    change = {
        "webhooks": [{"name": "validation.webhook.karpenter.sh", "clientConfig": {"caBundle": _AUTHORITY}}]
    }
    cluster.patch(webhook, change, kind="strategic")
    install(installer, {"logLevel": "debug"})
    assert cluster.get(secret)["data"] == {"tls.crt": _AUTHORITY}
    assert cluster.get(webhook)["webhooks"][0]["clientConfig"]["caBundle"] == _AUTHORITY


def test_definitions_that_another_release_installed_are_taken_over(installer, cluster):
    """As those of a Karpenter that came with kubectl, or out of a chart's folder."""
    for file in sorted((ROOT / "controller" / "crds").glob("*.yaml")):
        cluster.create(yaml.safe_load(file.read_text()))
    with pytest.raises(HelmFailed, match=r"--take-ownership|cannot be imported"):
        install_definitions(installer)
    install_definitions(installer, "--take-ownership", "--force-conflicts")
    labels = cluster.get(f"{_CRDS}/nodepools.karpenter.sh")["metadata"]["labels"]
    assert labels["app.kubernetes.io/managed-by"] == "Helm"


def test_an_uninstall_of_the_definitions_leaves_them_and_every_pool(installer, cluster):
    install_definitions(installer)
    installer.run("uninstall", "karpenter-crd", "--namespace", "karpenter")
    assert cluster.get(f"{_CRDS}/nodepools.karpenter.sh")["metadata"]["name"] == "nodepools.karpenter.sh"


def test_an_uninstall_of_the_controller_leaves_no_webhook_behind(installer, cluster):
    install(installer)
    installer.run("uninstall", "karpenter", "--namespace", "karpenter")
    left = [each["metadata"]["name"] for each in cluster.list(_WEBHOOKS)]
    assert not [name for name in left if "karpenter" in name]
