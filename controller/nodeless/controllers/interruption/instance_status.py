"""The loop that asks the cloud, once a minute, which instances are in trouble.

An instance whose status checks fail is ended without a drain: its kubelet most likely
answers nobody. One that AWS is going to stop or reboot is drained. No queue is needed.
"""

import asyncio

from nodeless.cloudprovider import CloudError, CloudProvider
from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.model.interruptions import Interruption
from nodeless.model.nodes import NodeClaim
from nodeless.nodeclaim.interruption import claims_by_instance, react_to_warning
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics

#: Seconds between two looks (Karpenter v1).
PERIOD = 60.0


class InstanceStatusController:
    """Asks and carries out what follows."""

    def __init__(
        self, cluster: Cluster, cloud: CloudProvider, executor: InstructionExecutor, metrics: Metrics
    ) -> None:
        self._cluster = cluster
        self._cloud = cloud
        self._executor = executor
        self._metrics = metrics
        self._boundary = ErrorBoundary("instance in trouble", metrics)
        self._said = ""
        self._log = logger("trouble")

    async def run(self) -> None:
        """Look until cancelled; what keeps it from looking is said once."""
        while True:
            try:
                await self.reconcile_once()
                self._said = ""
            except (ApiError, ApiUnavailable, CloudError) as error:
                if str(error) != self._said:
                    self._said = str(error)
                    self._log.warning(f"cannot look for impaired instances: {error}")
            await asyncio.sleep(PERIOD)

    async def reconcile_once(self) -> None:
        """One look; without claims there is nothing to ask for.

        Raises:
            CloudError, ApiError, ApiUnavailable: Not all is done; the next look does it.
        """
        claims = claims_by_instance(self._cluster.snapshot)
        if not claims:
            return
        for warning in await self._cloud.impaired_instances():
            ids = ", ".join(warning.instance_ids)
            if not self._boundary.seconds_to_rest(ids):
                with self._boundary.around(ids):
                    await self._react(warning, claims)

    async def _react(self, warning: Interruption, claims: dict[str, NodeClaim]) -> None:
        reaction = react_to_warning(self._cluster.snapshot, claims, warning)
        if not reaction.instructions:
            return
        self._log.warning(
            "instance in trouble", kind=warning.kind.value, instances=", ".join(warning.instance_ids)
        )
        await self._executor.carry_out(reaction.instructions)
        self._metrics.interruption_actions.labels("CordonAndDrain").inc(reaction.drained)
