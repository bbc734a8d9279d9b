"""Whatever comes back in AWS's place, a call ends with data or with an error that names it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.session import AwsSession
from tests.cloudprovider.conftest import World

CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("ec2", "describe_subnets", {}),
    ("ec2", "describe_security_groups", {}),
    ("sts", "get_caller_identity", {}),
    ("iam", "get_role", {"RoleName": "nobody"}),
    ("eks", "list_clusters", {}),
    ("ssm", "get_parameter", {"Name": "/none"}),
)


@pytest.mark.parametrize("seed", range(4))
async def test_a_garbled_answer_is_data_or_an_error_that_names_the_call(
    aws: LocalAws, world: World, seed: int
) -> None:
    codes: list[str] = []
    session = AwsSession("us-east-1", on_call=lambda _service, _call, _seconds, code: codes.append(code))
    outcomes = Counter[str]()
    aws.set_faults(garbled={"chance": 1.0, "seed": seed})
    for service, method, request in CALLS:
        for _ in range(6):
            try:
                await session.call(service, method, request, retries=False)
                outcomes["data"] += 1
                assert codes.pop() == "", "data is told as a success"
            except CloudError as error:
                named = "".join(word.capitalize() for word in method.split("_"))
                assert f"{service}:{named}" in str(error)
                assert len(str(error)) < 250_000
                outcomes["error"] += 1
                assert codes.pop(), f"told as a success: {error}"
    aws.set_faults()
    await session.close()
    assert outcomes["error"]


async def test_only_the_answers_that_were_asked_for_are_garbled(aws: LocalAws, world: World) -> None:
    session = AwsSession("us-east-1")
    honest = await session.call("ec2", "describe_subnets", {})
    for fault in ({"actions": ["DescribeVpcs"]}, {"principal": "nobody-of-this-name"}):
        aws.set_faults(garbled={"chance": 1.0, "seed": 1, **fault})
        found = await session.call("ec2", "describe_subnets", {})
        assert found["Subnets"] == honest["Subnets"]
    aws.set_faults()
    await session.close()
