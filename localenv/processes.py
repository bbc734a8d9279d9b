"""Child processes of the local environment: started together, watched, and never left behind.

Each child runs in a session of its own (so Ctrl-C reaches the parent alone, which
then stops its children in order), writes to a log file, and is killed by the kernel
when its parent dies, even by SIGKILL (`PR_SET_PDEATHSIG`, see prctl(2)).

Two traps of that signal are handled here. The kernel sends it when the *thread* that
started the child ends, so all children are started by one thread that lives as long
as the process. And it is set by a short wrapper in the child, not by a `preexec_fn`,
which is unsafe in a program with threads.

What is started and when it is ready is the caller's: `control_plane`, `aws`, `kubelets`.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

#: For programs in Go: garbage is collected when twice of what is in use has come up, not once. An API server
#: takes some 6 % less processor time, and 70 MiB more after its start; with four times of it 10 %, and up to
#: 1.2 GiB in the end.
SELDOM_COLLECTED = {"GOGC": "200"}
#: Runs in the child: ask for the signal, leave when the parent is gone already, become the program.
_WRAPPER = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, {int(signal.SIGKILL)}, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"cannot run {{sys.argv[2]}}: {{error.strerror}}")
"""
_POLL_SECONDS = 0.05
#: A tenth of what others get (nice levels are steps of a quarter).
_WAY = 10
_AUTOGROUP_TRIES = 20
_AUTOGROUP_SECONDS = 0.1
_LAST_LINES = 12


class ProcessDied(RuntimeError):
    """A child ended although nobody stopped it.

    Attributes:
        name: Name of the child.
        returncode: Exit code, or minus the number of the signal that killed it.
        log: File with all it wrote.
        last_lines: The end of that file.
    """

    def __init__(self, name: str, returncode: int, log: Path) -> None:
        self.name = name
        self.returncode = returncode
        self.log = log
        self.last_lines = last_lines(log)
        super().__init__(f"{name} {_describe_end(returncode)}; its log {log} ends with:\n{self.last_lines}")


class NotReady(TimeoutError):
    """A condition did not come true in time."""


def last_lines(log: Path, count: int = _LAST_LINES) -> str:
    """The last `count` lines of a log file, indented; at most its last 16 KiB are read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16384))
            text = file.read().decode(errors="replace")
    except OSError:
        return "  (no log)"
    lines = text.splitlines()[-count:]
    return "\n".join(f"  {line}" for line in lines) or "  (empty)"


def spawn(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.STDOUT,
) -> subprocess.Popen[bytes]:
    """Start a program that the kernel kills when this process ends.

    Args:
        command: Program and arguments.
        cwd: Its working directory.
        environment: Its whole environment; this process's own when None.
        stdout: As `subprocess.Popen` takes it.
        stderr: As `subprocess.Popen` takes it; joined with stdout by default.

    Raises:
        FileNotFoundError: `cwd` does not exist.
    """
    wrapped = [sys.executable, "-I", "-S", "-c", _WRAPPER, str(os.getpid()), *map(str, command)]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            wrapped,
            cwd=cwd,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )

    return _spawner.run(start)


@dataclass
class Process:
    """One child and what is needed to start it again."""

    name: str
    command: tuple[str, ...]
    cwd: Path
    log: Path
    environment: Mapping[str, str] | None
    stop_signal: signal.Signals
    stop_seconds: float
    popen: subprocess.Popen[bytes] = field(repr=False)

    @property
    def pid(self) -> int:
        return self.popen.pid

    def death(self) -> ProcessDied | None:
        """How it ended, or None while it runs."""
        code = self.popen.poll()
        return None if code is None else ProcessDied(self.name, code, self.log)

    def give_way(self) -> None:
        """Have the other processes go first where the processor is short.

        Linux shares it among sessions first, and each child has its own: what counts is the priority of the
        session (autogroups, see sched(7)). Systems without them have none to give.
        """
        for _ in range(_AUTOGROUP_TRIES):
            try:
                Path(f"/proc/{self.pid}/autogroup").write_text(f"{_WAY}\n")
            except BlockingIOError:  # ordinary users may do so every tenth of a second
                time.sleep(_AUTOGROUP_SECONDS)
            except OSError:
                return
            else:
                return

    def stop(self) -> None:
        """End it and all of its process group, by SIGKILL when the gentle signal does not do."""
        if self.popen.poll() is None and self.stop_signal is not signal.SIGKILL:
            _signal_group(self.pid, self.stop_signal)
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(self.stop_seconds)
        _signal_group(self.pid, signal.SIGKILL)
        self.popen.wait()


class Processes:
    """The children of one part of the environment, in the order they were started."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._children: dict[str, Process] = {}

    def __iter__(self) -> Iterator[Process]:
        return iter(self._children.values())

    def __getitem__(self, name: str) -> Process:
        return self._children[name]

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        cwd: Path,
        environment: Mapping[str, str] | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        stop_seconds: float = 5.0,
    ) -> Process:
        """Start a child that logs to `<logs>/<name>.log`.

        Args:
            name: What to call it; unique in this group.
            command: Program and arguments.
            cwd: Its working directory.
            environment: Its whole environment; this process's own when None.
            stop_signal: What asks it to end.
            stop_seconds: How long it may take to do so before SIGKILL.

        Raises:
            ValueError: A child of that name exists.
        """
        if name in self._children:
            raise ValueError(f"process {name!r} is already started; hint: restart({name!r})")
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self._logs / f"{name}.log"
        words = tuple(map(str, command))
        child = _launch(words, cwd, environment, log)
        process = Process(name, words, cwd, log, environment, stop_signal, stop_seconds, child)
        self._children[name] = process
        return process

    def restart(self, name: str) -> Process:
        """Stop the child `name` if it still runs and start it again; its log goes on."""
        process = self._children[name]
        process.stop()
        process.popen = _launch(process.command, process.cwd, process.environment, process.log)
        return process

    def deaths(self) -> list[ProcessDied]:
        """How each child that ended by itself ended, in the order of starting."""
        return [death for child in self._children.values() if (death := child.death()) is not None]

    def check(self) -> None:
        """Raise for the first child that ended by itself.

        Raises:
            ProcessDied: With its name, exit code and last log lines.
        """
        for death in self.deaths():
            raise death

    def wait_until(self, condition: Callable[[], bool], *, what: str, timeout: float) -> None:
        """Wait until `condition()` holds.

        Args:
            condition: Asked every 50 ms.
            what: Subject of the message when it does not, e.g. "kube-apiserver to be ready".
            timeout: Seconds.

        Raises:
            ProcessDied: A child of the group ended meanwhile.
            NotReady: The time is over.
        """
        deadline = time.monotonic() + timeout
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise NotReady(f"waited {timeout:.0f} s for {what}; hint: the logs are in {self._logs}")
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Stop all children, the last one started first."""
        while self._children:
            _, process = self._children.popitem()
            process.stop()


def _launch(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None, log: Path
) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        return spawn(command, cwd=cwd, environment=environment, stdout=file)


def _signal_group(pid: int, number: signal.Signals) -> None:
    # The leader may be gone while others of its group live: the group keeps the leader's number.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _describe_end(returncode: int) -> str:
    if returncode >= 0:
        return f"exited with code {returncode}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-returncode).name}"
    return f"was killed by signal {-returncode}"


class _Spawner:
    """The thread that starts all children; it must outlive them (see the module's text)."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[
            tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]
        ] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._owner = 0

    def run(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._owner != os.getpid():  # first use, or we are a fork and the thread stayed in the parent
                self._owner = os.getpid()
                threading.Thread(target=self._serve, name="process-spawner", daemon=True).start()
        answer: Future[subprocess.Popen[bytes]] = Future()
        self._requests.put((start, answer))
        return answer.result()

    def _serve(self) -> None:
        while True:
            start, answer = self._requests.get()
            try:
                answer.set_result(start())
            except BaseException as error:  # handed to the caller, who waits for it
                answer.set_exception(error)


_spawner = _Spawner()
