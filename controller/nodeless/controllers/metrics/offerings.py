"""The loop that shows what the pools may buy as series of instance types and their offerings."""

import asyncio

from nodeless.cloudprovider import CloudProvider
from nodeless.cloudprovider.pool_catalogs import pool_catalogs
from nodeless.kube.cluster import Cluster
from nodeless.operator.offering_metrics import OfferingMetrics

#: Seconds between two looks at the catalogs (Karpenter v1).
PERIOD = 60.0


class OfferingMetricsLoop:
    """Shows the pools' catalogs once a minute; a pool whose catalog cannot be had shows nothing."""

    def __init__(self, cluster: Cluster, cloud: CloudProvider, metrics: OfferingMetrics) -> None:
        self._cluster = cluster
        self._cloud = cloud
        self._metrics = metrics

    async def run(self) -> None:
        """Show until cancelled."""
        while True:
            await self.show_once()
            await asyncio.sleep(PERIOD)

    async def show_once(self) -> None:
        """Show what the pools can buy now."""
        catalogs, _ = await pool_catalogs(self._cloud, self._cluster.snapshot)
        self._metrics.show(catalogs)
