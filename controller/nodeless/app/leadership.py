"""Leader election by a Lease: at most one replica acts.

The Lease is `karpenter-leader-election` with Karpenter's periods (15 s lease, 10 s renew
deadline, 2 s retry). A leader that could not renew in time stops leading before another
may start: every request has a deadline well inside the lease. On a clean exit the lease
is released, so that the other replica takes over at once.
"""

import asyncio
import contextlib
import time
from datetime import UTC, datetime

import structlog

from nodeless.watch import ApiClient, ApiError, ApiUnavailable

LEASE_NAME = "karpenter-leader-election"
LEASE_SECONDS = 15
RENEW_DEADLINE = 10.0
RETRY_SECONDS = 2.0
_REQUEST_SECONDS = 4.0


class Leadership:
    """One candidate. `leading` turns true once, and false at most once: a replica that lost exits."""

    def __init__(self, client: ApiClient, namespace: str, identity: str) -> None:
        self.identity = identity
        self._client = client
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._renewed_at = 0.0
        #: Version of the Lease last seen, and when our clock first saw it: skewed clocks do no harm.
        self._seen_version = ""
        self._seen_at = 0.0
        self._held = False
        self._log = structlog.get_logger().bind(logger="leadership").bind(identity=identity)

    @property
    def leading(self) -> bool:
        """Whether acting is allowed at this very moment."""
        return self._left() > 0

    def _left(self) -> float:
        """Seconds until acting must stop unless the lease is renewed."""
        return self._renewed_at + RENEW_DEADLINE - time.monotonic() if self._held else 0.0

    async def acquire(self) -> None:
        """Wait until this replica leads."""
        self._log.info("waiting for leadership")
        while not await self._attempt():  # noqa: ASYNC110 - the lease is at the API server
            await asyncio.sleep(RETRY_SECONDS)
        self._log.info("leading")

    async def hold(self) -> None:
        """Renew until the lease is lost; returns then."""
        while (left := self._left()) > 0:
            await asyncio.sleep(min(RETRY_SECONDS, left))
            # Nobody waits for an answer beyond the deadline: the other replica may lead soon after it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(self._left(), 0.0)):
                    await self._attempt()
        self._held = False
        self._log.error("lost leadership: the lease was not renewed in time, or another replica has it")

    async def release(self) -> None:
        """Give the lease up, if held."""
        if not self._held:
            return
        self._held = False
        try:
            lease = await self._client.get(f"{self._path}/{LEASE_NAME}")
            if lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
                await self._client.replace(f"{self._path}/{LEASE_NAME}", lease)
        except (ApiError, ApiUnavailable) as error:
            self._log.warning(f"lease not released, it runs out by itself: {error}")

    async def _attempt(self) -> bool:
        started = time.monotonic()
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                won = await self._try()
        except (ApiError, ApiUnavailable, TimeoutError) as error:
            self._log.warning(f"cannot reach the lease: {error or 'no answer in time'}")
            return False
        if won:
            # The lease counts from before the request: the safe side.
            self._renewed_at = started
            self._held = True
        return won

    async def _try(self) -> bool:
        try:
            lease = await self._client.get(f"{self._path}/{LEASE_NAME}")
        except ApiError as error:
            if error.status != 404:
                raise
            return await self._create()
        spec = lease.get("spec") or {}
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, time.monotonic()
        holder = spec.get("holderIdentity") or ""
        duration = spec.get("leaseDurationSeconds") or LEASE_SECONDS
        if holder not in ("", self.identity):
            # Whoever else stands there acts: not even the rest of our own deadline is ours.
            self._held = False
            if time.monotonic() < self._seen_at + duration:
                return False
        transitions = (spec.get("leaseTransitions") or 0) + (holder != self.identity)
        lease["spec"] = self._spec(transitions, spec.get("acquireTime") if holder == self.identity else None)
        try:
            await self._client.replace(f"{self._path}/{LEASE_NAME}", lease)
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    async def _create(self) -> bool:
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE_NAME},
            "spec": self._spec(0, None),
        }
        try:
            await self._client.create(self._path, body)
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    def _spec(self, transitions: int, acquired: str | None) -> dict[str, object]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": acquired or _now(),
            "renewTime": _now(),
            "leaseTransitions": transitions,
        }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
