"""Helm, and what it makes of the charts."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from localenv.binaries import helm

ROOT = Path(__file__).parents[2]
CHART, DEFINITIONS = ROOT / "charts" / "nodeless", ROOT / "charts" / "nodeless-crd"
Objects = dict[tuple[str, str, str], dict[str, Any]]
"""By kind, namespace (empty for the cluster's) and name."""


class HelmFailed(Exception):
    """Helm refused; with what it wrote."""


class Helm:
    """The real Helm on the charts of this checkout.

    Attributes:
        folder: For values and Helm's own files.
        kubeconfig: Of the cluster; none for what needs no cluster.
    """

    def __init__(self, program: Path, folder: Path, kubeconfig: Path | None = None) -> None:
        self._program, self.folder, self.kubeconfig = program, folder, kubeconfig

    def run(self, *arguments: str | Path) -> str:
        """What a command writes. Raises HelmFailed."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            **({"KUBECONFIG": str(self.kubeconfig)} if self.kubeconfig else {}),
        }
        done = subprocess.run(
            [self._program, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise HelmFailed(done.stderr)
        return done.stdout

    def values(self, values: Mapping[str, Any] | None) -> list[str]:
        """Arguments that give the chart these values."""
        file = self.folder / "values.yaml"
        file.write_text(yaml.safe_dump(dict(values or {})))
        return ["--values", str(file)]

    def render(self, values: Mapping[str, Any] | None = None, *, namespace: str = "karpenter") -> Objects:
        """The objects of a release named karpenter, of the cluster demo unless the values say otherwise."""
        settings = {"clusterName": "demo", **((values or {}).get("settings") or {})}
        given = self.values({**(values or {}), "settings": settings})
        return by_name(self.run("template", "karpenter", CHART, "--namespace", namespace, *given))


def by_name(text: str) -> Objects:
    """The objects of a stream of YAML documents."""
    found = [document for document in yaml.safe_load_all(text) if document]
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in found
    }


@pytest.fixture(scope="session")
def helm_program() -> Path:
    return helm()


@pytest.fixture
def charts(helm_program: Path, tmp_path: Path) -> Helm:
    """Helm without a cluster."""
    return Helm(helm_program, tmp_path)


@pytest.fixture
def rendered(charts: Helm) -> Callable[..., Objects]:
    return charts.render


def settings_of(objects: Objects) -> dict[str, str]:
    """The data of the controller's settings."""
    return dict(objects["ConfigMap", "karpenter", "karpenter-global-settings"]["data"])


def container_of(objects: Objects) -> dict[str, Any]:
    """The controller's container."""
    return dict(pod_of(objects)["containers"][0])


def pod_of(objects: Objects) -> dict[str, Any]:
    """The spec of the controller's pods."""
    return dict(objects["Deployment", "karpenter", "karpenter"]["spec"]["template"]["spec"])


def logging_of(objects: Objects) -> dict[str, Any]:
    """The document that says what is logged."""
    document: dict[str, Any] = json.loads(
        objects["ConfigMap", "karpenter", "config-logging"]["data"]["zap-logger-config"]
    )
    return document
