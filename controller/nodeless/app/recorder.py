"""Kubernetes events: what `kubectl describe` shows of our decisions.

Equal events within two minutes are written once (Karpenter's period); writing is done in
the background, and a failed write never disturbs what it reports on.
"""

import asyncio
import hashlib
import time
from datetime import UTC, datetime

import structlog

from nodeless.model.instructions import PublishEvent
from nodeless.watch import ApiClient, ApiError, ApiUnavailable

COMPONENT = "karpenter"
DEDUPLICATION_SECONDS = 120.0
_MOST_REMEMBERED = 20_000
#: The API server refuses longer messages.
_LONGEST_MESSAGE = 1024
_API_VERSIONS = {
    "ConfigMap": "v1",
    "Pod": "v1",
    "Node": "v1",
    "NodeClaim": "karpenter.sh/v1",
    "Provisioner": "karpenter.sh/v1alpha5",
    "AWSNodeTemplate": "karpenter.k8s.aws/v1alpha1",
    "NodePool": "karpenter.sh/v1",
    "EC2NodeClass": "karpenter.k8s.aws/v1",
}
#: Events of cluster-scoped objects stand here, where kubectl looks for them.
_CLUSTER_SCOPE_NAMESPACE = "default"


class Recorder:
    """Publishes events. `run` writes what `publish` queues."""

    def __init__(self, client: ApiClient, host: str) -> None:
        self._client = client
        self._host = host
        self._queue: asyncio.Queue[PublishEvent] = asyncio.Queue(maxsize=5000)
        self._published: dict[str, float] = {}
        self._log = structlog.get_logger().bind(logger="events")

    def publish(self, event: PublishEvent) -> bool:
        """Queue an event unless an equal one was published a short while ago; whether it was queued."""
        digest = _digest(event)
        now = time.monotonic()
        if now - self._published.get(digest, -DEDUPLICATION_SECONDS) < DEDUPLICATION_SECONDS:
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

    async def run(self) -> None:
        """Write queued events until cancelled."""
        while True:
            event = await self._queue.get()
            try:
                await self._write(event)
            except (ApiError, ApiUnavailable) as error:
                self._log.warning(f"event not written: {error}", reason=event.reason, object=event.name)

    async def _write(self, event: PublishEvent) -> None:
        namespace = event.namespace or _CLUSTER_SCOPE_NAMESPACE
        now = datetime.now(UTC)
        stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{event.name[:200]}.{time.time_ns():x}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": _API_VERSIONS[event.kind],
                "kind": event.kind,
                "name": event.name,
                **({"namespace": event.namespace} if event.namespace else {}),
                # kubectl finds a node's events by its name used as uid, as the kubelet writes them.
                "uid": event.uid or (event.name if event.kind == "Node" else ""),
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message[:_LONGEST_MESSAGE],
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._host,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        await self._client.create(f"/api/v1/namespaces/{namespace}/events", body)


def _digest(event: PublishEvent) -> str:
    text = "\n".join((event.kind, event.namespace, event.name, event.uid, event.reason, event.message))
    return hashlib.sha256(text.encode()).hexdigest()
