"""What most tests need to exist in the local AWS, made with plain calls."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from localenv.aws import LocalAws

AL2 = "/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


def trust(service: str) -> str:
    """A trust policy for an AWS service."""
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@dataclass
class World:
    aws: LocalAws
    vpc: str
    #: Subnet ids by zone.
    subnets: dict[str, str]
    group: str
    profile: str
    image: str

    @classmethod
    def make(cls, aws: LocalAws) -> World:
        ec2, iam = aws.client("ec2"), aws.client("iam")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnets = {
            zone: ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=zone)["Subnet"][
                "SubnetId"
            ]
            for n, zone in enumerate(ZONES)
        }
        group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
        iam.create_instance_profile(InstanceProfileName="nodes")
        image = aws.client("ssm").get_parameter(Name=AL2)["Parameter"]["Value"]
        return cls(aws, vpc, subnets, group, "nodes", image)

    @property
    def ec2(self) -> Any:
        return self.aws.client("ec2")

    def launch_template(self, name: str = "pool", **changes: Any) -> str:
        data = {
            "ImageId": self.image,
            "SecurityGroupIds": [self.group],
            "IamInstanceProfile": {"Name": self.profile},
            "UserData": base64.b64encode(b"#!/bin/bash\n/etc/eks/bootstrap.sh").decode(),
            **changes,
        }
        self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
        return name

    def config(
        self, template: str, types: list[str], zones: tuple[str, ...] = ZONES, **more: Any
    ) -> dict[str, Any]:
        overrides = [
            {"InstanceType": t, "SubnetId": self.subnets[z], "AvailabilityZone": z, **more}
            for t in types
            for z in zones
        ]
        specification = {"LaunchTemplateName": template, "Version": "$Latest"}
        return {"LaunchTemplateSpecification": specification, "Overrides": overrides}

    def fleet(
        self, *configs: dict[str, Any], capacity: int = 1, spot: bool = False, **more: Any
    ) -> dict[str, Any]:
        """CreateFleet as the controller sends it."""
        kind = "spot" if spot else "on-demand"
        options = (
            {"SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}}
            if spot
            else {"OnDemandOptions": {"AllocationStrategy": "lowest-price"}}
        )
        target = {"TotalTargetCapacity": capacity, "DefaultTargetCapacityType": kind}
        request = {
            "Type": "instant",
            "LaunchTemplateConfigs": list(configs),
            "TargetCapacitySpecification": target,
            **options,
            **more,
        }
        answer: dict[str, Any] = self.ec2.create_fleet(**request)
        return answer

    def instance(self, instance_id: str) -> dict[str, Any]:
        answer = self.ec2.describe_instances(InstanceIds=[instance_id])
        instance: dict[str, Any] = answer["Reservations"][0]["Instances"][0]
        return instance

    def role(self, name: str, service: str) -> str:
        role = self.aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust(service))
        return str(role["Role"]["Arn"])

    def cluster(self, name: str = "demo", **more: Any) -> dict[str, Any]:
        """An EKS cluster on the private subnets."""
        eks, role = self.aws.client("eks"), self.role(f"{name}-cluster", "eks.amazonaws.com")
        network = {"subnetIds": list(self.subnets.values())}
        eks.create_cluster(name=name, roleArn=role, resourcesVpcConfig=network, **more)
        cluster: dict[str, Any] = eks.describe_cluster(name=name)["cluster"]
        return cluster


def instance_ids(answer: dict[str, Any]) -> list[str]:
    """The ids that CreateFleet answered."""
    return [i for entry in answer["Instances"] for i in entry["InstanceIds"]]
