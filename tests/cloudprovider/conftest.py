"""The AWS provider on the local AWS, which is emptied before each test."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog

from localenv.aws import LocalAws
from nodeless.cloudprovider.aws import AwsProvider, AwsSettings
from tests.lent_facts import fetch_once, keep_catalogs, lend

CLUSTER = "demo"
_TEST_SECONDS = 400.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async` tests of this folder, each on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), _TEST_SECONDS))
    return True


@pytest.fixture
def aws(aws_process: LocalAws, monkeypatch: pytest.MonkeyPatch) -> LocalAws:
    """An empty AWS that boto3's ordinary chain finds by the environment."""
    aws_process.reset()
    for name, value in aws_process.environment().items():
        monkeypatch.setenv(name, value)
    fetch_once(aws_process)
    return aws_process


class World:
    """Tagged subnets in three zones, a security group and an instance profile."""

    def __init__(self, aws: LocalAws) -> None:
        ec2, iam = aws.client("ec2"), aws.client("iam")
        tags = [{"Key": "karpenter.sh/discovery", "Value": CLUSTER}]
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [
            ec2.create_subnet(
                VpcId=vpc,
                CidrBlock=f"10.0.{number * 16}.0/20",
                AvailabilityZone=f"us-east-1{zone}",
                TagSpecifications=[{"ResourceType": "subnet", "Tags": tags}],
            )["Subnet"]["SubnetId"]
            for number, zone in enumerate("abc")
        ]
        self.security_group = ec2.create_security_group(
            GroupName="nodes",
            Description="nodes",
            VpcId=vpc,
            TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
        )["GroupId"]
        trust = (
            '{"Version":"2012-10-17","Statement":[{"Effect":"Allow",'
            '"Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}'
        )
        iam.create_role(RoleName="nodes", AssumeRolePolicyDocument=trust)
        iam.create_instance_profile(InstanceProfileName="nodes")
        iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName="nodes")


@pytest.fixture
def world(aws: LocalAws) -> World:
    return World(aws)


SETTINGS = AwsSettings(
    cluster_name=CLUSTER,
    cluster_endpoint="https://demo.example",
    default_instance_profile="nodes",
    certificate_authority="Q0E=",
    kubernetes_version="1.29",
)


@asynccontextmanager
async def a_provider(**options: Any) -> AsyncIterator[AwsProvider]:
    """A provider that is closed at the end; what no test changes is fetched and built once for all."""
    provider = AwsProvider(options.pop("settings", SETTINGS), structlog.get_logger(), **options)
    lend(provider)
    try:
        yield provider
    finally:
        keep_catalogs(provider)
        await provider.close()
