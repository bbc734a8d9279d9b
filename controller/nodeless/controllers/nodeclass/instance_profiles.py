"""The loop that sweeps instance profiles which outlived their use: of roles that were changed, of crashes."""

import asyncio

from nodeless.cloudprovider import CloudError, CloudProvider
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube.cluster import Cluster
from nodeless.operator.logs import logger

#: Seconds between two sweeps (Karpenter v1).
PERIOD = 1800.0


class ProfileLoop:
    """Sweeps; the first time a period after the start, so that no start waits for IAM."""

    def __init__(self, cluster: Cluster, cloud: CloudProvider, executor: InstructionExecutor) -> None:
        self._cluster = cluster
        self._cloud = cloud
        self._executor = executor
        self._log = logger("profiles")

    async def run(self) -> None:
        """Sweep until cancelled."""
        said = ""
        while True:
            await asyncio.sleep(PERIOD)
            try:
                await self.sweep_once()
                said = ""
            except CloudError as error:
                if str(error) != said:
                    said = str(error)
                    self._log.warning(f"unused instance profiles could not be listed: {error}")

    async def sweep_once(self) -> None:
        """One sweep.

        Raises:
            CloudError: Not all is swept; the next sweep does it.
        """
        snapshot = self._cluster.snapshot
        if snapshot.teardown:
            return
        self._executor.assert_leading()
        count = await self._cloud.sweep_instance_profiles(tuple(snapshot.node_classes.values()))
        if count:
            self._log.info("deleted unused instance profiles", count=count)
