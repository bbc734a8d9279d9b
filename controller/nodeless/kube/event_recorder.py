"""Kubernetes events: what `kubectl describe` shows of our decisions.

Equal events within two minutes are written once, and some reasons are limited further (`event_reasons`);
writing is done in the background, and a failed write never disturbs what it reports on. What is still
queued when the process ends is written then, for a while.
"""

import asyncio
import contextlib
import hashlib
import time

import structlog

from nodeless.api.times import format_time
from nodeless.kube import ApiClient
from nodeless.model.instructions import PublishEvent
from nodeless.operator.clock import wall_clock
from nodeless.operator.event_reasons import API_VERSIONS, EventRule, rule_of, undeclared_reason

COMPONENT = "karpenter"
_MOST_REMEMBERED = 20_000
#: Events that are written side by side when the process ends.
_AT_ONCE_AT_THE_END = 32
#: Bytes; the API server refuses longer messages.
_LONGEST_MESSAGE = 1024
#: Events of cluster-scoped objects stand here, where kubectl looks for them.
_CLUSTER_SCOPE_NAMESPACE = "default"


class Recorder:
    """Publishes events. `run` writes what `publish` queues."""

    def __init__(self, client: ApiClient, host: str) -> None:
        self._client = client
        self._host = host
        self._queue: asyncio.Queue[PublishEvent] = asyncio.Queue(maxsize=5000)
        self._published: dict[str, float] = {}
        #: Of each reason with a rate: events left, and when they were counted.
        self._buckets: dict[str, tuple[float, float]] = {}
        self._writing: PublishEvent | None = None
        self._log = structlog.get_logger().bind(logger="events")

    def publish(self, event: PublishEvent) -> bool:
        """Queue an event unless an equal one was published a short while ago; whether it was queued."""
        rule = rule_of(event.reason)
        if fault := undeclared_reason(event):
            self._log.error(f"event against the table: {fault}", object=event.name)
        digest = _digest(event, rule)
        now = time.monotonic()
        if now - self._published.get(digest, -rule.silent_seconds) < rule.silent_seconds:
            return False
        if not self._within_rate(event.reason, rule, now):
            return False
        if len(self._published) >= _MOST_REMEMBERED:
            self._published.clear()
        self._published[digest] = now
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._log.warning("event dropped: the API server does not keep up", reason=event.reason)
            return False
        return True

    def _within_rate(self, reason: str, rule: EventRule, now: float) -> bool:
        """Take one from the reason's bucket, which fills at its rate; whether there was one."""
        if not rule.per_second:
            return True
        left, since = self._buckets.get(reason, (float(rule.burst), now))
        left = min(left + (now - since) * rule.per_second, rule.burst)
        self._buckets[reason] = (max(left - 1, 0.0) if left >= 1 else left, now)
        return left >= 1

    async def run(self) -> None:
        """Write queued events until cancelled."""
        while True:
            self._writing = await self._queue.get()
            await self._try_to_write(self._writing)
            self._writing = None

    async def flush(self, seconds: float) -> None:
        """Write what is queued once `run` has ended, as far as the time goes; the rest is counted."""
        waiting = [self._writing] if self._writing is not None else []
        while not self._queue.empty():
            waiting.append(self._queue.get_nowait())
        left, room = len(waiting), asyncio.Semaphore(_AT_ONCE_AT_THE_END)

        async def write(event: PublishEvent) -> None:
            nonlocal left
            async with room:
                await self._try_to_write(event)
            left -= 1

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(write(event) for event in waiting))
        if left:
            self._log.warning(f"{left} events were not written before the end")

    async def _try_to_write(self, event: PublishEvent) -> None:
        try:
            await self._write(event)
        except Exception as error:  # one event that cannot be written must not end those behind it
            self._log.warning(f"event not written: {error}", reason=event.reason, object=event.name)

    async def _write(self, event: PublishEvent) -> None:
        namespace = event.namespace or _CLUSTER_SCOPE_NAMESPACE
        stamp = format_time(wall_clock())
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{event.name[:200]}.{time.time_ns():x}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": API_VERSIONS.get(event.kind, "v1"),
                "kind": event.kind,
                "name": event.name,
                **({"namespace": event.namespace} if event.namespace else {}),
                # kubectl finds a node's events by its name used as uid, as the kubelet writes them.
                "uid": event.uid or (event.name if event.kind == "Node" else ""),
            },
            "type": event.type,
            "reason": event.reason,
            "message": _shorten(event.message),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._host,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        await self._client.create(f"/api/v1/namespaces/{namespace}/events", body)


def _digest(event: PublishEvent, rule: EventRule) -> str:
    message = event.message if rule.by_message else ""
    text = "\n".join((event.kind, event.namespace, event.name, event.uid, event.reason, message))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _shorten(message: str) -> str:
    """As much of a message as the API server takes, in whole characters."""
    return message.encode("utf-8", "replace")[:_LONGEST_MESSAGE].decode("utf-8", "ignore")
