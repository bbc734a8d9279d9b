"""Small Pulumi programs, as a user would write them."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from localenv.control_plane import ControlPlane


def on_aws() -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(provider=aws.Provider("aws", region="us-east-1"))


def in_cluster(control_plane: ControlPlane, *, upserts: bool = False, **more: Any) -> pulumi.ResourceOptions:
    """Objects go to the cluster; with `upserts` those that are there are taken over, as in an environment."""
    provider = k8s.Provider(
        "cluster", kubeconfig=control_plane.kubeconfig.read_text(), upsert_existing_objects=upserts or None
    )
    return pulumi.ResourceOptions(provider=provider, **more)


def network(block: str = "10.0.0.0/16", **tags: str) -> None:
    """A VPC with two subnets, one of them public behind a gateway."""
    options = on_aws()
    vpc = aws.ec2.Vpc("net", cidr_block=block, enable_dns_hostnames=True, tags=tags, opts=options)
    prefix = block.rsplit(".", 2)[0]
    for index in range(2):
        aws.ec2.Subnet(
            f"subnet-{index}",
            vpc_id=vpc.id,
            cidr_block=f"{prefix}.{index}.0/24",
            availability_zone=f"us-east-1{'ab'[index]}",
            map_public_ip_on_launch=index == 0,
            opts=options,
        )
    pulumi.export("vpc", vpc.id)
