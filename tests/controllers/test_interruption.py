"""A node is drained and replaced before its machine goes; a queue that cannot be read stops nothing."""

import asyncio
import json
from dataclasses import replace

import pytest
import structlog

from nodeless.api.times import format_time, parse_time
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.operator.timing import Timing
from tests.controllers.world import (
    AWS_SETTINGS,
    CLAIMS,
    NODES,
    a_pod,
    a_provisioner,
    a_template,
    an_interruption_queue,
)

pytestmark = pytest.mark.cluster

QUEUE = "demo"
SPOT = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
LARGE = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "m5.xlarge"]}


@pytest.fixture
def queue(aws):
    """The queue, filled by the component's rules."""
    return an_interruption_queue(aws, QUEUE)


def left_in(aws, url):
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answer = aws.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)
    return sum(int(each) for each in answer["Attributes"].values())


class Warned:
    """The loop on a rig, and its metrics."""

    def __init__(self, rig):
        self.metrics, self.loop = rig.metrics, rig.interruption
        self.task = asyncio.create_task(self.loop.run())
        rig.tasks.append(self.task)

    def count(self, name, **labels):
        return self.metrics.registry.get_sample_value(f"karpenter_interruption_{name}", labels) or 0


@pytest.fixture
def warned_scene(scene, network):
    """A scene whose provider reads the queue; `network` has the AWS environment set."""

    def run(scenario, queue=QUEUE, **options):
        settings = replace(AWS_SETTINGS, interruption_queue=queue)
        scene(scenario, cloud=AwsProvider(settings, structlog.get_logger()), **options)

    return run


def test_a_spot_node_is_drained_and_replaced_before_it_goes(aws, queue, warned_scene):
    async def scenario(rig, namespace):
        warned = Warned(rig)
        await rig.create(a_template(), a_provisioner(requirements=[LARGE, SPOT]), a_pod("web", namespace))
        first = await rig.running(namespace, "web")
        claim = await rig.claim()
        (instance,) = await asyncio.to_thread(rig.network.instances)
        labels = claim["metadata"]["labels"]
        lost = (
            labels["node.kubernetes.io/instance-type"],
            labels["topology.kubernetes.io/zone"],
            "spot",
        )

        await asyncio.to_thread(aws.interrupt, instance, after=60.0)
        # The replacement of an evicted pod, as a Deployment makes it.
        await rig.until_gone(f"/api/v1/namespaces/{namespace}/pods/web")
        await rig.create(a_pod("web-2", namespace))
        second = await rig.running(namespace, "web-2")
        assert second != first
        await rig.until_gone(f"{CLAIMS}/{claim['metadata']['name']}")
        await rig.until_gone(f"{NODES}/{first}", of=claim)
        (left,) = await asyncio.to_thread(rig.network.instances)
        assert left != instance

        assert await rig.event("default", first, "InstanceSpotInterrupted", about=instance)
        assert await rig.event("default", first, "NodeTerminatingOnInterruption", about=instance)
        replacement = (await rig.claim())["metadata"]["labels"]
        assert lost != (
            replacement["node.kubernetes.io/instance-type"],
            replacement["topology.kubernetes.io/zone"],
            "spot",
        )
        await rig.until(lambda: left_in(aws, queue), lambda left: left == 0)
        assert warned.count("received_messages", message_type="SpotInterruptionKind") == 1
        assert warned.count("actions_performed", action_type="CordonAndDrain") == 1
        assert warned.count("deleted_messages") >= 1

    warned_scene(scenario)


def test_what_nobody_understands_is_thrown_away_and_the_rest_is_handled(aws, queue, warned_scene):
    async def scenario(rig, namespace):
        warned = Warned(rig)
        await rig.create(a_template(), a_provisioner(requirements=[LARGE, SPOT]), a_pod("web", namespace))
        node = await rig.running(namespace, "web")
        claim = await rig.claim()
        (instance,) = await asyncio.to_thread(rig.network.instances)
        sqs = aws.client("sqs")
        for body in ("{", json.dumps({"source": "aws.rds"}), json.dumps(["i-1"])):
            await asyncio.to_thread(sqs.send_message, QueueUrl=queue, MessageBody=body)
        await asyncio.to_thread(aws.interrupt, instance, "rebalance")
        await rig.until(lambda: warned.count("deleted_messages"), lambda count: count == 4)
        assert await rig.event("default", node, "InstanceSpotRebalanceRecommendation", about=instance)
        assert (
            rig.api.get(f"{CLAIMS}/{claim['metadata']['name']}")["metadata"].get("deletionTimestamp") is None
        )
        assert warned.count("received_messages", message_type="NoOpKind") == 3
        assert warned.count("actions_performed", action_type="NoAction") == 1
        assert left_in(aws, queue) == 0

    warned_scene(scenario)


def test_a_missing_queue_is_told_once_and_read_when_it_comes(aws, warned_scene, capsys):
    async def scenario(rig, namespace):
        Warned(rig)
        tried = [c for c in aws.calls() if c["action"] == "GetQueueUrl"]
        # Work goes on without it.
        await rig.create(a_template(), a_provisioner(requirements=[LARGE, SPOT]), a_pod("web", namespace))
        await rig.running(namespace, "web")
        claim = await rig.claim()
        await rig.until(
            lambda: [c for c in aws.calls() if c["action"] == "GetQueueUrl"],
            lambda now: len(now) >= len(tried) + 3,
        )
        url = await asyncio.to_thread(lambda: aws.client("sqs").create_queue(QueueName="late")["QueueUrl"])
        (instance,) = await asyncio.to_thread(rig.network.instances)
        body = {
            "version": "0",
            "source": "aws.ec2",
            "detail-type": "EC2 Instance State-change Notification",
            "detail": {"instance-id": instance, "state": "stopping"},
        }
        await asyncio.to_thread(
            lambda: aws.client("sqs").send_message(QueueUrl=url, MessageBody=json.dumps(body))
        )
        await rig.until_gone(f"{CLAIMS}/{claim['metadata']['name']}")

    warned_scene(scenario, "late", timing=Timing(interruption_retry=0.1, interruption_longest_retry=0.2))
    said = [line for line in capsys.readouterr().out.splitlines() if "there is no interruption queue" in line]
    assert len(said) == 1
    assert "'late'" in said[0] and "aws.interruptionQueueName" in said[0]


def test_a_spot_interruption_leaves_a_pod_that_saves_its_work_no_more_than_its_two_minutes(
    aws, queue, warned_scene
):
    async def scenario(rig, namespace):
        Warned(rig)
        # 120 s from the notice, of which it needs 110 to end.
        pod = a_pod("train", namespace, terminationGracePeriodSeconds=110)
        pod["metadata"]["annotations"] = {"nodeless.dev/checkpoint-grace": "1h"}
        await rig.create(a_template(), a_provisioner(requirements=[LARGE, SPOT]), pod)
        await rig.running(namespace, "train")
        claim = await rig.claim()
        (instance,) = await asyncio.to_thread(rig.network.instances)
        await asyncio.to_thread(aws.interrupt, instance, after=120.0)
        event = await rig.event(namespace, "train", "CheckpointRequested")
        seen = rig.api.get(f"{CLAIMS}/{claim['metadata']['name']}")["metadata"]["annotations"]
        ends = parse_time(seen["nodeless.dev/instance-ends"])
        assert f"the pod is evicted at {format_time(ends - 110)}" in event["message"]
        evicted = await rig.event(namespace, "train", "Evicted")
        assert parse_time(evicted["firstTimestamp"]) >= ends - 110
        await rig.until_gone(f"{CLAIMS}/{claim['metadata']['name']}")

    warned_scene(scenario)
