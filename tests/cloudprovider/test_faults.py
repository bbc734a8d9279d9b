"""What fails for a while is told in one line, does no harm meanwhile, and is over when its cause is."""

import json
from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudError, CloudUnavailable, CredentialsRefused
from nodeless.model.interruptions import InterruptionKind
from tests.cloudprovider.conftest import SETTINGS, World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, POOL, launched, made_by, the_claim

QUEUED = replace(SETTINGS, interruption_queue="demo")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that waits half a second for an answer."""
    monkeypatch.setattr("nodeless.cloudprovider.aws.session._READ_SECONDS", 0.5)


async def test_an_endpoint_that_does_not_answer_in_time_is_told_and_asked_again(
    aws: LocalAws, world: World, impatient: None
) -> None:
    aws.set_faults(delay={"DescribeSubnets": 2.0})
    async with a_provider() as provider:
        with pytest.raises(CloudUnavailable, match=r"cannot reach ec2 at http://127\.0\.0\.1") as caught:
            await provider.resolve(NODE_CLASS)
        assert "hint: check AWS_ENDPOINT_URL" in str(caught.value)
        aws.set_faults()
        assert len((await provider.resolve(NODE_CLASS)).subnets) == 3


async def test_a_launch_whose_answer_never_comes_is_found_when_it_is_asked_for_again(
    aws: LocalAws, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_provider() as provider:
        await provider.warm(POOL, NODE_CLASS)
    aws.set_faults(delay={"CreateFleet": 3.0})
    monkeypatch.setattr("nodeless.cloudprovider.aws.session._READ_SECONDS", 1.0)
    async with a_provider() as provider:
        with pytest.raises(CloudUnavailable):
            await provider.launch(the_claim(), POOL, NODE_CLASS, first=True)
        (living,) = await provider.instances()
        assert (await launched(provider)).id == living.id
        assert len(await provider.instances()) == 1
    tokens = {call["parameters"]["ClientToken"] for call in made_by(aws, "CreateFleet")}
    assert tokens == {"demo-default-abcde-uid-default-abcde"}


async def test_credentials_that_expire_in_the_middle_of_a_launch_make_no_second_instance(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        await provider.warm(POOL, NODE_CLASS)
        for action in ("CreateFleet", "DescribeInstances"):
            aws.set_faults(errors={action: {"code": "ExpiredToken", "status": 403, "times": 1}})
            with pytest.raises(CredentialsRefused, match="ExpiredToken"):
                await launched(provider)
        await launched(provider)
        assert len(await provider.instances()) == 1


async def test_a_queue_that_may_not_be_read_is_told_with_the_permission_and_read_once_it_may(
    aws: LocalAws, world: World
) -> None:
    sqs = aws.client("sqs")
    url = sqs.create_queue(QueueName="demo")["QueueUrl"]
    detail = {"instance-id": "i-1", "state": "stopping"}
    kind = "EC2 Instance State-change Notification"
    body = {"version": "0", "source": "aws.ec2", "detail-type": kind, "detail": detail}
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps(body))
    denied: dict[str, Any] = {"code": "AccessDenied", "message": "no identity-based policy", "status": 403}
    async with a_provider(settings=QUEUED) as provider:
        for action in ("GetQueueUrl", "ReceiveMessage"):
            aws.set_faults(errors={action: denied})
            with pytest.raises(CredentialsRefused, match=f"allow sqs:{action} in the controller's policy"):
                await provider.interruptions()
        aws.set_faults()
        (message,) = await provider.interruptions()
        assert (message.kind, message.instance_ids) == (InterruptionKind.STATE_CHANGE, ("i-1",))
        assert await provider.forget_interruptions([message]) == 1


async def test_aws_8_1_ten_messages_at_most_are_waited_for_and_hidden_for_twenty_seconds(
    aws: LocalAws, world: World
) -> None:
    sqs = aws.client("sqs")
    url = sqs.create_queue(QueueName="demo")["QueueUrl"]
    for _ in range(11):
        sqs.send_message(QueueUrl=url, MessageBody="{}")
    async with a_provider(settings=QUEUED) as provider:
        first, second = await provider.interruptions(), await provider.interruptions()
    assert (len(first), len(second)) == (10, 1)
    assert len(made_by(aws, "GetQueueUrl")) == 1
    for call in made_by(aws, "ReceiveMessage"):
        asked = call["parameters"]
        assert (asked["MaxNumberOfMessages"], asked["VisibilityTimeout"], asked["WaitTimeSeconds"]) == (
            10,
            20,
            20,
        )


async def test_a_queue_that_is_not_there_is_named_with_what_to_do(aws: LocalAws, world: World) -> None:
    async with a_provider(settings=QUEUED) as provider:
        with pytest.raises(CloudError, match=r"no interruption queue 'demo' in us-east-1.*hint: create"):
            await provider.interruptions()
