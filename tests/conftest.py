"""What tests of several rooms share: one real control plane a session, started when first asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from infra.local.control_plane import ControlPlane
from infra.local.kubernetes_api import KubernetesApi
from tests import rights


@pytest.fixture(autouse=True)
def logging_as_at_the_start() -> Iterator[None]:
    """A command of `nodeless` sets up the process's logging; the next test hears all that is logged again."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("control-plane")
    with ControlPlane.start(
        directory, proxy_socket=directory / "proxy", audited_users=(rights.USER,)
    ) as plane:
        yield plane


@pytest.fixture(scope="session")
def api(control_plane: ControlPlane) -> Iterator[KubernetesApi]:
    client = control_plane.client()
    yield client
    client.close()


@pytest.fixture
def namespace(api: KubernetesApi) -> Iterator[str]:
    """A namespace of the test's own, with its default service account; deleted afterwards."""
    made = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}})
    name = made["metadata"]["name"]
    api.wait(f"/api/v1/namespaces/{name}/serviceaccounts/default")
    yield name
    api.delete(f"/api/v1/namespaces/{name}")
    # Nothing is created in it from now on; the next test's controller must not find its pods pending.
    for pod in api.list(f"/api/v1/namespaces/{name}/pods"):
        api.delete(api.path_of(pod), grace_seconds=0, missing_ok=True)
