"""The loop that ends nodes which were launched for provisioning requests that never get their capacity.

What is done to which claim is decided in `disruption.request_nodes`, from claims and conditions alone:
nothing is remembered here.
"""

import asyncio

from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.controllers.executor.of_claims import carry_out_of_claims
from nodeless.disruption.request_nodes import request_node_steps
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import TIMING, Timing


class RequestNodeLoop:
    """Looks at the claims that were launched for requests; without one there is nothing to do."""

    def __init__(
        self, cluster: Cluster, executor: InstructionExecutor, metrics: Metrics, timing: Timing = TIMING
    ) -> None:
        self._cluster = cluster
        self._executor = executor
        self._timing = timing
        self._boundary = ErrorBoundary("claim's request", metrics)
        self._log = logger("provisioning-requests")

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.reconcile_once()
            except (ApiError, ApiUnavailable) as error:
                self._log.warning(f"the nodes of requests could not be released, trying again: {error}")
            await asyncio.sleep(self._timing.request_nodes)

    async def reconcile_once(self) -> None:
        """One look at all claims that were launched for requests.

        Raises:
            ApiError, ApiUnavailable: Not all is done; the next look does it.
        """
        snapshot = self._cluster.snapshot
        if snapshot.room_unknown:
            return
        steps = request_node_steps(snapshot, self._timing.wall_clock())
        await carry_out_of_claims(steps, self._cluster, self._executor, self._boundary)
