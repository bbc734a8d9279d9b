"""Commands that cannot read the cluster say what was in the way, once, and what to do."""

import pytest
import yaml
from typer.testing import CliRunner

from nodeless.cli import live_cluster
from nodeless.cli.main import app

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
