"""Starts a leader, and the next one whenever it was killed: a pod's restarts, without the wait.

The leader is the real controller in a process of its own; its settings come by environment variables, as
always. What is to happen to it stands in one folder:

* `boundaries`: where leaders died, a name a line. At a boundary that is in it fewer times than `deaths` says
  the leader appends the name and kills itself (SIGKILL: nothing is flushed, no lease released);
* `stop-at`: at this boundary the leader stops (SIGSTOP), as on a machine that is suspended, instead;
* `clock`: by how many seconds its clock is wrong; read again at SIGUSR1;
* `patience`: seconds until a machine must have joined; read again at SIGUSR1;
* `disorder`: up to how many seconds late news come to it, each kind by another time, those of claims and
  nodes once more later; read again at SIGUSR1;
* `poison`: whether what is called so makes the leader fail (`tests.chaos.poison`); read again at SIGUSR1;
* `pid`: written here, the process that leads.

What EC2 tells of types and prices, which takes a leader some seconds of processor, is asked for once where
many leaders follow each other, and lent to each.

A leader that ends in any other way ends the supervisor, with the same exit code.

Run: python -m tests.chaos.supervisor FOLDER
"""

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
from botocore.loaders import create_loader

from nodeless.cloudprovider.aws import AwsProvider
from nodeless.disruption import repair_policy
from nodeless.kube import ApiClient, Reflector, Watched, cluster
from nodeless.kube.reflector import Failures
from nodeless.manager.manager import LeadershipLostError, run_controller
from nodeless.model.events import ClaimSeen, Event, NodeSeen
from nodeless.model.instructions import Instruction
from nodeless.operator.failpoints import Moment, boundaries, boundary
from nodeless.operator.process_settings import ProcessSettings
from nodeless.operator.timing import TIMING
from tests.chaos.poison import Poison
from tests.controllers.world import changeable
from tests.lent_facts import fetch, lend

#: The exit code of a leader whose lease another one took.
LOST = 2


class Deadly:
    """A failpoint that kills, or stops, the process."""

    def __init__(self, folder: Path) -> None:
        self._file, stopping = folder / "boundaries", folder / "stop-at"
        self._died = Counter(self._file.read_text().splitlines())
        self._deaths = int((folder / "deaths").read_text())
        self._stop_at = stopping.read_text() if stopping.exists() else ""

    def __call__(self, moment: Moment, instruction: Instruction) -> None:
        name = boundary(moment, type(instruction))
        if name == self._stop_at:
            self._stop_at = ""
            self._note(name)
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        if self._died[name] < self._deaths:
            self._note(name)
            os.kill(os.getpid(), signal.SIGKILL)

    def _note(self, name: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{name}\n")


#: How late the news of an object come, as a part of the latest: pods are known before the nodes that they
#: run on, and nodes after their claims are gone.
_LATENESS = {"Pod": 0.0, "Claim": 0.5, "Node": 1.0}
_USUAL = 0.25


class Disorder:
    """The watches' news overtake each other, and old news come again, also after newer ones.

    The API server keeps the order of each watch, and so does this: kinds come late, each by a time of its
    own. Claims and nodes carry versions, so theirs come a second time, later than what follows them.
    """

    def __init__(self) -> None:
        self.latest = 0.0
        self.poison = Poison()
        self._due: dict[str, float] = {}
        cluster.Reflector = self._reflector  # type: ignore[assignment, misc]

    def _reflector(
        self,
        client: ApiClient,
        watched: Watched,
        handle: Callable[[Event], None],
        failures: Failures | None = None,
    ) -> Reflector[Event]:
        watched = self.poison(watched)
        return Reflector(client, watched, lambda event: self._late(handle, event), failures=failures)

    def _late(self, handle: Callable[[Event], None], event: Event) -> None:
        loop = asyncio.get_running_loop()
        kind = type(event).__name__.removesuffix("Seen").removesuffix("Gone")
        # Never before what came before it, also when the disorder ends.
        last = self._due.get(kind, 0.0) + 1e-6
        due = max(loop.time() + self.latest * _LATENESS.get(kind, _USUAL), last)
        if due <= loop.time():
            handle(event)
            return
        self._due[kind] = due
        loop.call_at(due, handle, event)
        if isinstance(event, ClaimSeen | NodeSeen):
            loop.call_at(due + self.latest, handle, event)


def bend_time(folder: Path, disorder: Disorder, timing: Any) -> None:
    """Let the wall clock be wrong by what the file says; the monotonic one is never wrong."""
    right, wrong_by = time.time, [0.0]

    def read(*_signal: object) -> None:
        wrong_by[0] = float((folder / "clock").read_text())
        timing.claims.registration = float((folder / "patience").read_text())
        disorder.latest = float((folder / "disorder").read_text())
        disorder.poison.on = (folder / "poison").read_text() == "on"

    read()
    signal.signal(signal.SIGUSR1, read)
    time.time = lambda: right() + wrong_by[0]


class LentProvider(AwsProvider):
    """Knows types and prices from the start, if they have been fetched."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        lend(self)


def lead(folder: Path) -> int:
    """One life; its exit code."""
    (folder / "pid").write_text(str(os.getpid()))
    # As eager as after its start, all the time: nobody waits minutes for what a look would find.
    eager = TIMING.collection_eager
    timing = changeable(replace(TIMING, collection_calm=eager, reservations=eager))
    bend_time(folder, Disorder(), timing)
    # Nobody waits ten minutes for what a GPU says; how it is mended stays as it is.
    repair_policy.POLICIES = tuple(
        replace(each, toleration=1.0) if each.condition == "AcceleratedHardwareReady" else each
        for each in repair_policy.POLICIES
    )
    code = 0
    try:
        with suppress(asyncio.CancelledError):
            asyncio.run(
                run_controller(ProcessSettings.from_environment(), Deadly(folder), timing, LentProvider)
            )
    except* LeadershipLostError as group:
        print(f"leader: {group.exceptions[0]}", file=sys.stderr)  # noqa: T201
        code = LOST
    return code


def main() -> int:
    """Life after life."""
    folder = Path(sys.argv[1])
    if set(boundaries()) - set((folder / "boundaries").read_text().splitlines()):
        # The models of AWS's services, which it reads for that, are the leaders' as well.
        botocore.session.create_loader = cache(create_loader)
        fetch()
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
