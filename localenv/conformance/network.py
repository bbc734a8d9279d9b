"""The network as eksctl makes it, which the suites find their subnets and security groups in by name."""

from __future__ import annotations

from typing import Any

from localenv.environment import Environment

_DISCOVERY = "karpenter.sh/discovery"


def name_network(environment: Environment) -> None:
    """Name what node classes discover, and add the second security group that eksctl gives to nodes."""
    ec2, cluster = environment.aws.client("ec2"), environment.options.cluster_name
    discovered = [{"Name": f"tag:{_DISCOVERY}", "Values": [cluster]}]
    for subnet in ec2.describe_subnets(Filters=discovered)["Subnets"]:
        zone = subnet["AvailabilityZone"].replace("-", "").upper()
        _name(ec2, subnet["SubnetId"], f"eksctl-{cluster}-cluster/SubnetPrivate{zone}")
    groups = ec2.describe_security_groups(Filters=discovered)["SecurityGroups"]
    _name(ec2, groups[0]["GroupId"], f"eks-cluster-sg-{cluster}")
    shared = f"eksctl-{cluster}-cluster/ClusterSharedNodeSecurityGroup"
    tags = [{"Key": "Name", "Value": shared}, {"Key": _DISCOVERY, "Value": cluster}]
    ec2.create_security_group(
        GroupName=shared,
        Description="Communication between all nodes in the cluster",
        VpcId=groups[0]["VpcId"],
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
    )


def _name(ec2: Any, resource: str, name: str) -> None:
    ec2.create_tags(Resources=[resource], Tags=[{"Key": "Name", "Value": name}])
