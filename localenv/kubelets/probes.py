"""Startup, readiness and liveness probes: when a container counts as started, ready, or dead.

`Threshold` is pure: outcomes in, a verdict out when it changes. `Prober` asks over HTTP or TCP on the pod's
address as it is reached on this machine, at the probe's own pace. What follows from a verdict is
`containers`'.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

log = logging.getLogger(__name__)


@dataclass
class Threshold:
    """Counts equal outcomes in a row.

    Attributes:
        success: that many successes turn the verdict to True.
        failure: that many failures turn it to False.
        verdict: what holds now.
    """

    success: int
    failure: int
    verdict: bool
    _streak: int = 0
    _last: bool | None = None

    def observe(self, outcome: bool) -> bool:
        """Count an outcome; return whether it reached its threshold (again)."""
        self._streak = self._streak + 1 if outcome is self._last else 1
        self._last = outcome
        if self._streak < (self.success if outcome else self.failure):
            return False
        self.verdict = outcome
        return True


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe of a container; times in seconds."""

    action: Mapping[str, Any]
    initial_delay: float
    period: float
    timeout: float
    success: int
    failure: int


def read_probe(document: Mapping[str, Any] | None) -> Probe | None:
    """Make a probe of its specification, with the API's defaults."""
    if not document:
        return None
    return Probe(
        action=document,
        initial_delay=float(document.get("initialDelaySeconds") or 0),
        period=float(document.get("periodSeconds") or 10),
        timeout=float(document.get("timeoutSeconds") or 1),
        success=int(document.get("successThreshold") or 1),
        failure=int(document.get("failureThreshold") or 3),
    )


def port_number(port: int | str, ports: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of a port given by number or by name.

    Raises:
        ValueError: if the container names no such port.
    """
    if isinstance(port, int) or port.isdecimal():
        return int(port)
    for each in ports:
        if each.get("name") == port:
            return int(each["containerPort"])
    raise ValueError(f"probe's port {port!r} is none of the container's; hint: name it under ports")


class Prober:
    """Asks one container.

    Args:
        address: the pod's, on this machine.
        ports: the container's.
    """

    def __init__(self, address: str, ports: Sequence[Mapping[str, Any]]) -> None:
        self._address = address
        self._ports = ports

    async def watch(
        self,
        probe: Probe,
        on_verdict: Callable[[bool], Awaitable[bool]],
        *,
        initially: bool,
        eager_period: float = math.inf,
    ) -> None:
        """Tell `on_verdict` each verdict that reaches its threshold, until it returns True.

        Args:
            probe: what to ask.
            on_verdict: hears the verdicts.
            initially: what holds before any.
            eager_period: the longest pause while the verdict is False. The kubelet, too, asks an unready
                container more often than its period says, to have it ready sooner.
        """
        threshold = Threshold(probe.success, probe.failure, initially)
        await asyncio.sleep(probe.initial_delay)
        while True:
            if threshold.observe(await self.ask(probe)) and await on_verdict(threshold.verdict):
                return
            await asyncio.sleep(probe.period if threshold.verdict else min(probe.period, eager_period))

    async def ask(self, probe: Probe) -> bool:
        """Probe once; an action this machine cannot do counts as success, with a warning."""
        try:
            async with asyncio.timeout(probe.timeout):
                if "httpGet" in probe.action:
                    return await self._http(probe.action["httpGet"])
                if "tcpSocket" in probe.action:
                    return await self._tcp(probe.action["tcpSocket"])
        except (OSError, aiohttp.ClientError, TimeoutError):
            return False
        except ValueError as error:
            log.warning("%s", error)
            return False
        log.warning(
            "a probe by %s is taken as passed: only httpGet and tcpSocket are asked here",
            sorted(probe.action),
        )
        return True

    async def _http(self, action: Mapping[str, Any]) -> bool:
        host = action.get("host") or self._address
        port = port_number(action["port"], self._ports)
        scheme = (action.get("scheme") or "HTTP").lower()
        headers = {
            http_header["name"]: http_header["value"] for http_header in action.get("httpHeaders") or []
        }
        url = f"{scheme}://{host}:{port}/{(action.get('path') or '/').removeprefix('/')}"
        # As the kubelet's: the certificate is not looked at, the connection is not kept.
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False, force_close=True)) as session,
            session.get(url, headers=headers, allow_redirects=False) as response,
        ):
            return 200 <= response.status < 400

    async def _tcp(self, action: Mapping[str, Any]) -> bool:
        host = action.get("host") or self._address
        _, writer = await asyncio.open_connection(host, port_number(action["port"], self._ports))
        writer.close()
        return True
