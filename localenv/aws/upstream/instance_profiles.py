"""Instance profiles: lists, quota, names, and when EC2 comes to know of them.

moto lists all profiles with their tags in one page, takes any name, has no quota and takes a role out of
a profile that does not have it. IAM lists by path and in pages without tags, checks names and paths,
allows 1000 profiles and refuses an unknown role. What IAM has just made EC2 does not know for some
seconds: the fault `profiles` says for how many.

Source: IAM API reference, ListInstanceProfiles, CreateInstanceProfile, RemoveRoleFromInstanceProfile; IAM
quotas; IAM user guide, "Changes that I make are not always immediately visible".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from localenv.aws.calls import AwsError, Call, Handlers
from localenv.aws.upstream.pages import page

#: Instance profiles of an account (IAM's default quota).
QUOTA = 1000
_NAME = re.compile(r"[\w+=,.@-]{1,128}", re.ASCII)
_PATH = re.compile(r"/|/[!-\x7f]{1,510}/")


def create_instance_profile(call: Call) -> dict[str, Any]:
    """iam.CreateInstanceProfile."""
    name, path = call.parameters["InstanceProfileName"], call.parameters.get("Path") or "/"
    if not _NAME.fullmatch(name):
        raise AwsError("ValidationError", f"The specified value for instanceProfileName is invalid: {name}")
    if not _PATH.fullmatch(path):
        message = "The specified value for path is invalid. It must begin and end with /"
        raise AwsError("ValidationError", message)
    if len(_all(call)) >= QUOTA:
        message = f"Cannot exceed quota for InstanceProfilesPerAccount: {QUOTA}"
        raise AwsError("LimitExceeded", message, 409)
    return call.forward()


def list_instance_profiles(call: Call) -> dict[str, Any]:
    """iam.ListInstanceProfiles: those under the path asked for, by name, without their tags."""
    prefix = call.parameters.get("PathPrefix") or "/"
    found = [
        {name: value for name, value in each.items() if name != "Tags"}
        for each in sorted(_all(call), key=lambda each: str(each["InstanceProfileName"]))
        if str(each["Path"]).startswith(prefix)
    ]
    asked = {"MaxResults": call.parameters.get("MaxItems"), "NextToken": call.parameters.get("Marker")}
    shown, token = page(found, asked, default=100, maximum=1000)
    return {"InstanceProfiles": shown, "IsTruncated": token is not None} | (
        {"Marker": token} if token else {}
    )


def remove_role_from_instance_profile(call: Call) -> dict[str, Any]:
    """iam.RemoveRoleFromInstanceProfile: the role must be in the profile."""
    name, role = call.parameters["InstanceProfileName"], call.parameters["RoleName"]
    roles = call.client().get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]
    if role not in {role["RoleName"] for role in roles}:
        message = f"The role with name {role} cannot be found in instance profile {name}."
        raise AwsError("NoSuchEntity", message, 404)
    return call.forward()


def unknown_profile(call: Call, given: Mapping[str, Any]) -> str:
    """What EC2 says of a request's instance profile that it does not know (yet); empty: it knows it."""
    name = given.get("Name") or str(given.get("Arn", "")).rpartition("/")[2]
    if not name:
        return ""
    since = datetime.now(UTC) - timedelta(seconds=call.state.faults.profiles)
    try:
        found = call.client("iam").get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    except ClientError:
        found = None
    if found is not None and (not call.state.faults.profiles or found["CreateDate"] <= since):
        return ""
    return (
        f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
    )


def _all(call: Call) -> list[dict[str, Any]]:
    profiles: list[dict[str, Any]] = call.client("iam").list_instance_profiles()["InstanceProfiles"]
    return profiles


HANDLERS: Handlers = {
    ("iam", "CreateInstanceProfile"): create_instance_profile,
    ("iam", "ListInstanceProfiles"): list_instance_profiles,
    ("iam", "RemoveRoleFromInstanceProfile"): remove_role_from_instance_profile,
}
