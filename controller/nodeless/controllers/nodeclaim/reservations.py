"""The loop that asks the cloud, once a minute, whether reserved nodes are in their reservations yet."""

import asyncio

from nodeless.cloudprovider import CloudError, CloudProvider
from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.model.placement import CapacityReservation
from nodeless.nodeclaim.reservations import ReservationView, is_concerned, step_reservation
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import TIMING, Timing


class ReservationLoop:
    """Asks and carries out what follows; without a reserved node there is nothing to ask for."""

    def __init__(
        self,
        cluster: Cluster,
        cloud: CloudProvider,
        executor: InstructionExecutor,
        metrics: Metrics,
        timing: Timing = TIMING,
    ) -> None:
        self._timing = timing
        self._boundary = ErrorBoundary("claim's reservation", metrics)
        self._cluster = cluster
        self._cloud = cloud
        self._executor = executor
        self._log = logger("reservations")

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.reconcile_once()
            except (ApiError, ApiUnavailable, CloudError) as error:
                self._log.warning(f"reservations could not be checked, trying again: {error}")
            await asyncio.sleep(self._timing.reservations)

    async def reconcile_once(self) -> None:
        """One look at all claims that it is about.

        Raises:
            CloudError, ApiError, ApiUnavailable: Not all is done; the next look does it.
        """
        snapshot = self._cluster.snapshot
        claims = [claim for _, claim in sorted(snapshot.claims.items()) if is_concerned(claim)]
        if not claims:
            return
        instances = {each.provider_id: each for each in await self._cloud.instances()}
        keys = {str(claim.node_class) for claim in claims}
        reservations = {key: await self._reservations(key) for key in sorted(keys)}
        for claim in claims:
            node = snapshot.node_of(claim)
            view = ReservationView(
                claim,
                node,
                instances.get(claim.provider_id),
                reservations[str(claim.node_class)],
                tuple(snapshot.pods_on(node.name)) if node is not None else (),
            )
            if not self._boundary.seconds_to_rest(claim.name, claim.resource_version):
                with self._boundary.around(claim.name, claim.resource_version):
                    await self._executor.carry_out(step_reservation(view, self._timing.wall_clock()))

    async def _reservations(self, key: str) -> dict[str, CapacityReservation]:
        """Those of a node class; none when it cannot be resolved now."""
        node_class = self._cluster.snapshot.node_classes.get(key)
        if node_class is None or node_class.invalid:
            return {}
        try:
            resolved = await self._cloud.resolve(node_class)
        except CloudError:
            return {}
        return {each.id: each for each in resolved.reservations}
