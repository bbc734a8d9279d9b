"""The environment of these tests: real control plane, local AWS, the kubelets; started once a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubelets import Kubelets
from tests.localenv.kubelets.world import IMAGE, World, make_aws


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("data-plane")
    socket = directory / "proxy"
    with (
        ControlPlane.start(directory / "control-plane", proxy_socket=socket) as plane,
        LocalAws.start(directory / "aws") as aws,
    ):
        api = plane.client()
        subnets, image = make_aws(aws, plane, api)
        with Kubelets.start(
            directory / "kubelets", plane, aws, boot_seconds=1.0, proxy_socket=socket, executed_images=[IMAGE]
        ) as kubelets:
            yield World(plane, aws, kubelets, api, subnets, image)
        api.close()


@pytest.fixture
def namespace(world: World) -> Iterator[str]:
    """A namespace of the test's own that no Fargate profile selects."""
    yield from _namespace(world, "test-")


@pytest.fixture
def fargate_namespace(world: World) -> Iterator[str]:
    """A namespace of the test's own that the Fargate profile selects."""
    yield from _namespace(world, "fargate-")


def _namespace(world: World, prefix: str) -> Iterator[str]:
    made = world.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": prefix}})
    name = made["metadata"]["name"]
    world.api.wait(f"/api/v1/namespaces/{name}/serviceaccounts/default")
    yield name
    world.api.delete(f"/api/v1/namespaces/{name}")
