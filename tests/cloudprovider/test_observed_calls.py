"""Every call to AWS is told to whoever measures it, those without an answer, too."""

import asyncio

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.session import AwsSession


def test_a_call_without_an_answer_is_told_with_its_operation(
    aws: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", "http://127.0.0.1:1")
    reported: list[tuple[str, str, str]] = []

    async def scenario() -> None:
        session = AwsSession(
            "us-east-1", on_call=lambda service, call, seconds, code: reported.append((service, call, code))
        )
        try:
            await session.call("ec2", "describe_vpcs", {})
        finally:
            await session.close()

    with pytest.raises(CloudError, match=r"cannot reach ec2 at http://127\.0\.0\.1:1"):
        asyncio.run(scenario())

    assert reported == [("ec2", "DescribeVpcs", "EndpointConnectionError")]
