"""The shapes of the AWS API, as botocore has them: checks of answers, and answers with every member."""

from functools import cache
from typing import Any

import botocore.session

OPERATIONS = {
    "nodegroup": ("eks", "DescribeNodegroup"),
    "AutoScalingGroups": ("autoscaling", "DescribeAutoScalingGroups"),
    "LaunchConfigurations": ("autoscaling", "DescribeLaunchConfigurations"),
    "ScheduledUpdateGroupActions": ("autoscaling", "DescribeScheduledActions"),
    "LaunchTemplateVersions": ("ec2", "DescribeLaunchTemplateVersions"),
}
_PLAIN = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "long": int,
    "double": float,
    "float": float,
    "timestamp": str,
}
_SAMPLES: dict[str, Any] = {"boolean": True, "integer": 3, "long": 3, "double": 3.0, "float": 3.0}


@cache
def output_of(member: str) -> Any:
    """The output shape of the operation whose answer holds a member."""
    service, operation = OPERATIONS[member]
    return botocore.session.get_session().get_service_model(service).operation_model(operation).output_shape


def defects(value: Any, shape: Any, path: str = "") -> list[str]:
    """What of a value is not of a shape."""
    if shape.type_name == "structure":
        if not isinstance(value, dict):
            return [f"{path} is no structure"]
        unknown = [f"{path}.{name} is no member" for name in value if name not in shape.members]
        known = [(name, below) for name, below in value.items() if name in shape.members]
        return unknown + [
            one for name, below in known for one in defects(below, shape.members[name], f"{path}.{name}")
        ]
    if shape.type_name == "list":
        if not isinstance(value, list):
            return [f"{path} is no list"]
        return [
            one
            for number, item in enumerate(value)
            for one in defects(item, shape.member, f"{path}[{number}]")
        ]
    if shape.type_name == "map":
        if not isinstance(value, dict):
            return [f"{path} is no map"]
        return [one for key, item in value.items() for one in defects(item, shape.value, f"{path}.{key}")]
    if not isinstance(value, _PLAIN[shape.type_name]):
        return [f"{path} is no {shape.type_name}"]
    if getattr(shape, "enum", None) and value not in shape.enum:
        return [f"{path}: {value} is not one of {', '.join(shape.enum)}"]
    return []


def sample(shape: Any) -> Any:
    """A value with every member of a shape."""
    if shape.type_name == "structure":
        return {name: sample(member) for name, member in shape.members.items()}
    if shape.type_name == "list":
        return [sample(shape.member)]
    if shape.type_name == "map":
        return {"some": sample(shape.value)}
    if getattr(shape, "enum", None):
        return shape.enum[-1]
    return _SAMPLES.get(shape.type_name, "some")
