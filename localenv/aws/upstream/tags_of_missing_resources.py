"""CreateTags refuses instances and launch templates that do not exist.

moto looks at the prefix of an id and tags what it has never heard of. EC2 answers
`InvalidInstanceID.NotFound` or `InvalidLaunchTemplateId.NotFound` and tags nothing.

Source: EC2 API reference, CreateTags, and the error codes of the EC2 API.
"""

from __future__ import annotations

from typing import Any

from localenv.aws.calls import Call, Handlers


def create_tags(call: Call) -> dict[str, Any]:
    """ec2.CreateTags: every instance and launch template named must exist."""
    resources = call.parameters.get("Resources") or []
    instances = [r for r in resources if r.startswith("i-")]
    if instances:
        call.client().describe_instances(InstanceIds=instances)
    templates = [r for r in resources if r.startswith("lt-")]
    for template in templates:
        call.client().describe_launch_template_versions(LaunchTemplateId=template, Versions=["$Default"])
    return call.forward()


HANDLERS: Handlers = {("ec2", "CreateTags"): create_tags}
