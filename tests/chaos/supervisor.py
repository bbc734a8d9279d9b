"""Starts a leader, and the next one whenever it was killed: a pod's restarts, without the wait.

The leader is the real controller in a process of its own; its settings come by environment variables, as
always. What is to happen to it stands in one folder:

* `boundaries`: where leaders died, a name a line. At a boundary that is not in it yet the leader appends
  the name and kills itself (SIGKILL: nothing is flushed, no lease released);
* `every`: a leader dies also after so many instructions, whatever they are;
* `stop-at`: at this boundary the leader stops (SIGSTOP), as on a machine that is suspended, instead;
* `clock`: by how many seconds its clock is wrong; read again at SIGUSR1;
* `pid`: written here, the process that leads.

A leader that ends in any other way ends the supervisor, with the same exit code.

Run: python -m tests.chaos.supervisor FOLDER
"""

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from nodeless.app.controller import LeadershipLostError, run_controller
from nodeless.app.failpoints import Moment, boundary
from nodeless.app.process_settings import ProcessSettings
from nodeless.model.instructions import Instruction, PublishEvent


class Deadly:
    """A failpoint that kills, or stops, the process."""

    def __init__(self, folder: Path) -> None:
        self._file, stopping = folder / "boundaries", folder / "stop-at"
        self._done = set(self._file.read_text().splitlines())
        self._every = int((folder / "every").read_text())
        self._stop_at = stopping.read_text() if stopping.exists() else ""
        self._count = 0

    def __call__(self, moment: Moment, instruction: Instruction) -> None:
        name = boundary(moment, type(instruction))
        if name == self._stop_at:
            self._stop_at = ""
            self._note(name)
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        if moment == "after" and not isinstance(instruction, PublishEvent):
            self._count += 1
        if name not in self._done or (self._every and self._count >= self._every):
            self._note(name)
            os.kill(os.getpid(), signal.SIGKILL)

    def _note(self, name: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{name}\n")


def bend_time(file: Path) -> None:
    """Let the wall clock be wrong by what the file says; the monotonic one is never wrong."""
    right, wrong_by = time.time, [0.0]

    def read(*_signal: object) -> None:
        wrong_by[0] = float(file.read_text())

    read()
    signal.signal(signal.SIGUSR1, read)
    time.time = lambda: right() + wrong_by[0]


def lead(folder: Path) -> int:
    """One life; its exit code."""
    (folder / "pid").write_text(str(os.getpid()))
    bend_time(folder / "clock")
    try:
        with suppress(asyncio.CancelledError):
            asyncio.run(run_controller(ProcessSettings.from_environment(), Deadly(folder)))
    except LeadershipLostError as error:
        print(f"leader: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def main() -> int:
    """Life after life."""
    folder = Path(sys.argv[1])
    while True:
        child = os.fork()
        if not child:
            # The child must never run on in this loop.
            code = 1
            try:
                code = lead(folder)
            except BaseException as error:
                print(f"leader: {error!r}", file=sys.stderr)  # noqa: T201
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
