"""An environment leaves no process and no file behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localenv.aws import LocalAws
from localenv.environment import Environment, EnvironmentFailed, Options
from localenv.kubernetes import KubernetesApi
from tests.environment.heard import Heard
from tests.environment.traces import alive, descendants, shared_memory

pytestmark = pytest.mark.environment
ROOT = Path(__file__).parents[2]


@contextmanager
def leaving_nothing(directory: Path) -> Iterator[None]:
    """Fail when processes of this one or files in `directory` are left afterwards."""
    processes = descendants()
    yield
    assert alive(descendants() - processes) == []
    assert [*directory.rglob("*")] == []


class Command:
    """`python -m localenv up` as started from a terminal: a process group of its own."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.home = directory / "temporary"
        self.home.mkdir()
        self._output, self._told = directory / "output", directory / "messages"
        with self._output.open("wb") as output, self._told.open("wb") as told:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "localenv", "up", *arguments],
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(self.home)},
                stdout=output,
                stderr=told,
                start_new_session=True,
            )

    def told(self) -> str:
        """What it said so far."""
        return self._told.read_text()

    def variables(self) -> dict[str, str]:
        """What it has printed for a shell."""
        lines = self._output.read_text().splitlines()
        return dict(line.removeprefix("export ").split("=", 1) for line in lines)

    def wait(self, text: str) -> None:
        """Wait until it has said something."""
        deadline = time.monotonic() + 400
        while text not in self.told():
            assert self.process.poll() is None, self.told()
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.05)

    def leaves_nothing_after(self, number: signal.Signals) -> None:
        """Send a signal as a terminal does, to the whole group, and look at what is left of it all."""
        started = descendants(self.process.pid)
        (memory,) = shared_memory(started)
        os.killpg(self.process.pid, number)
        assert self.process.wait(timeout=240) == 130, self.told()
        assert alive(started) == []
        assert not memory.exists()
        assert [*self.home.rglob("*")] == []
        assert self.told().splitlines()[-1] == "localenv: interrupted; everything was stopped"
        assert "Traceback" not in self.told()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Start the command; what a failed test leaves of it is killed."""
    commands: list[Command] = []

    def start(*arguments: str) -> Command:
        commands.append(Command(tmp_path, *arguments))
        return commands[-1]

    yield start
    for command in commands:
        command.process.kill()
        command.process.wait()


def test_stop_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    before = descendants()
    with leaving_nothing(tmp_path):
        environment = Environment.start(tmp_path, report=Heard(), options=Options(with_stack=False))
        (memory,) = shared_memory(descendants() - before)
        assert memory.is_dir()
        environment.stop()
        environment.stop()  # does nothing
    assert not memory.exists()


def test_a_start_that_fails_half_way_leaves_no_process_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: LocalAws, **_identity: object) -> None:
        raise ValueError(f"{self.endpoint_url} takes no cluster")

    monkeypatch.setattr(LocalAws, "set_cluster", refuse)
    with leaving_nothing(tmp_path), pytest.raises((EnvironmentFailed, ValueError), match="takes no cluster"):
        Environment.start(tmp_path, report=Heard(), options=Options(with_stack=False))


def test_up_prints_how_to_use_it_and_ctrl_c_takes_everything_down(up: Callable[..., Command]) -> None:
    command = up()
    command.wait("press Ctrl-C to stop it")
    variables = command.variables()
    api = KubernetesApi.from_kubeconfig(variables["KUBECONFIG"])
    assert len(api.list("/api/v1/namespaces/karpenter/pods")) == 2
    api.close()
    assert variables["AWS_ENDPOINT_URL"].startswith("http://127.0.0.1:")
    command.leaves_nothing_after(signal.SIGINT)


def test_ctrl_c_while_the_stack_goes_up_takes_everything_down(up: Callable[..., Command]) -> None:
    command = up()
    command.wait("kubelets:")  # is done, the stack is next
    command.leaves_nothing_after(signal.SIGINT)


def test_sigterm_does_as_ctrl_c(up: Callable[..., Command]) -> None:
    command = up("--no-stack")
    command.wait("press Ctrl-C to stop it")
    command.leaves_nothing_after(signal.SIGTERM)
