"""The full environment on AWS, from a stack's configuration.

Reads every key that Pulumi.yaml declares and hands it to `pulumi_nodeless.Environment`. Defaults live with
the component and are repeated in Pulumi.yaml for its readers; a key that is not set is not handed on. Members
of objects are written in camelCase, as the keys are.
"""

from typing import Any

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import Environment, EnvironmentArgs
from pulumi_nodeless.shapes import kinds, python_members


def environment_args(config: pulumi.Config) -> EnvironmentArgs:
    """The environment's arguments as configured."""
    given: dict[str, Any] = {
        "kubernetes_version": config.get("kubernetesVersion") or None,
        "vpc_cidr": config.get("vpcCidr"),
        "zone_count": config.get_int("zoneCount"),
        "availability_zones": config.get_object("availabilityZones") or None,
        "nat_gateways": config.get("natGateways"),
        "service_endpoints": config.get_bool("serviceEndpoints") or None,
        "intra_subnets": config.get_bool("intraSubnets"),
        "authentication_mode": config.get("authenticationMode"),
        "endpoint_public_access": config.get_bool("endpointPublicAccess"),
        "public_access_cidrs": config.get_object("publicAccessCidrs") or None,
        "cluster_log_types": config.get_object("clusterLogTypes") or None,
        "secrets_key_arn": config.get("secretsKeyArn") or None,
        "protect": config.get_bool("protect") or None,
        "controller_namespace": config.get("controllerNamespace"),
        "controller_image": config.get("controllerImage") or None,
        "build_image": config.get_bool("buildImage"),
        "image_base": config.get("imageBase") or None,
        "controller_replicas": config.get_int("controllerReplicas"),
        "controller_log_level": config.get("controllerLogLevel"),
        "controller_settings": config.get_object("controllerSettings"),
        "controller_environment": config.get_object("controllerEnvironment"),
        "controller_network_policy": config.get_bool("controllerNetworkPolicy"),
        "controller_webhook_cidrs": config.get_object("controllerWebhookCidrs") or None,
        "controller_permissions": config.get("controllerPermissions"),
        "controller_identity": config.get("controllerIdentity"),
        "fargate_profiles": config.get_object("fargateProfiles") or None,
        "interruption_queue": config.get_bool("interruptionQueue"),
        "load_balancer_controller": config.get_bool("loadBalancerController"),
        "manage_coredns": config.get_bool("manageCoredns"),
        "node_templates": config.get_object("nodeTemplates") or None,
        "provisioners": config.get_object("provisioners") or None,
        "node_classes": config.get_object("nodeClasses") or None,
        "node_pools": config.get_object("nodePools") or None,
        "preview_plan": config.get_bool("previewPlan"),
        "teardown_timeout_minutes": config.get_int("teardownTimeoutMinutes"),
        "teardown_drain_minutes": config.get_int("teardownDrainMinutes") or None,
        "tags": config.get_object("tags"),
    }
    if config.get_bool("defaultPool") is False:
        given |= {name: given[name] or [] for name in ("node_templates", "provisioners")}
    kind_of = kinds(EnvironmentArgs)
    args: EnvironmentArgs = {"cluster_name": config.get("clusterName") or f"nodeless-{pulumi.get_stack()}"}
    for name, value in given.items():
        if value is not None:
            # The names above are those of EnvironmentArgs.
            args[name] = python_members(value, kind_of[name])  # type: ignore[literal-required]
    return args


provider = aws.Provider("aws", region=pulumi.Config("aws").require("region"))
environment = Environment(
    "nodeless",
    environment_args(pulumi.Config("nodeless")),
    pulumi.ResourceOptions(providers=[provider]),
)
for name, output in environment.outputs().items():
    pulumi.export(name, output)
