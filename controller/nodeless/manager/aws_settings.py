"""The AWS provider's settings out of the controller's."""

from nodeless.cloudprovider.aws import AwsSettings
from nodeless.cloudprovider.billing.terms import bill_terms
from nodeless.operator.settings import OF_SUBNETS, GlobalSettings


def aws_settings(
    settings: GlobalSettings, region: str, cluster_dns: str, certificate_authority: str = ""
) -> AwsSettings:
    """What the provider must be told.

    Args:
        settings: The controller's.
        region: Empty: boto3 finds it.
        cluster_dns: Address of the cluster's DNS service; empty: not known.
        certificate_authority: Of the API server as the controller knows it, as base64; for clusters of which
            EKS is not asked.
    """
    known = "" if settings.eks_control_plane else certificate_authority
    return AwsSettings(
        cluster_name=settings.cluster_name,
        cluster_endpoint=settings.cluster_endpoint,
        region=region,
        default_instance_profile=settings.default_instance_profile,
        vm_memory_overhead_percent=settings.vm_memory_overhead_percent,
        tags=dict(settings.tags),
        cluster_dns=cluster_dns,
        certificate_authority=settings.cluster_ca_bundle or known or None,
        image_refresh_seconds=settings.ami_refresh_interval,
        subnet_refresh_seconds=settings.subnet_refresh_interval,
        eni_limited_pod_density=settings.enable_eni_limited_pod_density,
        pod_eni=settings.enable_pod_eni,
        reserved_interfaces=settings.reserved_interfaces,
        prefix_delegation=settings.prefix_delegation,
        pods_in_subnets=settings.pod_addresses == OF_SUBNETS,
        dry_runs=not settings.disable_dry_run,
        zonal_shift=settings.zonal_shift,
        isolated_vpc=settings.isolated_vpc,
        best_effort_min_values=settings.min_values_policy == "BestEffort",
        bill=bill_terms(settings),
        interruption_queue=settings.interruption_queue_name,
    )
