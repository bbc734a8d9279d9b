"""The loop that releases nodes which were launched for gangs that cannot be had, and has those wait.

What is done to which claim is decided in `disruption.gangs`. Only pauses are remembered here, and kept
in a ConfigMap (`gang_pauses`): a controller that begins anew waits as long, and releases nodes after the same
time.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol

from nodeless.api.times import format_time
from nodeless.controllers.disruption.gang_pauses import Pauses, read_pauses, write_pauses
from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.controllers.executor.of_claims import carry_out_of_claims
from nodeless.disruption.gangs import RELEASED, gang_steps, gangs_on, is_whole, why_released
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.kube.event_recorder import Recorder
from nodeless.model import events
from nodeless.model.instructions import PublishEvent
from nodeless.model.labels import LAUNCHED_FOR_GANG
from nodeless.model.snapshot import Snapshot
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.timing import Timing
from nodeless.scheduling.pods.gangs import Gang, gangs_named


class Store(Protocol):
    """Where data outlive a controller (`kube.config_maps.KeptData`)."""

    async def read(self) -> Mapping[str, str] | None:
        """What is kept."""

    async def write(self, data: Mapping[str, str]) -> None:
        """Keep these in place of others."""


class GangLoop:
    """Looks at the claims that were launched for gangs; without one there is nothing to do."""

    def __init__(
        self,
        cluster: Cluster,
        executor: InstructionExecutor,
        recorder: Recorder,
        settings: GlobalSettings,
        metrics: Metrics,
        timing: Timing,
        store: Store,
    ) -> None:
        """A loop; `store` is where its pauses outlive it."""
        self._timing = timing
        self._store = store
        self._reading = asyncio.Lock()
        #: What is kept there; None: that was not read yet.
        self._kept: Pauses | None = None
        self._store_problem = ""
        self._boundary = ErrorBoundary("claim's gang", metrics)
        self._cluster = cluster
        self._executor = executor
        self._recorder = recorder
        self._patience = settings.gang_timeout
        #: When a gang is planned again, and the pause before that, by name.
        self._pauses: Pauses = {}
        #: Since when there are no pods of a gang of which there are nodes.
        self._absent: dict[str, float] = {}
        self._log = logger("gangs")

    def use(self, settings: GlobalSettings) -> None:
        """Wait as long as other settings say from now on."""
        self._patience = settings.gang_timeout

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.reconcile_once()
            except (ApiError, ApiUnavailable) as error:
                self._log.warning(f"the nodes of gangs could not be released, trying again: {error}")
            await asyncio.sleep(self._timing.gangs)

    async def reconcile_once(self) -> None:
        """One look at all claims that were launched for gangs.

        Raises:
            ApiError, ApiUnavailable: Not all is done; the next look does it.
        """
        await self.restore()
        now = self._timing.wall_clock()
        self._end_pauses(now)
        snapshot = self._cluster.snapshot
        steps = gang_steps(snapshot, now, self._patience, self._absent)
        self._note_absent(snapshot, steps.gangs, now)
        for name, claims in sorted(steps.released.items()):
            self._pause(name, steps.gangs.get(name), claims, now)
        # Before anything ends: what ends has everything that waits planned again.
        self._tell_pauses(now)
        await self._keep()
        await carry_out_of_claims(steps.instructions, self._cluster, self._executor, self._boundary)

    async def restore(self) -> None:
        """Take over the pauses that an earlier controller kept, once; where they cannot be read, later."""
        # The first pass and the first look ask at the same time.
        async with self._reading:
            if self._kept is not None:
                return
            try:
                data = await self._store.read()
            except (ApiError, ApiUnavailable) as error:
                self._complain(f"the pauses of gangs cannot be read, trying again: {error}")
                return
            now = self._timing.wall_clock()
            self._kept = read_pauses(data or {}, now, self._timing.longest_gang_pause)
            self._pauses = self._kept | self._pauses
            self._tell_pauses(now)

    async def _keep(self) -> None:
        """Have the pauses outlive this controller. That they do not must not keep nodes that cost money."""
        if self._kept is None or self._kept == self._pauses:
            return
        pauses = dict(self._pauses)
        try:
            await self._store.write(write_pauses(pauses))
        except (ApiError, ApiUnavailable) as error:
            self._complain(f"the pauses of gangs are not saved yet: {error}")
            return
        self._kept, self._store_problem = pauses, ""

    def _complain(self, problem: str) -> None:
        if problem != self._store_problem:
            self._log.warning(problem)
        self._store_problem = problem

    def _note_absent(self, snapshot: Snapshot, gangs: Mapping[str, Gang], now: float) -> None:
        named = {
            name
            for claim in snapshot.claims.values()
            if claim.annotations.get(LAUNCHED_FOR_GANG)
            for name in gangs_on(claim)
        }
        self._absent = {name: self._absent.get(name, now) for name in named - gangs.keys()}

    def _pause(self, name: str, gang: Gang | None, claims: Iterable[str], now: float) -> None:
        """Have a gang wait, each time twice as long, and tell its pods."""
        if gang is None:
            self._log.info(f"releasing nodes: {why_released(name, gang, self._patience)}", claims=[*claims])
            return
        until, pause = self._pauses.get(name, (0.0, self._timing.gang_pause / 2))
        if until > now:
            return
        pause = min(2 * pause, self._timing.longest_gang_pause)
        self._pauses[name] = (now + pause, pause)
        text = (
            f"{why_released(name, gang, self._patience)}; its empty nodes are released, "
            f"and it is planned again in {pause / 60:g} min"
        )
        self._log.warning(text, claims=[*claims])
        pods = self._cluster.snapshot.pods
        for key in sorted(gang.waiting):
            pod = pods.get(key)
            if pod is not None:
                self._recorder.publish(
                    PublishEvent(
                        f"gang:{name}", "Pod", pod.name, "Warning", RELEASED, text, pod.namespace, pod.uid
                    )
                )

    def _end_pauses(self, now: float) -> None:
        """Forget gangs that are whole or gone, and let those be planned whose pause is over."""
        if not self._pauses:
            return
        there = gangs_named(self._cluster.snapshot, set(self._pauses))
        for name in list(self._pauses):
            if name not in there or is_whole(there[name]):
                del self._pauses[name]
        self._tell_pauses(now)

    def _tell_pauses(self, now: float) -> None:
        paused = {
            name: "its nodes were released because it was not whole in time; "
            f"it is planned again at {format_time(until)}"
            for name, (until, _) in self._pauses.items()
            if until > now
        }
        if paused != dict(self._cluster.snapshot.paused_gangs):
            self._cluster.handle(events.GangsPaused(paused))
