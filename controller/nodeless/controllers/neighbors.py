"""The loop that says so when another autoscaler serves the same cluster.

Pods, nodes and pools are watched already; only the groups of Cluster Autoscaler are asked for, and only while
a pod of it is there. Nothing is refused: what two autoscalers do to each other is the user's to end.
"""

import asyncio

from nodeless.explain.neighbors import OTHER_AUTOSCALER, Neighbor, namespaces_of, neighbors_of
from nodeless.kube import ApiClient, ApiError, ApiUnavailable
from nodeless.kube.autoscaler_status import read_groups
from nodeless.kube.cluster import Cluster
from nodeless.kube.event_recorder import Recorder
from nodeless.model import events
from nodeless.model.events import Event
from nodeless.model.instructions import PublishEvent
from nodeless.model.neighbors import AUTOSCALER_STATUS, CLUSTER_AUTOSCALER, ScalingGroup
from nodeless.model.snapshot import Snapshot
from nodeless.operator.logs import logger
from nodeless.operator.timing import TIMING, Timing
from nodeless.operator.wait_event import set_within

_FORBIDDEN = 403
#: Pods of a Deployment and pools of a folder come together.
_SETTLE_SECONDS = 0.2


class NeighborLoop:
    """Looks after every pod of another autoscaler and every pool that comes or goes, and now and then."""

    def __init__(
        self, client: ApiClient, cluster: Cluster, recorder: Recorder, timing: Timing = TIMING
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._recorder = recorder
        self._timing = timing
        self._changed = asyncio.Event()
        #: What was said last, by the name of the neighbor.
        self._said: dict[str, str] = {}
        #: Why the groups of an autoscaler could not be read, as it was said last.
        self._problem = ""
        self._log = logger("neighbors")
        cluster.listen(self._on_event)

    def _on_event(self, event: Event, before: Snapshot, _after: Snapshot) -> None:
        match event:
            case events.PodSeen(pod) if pod.program and pod.key not in before.pods:
                self._changed.set()
            case events.PodGone(key) if (gone := before.pods.get(key)) is not None and gone.program:
                self._changed.set()
            case events.PoolSeen(pool):
                known = before.pools.get(pool.key)
                if known is None or known.generation != pool.generation:
                    self._changed.set()
            case events.NeighborPoolSeen() | events.PoolGone():
                self._changed.set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self._changed.clear()
            await self.reconcile_once()
            if await set_within(self._changed, self._timing.neighbors):
                await asyncio.sleep(_SETTLE_SECONDS)

    async def reconcile_once(self) -> None:
        """One look at all signs of other autoscalers."""
        await self._read_groups()
        found = await asyncio.to_thread(neighbors_of, self._cluster.snapshot)
        self._log_changes(found)
        for neighbor in found:
            self._publish(neighbor)

    async def _read_groups(self) -> None:
        snapshot = self._cluster.snapshot
        groups: set[ScalingGroup] = set()
        problem = ""
        for namespace in namespaces_of(snapshot, CLUSTER_AUTOSCALER):
            try:
                groups |= set(await read_groups(self._client, namespace))
            except ApiUnavailable:
                # What was known stays; every watch says that the API server is away.
                return
            except ApiError as error:
                problem = _problem(namespace, error)
        if problem and problem != self._problem:
            self._log.warning(problem)
        self._problem = problem
        known = tuple(sorted(groups))
        if known != snapshot.autoscaler_groups and not problem:
            self._cluster.handle(events.AutoscalerGroupsSeen(known))

    def _log_changes(self, found: tuple[Neighbor, ...]) -> None:
        said = {neighbor.name: neighbor.told() for neighbor in found}
        for name, text in said.items():
            if self._said.get(name) != text:
                self._log.warning(text, code=OTHER_AUTOSCALER)
        for name in self._said.keys() - said.keys():
            self._log.info(f"{name} does not serve this cluster any more")
        self._said = said

    def _publish(self, neighbor: Neighbor) -> None:
        for key in neighbor.rivals:
            if (pool := self._cluster.snapshot.pools.get(key)) is None:
                continue
            subject = pool.reference
            self._recorder.publish(
                PublishEvent(
                    key,
                    subject.kind,
                    subject.name,
                    "Warning",
                    OTHER_AUTOSCALER,
                    neighbor.about(key),
                    uid=subject.uid,
                )
            )


def _problem(namespace: str, error: ApiError) -> str:
    what = f"only those node groups of Cluster Autoscaler that have nodes are known: {error}"
    if error.status != _FORBIDDEN:
        return what
    return f"{what}; hint: allow `get` of ConfigMap {namespace}/{AUTOSCALER_STATUS}, or ignore this"
