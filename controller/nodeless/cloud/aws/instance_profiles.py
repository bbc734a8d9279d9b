"""Instance profile of a node class: the one it names, or the default one, if that has the role it names.

Profiles are not made here: a role without one is reported with what to do.
"""

from nodeless.cloud import NodeClassUnresolved
from nodeless.cloud.aws.caching import Cache, Clock
from nodeless.cloud.aws.errors import AwsCallRefused
from nodeless.cloud.aws.session import AwsSession
from nodeless.model.pools import NodeClass

#: Seconds: the role of a profile hardly ever changes.
_FRESH, _USABLE = 300.0, 3600.0


class InstanceProfiles:
    """Finds the instance profile of a node class."""

    def __init__(self, session: AwsSession, clock: Clock, default: str) -> None:
        self._session = session
        self.default = default
        self._roles: Cache[str] = Cache(clock, _FRESH, _USABLE)

    async def select(self, node_class: NodeClass) -> str:
        """The name of the profile.

        Raises:
            nodeless.cloud.NodeClassUnresolved: None is given, or the role given has none that is known.
        """
        if node_class.instance_profile:
            return node_class.instance_profile
        if node_class.role:
            return await self._of_role(node_class, node_class.role)
        if self.default:
            return self.default
        raise NodeClassUnresolved(
            node_class.reference,
            "instanceProfile",
            "no instance profile is given",
            "set spec.instanceProfile, or aws.defaultInstanceProfile in ConfigMap karpenter-global-settings",
        )

    async def _of_role(self, node_class: NodeClass, role: str) -> str:
        wanted = role.rpartition("/")[2]
        found = ""
        if self.default:
            found = await self._roles.get(self.default, self._fetch)
            if found == wanted:
                return self.default
        default = f"{self.default} with role {found or '(none)'}" if self.default else "not set"
        raise NodeClassUnresolved(
            node_class.reference,
            "role",
            f"no instance profile with role {wanted} is known: the default one is {default}",
            "name a profile that has the role in spec.instanceProfile instead of spec.role, or set it as "
            "aws.defaultInstanceProfile in ConfigMap karpenter-global-settings",
        )

    async def _fetch(self) -> str:
        """Name of the role of the default profile; empty when there is no such profile."""
        try:
            answer = await self._session.call(
                "iam", "get_instance_profile", {"InstanceProfileName": self.default}
            )
        except AwsCallRefused as error:
            if error.code != "NoSuchEntity":
                raise
            return ""
        roles = answer["InstanceProfile"]["Roles"]
        return str(roles[0]["RoleName"]) if roles else ""
