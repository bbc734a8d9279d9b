"""What a role's own policies forbid it: explicit denials in its inline policies.

What no policy allows is not refused here. An explicit Deny of an action on every resource is, as a client's
test of a lacking permission writes it; denials of some resources, or under conditions, are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from localenv.aws.calls import AwsError, as_list
from localenv.aws.moto_internals import inline_policies_of

_SESSION = re.compile(r"arn:[^:]+:sts::\d+:assumed-role/(?P<role>[^/]+)/.*")


def assert_not_denied(principal: str, service: str, operation: str) -> None:
    """Raise AwsError, in the words of the service, when the caller's role is denied the action."""
    session = _SESSION.fullmatch(principal)
    action = f"{service}:{operation}"
    if session is None or not denies(inline_policies_of(session["role"]), action):
        return
    message = (
        f"User: {principal} is not authorized to perform: {action} on resource: * "
        "with an explicit deny in an identity-based policy"
    )
    if service == "ec2":
        message = f"You are not authorized to perform this operation. {message}"
        raise AwsError("UnauthorizedOperation", message, 403)
    raise AwsError("AccessDenied" if service in {"iam", "sts"} else "AccessDeniedException", message, 403)


def denies(policies: Iterable[Mapping[str, Any]], action: str) -> bool:
    """Whether a statement of the policies denies the action on every resource."""
    return any(
        statement.get("Effect") == "Deny"
        and not statement.get("Condition")
        and "*" in as_list(statement.get("Resource"))
        and any(fnmatchcase(action.lower(), each.lower()) for each in as_list(statement.get("Action")))
        for policy in policies
        for statement in as_list(policy.get("Statement"))
    )
