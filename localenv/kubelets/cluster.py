"""The EKS cluster that these kubelets belong to, as the local AWS has it.

The cluster may be created long after the kubelets start: it is recognised by its endpoint. Without any such
cluster (a control plane alone) nodes join unasked and nothing runs on Fargate.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from localenv.kubelets.cloud import Cloud
from localenv.kubelets.fargate_profiles import FargateProfile, read_profile

log = logging.getLogger(__name__)

_REFRESH_SECONDS = 2.0
#: A pod created this long after its profile is sure to be claimed.
_FRESH_SECONDS = 0.25


class Cluster:
    """Facts about the cluster, refreshed in the background and on demand.

    Attributes:
        record: DescribeCluster's answer; None while the local AWS has no cluster with this endpoint.
        profiles: its Fargate profiles by name.
        pod_identities: namespace and name of each service account with a role by EKS Pod Identity.
    """

    def __init__(self, cloud: Cloud, endpoint: str) -> None:
        self._cloud = cloud
        self._endpoint = endpoint.rstrip("/")
        self.record: Mapping[str, Any] | None = None
        self.profiles: dict[str, FargateProfile] = {}
        self.pod_identities: frozenset[tuple[str, str]] = frozenset()
        self._asked = 0.0
        self._lock = asyncio.Lock()

    @property
    def name(self) -> str:
        """Name of the cluster, "" while there is none."""
        return str(self.record["name"]) if self.record else ""

    def is_endpoint(self, url: str) -> bool:
        """Whether this URL is the cluster's API server."""
        return url.rstrip("/") == self._endpoint

    async def run(self) -> None:
        """Refresh for ever."""
        while True:
            async with self._lock:
                await self._refresh(known=frozenset())
            await asyncio.sleep(_REFRESH_SECONDS)

    async def fresh(self) -> None:
        """Make sure that what was created a moment ago is known; concurrent callers share one look."""
        asked = time.monotonic()
        async with self._lock:
            if self._asked < asked - _FRESH_SECONDS:
                await self._refresh(known=frozenset(self.profiles))

    async def _refresh(self, known: frozenset[str]) -> None:
        asked = time.monotonic()
        try:
            if self.record is None or not known:
                found = await self._cloud.clusters()
                self.record = next(
                    (each for each in found if self.is_endpoint(each.get("endpoint", ""))), None
                )
            if self.record is None:
                self.profiles, self.pod_identities = {}, frozenset()
            else:
                await self._refresh_profiles(known)
                self.pod_identities = await self._cloud.pod_identities(self.name)
        except (ClientError, BotoCoreError) as error:
            log.warning("reading the cluster from AWS: %s", error)
        self._asked = asked

    async def _refresh_profiles(self, known: frozenset[str]) -> None:
        names = await self._cloud.fargate_profiles(self.name)
        profiles = {}
        for name in names:
            if name in known:
                profiles[name] = self.profiles[name]
            else:
                profiles[name] = read_profile(await self._cloud.fargate_profile(self.name, name))
        self.profiles = profiles

    async def describe_cluster(self, name: str) -> Mapping[str, Any] | None:
        """Return DescribeCluster of a cluster by name, as a bootstrap script asks; None if there is none."""
        return next((cluster for cluster in await self._cloud.clusters() if cluster["name"] == name), None)
