"""A queue's policy."""

from __future__ import annotations

import json

from localenv.aws import LocalAws


def test_a_changed_attribute_of_a_queue_leaves_its_policy_alone(aws: LocalAws) -> None:
    sqs = aws.client("sqs")
    policy = json.dumps({"Version": "2012-10-17", "Statement": [{"Sid": "s", "Effect": "Deny"}]})
    url = sqs.create_queue(QueueName="demo", Attributes={"Policy": policy})["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"MessageRetentionPeriod": "600"})
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["MessageRetentionPeriod", "Policy"])
    assert attributes["Attributes"]["MessageRetentionPeriod"] == "600"
    assert json.loads(attributes["Attributes"]["Policy"]) == json.loads(policy)
