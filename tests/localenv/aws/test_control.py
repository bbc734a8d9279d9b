"""The control endpoints: recorded calls, faults, reset; and the process itself."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from localenv.aws import LocalAws
from localenv.ports import PortTaken


def test_calls_are_recorded(aws: LocalAws) -> None:
    aws.client("ec2").describe_subnets(Filters=[{"Name": "tag-key", "Values": ["a"]}])
    aws.client("eks").list_clusters()
    with pytest.raises(ClientError):
        aws.client("eks").describe_cluster(name="nobody")
    calls = [(c["service"], c["action"], c["status"], c.get("error")) for c in aws.calls()]
    assert calls == [
        ("ec2", "DescribeSubnets", 200, None),
        ("eks", "ListClusters", 200, None),
        ("eks", "DescribeCluster", 404, "ResourceNotFoundException"),
    ]
    first = aws.calls()[0]
    assert first["principal"] == "arn:aws:iam::123456789012:user/local"
    assert first["parameters"] == {"Filters": [{"Name": "tag-key", "Values": ["a"]}]}
    assert abs(time.time() - first["time"]) < 60
    aws.forget_calls()
    assert aws.calls() == []


def test_an_observer_sees_every_instance_whatever_the_faults_and_leaves_no_trace(aws: LocalAws) -> None:
    ec2 = aws.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    made = ec2.run_instances(ImageId=image, InstanceType="m5.large", MinCount=2, MaxCount=2)["Instances"]
    aws.forget_calls()
    aws.set_faults(unreachable=True, throttle=9, consistency=600)
    seen = aws.instances()
    assert {each["InstanceId"] for each in seen} == {each["InstanceId"] for each in made}
    assert {each["InstanceType"] for each in seen} == {"m5.large"}
    assert aws.calls() == []


def test_a_reboot_leaves_the_trace_that_ec2_does_not_show(aws: LocalAws) -> None:
    ec2 = aws.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    made = ec2.run_instances(ImageId=image, InstanceType="m5.large", MinCount=2, MaxCount=2)["Instances"]
    rebooted = made[0]["InstanceId"]
    for _ in range(2):
        ec2.reboot_instances(InstanceIds=[rebooted])
    assert aws.reboots() == {rebooted: 2}
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        ec2.reboot_instances(InstanceIds=["i-0123456789abcdef0"])
    assert aws.reboots() == {rebooted: 2}


def test_throttling_ends_after_so_many_calls(aws: LocalAws) -> None:
    aws.set_faults(throttle=2)
    for service, operation, code in (
        ("ec2", "describe_vpcs", "RequestLimitExceeded"),
        ("eks", "list_clusters", "ThrottlingException"),
    ):
        with pytest.raises(ClientError, match=code):
            getattr(aws.client(service), operation)()
    aws.client("ec2").describe_vpcs()


def test_an_action_is_refused_as_told_and_so_often(aws: LocalAws) -> None:
    aws.set_faults(errors={"DescribeVpcs": {"code": "ExpiredToken", "status": 403, "times": 1}})
    with pytest.raises(ClientError, match="ExpiredToken"):
        aws.client("ec2").describe_vpcs()
    aws.client("ec2").describe_vpcs()
    aws.client("ec2").describe_subnets()


def test_a_lost_answer_never_arrives_though_what_was_asked_for_is_done(aws: LocalAws) -> None:
    aws.set_faults(lost={"CreateVpc": 1})
    ec2 = aws.client("ec2")
    before = len(ec2.describe_vpcs()["Vpcs"])
    with pytest.raises(ConnectionClosedError):
        ec2.create_vpc(CidrBlock="10.9.0.0/16")
    ec2.create_vpc(CidrBlock="10.10.0.0/16")
    assert len(ec2.describe_vpcs()["Vpcs"]) == before + 2


def test_a_fault_that_nobody_knows_is_refused_by_name(aws: LocalAws) -> None:
    with pytest.raises(ValueError, match=r"unknown faults \['storm'\]"):
        aws.set_faults(storm=True)
    with pytest.raises(ValueError, match=r"unknown fields \['where'\] of a capacity fault"):
        aws.set_faults(capacity=[{"where": "here"}])


def test_an_unreachable_endpoint_drops_connections_until_the_fault_is_gone(aws: LocalAws) -> None:
    aws.set_faults(unreachable=True)
    with pytest.raises(ConnectionClosedError):
        aws.client("ec2").describe_vpcs()
    aws.set_faults()
    aws.client("ec2").describe_vpcs()


def test_a_late_answer_is_about_something_done_already(aws: LocalAws) -> None:
    aws.set_faults(delay={"CreateVpc": 1.0})
    asking = threading.Thread(target=aws.client("ec2").create_vpc, kwargs={"CidrBlock": "10.9.0.0/16"})
    asking.start()
    deadline = time.monotonic() + 10
    filters = [{"Name": "cidr", "Values": ["10.9.0.0/16"]}]
    while not aws.client("ec2").describe_vpcs(Filters=filters)["Vpcs"]:
        assert time.monotonic() < deadline
    assert asking.is_alive()
    asking.join()


def test_boots_go_as_told_and_a_word_that_nobody_knows_is_refused(aws: LocalAws) -> None:
    late = {"instanceType": "m5.large", "seconds": 3, "lostDevices": 2}
    aws.set_faults(boot=[late, {"outcome": "never"}])
    assert aws.control("GET", "faults")["boot"] == [
        {"instanceType": "m5.large", "zone": None, "seconds": 3.0, "outcome": "joins", "lostDevices": 2},
        {"instanceType": None, "zone": None, "seconds": 0.0, "outcome": "never", "lostDevices": 0},
    ]
    with pytest.raises(ValueError, match="unknown outcome 'explodes' of a boot; one of joins, never"):
        aws.set_faults(boot=[{"outcome": "explodes"}])
    with pytest.raises(ValueError, match=r"unknown fields \['type'\] of a boot fault"):
        aws.set_faults(boot=[{"type": "m5.large"}])


def test_a_misspelt_fault_is_refused(aws: LocalAws) -> None:
    with pytest.raises(ValueError, match="capcity"):
        aws.set_faults(capcity=[])
    with pytest.raises(ValueError, match="instancetype"):
        aws.set_faults(capacity=[{"instancetype": "m5.large"}])


def test_an_action_that_nobody_serves_is_told(aws: LocalAws) -> None:
    with pytest.raises(ClientError) as error:
        aws.client("ec2").describe_bundle_tasks()
    assert error.value.response["Error"]["Code"] == "NotImplemented"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 501


def test_a_long_poll_holds_up_nobody(aws: LocalAws) -> None:
    sqs = aws.client("sqs")
    queue = sqs.create_queue(QueueName="interruption")["QueueUrl"]
    received: list[int] = []

    def poll() -> None:
        received.append(len(sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20).get("Messages", [])))

    thread = threading.Thread(target=poll)
    thread.start()
    other = boto3.Session(
        aws_access_key_id=aws.environment()["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key="x",
        region_name="us-east-1",
    ).client("ec2", endpoint_url=aws.endpoint_url, config=Config(read_timeout=15))
    other.describe_vpcs()
    assert not received
    sqs.send_message(QueueUrl=queue, MessageBody="{}")
    thread.join(timeout=30)
    assert received == [1]


def test_a_queue_is_reached_at_the_url_it_answers(aws: LocalAws) -> None:
    url = aws.client("sqs").create_queue(QueueName="interruption")["QueueUrl"]
    assert url.startswith(aws.endpoint_url)


def test_reset_forgets_everything(aws: LocalAws) -> None:
    aws.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")
    aws.set_faults(throttle=100)
    aws.reset()
    vpcs = aws.client("ec2").describe_vpcs()["Vpcs"]
    assert [v["IsDefault"] for v in vpcs] == [True]


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"127\.0\.0\.1:{port}: the port is taken; hint: "):
            LocalAws.start(tmp_path, port=port)
