"""Leader election by a Lease: at most one replica acts.

The Lease is `karpenter-leader-election` with Karpenter's periods (15 s lease, 10 s renew
deadline, 2 s retry). A leader that could not renew in time stops leading before another
may start. A write may take almost half of the deadline: the lease is renewed by one request, begun as soon
as the one before is late, and one that hangs is joined by another on a connection of its own. On a clean exit
the lease is released, so that the other replica takes over at once.

Whoever may write the Lease may take the lead; what is written there keeps nobody from leading for good. A
holder that says how long its lease is gets `_LONGEST_LEASE` seconds at most, and a count of transitions that
can go no further begins anew.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import structlog

from nodeless.kube import ApiClient, ApiError, ApiUnavailable
from nodeless.model.object_names import LEASE_NAME
from nodeless.model.quarantine import ProcessMustEnd
from nodeless.operator.clock import wall_clock
from nodeless.operator.timing import TIMING, Timing

LEASE_SECONDS = 15
#: Of whatever stands in the Lease: seconds that its holder may rest, and how often the holder can change
#: (int32: the API server refuses a greater number).
_LONGEST_LEASE, _MOST_TRANSITIONS = 60, 2**31 - 1
#: A request without an answer for so long is joined by another one.
_HEDGE_SECONDS = 4.0
_READ_SECONDS = 4.0


class NotLeadingError(ProcessMustEnd):
    """The lease is not held any more: nothing may be done."""


class Leadership:
    """One candidate. `leading` turns true once, and false at most once: a replica that lost exits."""

    def __init__(self, client: ApiClient, namespace: str, identity: str, timing: Timing = TIMING) -> None:
        self.identity = identity
        self._renewal, self._retry = timing.lease_renewal, timing.lease_retry
        self._clock = timing.steady_clock
        self._client = client
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._renewed_at = 0.0
        #: Version of the Lease last seen, and when our clock first saw it: skewed clocks do no harm.
        self._seen_version = ""
        self._seen_at = 0.0
        self._held = False
        #: The lease as we wrote it last: renewed without being read again.
        self._lease: dict[str, Any] | None = None
        self._log = structlog.get_logger().bind(logger="leadership").bind(identity=identity)

    @property
    def leading(self) -> bool:
        """Whether acting is allowed at this very moment."""
        return self._seconds_left() > 0

    def assert_leading(self) -> None:
        """From any thread: raises NotLeadingError when the lease is not held."""
        if not self.leading:
            raise NotLeadingError

    def _seconds_left(self) -> float:
        """Seconds until acting must stop unless the lease is renewed."""
        return self._renewed_at + self._renewal - self._clock() if self._held else 0.0

    async def acquire(self) -> None:
        """Wait until this replica leads."""
        self._log.info("waiting for leadership")
        while not await self._attempt():  # noqa: ASYNC110 - the lease is at the API server
            await asyncio.sleep(self._retry)
        self._log.info("leading")

    async def hold(self) -> None:
        """Renew until the lease is lost; returns then."""
        begun = self._renewed_at
        while (left := self._seconds_left()) > 0:
            # From beginning to beginning: a slow write is followed by the next one at once.
            await asyncio.sleep(min(max(begun + self._retry - self._clock(), 0.0), left))
            begun = self._clock()
            await self._renew()
        self._held = False
        self._log.error("lost leadership: the lease was not renewed in time, or another replica has it")

    async def _renew(self) -> None:
        """Try until one attempt succeeds or all have failed.

        Nobody waits beyond the deadline: the other replica may lead soon after it.
        """
        attempts: set[asyncio.Task[bool]] = set()
        try:
            while (left := self._seconds_left()) > 0:
                attempts.add(asyncio.create_task(self._attempt(), name="renew the lease"))
                won, attempts = await _first_success(attempts, min(_HEDGE_SECONDS, left), self._clock)
                if won or not attempts:
                    return
        finally:
            for attempt in attempts:
                attempt.cancel()
            await asyncio.gather(*attempts, return_exceptions=True)

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
        try:
            async with asyncio.timeout(self._renewal):
                written = await self._try()
        except (ApiError, ApiUnavailable, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            self._log.warning(f"cannot reach the lease: {reason}")
            return False
        if written is None:
            return False
        # The lease counts from before the write: the safe side.
        self._renewed_at = max(written, self._renewed_at)
        self._held = True
        return True

    async def _try(self) -> float | None:
        """When the write began that gave us the lease (the monotonic clock); None: we have it not."""
        if self._held and self._lease is not None:
            written = await self._rewrite(self._lease)
            if written is not None:
                return written
        try:
            async with asyncio.timeout(_READ_SECONDS):
                lease = await self._client.get(f"{self._path}/{LEASE_NAME}")
        except ApiError as error:
            if error.status != 404:
                raise
            return await self._create()
        spec = lease.get("spec") or {}
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, self._clock()
        holder = spec.get("holderIdentity") or ""
        duration = min(spec.get("leaseDurationSeconds") or LEASE_SECONDS, _LONGEST_LEASE)
        if holder not in ("", self.identity):
            # Whoever else stands there acts: not even the rest of our own deadline is ours.
            self._held = False
            if self._clock() < self._seen_at + duration:
                return None
        transitions = _transitions(spec) + (holder != self.identity)
        lease["spec"] = self._spec(transitions, spec.get("acquireTime") if holder == self.identity else None)
        return await self._write(lease)

    async def _rewrite(self, lease: dict[str, Any]) -> float | None:
        """Renew the lease as we know it; None when somebody, perhaps we, has written it since."""
        spec = lease["spec"]
        renewed = self._spec(_transitions(spec), spec.get("acquireTime"))
        return await self._write({**lease, "spec": renewed})

    async def _write(self, lease: dict[str, Any]) -> float | None:
        begun = self._clock()
        self._lease = None
        try:
            self._lease = await self._client.replace(f"{self._path}/{LEASE_NAME}", lease)
        except ApiError as error:
            if error.status == 409:
                return None
            raise
        return begun

    async def _create(self) -> float | None:
        begun = self._clock()
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE_NAME},
            "spec": self._spec(0, None),
        }
        try:
            self._lease = await self._client.create(self._path, body)
        except ApiError as error:
            if error.status == 409:
                return None
            raise
        return begun

    def _spec(self, transitions: int, acquired: str | None) -> dict[str, object]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": acquired or _now(),
            "renewTime": _now(),
            "leaseTransitions": transitions,
        }


def _transitions(spec: dict[str, Any]) -> int:
    """How often the holder has changed, as a number to which one more can be added."""
    found = spec.get("leaseTransitions") or 0
    return found if 0 <= found < _MOST_TRANSITIONS else 0


async def _first_success(
    attempts: set[asyncio.Task[bool]], seconds: float, clock: Callable[[], float]
) -> tuple[bool, set[asyncio.Task[bool]]]:
    """Whether one of the attempts succeeds within so many seconds, and those that are not over."""
    until = clock() + seconds
    while attempts and (left := until - clock()) > 0:
        done, attempts = await asyncio.wait(attempts, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        results = [attempt.result() for attempt in done]
        if any(results):
            return True, attempts
    return False, attempts


def _now() -> str:
    return datetime.fromtimestamp(wall_clock(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
