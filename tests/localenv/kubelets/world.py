"""What the data plane's tests start from: a network, roles, an EKS cluster with a Fargate profile."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubelets import Kubelets
from localenv.kubernetes import KubernetesApi

CLUSTER = "lab"
REGION = "us-east-1"
IMAGE = "registry.example/served"


def _trust(service: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@dataclass
class World:
    """The running environment of a session."""

    control_plane: ControlPlane
    aws: LocalAws
    kubelets: Kubelets
    api: KubernetesApi
    subnets: list[str]
    image: str

    @property
    def authority(self) -> str:
        return base64.b64encode(self.control_plane.certificate_authority.read_bytes()).decode()

    def bootstrap(
        self, kubelet_arguments: str = "", *, name: str = CLUSTER, authority: str | None = None
    ) -> str:
        """User data of an AL2 node."""
        return (
            "#!/bin/bash -xe\n"
            f"/etc/eks/bootstrap.sh '{name}' --apiserver-endpoint '{self.control_plane.endpoint}' \\\n"
            f"  --b64-cluster-ca '{authority or self.authority}' \\\n"
            f"  --container-runtime containerd \\\n"
            f"  --kubelet-extra-args '{kubelet_arguments}'\n"
        )

    def launch(
        self,
        user_data: str,
        *,
        instance_type: str = "t3a.large",
        profile: str = "nodes",
        address: str = "",
        interfaces: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Start an instance, with this address or these interfaces if given; return its description."""
        ec2 = self.aws.client("ec2")
        answer = ec2.run_instances(
            ImageId=self.image,
            InstanceType=instance_type,
            MinCount=1,
            MaxCount=1,
            **({"SubnetId": self.subnets[0]} if interfaces is None else {"NetworkInterfaces": interfaces}),
            UserData=user_data,
            IamInstanceProfile={"Name": profile},
            **({"PrivateIpAddress": address} if address else {}),
        )
        instance: dict[str, Any] = answer["Instances"][0]
        return instance

    def ready_node(self, instance: dict[str, Any]) -> dict[str, Any]:
        """Wait for an instance's node to be Ready and without the taints of its start."""

        def joined(node: dict[str, Any] | None) -> bool:
            # The address, and so the name, may still be that of an instance before.
            if node is None or not node["spec"].get("providerID", "").endswith(instance["InstanceId"]):
                return False
            if not is_true(node, "Ready"):
                return False
            return not any(
                taint["key"].startswith(("node.kubernetes.io/", "node.cloudprovider"))
                for taint in node["spec"].get("taints", [])
            )

        node: dict[str, Any] = self.api.wait(f"/api/v1/nodes/{instance['PrivateDnsName']}", joined)
        return node


def is_true(found: dict[str, Any], condition: str) -> bool:
    """Whether an object's condition holds."""
    conditions = found.get("status", {}).get("conditions") or []
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def make_aws(aws: LocalAws, control_plane: ControlPlane, api: KubernetesApi) -> tuple[list[str], str]:
    """Make network, roles and cluster; return the subnets and an image."""
    authority = base64.b64encode(control_plane.certificate_authority.read_bytes()).decode()
    aws.set_cluster(
        endpoint=control_plane.endpoint,
        certificate_authority_data=authority,
        issuer=control_plane.issuer,
        jwks=api.request("GET", "/openid/v1/jwks"),
    )
    ec2, iam, eks = aws.client("ec2"), aws.client("iam"), aws.client("eks")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=f"{REGION}{zone}")[
            "Subnet"
        ]["SubnetId"]
        for n, zone in enumerate("ab")
    ]
    roles = {
        name: iam.create_role(RoleName=name, AssumeRolePolicyDocument=_trust(service))["Role"]["Arn"]
        for name, service in (
            ("cluster", "eks.amazonaws.com"),
            ("node", "ec2.amazonaws.com"),
            ("stranger", "ec2.amazonaws.com"),
            ("latecomer", "ec2.amazonaws.com"),
            ("fargate", "eks-fargate-pods.amazonaws.com"),
        )
    }
    for profile, role in (("nodes", "node"), ("strangers", "stranger"), ("latecomers", "latecomer")):
        iam.create_instance_profile(InstanceProfileName=profile)
        iam.add_role_to_instance_profile(InstanceProfileName=profile, RoleName=role)
    eks.create_cluster(
        name=CLUSTER,
        roleArn=roles["cluster"],
        resourcesVpcConfig={"subnetIds": subnets},
        accessConfig={"authenticationMode": "API_AND_CONFIG_MAP"},
    )
    eks.create_access_entry(clusterName=CLUSTER, principalArn=roles["node"], type="EC2_LINUX")
    eks.create_fargate_profile(
        clusterName=CLUSTER,
        fargateProfileName="serverless",
        podExecutionRoleArn=roles["fargate"],
        subnets=subnets,
        selectors=[{"namespace": "fargate-*"}],
    )
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    return subnets, image
