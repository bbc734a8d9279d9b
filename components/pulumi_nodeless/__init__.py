"""Pulumi components: an EKS cluster without node groups, and the provisioner that runs in it.

`Environment` is the whole; the others are its parts, each usable alone. Names are imported when they are
first asked for: the pure helpers beside the components need no cloud SDK and start without one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pulumi_nodeless.installation import check_installation

if TYPE_CHECKING:
    from pulumi_nodeless.adopted_network import AdoptedNetwork, AdoptedNetworkArgs
    from pulumi_nodeless.arguments import ArgumentError
    from pulumi_nodeless.capacity import Capacity, CapacityArgs
    from pulumi_nodeless.cluster import Cluster, ClusterArgs
    from pulumi_nodeless.controller import Controller, ControllerArgs
    from pulumi_nodeless.controller_identity import ControllerIdentity, ControllerIdentityArgs
    from pulumi_nodeless.environment import Environment
    from pulumi_nodeless.environment_args import EnvironmentArgs, ExistingClusterArgs, ExistingVpcArgs
    from pulumi_nodeless.fargate import (
        FargateProfiles,
        FargateProfilesArgs,
        PodExecutionRole,
        PodExecutionRoleArgs,
    )
    from pulumi_nodeless.identity import (
        NodeAccess,
        NodeAccessArgs,
        NodeIdentity,
        NodeIdentityArgs,
    )
    from pulumi_nodeless.image import ControllerImage, ControllerImageArgs
    from pulumi_nodeless.interruption import InterruptionQueue, InterruptionQueueArgs
    from pulumi_nodeless.load_balancer import LoadBalancerController, LoadBalancerControllerArgs
    from pulumi_nodeless.network import Network, NetworkArgs
    from pulumi_nodeless.pools import NodeTemplateArgs, ProvisionerArgs
    from pulumi_nodeless.pools_v1 import NodeClassArgs, NodePoolArgs
    from pulumi_nodeless.teardown import TeardownGuard, TeardownGuardArgs

__version__ = "0.1.0"

# Before any module of ours asks the package for more: another product's has the same name.
check_installation(__version__)

_HOMES = {
    "AdoptedNetwork": "adopted_network",
    "AdoptedNetworkArgs": "adopted_network",
    "ArgumentError": "arguments",
    "Capacity": "capacity",
    "CapacityArgs": "capacity",
    "Cluster": "cluster",
    "ClusterArgs": "cluster",
    "Controller": "controller",
    "ControllerArgs": "controller",
    "ControllerIdentity": "controller_identity",
    "ControllerIdentityArgs": "controller_identity",
    "ControllerImage": "image",
    "ControllerImageArgs": "image",
    "Environment": "environment",
    "EnvironmentArgs": "environment_args",
    "ExistingClusterArgs": "environment_args",
    "ExistingVpcArgs": "environment_args",
    "FargateProfiles": "fargate",
    "FargateProfilesArgs": "fargate",
    "InterruptionQueue": "interruption",
    "InterruptionQueueArgs": "interruption",
    "LoadBalancerController": "load_balancer",
    "LoadBalancerControllerArgs": "load_balancer",
    "Network": "network",
    "NetworkArgs": "network",
    "NodeAccess": "identity",
    "NodeAccessArgs": "identity",
    "NodeClassArgs": "pools_v1",
    "NodeIdentity": "identity",
    "NodeIdentityArgs": "identity",
    "NodePoolArgs": "pools_v1",
    "NodeTemplateArgs": "pools",
    "PodExecutionRole": "fargate",
    "PodExecutionRoleArgs": "fargate",
    "ProvisionerArgs": "pools",
    "TeardownGuard": "teardown",
    "TeardownGuardArgs": "teardown",
}

__all__ = [
    "AdoptedNetwork",
    "AdoptedNetworkArgs",
    "ArgumentError",
    "Capacity",
    "CapacityArgs",
    "Cluster",
    "ClusterArgs",
    "Controller",
    "ControllerArgs",
    "ControllerIdentity",
    "ControllerIdentityArgs",
    "ControllerImage",
    "ControllerImageArgs",
    "Environment",
    "EnvironmentArgs",
    "ExistingClusterArgs",
    "ExistingVpcArgs",
    "FargateProfiles",
    "FargateProfilesArgs",
    "InterruptionQueue",
    "InterruptionQueueArgs",
    "LoadBalancerController",
    "LoadBalancerControllerArgs",
    "Network",
    "NetworkArgs",
    "NodeAccess",
    "NodeAccessArgs",
    "NodeClassArgs",
    "NodeIdentity",
    "NodeIdentityArgs",
    "NodePoolArgs",
    "NodeTemplateArgs",
    "PodExecutionRole",
    "PodExecutionRoleArgs",
    "ProvisionerArgs",
    "TeardownGuard",
    "TeardownGuardArgs",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
