"""A cluster that was deleted outside of Pulumi: what refuses, and what ends the stack (docs/destroy.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pulumi_kubernetes as k8s
import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.pulumi import StackFailed
from tests.localenv.pulumi.conftest import Shop
from tests.localenv.pulumi.programs import in_cluster

pytestmark = pytest.mark.cluster

FORGET = "PULUMI_K8S_DELETE_UNREACHABLE"


@dataclass(frozen=True)
class Remembered:
    """What a stack knows of its cluster, whether it is still there or not."""

    endpoint: str
    kubeconfig: Path


@pytest.fixture
def orphan(tmp_path: Path, aws: LocalAws) -> Iterator[Shop]:
    """A stack with a ConfigMap and a chart, whose cluster is gone."""
    with ControlPlane.start(tmp_path / "control-plane") as plane:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_bytes(plane.kubeconfig.read_bytes())
        made = Shop(tmp_path, Remembered(plane.endpoint, kubeconfig), aws)

        def program() -> None:
            options = in_cluster(plane)
            k8s.core.v1.ConfigMap(
                "settings", metadata={"namespace": "default"}, data={"a": "b"}, opts=options
            )
            k8s.helm.v3.Release("balancer", chart="balancer", namespace="default", opts=options)

        made.program = program
        made.stack.up()
    yield made


def test_a_stack_whose_cluster_is_gone_refuses_with_the_way_out(orphan: Shop) -> None:
    for operation in (orphan.stack.destroy, orphan.stack.refresh):
        with pytest.raises(StackFailed, match=f"{FORGET}=true"):
            operation()


def test_a_release_of_a_cluster_that_is_gone_is_not_forgotten_by_a_destroy(
    orphan: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FORGET, "true")
    with pytest.raises(StackFailed, match="balancer"):
        orphan.stack.destroy()


def test_a_refresh_forgets_what_a_lost_cluster_had_and_the_destroy_goes_on(
    orphan: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FORGET, "true")
    assert orphan.stack.refresh()["delete"] == 2
    orphan.stack.destroy()
    assert orphan.stack.run("stack", "--show-urns").count("urn:") == 0
