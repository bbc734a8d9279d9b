"""Kueue's real controller and the definitions that it needs, from its Go module.

The definition of ProvisioningRequest is Cluster Autoscaler's, from the module of its API, which Kueue
requires.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from localenv.cache import cached, source_digest
from localenv.golang import (
    GoProgram,
    build,
    fetch_module,
    module_folder,
    required_go,
    required_version,
    toolchain,
)
from localenv.progress import Report

_SOURCE = Path(__file__).parent / "source"
_MODULE = "sigs.k8s.io/kueue"
_API = "k8s.io/autoscaler/cluster-autoscaler/apis"
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
    program = kueue_program()

    def make(folder: Path) -> None:
        go = toolchain(required_go(program.source), program.title, report)
        build(program, folder, report)
        kinds = module_folder(go, program.source, _MODULE) / "config" / "components" / "crd" / "bases"
        shutil.copytree(kinds, folder / "crds")

    return cached(f"kueue-{source_digest(_SOURCE)}", make, report)


def provisioning_request_definition(report: Report) -> dict[str, object]:
    """Cluster Autoscaler's definition of ProvisioningRequest; fetched once.

    Raises:
        ToolchainMissing: There is no Go to fetch with.
        BuildFailed: The module cannot be fetched.
    """

    def make(folder: Path) -> None:
        go = toolchain(required_go(_SOURCE), "the API of provisioning requests", report)
        shutil.copy(fetch_module(go, _SOURCE, _API) / _REQUESTS, folder / "definition.yaml")

    made = cached(f"provisioning-requests-{source_digest(_SOURCE)}", make, report)
    document: dict[str, object] = yaml.safe_load((made / "definition.yaml").read_text())
    return document
