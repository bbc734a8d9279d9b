"""The local AWS for the tests of this folder, emptied before each test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from localenv.aws import LocalAws
from tests.localenv.aws.world import World


@pytest.fixture
def aws(aws_process: LocalAws) -> LocalAws:
    aws_process.reset()
    return aws_process


@pytest.fixture
def ec2(aws: LocalAws) -> Any:
    return aws.client("ec2")


@pytest.fixture
def world(aws: LocalAws) -> World:
    """A VPC with private subnets in three zones, a security group and an instance profile."""
    return World.make(aws)


@pytest.fixture
def received(aws: LocalAws) -> Any:
    """Reads the next message of a queue that a rule for all EC2 and Health events fills."""
    sqs, events = aws.client("sqs"), aws.client("events")
    url = sqs.create_queue(QueueName="demo")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name="all", EventPattern=json.dumps({"source": ["aws.ec2", "aws.health"]}))
    events.put_targets(Rule="all", Targets=[{"Id": "queue", "Arn": arn}])

    def read() -> dict[str, Any]:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1, WaitTimeSeconds=10)
        (message,) = answer["Messages"]
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        body: dict[str, Any] = json.loads(message["Body"])
        return body

    return read
