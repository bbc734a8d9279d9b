"""The real engine on the local parts, with a small project of the tests' own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from localenv.pulumi import Stack
from localenv.pulumi.kubernetes.provider import KubernetesEndpoint

Program = Callable[[], None]


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane.start(tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture
def aws(aws_process: LocalAws) -> LocalAws:
    """The local AWS, with nothing in it."""
    aws_process.reset()
    return aws_process


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[KubernetesApi]:
    client = control_plane.client()
    yield client
    client.close()


class Shop:
    """A stack of the tests: the program may change between two operations."""

    def __init__(self, directory: Path, control_plane: KubernetesEndpoint, aws: LocalAws) -> None:
        root = directory / "root"
        root.mkdir()
        (root / "Pulumi.yaml").write_text(
            "name: shop\nruntime: python\nconfig:\n  color: {type: string, default: red}\n"
        )
        self.directory = directory
        self.program: Program = lambda: None
        self._arguments = (directory / "run", control_plane, aws)
        self._root = root
        self.stack = self.another()

    def another(self, *, plugins: Path | None = None, stack: str = "local", **config: str) -> Stack:
        """The same stack, as another process would open it; or one of another name."""
        settings = {f"shop:{key}": value for key, value in config.items()}
        return Stack(
            *self._arguments,
            stack=stack,
            config=settings,
            root=self._root,
            program=self._run,
            plugins=plugins,
        )

    def _run(self) -> None:
        self.program()


@pytest.fixture
def shop(tmp_path: Path, control_plane: ControlPlane, aws: LocalAws) -> Iterator[Shop]:
    made = Shop(tmp_path, control_plane, aws)
    yield made
    made.stack.destroy()


@pytest.fixture
def no_threads_left() -> Iterator[None]:
    """Fails a test that leaves threads of its own behind."""
    before = set(threading.enumerate())
    yield
    left = [
        thread
        for thread in threading.enumerate()
        if thread not in before and thread.name.startswith("pulumi-")
    ]
    assert not left
