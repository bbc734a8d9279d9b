"""What the EC2 resources have in common: tags on creation, tags in place, gone is gone.

The resources themselves stand in `network`, `routing` and `security_groups`.
"""

from __future__ import annotations

from typing import Any

from localenv.pulumi.aws.clients import AwsClients, AwsResource, changed_tags, tag_list
from localenv.pulumi.resources import Inputs, Outputs


class Ec2Resource(AwsResource):
    """A resource whose id is what EC2 calls it, and whose tags change in place."""

    in_place = frozenset({"tags"})

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        removed, added = changed_tags(old.get("tags"), new.get("tags"))
        if removed:
            backend.ec2.delete_tags(Resources=[identity], Tags=[{"Key": key} for key in removed])
        if added:
            backend.ec2.create_tags(Resources=[identity], Tags=tag_list(added))


def tag_specifications(kind: str, inputs: Inputs) -> list[dict[str, Any]]:
    """The `TagSpecifications` of a create call; none when there are no tags, as EC2 demands."""
    tags = tag_list(inputs.get("tags"))
    return [{"ResourceType": kind, "Tags": tags}] if tags else []


def present(**arguments: Any) -> dict[str, Any]:
    """The arguments that are given: boto3 takes no None."""
    return {key: value for key, value in arguments.items() if value is not None}


def given(inputs: Inputs, *keys: str) -> dict[str, Any]:
    """Those of the inputs that are given, for calls whose arguments have the same names."""
    return present(**{key: inputs.get(key) for key in keys})


def capitalized(inputs: Inputs, *keys: str) -> dict[str, Any]:
    """Those of the inputs that are given, for calls that write `vpcId` as `VpcId`."""
    return {key[0].upper() + key[1:]: value for key, value in given(inputs, *keys).items()}


def arn(backend: AwsClients, kind: str, identity: str) -> str:
    """The ARN of an EC2 resource."""
    return f"arn:{backend.partition}:ec2:{backend.region}:{backend.account}:{kind}/{identity}"


def with_tags(inputs: Inputs, outputs: Outputs) -> Outputs:
    """The outputs, and the tags as the real provider repeats them."""
    return outputs | {"tagsAll": dict(inputs.get("tags") or {})}
