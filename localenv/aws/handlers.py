"""Every call that the local AWS answers itself, by (service, operation); all others are moto's."""

from __future__ import annotations

from localenv.aws import (
    capacity_reservations,
    dependencies,
    ec2_describe,
    eks_access,
    eks_addons,
    eks_clusters,
    eks_fargate,
    fault_injection,
    fleet,
    image_deprecation,
    images,
    instance_launch,
    instance_profiles,
    instance_types,
    launch_templates,
    placement_groups,
    pod_identity,
    pricing,
    queues,
    vpc_endpoints,
    web_identity,
    zonal_shifts,
)
from localenv.aws.calls import Handlers

ALL: Handlers = {
    **capacity_reservations.HANDLERS,
    **dependencies.HANDLERS,
    **ec2_describe.HANDLERS,
    **launch_templates.HANDLERS,
    **web_identity.HANDLERS,
    **eks_access.HANDLERS,
    **eks_addons.HANDLERS,
    **eks_clusters.HANDLERS,
    **eks_fargate.HANDLERS,
    **fault_injection.HANDLERS,
    **fleet.HANDLERS,
    **image_deprecation.HANDLERS,
    **images.HANDLERS,
    **instance_launch.HANDLERS,
    **instance_profiles.HANDLERS,
    **instance_types.HANDLERS,
    **placement_groups.HANDLERS,
    **pod_identity.HANDLERS,
    **pricing.HANDLERS,
    **queues.HANDLERS,
    **vpc_endpoints.HANDLERS,
    **zonal_shifts.HANDLERS,
}
