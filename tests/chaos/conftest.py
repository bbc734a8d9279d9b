"""A world to ill-treat, on the session's control plane and an AWS of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from nodeless.api.crds import all_crds
from nodeless.api.kinds import EC2_NODE_CLASS, NODE_POOL
from tests.chaos.world import World
from tests.controllers.conftest import clear, served
from tests.controllers.process import a_cluster
from tests.controllers.world import CLAIMS, POOLS, TEMPLATES, Network
from tests.rights import nothing_refused

REPORTS = pytest.StashKey[dict[str, str]]()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """What the watcher of invariants saw at worst, for each world of the run."""
    for name, report in config.stash.get(REPORTS, {}).items():
        terminalreporter.section(name)
        terminalreporter.write_line(report)


@contextmanager
def a_world(
    plane: ControlPlane, api: KubernetesApi, aws: LocalAws, directory: Path, request: pytest.FixtureRequest
) -> Iterator[World]:
    """Kubelets run and invariants are watched; afterwards nothing is left, and no invariant was broken."""
    aws.reset()
    # Harder than on EC2: nodes come under names that others have just had.
    aws.reuse_addresses()
    a_cluster(plane, aws, Network(aws))
    for crd in all_crds():
        api.apply(crd)
    for path in (CLAIMS, POOLS, TEMPLATES, NODE_POOL.path(), EC2_NODE_CLASS.path()):
        api.wait(lambda path=path: served(api, path), what=f"{path} to be served")  # type: ignore[misc]
    found = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "chaos-"}})
    namespace = found["metadata"]["name"]
    api.wait(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    made = World(plane, aws, namespace, directory)
    try:
        with nothing_refused(plane), made.machines, made.watcher:
            yield made
    finally:
        reports = request.config.stash.setdefault(REPORTS, {})
        reports[request.node.name] = made.report()
        aws.set_faults()
        _clear(api, namespace)
    assert not made.broken
    assert made.watcher.found.looks


@pytest.fixture
def world(
    control_plane: ControlPlane,
    api: KubernetesApi,
    aws_process: LocalAws,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[World]:
    """A world for one test."""
    with a_world(control_plane, api, aws_process, tmp_path, request) as made:
        yield made


def _clear(api: KubernetesApi, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}"
    for found in api.list(f"{path}/deployments"):
        api.delete(f"{path}/deployments/{found['metadata']['name']}", missing_ok=True)
    api.wait(lambda: not api.list(f"{path}/replicasets"), what="the replica sets to go")
    for kind in (NODE_POOL, EC2_NODE_CLASS):
        for found in api.list(kind.path()):
            where = kind.path(found["metadata"]["name"])
            api.patch(where, {"metadata": {"finalizers": None}})
            api.delete(where, missing_ok=True)
    clear(api, namespace)
    api.delete(f"/api/v1/namespaces/{namespace}")
