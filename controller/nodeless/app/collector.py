"""Claims and instances that lost each other, found by listing both."""

import asyncio

from nodeless.app.clock import wall_clock
from nodeless.app.cluster import Cluster
from nodeless.app.hands import Hands
from nodeless.app.logs import logger
from nodeless.app.metrics import Metrics
from nodeless.app.quarantine import ErrorBoundary
from nodeless.app.work_metrics import CLAIM_COLLECTION
from nodeless.cloud import CloudError, CloudProvider
from nodeless.lifecycle import collect
from nodeless.watch import ApiError, ApiUnavailable


class Collector:
    """The loop that lists and compares."""

    #: Often at first, when a crash may just have happened; then every two minutes (Karpenter's periods).
    _EAGER_ROUNDS = 20
    _EAGER_SECONDS = 10.0
    _CALM_SECONDS = 120.0

    def __init__(self, cluster: Cluster, cloud: CloudProvider, hands: Hands, metrics: Metrics) -> None:
        self._cluster = cluster
        self._cloud = cloud
        self._hands = hands
        self._metrics = metrics
        self._boundary = ErrorBoundary("instance or claim to collect", metrics)
        self._log = logger("collector")

    async def run(self) -> None:
        """Collect until cancelled."""
        rounds = 0
        said = ""
        while True:
            try:
                with self._metrics.work.reconciling(CLAIM_COLLECTION):
                    await self.collect_once()
                rounds += 1
                said = ""
            except (ApiError, ApiUnavailable, CloudError) as error:
                if str(error) != said:
                    said = str(error)
                    self._log.warning(f"collection failed, trying again: {error}")
            eager = rounds < self._EAGER_ROUNDS
            await asyncio.sleep(self._EAGER_SECONDS if eager else self._CALM_SECONDS)

    async def collect_once(self) -> None:
        """One round."""
        listed_at = wall_clock()
        instances = await self._cloud.instances()
        instructions = collect(self._cluster.snapshot, instances, listed_at, wall_clock())
        for instruction in instructions:
            if self._boundary.held(instruction.cause):
                continue
            with self._boundary.around(instruction.cause):
                self._log.info("collecting", cause=instruction.cause, what=type(instruction).__name__)
                await self._hands.carry_out((instruction,))
