"""Commands that cannot read the cluster say what was in the way, once, and what to do."""

import asyncio

import pytest
import typer
import yaml
from typer.testing import CliRunner

from nodeless.cli import live_cluster
from nodeless.cli.commands import inputs
from nodeless.cli.commands.files import Offer
from nodeless.cli.kubeconfig import ClusterUnreadable
from nodeless.cli.main import app
from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from nodeless.cloudprovider.billing.terms import terms_of
from nodeless.explain.price_terms import PriceTerms
from nodeless.kube.errors import ApiError
from tests.disruption.world import a_node_pool, cluster, node_of

NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "gone",
    "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "me"}}],
    "clusters": [{"name": "gone", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "me", "user": {}}],
}


@pytest.fixture
def kubeconfig(tmp_path):
    """Of a cluster whose API server is not there any more."""
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(NOWHERE))
    return path


@pytest.mark.parametrize(
    "command",
    [("plan",), ("why", "shop/web"), ("drift", "-"), ("sweep", "--cluster", "demo", "--finalizers")],
    ids=lambda command: command[0],
)
def test_a_kubeconfig_that_is_not_there_is_named_by_its_option(command, tmp_path):
    path = tmp_path / "kubeconfig"
    result = CliRunner().invoke(app, [*command, "--kubeconfig", str(path)])
    assert result.exit_code == 2
    assert f"--kubeconfig {path}: there is no such file" in result.output


def test_an_api_server_that_does_not_answer_is_told_once(kubeconfig, monkeypatch):
    monkeypatch.setattr(live_cluster, "_GRACE", 1.0)
    result = CliRunner().invoke(app, ["plan", "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 2
    told = result.output.splitlines()[-1]
    assert told.startswith("nodeless: cannot watch ")
    assert told.count("cannot watch") == 1
    assert " more); hint: check the kubeconfig's context, and the network route to its API server" in told


@pytest.mark.cluster
def test_a_namespace_without_the_controllers_settings_is_named(control_plane, namespace):
    options = ["--kubeconfig", str(control_plane.kubeconfig), "--controller-namespace", namespace]
    result = CliRunner().invoke(app, ["drift", "--removed", "Provisioner/default", *options])
    assert result.exit_code == 2
    hint = "hint: --controller-namespace says where the controller is"
    assert f"no ConfigMap {namespace}/karpenter-global-settings; {hint}" in result.output


class WithoutConfigMap:
    """The API server of a cluster that runs Karpenter v1, whose settings are environment variables."""

    async def get(self, _path):
        raise ApiError(404, "NotFound", "it is not found")


def test_a_cluster_without_the_config_map_has_the_settings_of_the_environment(monkeypatch):
    monkeypatch.setenv("CLUSTER_NAME", "demo")
    settings = asyncio.run(live_cluster.read_settings(WithoutConfigMap(), "karpenter"))
    assert settings.cluster_name == "demo"

    monkeypatch.delenv("CLUSTER_NAME")
    wanted = r"no ConfigMap karpenter/.*without the ConfigMap, set CLUSTER_NAME"
    with pytest.raises(ClusterUnreadable, match=wanted):
        asyncio.run(live_cluster.read_settings(WithoutConfigMap(), "karpenter"))


class Serving:
    """The API server of a cluster whose group of Karpenter's pools has these versions."""

    def __init__(self, *versions):
        self.versions = versions

    async def get(self, path):
        if not self.versions:
            raise ApiError(404, "NotFound", "it is not found")
        group = path.removeprefix("/apis/")
        versions = [{"groupVersion": f"{group}/{each}", "version": each} for each in self.versions]
        return {"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": versions}


@pytest.mark.parametrize(
    ("versions", "told"),
    [(("v1beta1",), True), (("v1", "v1beta1"), False), (("v1alpha5", "v1"), False), ((), False)],
)
def test_pools_of_v1beta1_which_are_read_from_files_alone_are_not_passed_over_in_silence(versions, told):
    found = asyncio.run(live_cluster.older_pools(Serving(*versions)))
    assert ("pools are left out: the cluster serves karpenter.sh/v1beta1" in found) == told
    assert ("hint: kubectl get nodepools,ec2nodeclasses" in found) == told


def test_a_cluster_of_another_region_is_not_planned_by_the_bundled_catalog(capsys):
    pool = a_node_pool()
    seen = cluster(pool, node_of(pool, "a", zone="eu-west-1a"))
    sold = bundled_catalog()
    offline = inputs.without_aws(inputs.Source(), Offer(sold, sold.all_zones[:3]), [], {})
    with pytest.raises(typer.Exit) as ended:
        offline(seen, terms_of(PriceTerms()))
    assert ended.value.exit_code == 2
    told = capsys.readouterr().err
    assert (
        "the catalog of us-east-1 has none of the cluster's zones (eu-west-1a); hint: give --catalog" in told
    )
