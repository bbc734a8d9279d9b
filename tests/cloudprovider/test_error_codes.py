"""Codes of AWS for what is not there or may not be (7.4, 7.6): each has an answer of its own."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudError, CloudUnavailable, CredentialsRefused, LaunchFailed
from nodeless.cloudprovider.aws.errors import AwsCallRefused, translate
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_faults import QUEUED
from tests.cloudprovider.test_provider import NODE_CLASS, launched, made_by, the_pool


def refused(code: str, status: int = 400) -> ClientError:
    answer: Any = {
        "Error": {"Code": code, "Message": "no."},
        "ResponseMetadata": {"HTTPStatusCode": status, "RequestId": "r-1"},
    }
    return ClientError(answer, "CreateFleet")


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        *((each, 503, CloudUnavailable) for each in ("RequestLimitExceeded", "Throttling", "InternalError")),
        ("SomethingNew", 500, CloudUnavailable),
        *(
            (each, 403, CredentialsRefused)
            for each in ("UnauthorizedOperation", "AccessDenied", "ExpiredToken")
        ),
        ("OperationNotPermitted", 400, AwsCallRefused),
        ("InvalidParameterValue", 400, AwsCallRefused),
    ],
)
def test_aws_7_4_a_code_says_whether_to_wait_to_mend_the_policy_or_the_request(
    code: str, status: int, kind: type[CloudError]
) -> None:
    error = translate(refused(code, status), "ec2", "CreateFleet", "https://ec2")
    assert type(error) is kind
    assert code in str(error)
    assert "ec2:CreateFleet" in str(error)


def test_aws_7_4_a_refusal_carries_awss_request_id_for_its_support_beside_its_text() -> None:
    error = translate(refused("InvalidParameterValue"), "ec2", "CreateFleet", "")
    assert error.evidence == "request r-1"
    # The text is compared with what stands on an object: the same fault must read the same at each try.
    assert "r-1" not in str(error)


@pytest.mark.parametrize("code", ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"])
@pytest.mark.parametrize("action", ["GetQueueUrl", "ReceiveMessage"])
async def test_aws_7_4_both_words_for_a_missing_queue_are_known_and_it_is_looked_up_again(
    aws: LocalAws, world: World, code: str, action: str
) -> None:
    aws.client("sqs").create_queue(QueueName="demo")
    async with a_provider(settings=QUEUED) as provider:
        aws.set_faults(errors={action: {"code": code, "status": 400}})
        with pytest.raises(CloudError, match="no interruption queue 'demo'"):
            await provider.interruptions()
        looked_up = len(made_by(aws, "GetQueueUrl"))
        with pytest.raises(CloudError, match="no interruption queue 'demo'"):
            await provider.interruptions()
        assert len(made_by(aws, "GetQueueUrl")) > looked_up


@pytest.mark.parametrize("code", ["InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"])
async def test_aws_7_6_an_instance_that_ec2_does_not_know_counts_as_ended(
    aws: LocalAws, world: World, code: str
) -> None:
    for action in ("TerminateInstances", "DescribeInstances"):
        aws.set_faults(errors={action: {"code": code, "status": 400}})
        async with a_provider() as provider:
            assert await provider.find("i-0123456789abcdef0") is None
            assert await provider.terminate("i-0123456789abcdef0")


async def test_aws_7_6_termination_protection_is_told_until_it_is_off(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        instance = await launched(provider)
        protected = {
            "code": "OperationNotPermitted",
            "message": "DisableApiTermination is set",
            "status": 400,
        }
        aws.set_faults(errors={"TerminateInstances": protected})
        with pytest.raises(AwsCallRefused, match="OperationNotPermitted: DisableApiTermination is set"):
            await provider.terminate(instance.id)
        aws.set_faults()
        assert await provider.terminate(instance.id)


async def test_aws_7_4_a_template_that_stays_missing_fails_the_launch_after_some_tries(
    aws: LocalAws, world: World
) -> None:
    missing = {"code": "InvalidLaunchTemplateName.NotFoundException", "status": 400}
    aws.set_faults(errors={"CreateFleet": missing})
    async with a_provider() as provider:
        with pytest.raises(LaunchFailed, match=r"EC2 refused its launch template .* repeatedly"):
            await launched(provider)
    assert 2 <= len(made_by(aws, "CreateFleet")) <= 5


async def test_aws_7_4_a_missing_parameter_of_several_is_passed_over_and_of_all_is_told(
    aws: LocalAws, world: World
) -> None:
    lost = {"code": "ParameterNotFound", "status": 400}
    aws.set_faults(errors={"GetParameter": {**lost, "times": 1}})
    async with a_provider() as provider:
        found = {image.name for image in (await provider.resolve(NODE_CLASS)).images}
        # One of three; that of GPUs stands for two kinds of machines.
        assert len(found) == 2
    aws.set_faults(errors={"GetParameter": lost})
    async with a_provider() as provider:
        with pytest.raises(CloudError, match=r"AWS publishes no AL2 images .* for Kubernetes 1\.29"):
            await provider.catalog(the_pool(), NODE_CLASS)


@pytest.mark.parametrize("code", ["UnauthorizedOperation", "AuthFailure"])
async def test_aws_1_1_only_a_dry_run_that_would_have_succeeded_lets_the_process_start(
    aws: LocalAws, world: World, code: str
) -> None:
    async with a_provider() as provider:
        aws.set_faults(errors={"DescribeInstanceTypes": {"code": code, "status": 400}})
        with pytest.raises(CloudError, match=code):
            await provider.start()
    assert [call["error"] for call in made_by(aws, "DescribeInstanceTypes")] == [code]
