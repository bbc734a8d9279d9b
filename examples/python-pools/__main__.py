"""Pools of one team, in a cluster that another stack made.

What the pools need of the environment comes from that stack's outputs. Its teardown guard stays the one that
counts: when the environment is destroyed first, the controller deletes these pools too, and
`pulumi refresh` here tells this stack so.
"""

import json
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from pulumi_nodeless import Capacity


def as_text(kubeconfig: Any) -> str:
    """The provider takes a kubeconfig as text; the environment exports it as an object."""
    return json.dumps(kubeconfig)


config = pulumi.Config()
team = config.require("team")
environment = pulumi.StackReference(config.require("environmentStack"))
cluster = k8s.Provider(
    "cluster",
    kubeconfig=environment.require_output("kubeconfig").apply(as_text),
    cluster_identifier=config.require("clusterName"),
    enable_server_side_apply=True,
)
capacity = Capacity(
    f"{team}-capacity",
    {
        "cluster_name": config.require("clusterName"),
        "instance_profile": environment.require_output("instanceProfileName"),
        "node_classes": [{"name": team, "ami_alias": "bottlerocket@latest", "tags": {"team": team}}],
        "node_pools": [
            {
                "name": team,
                "node_class": team,
                "labels": {"team": team},
                "taints": [{"key": "team", "value": team, "effect": "NoSchedule"}],
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                ],
                "limits": {"cpu": "200", "memory": "800Gi"},
                "budgets": [{"nodes": "10%"}],
            }
        ],
    },
    pulumi.ResourceOptions(providers=[cluster]),
)
pulumi.export("nodePools", capacity.node_pool_names)
