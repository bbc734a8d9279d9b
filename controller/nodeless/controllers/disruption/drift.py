"""Drift, looked at every five minutes, and soon after a pool, a node class or a node's labels change."""

import asyncio
from collections.abc import Mapping

from nodeless.cloudprovider import CloudError, CloudProvider
from nodeless.cloudprovider.pool_catalogs import pool_catalogs
from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.launch.resolved import ResolvedNodeClass
from nodeless.model import events
from nodeless.model.events import Event
from nodeless.model.nodes import LAUNCHED
from nodeless.model.pools import EC2_NODE_CLASS, NodeClass
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.drift import DriftView, Selected, step_drift
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.timing import TIMING, Timing
from nodeless.operator.wait_event import set_within
from nodeless.operator.work_metrics import CLAIM_DRIFT

#: After a change: long enough for the edits that usually come together.
_SETTLE_SECONDS = 1.0


class DriftLoop:
    """Compares every claim with what would be made today."""

    def __init__(
        self,
        cluster: Cluster,
        cloud: CloudProvider,
        executor: InstructionExecutor,
        metrics: Metrics,
        settings: GlobalSettings | None = None,
        timing: Timing = TIMING,
    ) -> None:
        self._timing = timing
        self._marks_provisioners = settings is not None and settings.drift_enabled
        self._cluster = cluster
        self._cloud = cloud
        self._executor = executor
        self._metrics = metrics
        self._boundary = ErrorBoundary("claim's drift", metrics)
        self._changed = asyncio.Event()
        self._log = logger("drift")
        cluster.listen(self._on_event)

    def use(self, settings: GlobalSettings) -> None:
        """Follow other settings, and look at once when drift of Provisioners was turned on or off."""
        if settings.drift_enabled != self._marks_provisioners:
            self._marks_provisioners = settings.drift_enabled
            self._changed.set()

    def _on_event(self, event: Event, before: Snapshot, _after: Snapshot) -> None:
        match event:
            case events.PoolSeen(pool):
                known = before.pools.get(pool.key)
                if known is not None and known.generation != pool.generation:
                    self._changed.set()
            case events.NodeClassSeen(node_class):
                earlier = before.node_classes.get(node_class.key)
                if earlier is not None and earlier.generation != node_class.generation:
                    self._changed.set()
            case events.ClaimSeen(claim):
                # One that has left its capacity reservation may not be what its pool asks for any more.
                once = before.claims.get(claim.name)
                if once is not None and once.is_true(LAUNCHED) and once.labels != claim.labels:
                    self._changed.set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                with self._metrics.work.measure_reconciliation(CLAIM_DRIFT):
                    await self.reconcile_once()
            except (ApiError, ApiUnavailable, CloudError) as error:
                self._log.warning(f"drift could not be checked, trying again: {error}")
            if await set_within(self._changed, self._timing.drift):
                await asyncio.sleep(_SETTLE_SECONDS)
            self._changed.clear()

    async def reconcile_once(self) -> None:
        """One look at all claims."""
        snapshot = self._cluster.snapshot
        if not snapshot.claims or snapshot.teardown:
            return
        selected = await selections(self._cloud, snapshot)
        catalog, _ = await pool_catalogs(self._cloud, snapshot)
        instances = {each.provider_id: each for each in await self._cloud.instances()}
        for _, claim in sorted(snapshot.claims.items()):
            pool = snapshot.pools.get(str(claim.pool))
            if pool is None:
                continue
            types = catalog.get(pool.key)
            view = DriftView(
                claim,
                pool,
                snapshot.node_classes.get(str(claim.node_class)),
                selected.get(str(claim.node_class)),
                instances.get(claim.provider_id),
                {kind.name: kind for kind in types} if types else None,
                snapshot.node_of(claim),
                self._marks_provisioners,
            )
            if self._boundary.seconds_to_rest(claim.name, claim.resource_version):
                continue
            with self._boundary.around(claim.name, claim.resource_version):
                try:
                    await self._executor.carry_out(step_drift(view, self._timing.wall_clock()).instructions)
                except ApiError as error:
                    if error.status != 409:
                        raise
                    # Changed meanwhile: it is looked at again.
                    self._changed.set()


async def selections(cloud: CloudProvider, snapshot: Snapshot) -> Mapping[str, Selected]:
    """What each node class selects; those that select nothing now tell nothing about drift."""
    found: dict[str, Selected] = {}
    for key, node_class in sorted(snapshot.node_classes.items()):
        if node_class.invalid:
            continue
        try:
            resolved = await cloud.resolve(node_class)
        except CloudError:
            continue
        found[key] = Selected(
            frozenset(subnet.id for subnet in resolved.subnets),
            frozenset(resolved.security_groups),
            tuple((image.id, image.requirements) for image in resolved.images),
            frozenset(each.id for each in resolved.reservations),
            _placement_group(node_class, resolved),
        )
    return found


def _placement_group(node_class: NodeClass, resolved: ResolvedNodeClass) -> str | None:
    """Its id; a node template says nothing of groups: its own launch template may name one."""
    if node_class.reference.kind != EC2_NODE_CLASS:
        return None
    return resolved.placement_group.id if resolved.placement_group is not None else ""
