"""Experiments of the fault injection service that interrupt spot instances, as clients start them."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from localenv.aws import LocalAws
from tests.localenv.aws.world import World, instance_ids, trust


def template(aws: LocalAws, world: World, instances: list[str], **changes: Any) -> str:
    """The id of an experiment template for these instances."""
    role = aws.client("iam").create_role(
        RoleName="experiments", AssumeRolePolicyDocument=trust("fis.amazonaws.com")
    )["Role"]
    action = {
        "actionId": "aws:ec2:send-spot-instance-interruptions",
        "parameters": {"durationBeforeInterruption": changes.get("duration", "PT120S")},
        "targets": {"SpotInstances": "them"},
    }
    arns = [f"arn:aws:ec2:us-east-1:123456789012:instance/{instance}" for instance in instances]
    target = {"resourceType": "aws:ec2:spot-instance", "selectionMode": "ALL", "resourceArns": arns}
    answer = aws.client("fis").create_experiment_template(
        description="interrupt",
        stopConditions=[{"source": "none"}],
        roleArn=changes.get("role", role["Arn"]),
        actions={"it": {**action, **changes.get("action", {})}},
        targets={"them": {**target, **changes.get("target", {})}},
    )
    return str(answer["experimentTemplate"]["id"])


@pytest.mark.parametrize("count", [1, 3])
def test_an_experiment_warns_of_each_of_its_spot_instances(
    aws: LocalAws, world: World, received: Any, count: int
) -> None:
    config = world.config(world.launch_template(), ["m5.large"])
    ids = instance_ids(world.fleet(config, spot=True, capacity=count))
    identifier = template(aws, world, ids)

    experiment = aws.client("fis").start_experiment(experimentTemplateId=identifier)["experiment"]

    assert experiment["experimentTemplateId"] == identifier
    warnings = [received() for _ in range(count)]
    assert sorted(warning["detail"]["instance-id"] for warning in warnings) == sorted(ids)
    assert {warning["detail-type"] for warning in warnings} == {"EC2 Spot Instance Interruption Warning"}
    assert {world.instance(each)["State"]["Name"] for each in ids} == {"running"}
    aws.client("fis").delete_experiment_template(id=identifier)


def test_an_experiment_interrupts_no_on_demand_instance(aws: LocalAws, world: World) -> None:
    ids = instance_ids(world.fleet(world.config(world.launch_template(), ["m5.large"])))
    identifier = template(aws, world, ids)
    with pytest.raises(ClientError, match="not a running spot instance"):
        aws.client("fis").start_experiment(experimentTemplateId=identifier)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"duration": "PT1M"}, id="too-short"),
        pytest.param({"duration": "PT16M"}, id="too-long"),
        pytest.param({"duration": "two minutes"}, id="no-duration"),
        pytest.param({"role": "arn:aws:iam::123456789012:role/none"}, id="no-role"),
        pytest.param({"target": {"resourceType": "aws:ec2:instance"}}, id="another-kind-of-target"),
        pytest.param({"action": {"targets": {"SpotInstances": "others"}}}, id="no-such-target"),
        pytest.param({"target": {"resourceArns": ["arn:aws:ec2:::instance/i-1"] * 6}}, id="too-many"),
    ],
)
def test_a_template_that_fis_would_not_take_is_refused(
    aws: LocalAws, world: World, changes: dict[str, Any]
) -> None:
    with pytest.raises(ClientError, match="ValidationException"):
        template(aws, world, ["i-1"], **changes)
