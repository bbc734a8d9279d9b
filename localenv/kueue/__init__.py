"""Kueue's real controller and the definitions that it needs, from its Go module.

The definition of ProvisioningRequest is Cluster Autoscaler's, from the module of its API, which Kueue
requires.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from localenv.cache import get_or_make, source_digest
from localenv.golang import (
    GoProgram,
    built_with_definitions,
    fetch_module,
    required_go,
    required_version,
    toolchain,
)
from localenv.kubernetes import KubernetesApi, is_established
from localenv.ports import free_port
from localenv.processes import Process, Processes
from localenv.progress import Report

_SOURCE = Path(__file__).parent / "source"
_MODULE = "sigs.k8s.io/kueue"
_API = "k8s.io/autoscaler/cluster-autoscaler/apis"
NAMESPACE = "kueue-system"
_SECRET = "kueue-webhook-server-cert"
_SERVICE = {"name": "kueue-webhook-service", "namespace": NAMESPACE, "path": "/convert"}
_START_SECONDS = 60.0
_REQUESTS = "config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml"


def kueue_program() -> GoProgram:
    """Kueue's controller."""
    version = required_version(_SOURCE, _MODULE)
    return GoProgram(f"Kueue {version}", _SOURCE, f"{_MODULE}/cmd/kueue", "kueue")


def kueue(report: Report) -> Path:
    """A folder with the program and, below `crds`, its CRDs; built once.

    Raises:
        ToolchainMissing: There is no Go to build with.
        BuildFailed: The build failed.
    """
    return built_with_definitions(kueue_program(), _MODULE, "config/components/crd/bases", report)


def provisioning_request_definition(report: Report) -> dict[str, object]:
    """Cluster Autoscaler's definition of ProvisioningRequest; fetched once.

    Raises:
        ToolchainMissing: There is no Go to fetch with.
        BuildFailed: The module cannot be fetched.
    """

    def make(folder: Path) -> None:
        go = toolchain(required_go(_SOURCE), "the API of provisioning requests", report)
        shutil.copy(fetch_module(go, _SOURCE, _API) / _REQUESTS, folder / "definition.yaml")

    made = get_or_make(f"provisioning-requests-{source_digest(_SOURCE)}", make, report)
    document: dict[str, object] = yaml.safe_load((made / "definition.yaml").read_text())
    return document


@contextmanager
def running_kueue(api: KubernetesApi, kubeconfig: Path, built: Path, directory: Path) -> Iterator[Process]:
    """Run Kueue's controller with its definitions, for Jobs alone and without its webhooks.

    Its webhooks would set defaults: what it queues has to be suspended and to name its queue by itself.

    Args:
        api: An administrator's client.
        kubeconfig: An administrator's access.
        built: As `kueue` gives it.
        directory: Gets its configuration, certificates and log.
    """
    definitions = [_definition(file) for file in sorted((built / "crds").glob("*.yaml"))]
    for manifest in (*definitions, *_unused_webhooks()):
        api.apply(manifest)
    for manifest in definitions:
        api.wait(api.path_of(manifest), is_established)
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": _SECRET, "namespace": NAMESPACE}})
    certificates = directory / "certificates"
    certificates.mkdir(parents=True)
    (directory / "configuration.yaml").write_text(yaml.safe_dump(_configuration(certificates)))
    processes = Processes(directory)
    try:
        process = processes.start(
            "kueue",
            [built / "kueue", "--config", directory / "configuration.yaml"],
            cwd=directory,
            environment={"PATH": os.environ.get("PATH", ""), "HOME": str(directory)}
            | {"KUBECONFIG": str(kubeconfig), "NO_PROXY": "127.0.0.1,localhost"},
        )
        secret = f"/api/v1/namespaces/{NAMESPACE}/secrets/{_SECRET}"
        processes.wait_until(
            lambda: bool(api.get(secret).get("data")), what="Kueue's certificates", timeout=_START_SECONDS
        )
        # A kubelet would mount them.
        for name, value in api.get(secret)["data"].items():
            (certificates / name).write_bytes(base64.b64decode(value))
        yield process
    finally:
        processes.stop()


def _definition(file: Path) -> dict[str, Any]:
    """A definition that names Kueue's webhook for older versions, which nothing here asks for.

    Kueue starts once it has put its certificate into each of these and into its two configurations.
    """
    manifest: dict[str, Any] = yaml.safe_load(file.read_text())
    if len(manifest["spec"]["versions"]) > 1:
        webhook = {"clientConfig": {"service": _SERVICE}, "conversionReviewVersions": ["v1"]}
        manifest["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return manifest


def _unused_webhooks() -> Iterator[dict[str, Any]]:
    nothing = {"apiGroups": ["unused.example"], "apiVersions": ["v1"], "operations": ["CREATE"]}
    for kind in ("Validating", "Mutating"):
        hook = {
            "name": "unused.kueue.x-k8s.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "clientConfig": {"service": _SERVICE},
            "rules": [nothing | {"resources": ["unused"]}],
        }
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": f"kueue-{kind.lower()}-webhook-configuration"},
            "webhooks": [hook],
        }


def _configuration(certificates: Path) -> dict[str, object]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": free_port(), "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": "kueue-webhook-service",
            "webhookSecretName": _SECRET,
        },
        "integrations": {"frameworks": ["batch/job"]},
        "featureGates": {"VisibilityOnDemand": False},
    }
