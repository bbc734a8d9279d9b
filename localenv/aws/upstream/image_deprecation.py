"""Deprecated images: they go on working, and are listed for who asks for them.

moto knows no deprecation. EC2 rounds its time to the minute, lets the owner alone set it, and leaves
deprecated images out of DescribeImages but for their owner, for who names them, and for
`IncludeDeprecated`.

Source: EC2 user guide, "Deprecate an Amazon EC2 AMI"; API reference, EnableImageDeprecation.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from localenv.aws.calls import AwsError, Call, Handlers
from localenv.aws.moto_internals import ACCOUNT
from localenv.aws.upstream.pages import page

_MOST = 1000


def enable_image_deprecation(call: Call) -> dict[str, Any]:
    """ec2.EnableImageDeprecation: of an image of one's own; EC2 rounds to the minute."""
    image = _own(call)
    at: datetime = call.parameters["DeprecateAt"]
    with call.state.lock:
        call.state.deprecations[image] = at.astimezone(UTC).replace(second=0, microsecond=0)
    return {"Return": True}


def disable_image_deprecation(call: Call) -> dict[str, Any]:
    """ec2.DisableImageDeprecation."""
    image = _own(call)
    with call.state.lock:
        call.state.deprecations.pop(image, None)
    return {"Return": True}


def describe_images(call: Call) -> dict[str, Any]:
    """ec2.DescribeImages in pages, with the time of deprecation.

    A deprecated image is shown to its owner, to who names it, and to who asks for those.
    """
    parameters = call.parameters
    named = set(parameters.get("ImageIds") or ())
    shown = [
        _with_deprecation(call, image)
        for image in call.forward(MaxResults=None, NextToken=None, IncludeDeprecated=None)["Images"]
        if parameters.get("IncludeDeprecated")
        or image["ImageId"] in named
        or image.get("OwnerId") == ACCOUNT
        or not _is_deprecated(call, image)
    ]
    images, token = page(shown, parameters, default=None, maximum=_MOST)
    return {"Images": images} | ({"NextToken": token} if token else {})


def _with_deprecation(call: Call, image: dict[str, Any]) -> dict[str, Any]:
    at = call.state.deprecations.get(image["ImageId"])
    return image if at is None else {**image, "DeprecationTime": f"{at:%Y-%m-%dT%H:%M:%S}.000Z"}


def _is_deprecated(call: Call, image: Mapping[str, Any]) -> bool:
    at = call.state.deprecations.get(image["ImageId"])
    return at is not None and at <= datetime.now(UTC)


def _own(call: Call) -> str:
    """The image that is named, which must be there and the caller's own."""
    image = str(call.parameters["ImageId"])
    (found,) = call.client().describe_images(ImageIds=[image])["Images"]
    if found.get("OwnerId") != ACCOUNT:
        raise AwsError("AuthFailure", f"Not authorized for image:{image}", 403)
    return image


HANDLERS: Handlers = {
    ("ec2", "DescribeImages"): describe_images,
    ("ec2", "DisableImageDeprecation"): disable_image_deprecation,
    ("ec2", "EnableImageDeprecation"): enable_image_deprecation,
}
