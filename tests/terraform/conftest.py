"""OpenTofu on the module and on its example, over a local AWS with an EKS cluster."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localenv.aws import LocalAws
from localenv.opentofu import Tofu

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "terraform"
ISSUER = "oidc.eks.us-east-1.amazonaws.com/id/EXAMPLE"
_TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ],
    }
)


@dataclass(frozen=True)
class Cloud:
    """A local AWS of these tests' own, with the cluster `demo`, its issuer in IAM, and private subnets."""

    aws: LocalAws
    account: str
    issuer_arn: str
    subnets: tuple[str, ...]

    def client(self, name: str) -> Any:
        return self.aws.client(name)


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with LocalAws.start(tmp_path_factory.mktemp("terraform-aws")) as aws:
        aws.set_cluster(
            endpoint="https://ABC.gr7.us-east-1.eks.amazonaws.com",
            certificate_authority_data=base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode(),
            issuer=f"https://{ISSUER}",
        )
        ec2, iam = aws.client("ec2"), aws.client("iam")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnets = tuple(
            ec2.create_subnet(
                VpcId=vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=f"us-east-1{zone}"
            )["Subnet"]["SubnetId"]
            for number, zone in enumerate("ab")
        )
        role = iam.create_role(RoleName="cluster", AssumeRolePolicyDocument=_TRUST)["Role"]["Arn"]
        aws.client("eks").create_cluster(
            name="demo",
            roleArn=role,
            resourcesVpcConfig={"subnetIds": list(subnets)},
            accessConfig={"authenticationMode": "API_AND_CONFIG_MAP"},
        )
        issuer = iam.create_open_id_connect_provider(
            Url=f"https://{ISSUER}", ClientIDList=["sts.amazonaws.com"]
        )
        account = aws.client("sts").get_caller_identity()["Account"]
        yield Cloud(aws, account, issuer["OpenIDConnectProviderArn"], subnets)


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the module in which OpenTofu may write; the charts beside it are those of the checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(MODULE, folder / "terraform", ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*"))
    (folder / "charts").symlink_to(ROOT / "charts")
    return folder


@pytest.fixture(scope="session")
def module(checkout: Path, cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Tofu:
    """OpenTofu with the module as root."""
    workshop = tmp_path_factory.mktemp("module") / "tofu"
    return Tofu(checkout / "terraform", workshop, cloud.aws.environment())


@pytest.fixture(scope="session")
def example(checkout: Path, cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Tofu:
    """OpenTofu with the example for existing clusters as root."""
    workshop = tmp_path_factory.mktemp("example") / "tofu"
    folder = checkout / "terraform" / "examples" / "existing-cluster"
    return Tofu(folder, workshop, cloud.aws.environment())


def planned(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each resource of a plan is to be, by address; what is not known yet is missing."""
    found: dict[str, dict[str, Any]] = {}
    waiting = [plan["planned_values"]["root_module"]]
    while waiting:
        part = waiting.pop()
        waiting += part.get("child_modules", [])
        found |= {each["address"]: each.get("values", {}) for each in part.get("resources", [])}
    return found


def actions(plan: dict[str, Any]) -> dict[str, list[str]]:
    """What a plan does to each resource, by address; what stays as it is is left out."""
    changes = {each["address"]: each["change"]["actions"] for each in plan.get("resource_changes", [])}
    return {address: done for address, done in changes.items() if done not in (["no-op"], ["read"])}
