"""The provisioner and two pools in a cluster that another stack made.

In a stack of your own the values below come from a StackReference to the stack that made the cluster.
"""

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import Environment

config = pulumi.Config()
environment = Environment(
    "nodeless",
    {
        "cluster_name": config.require("clusterName"),
        "existing_cluster": {
            "arn": f"arn:aws:eks:us-east-1:123456789012:cluster/{config.require('clusterName')}",
            "endpoint": config.require("endpoint"),
            "certificate_authority": config.get("certificateAuthority") or "",
            "oidc_provider_arn": config.require("oidcProviderArn"),
            "oidc_issuer": config.require("oidcIssuer"),
            "vpc_id": config.require("vpcId"),
            "private_subnet_ids": config.require_object("privateSubnetIds"),
            "security_group_id": config.require("securityGroupId"),
        },
        "controller_image": "ghcr.io/nodeless/controller:0.1.0",
        "node_templates": [{"name": "default", "ami_family": "Bottlerocket"}],
        "provisioners": [
            {
                "name": "spot",
                "node_template": "default",
                "weight": 10,
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                ],
                "limits": {"cpu": "200"},
                "consolidation": True,
            },
            {"name": "on-demand", "node_template": "default", "ttl_seconds_after_empty": 60},
        ],
    },
    pulumi.ResourceOptions(providers=[aws.Provider("aws", region="us-east-1")]),
)
pulumi.export("controllerRoleArn", environment.controller_role_arn)
