"""Who calls: the access key of a request and the principal behind it.

Known keys are the environment's own pair and every key that IAM or STS has handed out. Only the key id is
checked, not the signature, nor whether a session has expired. Of policies, denials alone are looked at
(`denials`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from localenv.aws.calls import AwsError
from localenv.aws.keys import ACCESS_KEY
from localenv.aws.moto_internals import ACCOUNT, principal_of

OWNER = f"arn:aws:iam::{ACCOUNT}:user/local"

_SCOPE = re.compile(r"Credential=(?P<key>[^/,\s]+)/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")
#: Credential scopes that are named unlike the service's model.
_SERVICES = {"monitoring": "cloudwatch", "elasticloadbalancing": "elbv2"}
_QUERY_FAMILY = frozenset({"iam", "sts", "sqs", "sns", "cloudformation", "autoscaling"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What a signature says about its request."""

    access_key: str
    region: str
    service: str


def scope_of(authorization: str, query: str) -> Scope | None:
    """The scope of a signed request, from its header or its presigned query; `None` when it is unsigned."""
    from urllib.parse import unquote  # noqa: PLC0415 - only presigned requests need it

    match = _SCOPE.search(authorization) or _SCOPE.search(
        unquote(query).replace("X-Amz-Credential=", "Credential=")
    )
    if match is None:
        return None
    service = match["service"].lower()
    return Scope(match["key"], match["region"], _SERVICES.get(service, service))


def authenticate_key(access_key: str) -> str | None:
    """The ARN behind an access key; `None` for one never handed out."""
    return OWNER if access_key == ACCESS_KEY else principal_of(access_key)


def authenticate(scope: Scope) -> str:
    """The ARN of the principal that signed.

    Raises:
        AwsError: The access key is unknown, in the words of the service's family.
    """
    principal = authenticate_key(scope.access_key)
    if principal is not None:
        return principal
    if scope.service == "ec2":
        message = "AWS was not able to validate the provided access credentials"
        raise AwsError("AuthFailure", message, 401)
    code = "InvalidClientTokenId" if scope.service in _QUERY_FAMILY else "UnrecognizedClientException"
    raise AwsError(code, "The security token included in the request is invalid.", 403)
