"""Every call that the local AWS answers itself, by (service, operation); all others are moto's."""

from __future__ import annotations

from localenv.aws import (
    ec2_describe,
    eks_access,
    eks_addons,
    eks_clusters,
    eks_fargate,
    images,
    instance_types,
    pod_identity,
    pricing,
    web_identity,
    zonal_shifts,
)
from localenv.aws.calls import Handlers
from localenv.aws.upstream import (
    capacity_reservations,
    dependency_violations,
    image_deprecation,
    instance_launch,
    instance_profiles,
    instance_status,
    instant_fleets,
    launch_templates,
    pages,
    placement_groups,
    spot_interruption_experiments,
    tags_of_missing_resources,
    vpc_endpoint_routes,
)

_MODULES = (
    capacity_reservations,
    dependency_violations,
    image_deprecation,
    instance_launch,
    instance_profiles,
    instance_status,
    instant_fleets,
    launch_templates,
    pages,
    placement_groups,
    spot_interruption_experiments,
    tags_of_missing_resources,
    vpc_endpoint_routes,
    ec2_describe,
    eks_access,
    eks_addons,
    eks_clusters,
    eks_fargate,
    images,
    instance_types,
    pod_identity,
    pricing,
    web_identity,
    zonal_shifts,
)

ALL: Handlers = {call: handler for module in _MODULES for call, handler in module.HANDLERS.items()}
