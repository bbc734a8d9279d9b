"""One container as a real process: started, probed, restarted, stopped, and its state as the status shows it.

The first restart is immediate, further ones wait 1 s, 2 s, 4 s ... 300 s (the kubelet starts at 10 s; here
labs are to see a crash loop within seconds); a minute of running clears the wait (the kubelet: ten). Next:
`execution`.
"""

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from localenv.kubelets.clock import timestamp
from localenv.kubelets.probes import Probe, Prober, read_probe

log = logging.getLogger(__name__)

_FIRST_BACKOFF_SECONDS = 1.0
_LAST_BACKOFF_SECONDS = 300.0
_FORGIVEN_AFTER_SECONDS = 60.0
_CONFIG_RETRY_SECONDS = 0.5
_EAGER_SECONDS = 0.5


class StartError(Exception):
    """A container cannot be started now.

    Attributes:
        reason: as in `state.waiting.reason`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def backoff_seconds(restarts_in_a_row: int) -> float:
    """Return the wait before a restart, given how many came before it without a longer run between."""
    if restarts_in_a_row == 0:
        return 0.0
    doublings = min(restarts_in_a_row - 1, 20)
    return min(float(_FIRST_BACKOFF_SECONDS * (1 << doublings)), _LAST_BACKOFF_SECONDS)


def container_status(
    name: str, image: str, state: Mapping[str, Any], *, ready: bool = True, restarts: int = 0
) -> dict[str, Any]:
    """Return an entry of `status.containerStatuses`."""
    return {
        "name": name,
        "image": image,
        "imageID": image,
        "ready": ready,
        "started": "running" in state,
        "restartCount": restarts,
        "state": state,
    }


async def exit_code(child: subprocess.Popen[bytes]) -> int:
    """Wait for a child to end without a thread."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    try:
        descriptor = os.pidfd_open(child.pid)
    except ProcessLookupError:  # somebody else waited for it already
        return child.wait()

    def on_readable() -> None:
        if not ended.done():
            ended.set_result(None)

    loop.add_reader(descriptor, on_readable)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return child.wait()


class Container:
    """A container of an executed pod.

    Args:
        spec: its specification.
        address: the pod's, on this machine.
        restart_policy: the pod's.
        launch: starts the process; raises StartError.
        on_change: called when `status` changed.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        *,
        address: str,
        restart_policy: str,
        launch: Callable[[], Awaitable[subprocess.Popen[bytes]]],
        on_change: Callable[[], None],
        restarts: int = 0,
    ) -> None:
        self._spec = spec
        self._policy = restart_policy
        self._launch = launch
        self._on_change = on_change
        self._prober = Prober(address, spec.get("ports") or [])
        self._child: subprocess.Popen[bytes] | None = None
        self._started_at = ""
        self._state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
        self._last_state: dict[str, Any] = {}
        self._restarts = restarts
        self._started = False
        self.ready = False
        #: Exit code once it will not be restarted.
        self.ended: int | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    @property
    def status(self) -> dict[str, Any]:
        """The entry of `status.containerStatuses`."""
        name, image = self._spec["name"], self._spec["image"]
        status = container_status(name, image, self._state, ready=self.ready, restarts=self._restarts)
        return status | {"started": self._started, "lastState": self._last_state}

    async def run(self) -> None:
        """Keep the container running as its restart policy says, until it ends for good."""
        in_a_row = 0
        while True:
            child = await self._launch_process()
            began = asyncio.get_running_loop().time()
            code = await self._live(child)
            self._finish(code)
            if self._policy == "Never" or (self._policy == "OnFailure" and code == 0):
                self.ended = code
                self._on_change()
                return
            if asyncio.get_running_loop().time() - began > _FORGIVEN_AFTER_SECONDS:
                in_a_row = 0
            await self._back_off(backoff_seconds(in_a_row))
            in_a_row += 1
            self._restarts += 1

    async def _launch_process(self) -> subprocess.Popen[bytes]:
        while True:
            try:
                return await self._launch()
            except StartError as error:
                waiting = {"waiting": {"reason": error.reason, "message": str(error)}}
                if self._state != waiting:
                    log.warning("container %s: %s: %s", self._spec["name"], error.reason, error)
                    self._set(waiting)
            await asyncio.sleep(_CONFIG_RETRY_SECONDS)

    async def _live(self, child: subprocess.Popen[bytes]) -> int:
        self._child = child
        self._started_at = timestamp()
        self._started = not self._spec.get("startupProbe")
        self.ready = self._started and not self._spec.get("readinessProbe")
        self._set({"running": {"startedAt": self._started_at}})
        probing = asyncio.create_task(self._probe(child))
        try:
            return await exit_code(child)
        finally:
            probing.cancel()
            with suppress(asyncio.CancelledError):
                await probing

    async def _probe(self, child: subprocess.Popen[bytes]) -> None:
        startup, readiness, liveness = (
            read_probe(self._spec.get(name)) for name in ("startupProbe", "readinessProbe", "livenessProbe")
        )

        async def on_started(passed: bool) -> bool:
            if not passed:
                await self._kill_unhealthy(child, "startup", startup)
                return True
            self._started = True
            self.ready = readiness is None
            self._on_change()
            return True

        async def on_ready(passed: bool) -> bool:
            if self.ready is not passed:
                self.ready = passed
                self._on_change()
            return False

        async def on_alive(passed: bool) -> bool:
            if not passed:
                await self._kill_unhealthy(child, "liveness", liveness)
            return not passed

        if startup is not None:
            await self._prober.watch(startup, on_started, initially=False)
        async with asyncio.TaskGroup() as group:
            if readiness is not None:
                group.create_task(
                    self._prober.watch(readiness, on_ready, initially=False, eager_period=_EAGER_SECONDS)
                )
            if liveness is not None:
                group.create_task(self._prober.watch(liveness, on_alive, initially=True))

    async def _kill_unhealthy(self, child: subprocess.Popen[bytes], what: str, probe: Probe | None) -> None:
        failures = probe.failure if probe else 0
        log.warning(
            "container %s failed its %s probe %d times: restarting", self._spec["name"], what, failures
        )
        await end_process(child, 5.0)

    def _finish(self, code: int) -> None:
        finished: dict[str, Any] = {
            # A process ended by a signal shows 128 + its number, as a container runtime reports it.
            "exitCode": code if code >= 0 else 128 - code,
            "reason": "Completed" if code == 0 else "Error",
            "startedAt": self._started_at,
            "finishedAt": timestamp(),
        }
        if code < 0:
            finished["signal"] = -code
        self._child = None
        self._started = self.ready = False
        self._last_state = {"terminated": finished}
        self._set({"terminated": finished})
        log.info("container %s ended with %d", self._spec["name"], code)

    async def _back_off(self, seconds: float) -> None:
        if seconds:
            message = f"back-off {seconds:.0f}s restarting failed container={self._spec['name']}"
            self._set({"waiting": {"reason": "CrashLoopBackOff", "message": message}})
            await asyncio.sleep(seconds)

    async def stop(self, grace_seconds: float) -> None:
        """End the process by SIGTERM, and by SIGKILL when the grace period is over."""
        if self._child is not None:
            await end_process(self._child, grace_seconds)

    def _set(self, state: dict[str, Any]) -> None:
        self._state = state
        self._on_change()


async def end_process(child: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """End a process and its group."""
    if grace_seconds > 0:
        _signal(child, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await exit_code(child)
    _signal(child, signal.SIGKILL)


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
