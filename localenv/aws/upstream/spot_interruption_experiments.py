"""Fault Injection Service (FIS): experiments that interrupt spot instances.

moto keeps templates and experiments, and does nothing to their targets. In AWS each instance gets EC2's
warning two minutes before its end, which comes after `durationBeforeInterruption`: 2 to 15 minutes, of at
most 5 instances of a target named by ARN.

Source: FIS user guide, "aws:ec2:send-spot-instance-interruptions".
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from localenv.aws.calls import AwsError, Call, Handlers
from localenv.aws.interruptions import SPOT_NOTICE, interrupt

log = logging.getLogger(__name__)

SPOT_ACTION = "aws:ec2:send-spot-instance-interruptions"
_SPOT_TYPE, _ROLE = "aws:ec2:spot-instance", "SpotInstances"
_MOST_INSTANCES = 5
_DURATION = re.compile(r"PT(?:(\d+)M)?(?:(\d+)S)?")
_LEAST_SECONDS, _MOST_SECONDS = 120, 900


def create_template(call: Call) -> dict[str, Any]:
    """fis.CreateExperimentTemplate: of actions that are carried out here.

    Raises:
        AwsError: An action or its targets are not as FIS wants them, or the role does not exist.
    """
    parameters = call.parameters
    targets = parameters.get("targets") or {}
    for name, action in parameters["actions"].items():
        _check_action(name, action, targets)
    role = str(parameters["roleArn"])
    try:
        call.client("iam").get_role(RoleName=role.rpartition("/")[2])
    except ClientError:
        raise AwsError("ValidationException", f"The role {role} does not exist") from None
    return call.forward()


def start(call: Call) -> dict[str, Any]:
    """fis.StartExperiment: record it, and interrupt the instances of its targets."""
    template_id = call.parameters["experimentTemplateId"]
    template = call.client("fis").get_experiment_template(id=template_id)["experimentTemplate"]
    instances = [
        (instance_id, _seconds(action["parameters"]))
        for action in template["actions"].values()
        for instance_id in _instances(template["targets"][action["targets"][_ROLE]])
    ]
    for instance_id, _ in instances:
        _refuse_other(call, instance_id)
    answer = call.forward()
    for instance_id, seconds in instances:
        call.state.later(seconds - SPOT_NOTICE, partial(_warn, call, instance_id))
    return answer


def _warn(call: Call, instance_id: str) -> None:
    """Warn of an instance; one that ended meanwhile needs no warning."""
    try:
        interrupt(call.state, call.moto, {"instanceId": instance_id, "region": call.region})
    except ValueError as error:
        log.info("no interruption of %s: %s", instance_id, error)


def _check_action(name: str, action: Mapping[str, Any], targets: Mapping[str, Any]) -> None:
    if action["actionId"] != SPOT_ACTION:
        raise AwsError("ValidationException", f"action {name}: {action['actionId']} is not carried out here")
    if not _LEAST_SECONDS <= _seconds(action.get("parameters") or {}) <= _MOST_SECONDS:
        message = f"action {name}: durationBeforeInterruption must be from PT2M to PT15M"
        raise AwsError("ValidationException", message)
    target = targets.get((action.get("targets") or {}).get(_ROLE, ""))
    if target is None or target["resourceType"] != _SPOT_TYPE:
        message = f"action {name}: the target {_ROLE} must be of the type {_SPOT_TYPE}"
        raise AwsError("ValidationException", message)
    if not 1 <= len(target.get("resourceArns") or ()) <= _MOST_INSTANCES:
        message = f"action {name}: from 1 to {_MOST_INSTANCES} resource ARNs can be named"
        raise AwsError("ValidationException", message)


def _seconds(parameters: Mapping[str, str]) -> int:
    """The duration before the end; 0 where it is none."""
    found = _DURATION.fullmatch(parameters.get("durationBeforeInterruption", ""))
    return 0 if found is None else 60 * int(found[1] or 0) + int(found[2] or 0)


def _instances(target: Mapping[str, Any]) -> list[str]:
    return [arn.rpartition("/")[2] for arn in target["resourceArns"]]


def _refuse_other(call: Call, instance_id: str) -> None:
    """Refuse what is no spot instance that runs."""
    try:
        answer = call.client("ec2").describe_instances(InstanceIds=[instance_id])
    except ClientError:
        answer = {"Reservations": []}
    for reservation in answer["Reservations"]:
        for instance in reservation["Instances"]:
            spot = instance.get("InstanceLifecycle") == "spot"
            if spot and instance["State"]["Name"] in ("pending", "running"):
                return
    raise AwsError("ResourceNotFoundException", f"{instance_id} is not a running spot instance", 404)


HANDLERS: Handlers = {
    ("fis", "CreateExperimentTemplate"): create_template,
    ("fis", "StartExperiment"): start,
}
