from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localenv.processes import NotReady, ProcessDied, Processes

#: A child that says it is up and then waits for its end.
WAITING = [sys.executable, "-u", "-c", "print('up'); import signal; signal.pause()"]


def eventually(condition: Callable[[], bool], what: str, timeout: float = 10.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout} s for {what}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that its parent has not looked at does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    group = Processes(tmp_path / "logs")
    yield group
    group.stop()


def test_a_child_logs_to_its_file(processes: Processes, tmp_path: Path) -> None:
    child = processes.start("waiter", WAITING, cwd=tmp_path)

    processes.wait_until(lambda: child.log.read_text() == "up\n", what="the child's line", timeout=10)
    assert child.log == tmp_path / "logs" / "waiter.log"


def test_a_killed_child_is_named_with_its_last_lines(processes: Processes, tmp_path: Path) -> None:
    child = processes.start("waiter", WAITING, cwd=tmp_path)
    processes.wait_until(lambda: "up" in child.log.read_text(), what="the child's line", timeout=10)
    os.kill(child.pid, signal.SIGKILL)
    eventually(lambda: bool(processes.deaths()), "the death to be seen")

    with pytest.raises(ProcessDied, match="waiter was killed by SIGKILL") as death:
        processes.check()

    assert death.value.name == "waiter"
    assert death.value.last_lines == "  up"


def test_waiting_ends_when_a_child_dies(processes: Processes, tmp_path: Path) -> None:
    processes.start("failing", [sys.executable, "-c", "raise SystemExit('no such flag')"], cwd=tmp_path)

    with pytest.raises(ProcessDied, match=r"(?s)failing exited with code 1.*no such flag"):
        processes.wait_until(lambda: False, what="the impossible", timeout=30)


def test_waiting_ends_at_its_deadline(processes: Processes) -> None:
    with pytest.raises(NotReady, match=r"waited 0 s for the impossible; hint: "):
        processes.wait_until(lambda: False, what="the impossible", timeout=0.1)


def test_a_missing_program_is_reported_as_a_death(processes: Processes, tmp_path: Path) -> None:
    processes.start("missing", [tmp_path / "no-such-program"], cwd=tmp_path)

    with pytest.raises(
        ProcessDied, match=r"(?s)missing exited with code 1.*cannot run .*no-such-program: No such file"
    ):
        processes.wait_until(lambda: False, what="the impossible", timeout=30)


def test_a_restarted_child_is_another_process_of_the_same_name(processes: Processes, tmp_path: Path) -> None:
    before = processes.start("waiter", WAITING, cwd=tmp_path).pid

    after = processes.restart("waiter").pid

    assert after != before
    assert not alive(before)
    processes.check()


def test_children_are_stopped_in_reverse_order(processes: Processes, tmp_path: Path) -> None:
    farewell = (
        "import signal, sys\n"
        "def end(*_): open('order', 'a').write(sys.argv[1] + '\\n'); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); signal.pause()"
    )
    for name in ("first", "second", "third"):
        child = processes.start(name, [sys.executable, "-c", farewell, name], cwd=tmp_path)
        processes.wait_until(lambda child=child: "up" in child.log.read_text(), what=name, timeout=10)

    processes.stop()

    assert (tmp_path / "order").read_text().split() == ["third", "second", "first"]


def test_a_child_that_ignores_the_signal_is_killed(processes: Processes, tmp_path: Path) -> None:
    deaf = (
        "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nwhile 1: signal.pause()"
    )
    child = processes.start("deaf", [sys.executable, "-c", deaf], cwd=tmp_path, stop_seconds=0.2)
    processes.wait_until(lambda: "up" in child.log.read_text(), what="the child", timeout=10)

    processes.stop()

    assert not alive(child.pid)


def test_a_child_outlives_the_thread_that_asked_for_it(processes: Processes, tmp_path: Path) -> None:
    asking = threading.Thread(target=lambda: processes.start("waiter", WAITING, cwd=tmp_path))
    asking.start()
    asking.join()
    child = processes["waiter"]

    processes.wait_until(lambda: "up" in child.log.read_text(), what="the child", timeout=10)
    processes.check()


def test_no_child_survives_the_sigkill_of_its_parent(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from localenv.processes import Processes\n"
        f"group = Processes(Path({str(tmp_path)!r}))\n"
        f"child = group.start('waiter', {WAITING!r}, cwd=Path({str(tmp_path)!r}))\n"
        "group.wait_until(lambda: 'up' in child.log.read_text(), what='child', timeout=10)\n"
        "print(child.pid, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.kill()

    eventually(lambda: not alive(child), "the child to be gone")
