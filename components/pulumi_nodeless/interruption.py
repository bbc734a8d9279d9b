"""The queue in which AWS warns of what is about to happen to instances.

EventBridge has no way to tell one cluster's instances from another's: every warning of the region
arrives, and the controller throws away those about instances that are not its own.
"""

import json
from collections.abc import Mapping
from typing import Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import names, policies
from pulumi_nodeless.arguments import ArgumentReader

RULES: Final[Mapping[str, Mapping[str, list[str]]]] = {
    "scheduled-change": {"source": ["aws.health"], "detail-type": ["AWS Health Event"]},
    "spot-interruption": {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]},
    "rebalance": {"source": ["aws.ec2"], "detail-type": ["EC2 Instance Rebalance Recommendation"]},
    "state-change": {"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"]},
    "reservation": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Capacity Reservation Instance Interruption Warning"],
    },
}
"""Event patterns of the rules that fill the queue, by what they tell of."""
TARGET_ID: Final = "KarpenterInterruptionQueueTarget"
RETENTION_SECONDS: Final = 300
"""A warning that nobody read for so long warns of something that has happened."""


def rule_description(key: str) -> str:
    """What the rule of this key says of itself."""
    return f"Warnings for the node provisioner: {key}"


class InterruptionQueueArgs(TypedDict):
    """Whose controller is warned."""

    cluster_name: str
    """Name of the cluster. It is part of the queue's name."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of the queue and the rules."""


class InterruptionQueue(pulumi.ComponentResource):
    """An SQS queue, its policy for EventBridge, and the rules that send interruption events to it."""

    queue_name: pulumi.Output[str]
    """Name of the queue, for the controller's settings; available once EventBridge may send to it."""
    queue_arn: pulumi.Output[str]
    """ARN of the queue, for the controller's policy."""

    def __init__(
        self, name: str, args: InterruptionQueueArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        reader = ArgumentReader("InterruptionQueue", args, InterruptionQueueArgs)
        cluster, tags = reader.cluster_name(), reader.tags("tags")
        reader.check()
        super().__init__("nodeless:index:InterruptionQueue", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        queue = aws.sqs.Queue(
            f"{name}-queue",
            name=names.interruption_queue(cluster),
            message_retention_seconds=RETENTION_SECONDS,
            sqs_managed_sse_enabled=True,
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        rules = [self._rule(f"{name}-{key}", cluster, key, queue, tags) for key in RULES]
        aws.sqs.QueuePolicy(
            f"{name}-policy",
            queue_url=queue.url,
            policy=pulumi.Output.all(queue.arn, *(rule.arn for rule in rules)).apply(
                lambda arns: json.dumps(policies.interruption_queue_policy(arns[0], arns[1:]))
            ),
            opts=child,
        )
        self.queue_name = queue.name
        self.queue_arn = queue.arn
        self.register_outputs({"queueName": self.queue_name, "queueArn": self.queue_arn})

    def _rule(
        self, name: str, cluster: str, key: str, queue: aws.sqs.Queue, tags: Mapping[str, str]
    ) -> aws.cloudwatch.EventRule:
        rule = aws.cloudwatch.EventRule(
            name,
            name=names.interruption_rule(name, cluster, key),
            description=rule_description(key),
            event_pattern=json.dumps(dict(RULES[key]), sort_keys=True),
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        aws.cloudwatch.EventTarget(
            name,
            rule=rule.name,
            target_id=TARGET_ID,
            arn=queue.arn,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return rule
