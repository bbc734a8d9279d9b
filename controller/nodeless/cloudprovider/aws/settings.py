"""What the AWS provider must be told; all of it comes from the controller's settings or the API server."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeless.cloudprovider.billing.terms import BillTerms


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """Settings of the AWS provider (ConfigMap `karpenter-global-settings`, keys `aws.*`).

    What is left empty is found at start: the region from boto3's chain, endpoint, certificate authority,
    version and service network from `eks:DescribeCluster`.
    """

    cluster_name: str
    cluster_endpoint: str = ""
    region: str = ""
    default_instance_profile: str = ""
    vm_memory_overhead_percent: float = 0.075
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    certificate_authority: str | None = None
    """Base64 of the PEM."""
    kubernetes_version: str = ""
    """`major.minor`; decides which images are the default ones."""
    cluster_dns: str = ""
    """Address of Service `kube-system/kube-dns`; empty: nodes compute it."""
    eni_limited_pod_density: bool = True
    pod_eni: bool = False
    """Offer pods network interfaces of their own (`vpc.amazonaws.com/pod-eni`)."""
    reserved_interfaces: int = 0
    """Network interfaces of each node that are kept from the VPC CNI."""
    prefix_delegation: bool = False
    """The VPC CNI takes prefixes of addresses, so that nodes hold more pods."""
    pods_in_subnets: bool = True
    """Pods have IPv4 addresses of their node's subnet."""
    isolated_vpc: bool = False
    """No route to the Pricing API: on-demand prices stay the bundled ones."""
    dry_runs: bool = True
    """Ask EC2 whether launches would be allowed: at start, and of each EC2NodeClass."""
    image_refresh_seconds: float = 60.0
    """How long an answer on images serves; default images an hour at least."""
    subnet_refresh_seconds: float = 60.0
    """How long an answer on subnets serves."""
    zonal_shift: bool = False
    """Keep off zones that AWS shifts the cluster away from."""
    best_effort_min_values: bool = False
    """Launch although fewer types than a pool's `minValues` asks for are available."""
    bill: BillTerms = field(default_factory=BillTerms)
    """What a node costs besides its instance."""
    interruption_queue: str = ""
    """Name of the SQS queue with warnings about instances; empty: there is none."""
