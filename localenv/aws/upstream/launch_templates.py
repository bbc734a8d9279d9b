"""Launch templates: whole pages with their tokens, and EC2's own codes when one is missing.

moto gives pages of 15 where none are asked for, leaves out ids that are not there, and deletes what does
not exist with an error of its own. EC2 gives pages of 200 and answers `InvalidLaunchTemplateId.NotFound`
or `InvalidLaunchTemplateName.NotFoundException`.

Source: EC2 API reference, DescribeLaunchTemplates, DeleteLaunchTemplate; error codes of the EC2 API.
"""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from localenv.aws.calls import AwsError, Call, Handlers
from localenv.aws.upstream.pages import page

#: EC2's largest page, which is also the one it gives when none is asked for.
PAGE = 200
#: More templates than an account may have in a region.
ALL = 10_000


def describe_launch_templates(call: Call) -> dict[str, Any]:
    """ec2.DescribeLaunchTemplates."""
    answer = call.forward(MaxResults=ALL, NextToken=None)
    found = sorted(answer["LaunchTemplates"], key=lambda t: t["LaunchTemplateId"])
    identifiers = call.parameters.get("LaunchTemplateIds") or []
    missing = set(identifiers) - {t["LaunchTemplateId"] for t in found}
    if missing and not call.parameters.get("Filters"):
        raise _unknown_id(sorted(missing)[0])
    chosen, token = page(found, call.parameters, default=PAGE, maximum=PAGE)
    return {"LaunchTemplates": chosen} | ({"NextToken": token} if token else {})


def delete_launch_template(call: Call) -> dict[str, Any]:
    """ec2.DeleteLaunchTemplate."""
    identifier = call.parameters.get("LaunchTemplateId")
    name = call.parameters.get("LaunchTemplateName")
    named = {"LaunchTemplateId": identifier} if identifier else {"LaunchTemplateName": name}
    try:
        if identifier or name:
            call.client().describe_launch_template_versions(**named, Versions=["$Default"])
    except ClientError as error:
        if not identifier:
            message = f"At least one of the launch templates specified in the request does not exist: {name}."
            raise AwsError("InvalidLaunchTemplateName.NotFoundException", message) from error
        raise _unknown_id(identifier) from error
    return call.forward()


def _unknown_id(identifier: str) -> AwsError:
    message = f"The specified launch template, with template ID {identifier}, does not exist."
    return AwsError("InvalidLaunchTemplateId.NotFound", message)


HANDLERS: Handlers = {
    ("ec2", "DeleteLaunchTemplate"): delete_launch_template,
    ("ec2", "DescribeLaunchTemplates"): describe_launch_templates,
}
