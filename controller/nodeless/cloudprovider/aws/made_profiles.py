"""Instance profiles in IAM that are made for node classes, each with one role: made, repaired, deleted.

Every method may be called again after it was cut short at any line, by whoever leads then. IAM's lists and
reads lag behind its writes, so a refusal that only tells of that is looked at once more.
"""

from typing import Any

from nodeless.cloudprovider import CloudUnavailable
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.launch.instance_profiles import WantedProfile
from nodeless.launch.tags import tag_list

MISSING, EXISTS, LIMIT = "NoSuchEntity", "EntityAlreadyExists", "LimitExceeded"

Record = dict[str, Any]


class MadeProfiles:
    """The calls, each idempotent. All of them raise CloudError."""

    def __init__(self, session: AwsSession) -> None:
        self._session = session

    async def ensure(self, wanted: WantedProfile) -> str:
        """Have the profile exist with its role and its tags; its name."""
        found = await self.find(wanted.name) or await self._create(wanted)
        if found["Path"] != wanted.path:
            message = f"instance profile {wanted.name} exists with path {found['Path']}, not {wanted.path}"
            raise AwsCallRefused("iam", "CreateInstanceProfile", EXISTS, message)
        present = {tag["Key"]: tag["Value"] for tag in found.get("Tags", ())}
        if not dict(wanted.tags).items() <= present.items():
            # All of them: that is what the policy asks for.
            tags = tag_list(dict(wanted.tags))
            await self._call("tag_instance_profile", wanted.name, Tags=tags)
        await self._give_role(wanted, found)
        return wanted.name

    async def find(self, name: str) -> Record | None:
        """IAM's record of a profile; None when there is none."""
        try:
            answer = await self._call("get_instance_profile", name)
        except AwsCallRefused as error:
            if error.code != MISSING:
                raise
            return None
        record: Record = answer["InstanceProfile"]
        return record

    async def under(self, path: str) -> dict[str, str]:
        """Paths of all profiles under a path, by name."""
        found = await self._session.pages(
            "iam", "list_instance_profiles", {"PathPrefix": path}, "InstanceProfiles"
        )
        return {str(record["InstanceProfileName"]): str(record["Path"]) for record in found}

    async def delete(self, name: str) -> bool:
        """Take a profile's role out of it and delete it; False when there was none."""
        found = await self.find(name)
        if found is None:
            return False
        for role in _roles(found):
            await self._unless_missing("remove_role_from_instance_profile", name, RoleName=role)
        await self._unless_missing("delete_instance_profile", name)
        return True

    async def _create(self, wanted: WantedProfile) -> Record:
        request = {"Path": wanted.path, "Tags": tag_list(dict(wanted.tags))}
        try:
            answer = await self._call("create_instance_profile", wanted.name, **request)
        except AwsCallRefused as error:
            if error.code != EXISTS:
                raise
            found = await self.find(wanted.name)
            if found is None:
                message = f"instance profile {wanted.name} was created, but IAM does not return it yet"
                raise CloudUnavailable("iam", message, "nodeless asks again") from error
            return found
        record: Record = answer["InstanceProfile"]
        return record

    async def _give_role(self, wanted: WantedProfile, found: Record) -> None:
        for other in _roles(found) - {wanted.role}:
            await self._unless_missing("remove_role_from_instance_profile", wanted.name, RoleName=other)
        if wanted.role in _roles(found):
            return
        try:
            await self._call("add_role_to_instance_profile", wanted.name, RoleName=wanted.role)
        except AwsCallRefused as error:
            # A profile holds one role: an answer was lost on the way, and the call was made again.
            there = await self.find(wanted.name) if error.code == LIMIT else None
            if there is None or wanted.role not in _roles(there):
                raise

    async def _unless_missing(self, method: str, name: str, **more: str) -> None:
        try:
            await self._call(method, name, **more)
        except AwsCallRefused as error:
            if error.code != MISSING:
                raise

    async def _call(self, method: str, name: str, **more: Any) -> Record:
        return await self._session.call("iam", method, {"InstanceProfileName": name, **more})


def _roles(record: Record) -> set[str]:
    return {str(role["RoleName"]) for role in record.get("Roles", ())}
