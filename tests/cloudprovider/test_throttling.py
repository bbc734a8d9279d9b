"""While AWS throttles, it is asked ever more seldom, however many ask; and once it answers, as before."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudError, CloudUnavailable
from nodeless.cloudprovider.aws.errors import THROTTLED
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.cloudprovider.aws.throttling import LONGEST_REST, Throttling
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, POOL, launched, made_by

CALL = ("ec2", "DescribeSubnets")
REFUSAL = CloudUnavailable("ec2", "ec2:DescribeSubnets failed: RequestLimitExceeded")


@given(
    code=st.sampled_from(sorted(THROTTLED)),
    every=st.floats(0.05, 30),
    minutes=st.integers(1, 10),
)
def test_ten_minutes_of_throttling_cost_a_bounded_number_of_calls(
    code: str, every: float, minutes: int
) -> None:
    now = [0.0]
    throttling, calls = Throttling(lambda: now[0]), 0
    while now[0] < minutes * 60:
        try:
            throttling.assert_awake(*CALL)
        except CloudUnavailable as error:
            assert error is REFUSAL
        else:
            calls += 1
            throttling.note_answer(*CALL, code, REFUSAL)
        now[0] += every
    # Two at once, some while the rests grow, then one in twenty seconds.
    assert calls <= 8 + minutes * 60 / LONGEST_REST
    # Others do not rest with it, and after the longest rest it is tried again.
    throttling.assert_awake("ec2", "CreateFleet")
    now[0] += LONGEST_REST
    throttling.assert_awake(*CALL)
    throttling.note_answer(*CALL, "", None)
    throttling.note_answer(*CALL, code, REFUSAL)
    throttling.assert_awake(*CALL)


@pytest.mark.parametrize("code", ["", "InvalidSubnetID.NotFound", "UnauthorizedOperation", "InternalError"])
def test_nothing_else_has_calls_rest(code: str) -> None:
    throttling = Throttling(lambda: 0.0)
    for _ in range(9):
        throttling.note_answer(*CALL, code, REFUSAL)
        throttling.assert_awake(*CALL)


async def test_a_throttled_call_is_named_in_the_same_words_again_and_again(aws: LocalAws) -> None:
    session = AwsSession("us-east-1")
    aws.set_faults(throttle=10**6)
    said = set()
    for _ in range(40):
        with pytest.raises(CloudUnavailable, match="ec2:DescribeSubnets") as caught:
            await session.call("ec2", "describe_subnets", {}, retries=False)
        said.add(str(caught.value))
    assert len(said) == 1
    assert len(made_by(aws, "DescribeSubnets")) <= 6
    aws.set_faults()
    await session.close()


async def test_launches_under_throttling_ask_seldom_and_buy_nothing_twice(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        await provider.catalog(POOL, NODE_CLASS)
        aws.set_faults(throttle=10**6)
        outcomes = Counter[str]()
        for _ in range(5):
            with suppress(CloudError):
                await asyncio.gather(*(launched(provider, f"web-{each}") for each in range(10)))
            outcomes["refused"] += 1
        asked = Counter(str(call["action"]) for call in aws.calls() if call.get("error"))
        # Four attempts of each of the first calls, side by side; hardly any afterwards.
        assert max(asked.values()) <= 4 * 10 + 8
        aws.set_faults()
        async with asyncio.timeout(60):
            while True:
                with suppress(CloudError):
                    await launched(provider, "web-0")
                    break
                await asyncio.sleep(0.5)
        assert len(aws.instances()) == 1
