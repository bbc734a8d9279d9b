"""Queues of SQS, and the rules and targets of EventBridge that fill them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from localenv.pulumi.aws.clients import AwsClients, AwsResource, changed_tags, retag, tag_list, unless_gone
from localenv.pulumi.aws.ec2 import capitalized, with_tags
from localenv.pulumi.resources import Inputs, Outputs

#: Inputs of a queue and what SQS calls them.
_ATTRIBUTES = {
    "delaySeconds": "DelaySeconds",
    "maxMessageSize": "MaximumMessageSize",
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "visibilityTimeoutSeconds": "VisibilityTimeout",
}


class Queue(AwsResource):
    """A standard queue; its id is its URL."""

    token = "aws:sqs/queue:Queue"
    in_place = frozenset({"tags", *_ATTRIBUTES})
    computed = ("arn", "url", "tagsAll")
    physical_name = "name"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.sqs.create_queue(
            QueueName=inputs["name"], Attributes=_attributes(inputs), tags=dict(inputs.get("tags") or {})
        )
        return str(reply["QueueUrl"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.sqs.get_queue_attributes, QueueUrl=identity, AttributeNames=["QueueArn"])
        if reply is None:
            return None
        return with_tags(inputs, {"arn": reply["Attributes"]["QueueArn"], "url": identity})

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        before, after = _attributes(old), _attributes(new)
        changed = {name: value for name, value in after.items() if before.get(name) != value}
        if changed:
            backend.sqs.set_queue_attributes(QueueUrl=identity, Attributes=changed)
        removed, added = changed_tags(old.get("tags"), new.get("tags"))
        if removed:
            backend.sqs.untag_queue(QueueUrl=identity, TagKeys=removed)
        if added:
            backend.sqs.tag_queue(QueueUrl=identity, Tags=added)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.sqs.delete_queue, QueueUrl=identity)


class QueuePolicy(AwsResource):
    """Who may use a queue; its id is the queue's."""

    token = "aws:sqs/queuePolicy:QueuePolicy"
    required = frozenset({"queueUrl", "policy"})
    in_place = frozenset({"policy"})

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        self.update(backend, str(inputs["queueUrl"]), {}, inputs)
        return str(inputs["queueUrl"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.sqs.get_queue_attributes, QueueUrl=identity, AttributeNames=["Policy"])
        return {} if reply and reply.get("Attributes", {}).get("Policy") else None

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        backend.sqs.set_queue_attributes(QueueUrl=identity, Attributes={"Policy": new["policy"]})

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.sqs.set_queue_attributes, QueueUrl=identity, Attributes={"Policy": ""})


class EventRule(AwsResource):
    """A rule of the default event bus; its id is its name."""

    token = "aws:cloudwatch/eventRule:EventRule"
    in_place = frozenset({"description", "eventPattern", "scheduleExpression", "tags"})
    computed = ("arn", "tagsAll")
    physical_name = "name"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        self._put(backend, inputs, Tags=tag_list(inputs.get("tags")))
        return str(inputs["name"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.events.describe_rule, Name=identity)
        return None if reply is None else with_tags(inputs, {"arn": reply["Arn"]})

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        self._put(backend, new)
        arn = backend.events.describe_rule(Name=identity)["Arn"]
        retag(old, new, backend.events.untag_resource, backend.events.tag_resource, ResourceARN=arn)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.events.delete_rule, Name=identity)

    @staticmethod
    def _put(backend: AwsClients, inputs: Inputs, **more: Any) -> None:
        backend.events.put_rule(
            **capitalized(inputs, "name", "description", "eventPattern", "scheduleExpression"), **more
        )


class EventTarget(AwsResource):
    """Where the events of a rule go; its id is `rule-target`."""

    token = "aws:cloudwatch/eventTarget:EventTarget"
    required = frozenset({"rule", "arn"})
    in_place = frozenset({"arn"})
    physical_name = "targetId"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        self.update(backend, "", {}, inputs)
        return f"{inputs['rule']}-{inputs['targetId']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.events.list_targets_by_rule, Rule=inputs["rule"])
        targets = reply["Targets"] if reply else []
        return {} if any(target["Id"] == inputs["targetId"] for target in targets) else None

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        target = {"Id": new["targetId"], "Arn": new["arn"]}
        reply = backend.events.put_targets(Rule=new["rule"], Targets=[target])
        if reply.get("FailedEntryCount"):
            raise RuntimeError(f"target {new['targetId']} of rule {new['rule']}: {json.dumps(reply)}")

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.events.remove_targets, Rule=state["rule"], Ids=[state["targetId"]])


def _attributes(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The attributes of a queue as SQS takes them: texts, numbers without a fraction."""
    texts: dict[str, str] = {}
    for key, name in _ATTRIBUTES.items():
        value = inputs.get(key)
        if isinstance(value, bool):
            texts[name] = str(value).lower()
        elif value is not None:
            texts[name] = str(int(value))
    return texts
