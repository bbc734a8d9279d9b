"""The loop that finds which NodeOverlays count, has the cloud follow them, and says so on each.

It looks after every change of an overlay, a pool or a node class, and now and then, for what is sold changes
without a word to the cluster. Overlays that cannot be used leave the others alone, and pools whose types are
not known now are looked at later.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

from nodeless.api.kinds import NODE_OVERLAY
from nodeless.api.writing import conditions_to_api
from nodeless.cloudprovider import CloudProvider
from nodeless.cloudprovider.pool_catalogs import pool_subnets, pools_sold
from nodeless.controllers.error_boundary import ErrorBoundary, Subject
from nodeless.kube import ApiClient, ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.launch.overlays import Evaluation, evaluate, with_named_zones
from nodeless.model import events
from nodeless.model.conditions import VALIDATION_SUCCEEDED, Condition, same, updated_conditions
from nodeless.model.events import Event
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import ZONE_ID
from nodeless.model.overlays import NodeOverlay
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.model.subnets import zone_names
from nodeless.operator.logs import logger
from nodeless.operator.timing import TIMING, Timing
from nodeless.operator.wait_event import set_within

#: Reasons of a `ValidationSucceeded` that is false (Karpenter v1).
RUNTIME_VALIDATION, CONFLICT = "RuntimeValidation", "Conflict"
_NOT_FOUND, _CONFLICTING = 404, 409
#: After a change: several edits usually come together, and our own writes have to be seen.
_SETTLE_SECONDS = 0.2
_MEANS_NOTHING = "in effect, but it matches no instance type of any pool now"


class OverlayLoop:
    """Until its first look is done, the cloud gives out no catalog: nothing is bought at other prices."""

    def __init__(
        self,
        client: ApiClient,
        cluster: Cluster,
        cloud: CloudProvider,
        assert_leading: Callable[[], None],
        boundary: ErrorBoundary,
        timing: Timing = TIMING,
    ) -> None:
        """`assert_leading` raises when this replica may not act any more."""
        self._client = client
        self._cluster = cluster
        self._cloud = cloud
        self._assert_leading = assert_leading
        self._boundary = boundary
        self._timing = timing
        self._changed = asyncio.Event()
        #: What the cloud follows; None: nothing yet.
        self._applied: tuple[NodeOverlay, ...] | None = None
        #: By pool key, what was sold to it when the cloud said so last.
        self._known: dict[str, tuple[Pool, tuple[InstanceType, ...]]] = {}
        #: Names of zones by their ids.
        self._zones: dict[str, str] = {}
        #: What was said of pools whose types are not known.
        self._said: dict[str, str] = {}
        #: Whether the last look came to everything.
        self._complete = True
        self._log = logger("overlays")
        cloud.use_overlays(None)
        cluster.listen(self._on_event)

    def _on_event(self, event: Event, before: Snapshot, _after: Snapshot) -> None:
        match event:
            case events.NodeOverlaySeen(overlay):
                known = before.node_overlays.get(overlay.name)
                if known is None or known.generation != overlay.generation or not overlay.conditions:
                    self._changed.set()
                elif (known.devices, known.invalid) != (overlay.devices, overlay.invalid):
                    # Of annotations a generation says nothing.
                    self._changed.set()
            case events.PoolSeen(pool):
                earlier = before.pools.get(pool.key)
                if earlier is None or earlier.generation != pool.generation:
                    self._changed.set()
            case events.NodeClassSeen(node_class):
                once = before.node_classes.get(node_class.key)
                if once is None or once.generation != node_class.generation:
                    self._changed.set()
            case events.NodeOverlayGone() | events.PoolGone() | events.NodeClassGone():
                self._changed.set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self._changed.clear()
            try:
                complete = await self.reconcile_once()
            except (ApiError, ApiUnavailable) as error:
                self._log.warning(
                    f"the conditions of NodeOverlays could not be written, trying again: {error}"
                )
                complete = False
            rest = self._timing.overlays if complete else self._timing.overlays_retry
            if await set_within(self._changed, rest):
                await asyncio.sleep(_SETTLE_SECONDS)

    async def reconcile_once(self) -> bool:
        """One look at all overlays; whether it came to everything.

        Raises:
            ApiError, ApiUnavailable: Not every condition is written.
        """
        snapshot = self._cluster.snapshot
        overlays = [overlay for _, overlay in sorted(snapshot.node_overlays.items())]
        self._complete = True
        sold = await self._list_sold_types(snapshot) if overlays else []
        if any(ZONE_ID in overlay.requirements for overlay in overlays):
            pools = self._known.keys() - self._said.keys()
            self._zones |= zone_names(await pool_subnets(self._cloud, snapshot, pools))
        found = await asyncio.to_thread(evaluate, with_named_zones(overlays, self._zones), sold)
        self._apply(found)
        for overlay in overlays:
            if overlay.deletion_timestamp is None:
                await self._tell(overlay, found)
        return self._complete

    async def _list_sold_types(self, snapshot: Snapshot) -> list[tuple[Pool, tuple[InstanceType, ...]]]:
        """Pools with what is sold to them; what is not known now is said once, and asked for again soon."""
        sold, problems = await pools_sold(self._cloud, snapshot)
        known = {pool.key: (pool, types) for pool, types in sold}
        # What a cloud that cannot be asked now said last: overlays must not come and go with it.
        known |= {key: self._known[key] for key in problems if key in self._known}
        self._known = known
        for key in sorted(problems):
            if self._said.get(key) != problems[key]:
                self._log.warning(f"it is not known which NodeOverlays apply to {key}: {problems[key]}")
        self._said = problems
        self._complete = not problems
        return [known[key] for key in sorted(known)]

    def _apply(self, found: Evaluation) -> None:
        accepted = tuple(_means(overlay) for overlay in found.accepted)
        if accepted == self._applied:
            return
        self._applied = accepted
        self._cloud.use_overlays(accepted)
        names = tuple(overlay.name for overlay in accepted)
        if names:
            self._log.info(f"NodeOverlays that apply to prices and capacity: {', '.join(names)}")
        self._cluster.handle(events.OverlaysApplied(names))

    async def _tell(self, overlay: NodeOverlay, found: Evaluation) -> None:
        """Write the conditions of one overlay, if they say something new."""
        observed = (_validation(overlay, found),)
        conditions = updated_conditions(
            overlay.conditions, observed, self._timing.wall_clock(), overlay.generation
        )
        version = overlay.resource_version
        if same(overlay.conditions, conditions) or self._boundary.seconds_to_rest(overlay.name, version):
            return
        subject = Subject(NODE_OVERLAY.kind, overlay.name, overlay.uid)
        with self._boundary.around(overlay.name, version, subject):
            await self._write(overlay, conditions)
        if self._boundary.cause(overlay.name):
            self._complete = False

    async def _write(self, overlay: NodeOverlay, conditions: Iterable[Condition]) -> None:
        self._assert_leading()
        body = {
            "metadata": {"resourceVersion": overlay.resource_version},
            "status": {"conditions": conditions_to_api(conditions)},
        }
        try:
            await self._client.patch(NODE_OVERLAY.path(overlay.name, subresource="status"), body)
        except ApiError as error:
            # Gone, or changed meanwhile: then it is looked at anew.
            if error.status not in (_NOT_FOUND, _CONFLICTING):
                raise
            if error.status == _CONFLICTING:
                self._changed.set()


def _validation(overlay: NodeOverlay, found: Evaluation) -> Condition:
    if overlay.invalid:
        return Condition(VALIDATION_SUCCEEDED, "False", RUNTIME_VALIDATION, overlay.invalid)
    if contradiction := found.contradictions.get(overlay.name):
        return Condition(VALIDATION_SUCCEEDED, "False", CONFLICT, str(contradiction))
    message = _MEANS_NOTHING if overlay.name in found.unused else ""
    return Condition(VALIDATION_SUCCEEDED, "True", VALIDATION_SUCCEEDED, message)


def _means(overlay: NodeOverlay) -> NodeOverlay:
    """What the overlay says, whatever is said of it."""
    return replace(overlay, conditions=(), resource_version="", generation=0)
