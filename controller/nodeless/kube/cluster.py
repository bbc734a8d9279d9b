"""The live snapshot: watches feed it, loops listen to it.

Answers of our own writes enter it as well, at once, so that the next decision does not
wait for the watch to bring them back; an older version of an object never replaces a
newer one, and an object that is gone does not come back. A kubelet's report that nothing
has changed is no news: only the version that it gave the node is kept, for our writes.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import structlog

from nodeless.kube import ApiClient, Reflector, Watched
from nodeless.kube.reflector import Failures
from nodeless.model import events
from nodeless.model.events import Event
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.quarantine import ProcessMustEnd
from nodeless.model.snapshot import Snapshot
from nodeless.operator.tracebacks import traceback_of
from nodeless.state import apply

#: Events that say that something is not there any more.
_REMOVALS = tuple(
    kind for name, kind in vars(events).items() if name.endswith("Gone") and isinstance(kind, type)
)
Failed = Callable[[str, Exception], object]
"""Told of a loop, by name, that could not take in an event, and why."""
Listener = Callable[[Event, Snapshot, Snapshot], None]
"""Called with an event and the snapshots before and after it."""

_REMEMBERED_UIDS = 10_000


class MemoryUntrusted(ProcessMustEnd):
    """What this process knows of the cluster contradicts what it was told."""


class Cluster:
    """Holds the newest snapshot."""

    def __init__(self, failed: Failed | None = None) -> None:
        self.snapshot = Snapshot()
        self._failed = failed or self._log_failure
        self._listeners: list[Listener] = []
        self._gone: set[str] = set()
        self._gone_order: deque[str] = deque()
        #: Versions of nodes that differ from the snapshot's node in nothing else, by name.
        self._versions: dict[str, str] = {}
        self._reflectors: list[Reflector[Event]] = []
        self._started = asyncio.Event()
        self._log = structlog.get_logger().bind(logger="cluster")

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def handle(self, event: Event) -> None:
        """Take one event in and tell the listeners, unless it is stale.

        An event that cannot be taken in changes nothing: the snapshot is replaced whole, and what was known
        of its object stays. A listener that fails keeps the others from nothing.

        Raises:
            ProcessMustEnd: An object that is gone cannot be taken out: from here on every decision would
                count on something that is not there.
        """
        if self._stale(event) or self._is_heartbeat(event):
            return
        if (unseen := self._unseen_end(event)) is not None:
            self.handle(unseen)
        before = self.snapshot
        try:
            self.snapshot = apply(before, event)
        except Exception as error:
            if isinstance(event, _REMOVALS):
                raise MemoryUntrusted(f"{event} cannot be taken out of the cluster's state") from error
            raise
        self._remember_gone(event, before)
        for listener in self._listeners:
            try:
                listener(event, before, self.snapshot)
            except ProcessMustEnd:
                raise
            except Exception as error:
                self._failed(f"{listener.__module__}: {type(event).__name__}", error)

    def _log_failure(self, key: str, error: Exception) -> None:
        self._log.error("a loop could not take in an event", key=key, exception=traceback_of(error))

    async def run(
        self, client: ApiClient, watched: tuple[Watched, ...], failures: Failures | None = None
    ) -> None:
        """Watch until cancelled; `failures` is told of objects that cannot be read."""
        self._reflectors = [Reflector(client, kind, self.handle, failures=failures) for kind in watched]
        self._started.set()
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run(), name=f"watch {reflector.watched.name}")

    async def wait_for_sync(self) -> None:
        """Wait until every kind has been listed once."""
        await self._started.wait()
        for reflector in self._reflectors:
            await reflector.synced.wait()
        snapshot = self.snapshot
        self._log.info(
            "cluster state is in sync",
            pods=len(snapshot.pods),
            nodes=len(snapshot.nodes),
            claims=len(snapshot.claims),
            pools=len(snapshot.pools),
        )

    def problems(self) -> tuple[str, ...]:
        """What keeps a watch from working at the moment; that a kind of others is not served is none."""
        return tuple(
            reflector.problem
            for reflector in self._reflectors
            if reflector.problem and not reflector.is_done_without
        )

    def sync_problems(self) -> tuple[str, ...]:
        """What keeps a kind from being listed for the first time; nothing where it only takes long."""
        return tuple(
            reflector.problem
            for reflector in self._reflectors
            if reflector.problem and not reflector.synced.is_set()
        )

    def newest(self, node: Node) -> Node:
        """A node of the snapshot with the newest version that is known: what a guarded write must name."""
        return replace(node, resource_version=self._versions.get(node.name, node.resource_version))

    def _stale(self, event: Event) -> bool:
        match event:
            case events.ClaimSeen(claim):
                return claim.uid in self._gone or _is_known(claim, self.snapshot.claims.get(claim.name))
            case events.NodeSeen(node):
                known = self.snapshot.nodes.get(node.name)
                return node.uid in self._gone or _is_known(node, known and self.newest(known))
        return False

    def _unseen_end(self, event: Event) -> Event | None:
        """The end of an object under whose name another one is seen, which no watch has told of."""
        match event:
            case events.ClaimSeen(claim):
                known = self.snapshot.claims.get(claim.name)
                return events.ClaimGone(claim.name) if _is_another(claim, known) else None
            case events.NodeSeen(node):
                left = self.snapshot.nodes.get(node.name)
                return events.NodeGone(node.name) if _is_another(node, left) else None
        return None

    def _is_heartbeat(self, event: Event) -> bool:
        """Whether a node says again what it said before; its new version is noted.

        Each of 500 kubelets does so every five minutes: taken for a change, a cluster would never be still.
        """
        match event:
            case events.NodeSeen(node):
                known = self.snapshot.nodes.get(node.name)
                if known is not None and replace(node, resource_version=known.resource_version) == known:
                    self._versions[node.name] = node.resource_version
                    return True
                self._versions.pop(node.name, None)
            case events.NodeGone(name):
                self._versions.pop(name, None)
        return False

    def _remember_gone(self, event: Event, snapshot: Snapshot) -> None:
        match event:
            case events.ClaimGone(name):
                gone: NodeClaim | Node | None = snapshot.claims.get(name)
            case events.NodeGone(name):
                gone = snapshot.nodes.get(name)
            case _:
                return
        if gone is None or not gone.uid:
            return
        self._gone.add(gone.uid)
        self._gone_order.append(gone.uid)
        if len(self._gone_order) > _REMEMBERED_UIDS:
            self._gone.discard(self._gone_order.popleft())


def _is_another(seen: NodeClaim | Node, known: NodeClaim | Node | None) -> bool:
    return known is not None and bool(known.uid and seen.uid) and known.uid != seen.uid


def _is_known(seen: NodeClaim | Node, known: NodeClaim | Node | None) -> bool:
    """Whether `seen` is the version of the object that is `known`, or an earlier one.

    The echo of our own write is the usual case: taken as news it would make the loops work twice.
    Resource versions of one kind are comparable integers (Kubernetes KEP-5504).
    """
    if known is None or known.uid != seen.uid:
        return False
    if not (seen.resource_version.isdigit() and known.resource_version.isdigit()):
        return False
    return int(seen.resource_version) <= int(known.resource_version)
