"""Nothing is sent to AWS, not even once more, from the moment on at which it is not allowed any longer."""

from __future__ import annotations

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider.aws.session import AwsSession

TEMPLATE = {"LaunchTemplateName": "t", "LaunchTemplateData": {"InstanceType": "m5.large"}}


class NotAllowedError(Exception):
    """What the caller's own check raises."""


def session_of(allowed: list[bool]) -> AwsSession:
    """A session whose requests are allowed as the list says, one after the other, and then no more."""

    def assert_allowed() -> None:
        if not allowed or not allowed.pop(0):
            raise NotAllowedError

    return AwsSession("us-east-1", assert_allowed=assert_allowed)


@pytest.mark.parametrize("method", ["create_launch_template", "describe_vpcs"])
async def test_a_call_that_is_not_allowed_is_not_sent(aws: LocalAws, method: str) -> None:
    session = session_of([])
    aws.forget_calls()
    try:
        with pytest.raises(NotAllowedError):
            await session.call("ec2", method, TEMPLATE if method.startswith("create") else {})
        with session.borrow_client("ssm") as seldom, pytest.raises(NotAllowedError):
            seldom.get_parameter(Name="x")
    finally:
        await session.close()
    assert aws.calls() == []


@pytest.mark.parametrize("allowed", [1, 2, 3])
async def test_a_retry_that_is_not_allowed_any_more_is_not_sent(aws: LocalAws, allowed: int) -> None:
    session = session_of([True] * allowed)
    aws.set_faults(errors={"CreateLaunchTemplate": {"code": "InternalError", "status": 500}})
    aws.forget_calls()
    try:
        with pytest.raises(NotAllowedError):
            await session.call("ec2", "create_launch_template", TEMPLATE)
    finally:
        await session.close()
    assert [call["action"] for call in aws.calls()] == ["CreateLaunchTemplate"] * allowed
