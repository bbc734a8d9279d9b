"""Starts again what was killed under a running environment, and says so in one line.

The programs of the control plane and the kubelets keep nothing in memory that they could
not read again, so they are restarted. The local AWS does: when it ends, what it
held is gone, and only a new environment helps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubelets.launcher import Kubelets
from localenv.processes import NotReady, ProcessDied, Processes
from localenv.progress import Report

_LOOK_SECONDS = 0.3


class Supervisor:
    """A thread that looks after the processes; it may be given another `say` at any time."""

    def __init__(self, control_plane: ControlPlane, aws: LocalAws, kubelets: Kubelets, say: Report) -> None:
        self.say = say
        self._control_plane = control_plane
        self._aws = aws
        self._kubelets = kubelets
        self._aws_lost = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking; afterwards processes may be ended on purpose."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            try:
                self._look()
            except (ProcessDied, NotReady) as error:
                self.say(f"the environment is broken: {error}; hint: stop it and start it again")
                return

    def _look(self) -> None:
        self._heal(self._control_plane.processes, self._control_plane.heal)
        self._heal(self._kubelets.processes, self._kubelets.restart)
        deaths = self._aws.processes.deaths()
        if deaths and not self._aws_lost:
            self._aws_lost = True
            self.say(
                f"{_describe_end(deaths[0])} and all it held is gone; hint: stop and start the environment"
            )

    def _heal(self, processes: Processes, heal: Callable[[], object]) -> None:
        deaths = processes.deaths()
        if not deaths:
            return
        began = time.monotonic()
        heal()
        for death in deaths:
            self.say(f"{_describe_end(death)}: started again, works after {time.monotonic() - began:.1f} s")


def _describe_end(death: ProcessDied) -> str:
    """`etcd was killed by SIGKILL`, without its log."""
    return str(death).partition(";")[0]
