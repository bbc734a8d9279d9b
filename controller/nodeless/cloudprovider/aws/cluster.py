"""What new nodes must know of their cluster: the settings, and what they omit from EKS."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.caching import Cache, Clock
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.session import AwsSession, invoke
from nodeless.cloudprovider.aws.settings import AwsSettings
from nodeless.launch.kubelet_arguments import Cluster

#: Seconds; an upgrade of the control plane brings newer default images within this time.
_FRESH = 900.0
_USABLE = 12 * 3600.0
#: Seconds, as Karpenter v1 asks the API server for its version.
_VERSION_FRESH = 300.0


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """The cluster, and its Kubernetes version (`1.29`)."""

    cluster: Cluster
    version: str


class ClusterFacts:
    """Finds out what is to be known of the cluster."""

    def __init__(
        self,
        session: AwsSession,
        settings: AwsSettings,
        clock: Clock,
        ask_version: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self._session = session
        self._settings = settings
        #: Tells the version of a cluster of which EKS is not asked.
        self._ask_version = ask_version
        self._versions: Cache[str] = Cache(clock, _VERSION_FRESH, _USABLE)
        self._cache: Cache[dict[str, Any]] = Cache(clock, _FRESH, _USABLE)

    async def get(self, *, with_service_cidr: bool = False) -> KnownCluster:
        """The facts; EKS is asked only for what the settings omit.

        Raises:
            nodeless.cloudprovider.CloudError: EKS knows no such cluster.
        """
        given = self._settings
        version = given.kubernetes_version
        if not version and self._ask_version is not None:
            version = await self._versions.get("version", self._ask_version)
        complete = given.cluster_endpoint and given.certificate_authority and version
        described: dict[str, Any] = {}
        if not complete or with_service_cidr:
            described = await self._cache.get("cluster", lambda: self._session.run(self._describe))
        network = described.get("kubernetesNetworkConfig", {})
        authority = described.get("certificateAuthority", {}).get("data", "")
        version = version or str(described.get("version", ""))
        return KnownCluster(
            Cluster(
                name=given.cluster_name,
                endpoint=given.cluster_endpoint or str(described.get("endpoint", "")),
                certificate_authority=given.certificate_authority or authority,
                dns=given.cluster_dns,
                service_cidr=network.get("serviceIpv4Cidr") or network.get("serviceIpv6Cidr") or "",
            ),
            version.rstrip("+").removeprefix("v"),
        )

    async def arn(self) -> str:
        """The cluster's ARN, which EKS alone knows.

        Raises:
            nodeless.cloudprovider.CloudError: EKS knows no such cluster.
        """
        described = await self._cache.get("cluster", lambda: self._session.run(self._describe))
        return str(described["arn"])

    def _describe(self) -> dict[str, Any]:
        name = self._settings.cluster_name
        with self._session.borrow_client("eks") as client:
            try:
                described: dict[str, Any] = invoke(client, "describe_cluster", {"name": name})["cluster"]
            except AwsCallRefused as error:
                if error.code != "ResourceNotFoundException":
                    raise
                raise CloudError(
                    f"EKS has no cluster {name!r} in {self._session.region}",
                    "set aws.clusterName in ConfigMap karpenter-global-settings, and AWS_REGION",
                ) from error
        return described
