"""Instance profile of a node class: the one it names, one made for its role, or the default one.

What is made for a role lives as long as its node class: it goes when the class is deleted (`delete_of`), and
what outlived its use otherwise (a role that was changed, a crash) is swept. A role that is refused is told
as a fault of the node class, with what to do.
"""

from collections.abc import Collection, Iterable, Mapping

from nodeless.cloudprovider import CloudError, CloudUnavailable, CredentialsRefused, NodeClassUnresolved
from nodeless.cloudprovider.aws.caching import Cache, Clock
from nodeless.cloudprovider.aws.errors import FORBIDDEN, AwsCallRefused
from nodeless.cloudprovider.aws.made_profiles import LIMIT, MISSING, MadeProfiles
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.cloudprovider.aws.settings import AwsSettings
from nodeless.launch.instance_profiles import WantedProfile, class_path, cluster_path, wanted_profile
from nodeless.model.pools import NodeClass

#: Seconds (Karpenter v1 looks at a profile again after 15 minutes).
_FRESH, _USABLE = 900.0, 3600.0
_OR_NAME_ONE = "name an instance profile that has the role in spec.instanceProfile instead of spec.role"
#: Code of IAM to (reason of the condition, what to do).
_REFUSALS = {
    MISSING: ("RoleNotFound", "create the role, or correct spec.role"),
    LIMIT: (
        "QuotaExceeded",
        f"raise IAM's quota, delete unused instance profiles, or {_OR_NAME_ONE}",
    ),
}


class InstanceProfiles:
    """Finds and makes instance profiles. With `reads_only` nothing is made: names alone are told."""

    def __init__(
        self, session: AwsSession, clock: Clock, settings: AwsSettings, *, reads_only: bool = False
    ) -> None:
        self._session = session
        self._made = MadeProfiles(session)
        self.settings = settings
        self._reads_only = reads_only
        self._ready: Cache[str] = Cache(clock, _FRESH, _USABLE)
        #: Node classes (by uid) that are at their end: whatever still asks, nothing is made for them.
        self._ended: set[str] = set()
        #: Names that nothing used at the last sweep.
        self._unused: frozenset[str] = frozenset()

    async def select(self, node_class: NodeClass) -> str:
        """The name of the profile.

        Raises:
            nodeless.cloudprovider.NodeClassUnresolved: None is given, or none can be made for the role given.
        """
        if node_class.instance_profile:
            return node_class.instance_profile
        if node_class.role:
            return await self._of_role(node_class)
        if self.settings.default_instance_profile:
            return self.settings.default_instance_profile
        raise NodeClassUnresolved(
            node_class.reference,
            "instanceProfile",
            "no instance profile is set",
            "set spec.instanceProfile, or aws.defaultInstanceProfile in ConfigMap karpenter-global-settings",
            "InstanceProfileNotFound",
        )

    def expire(self, node_class: NodeClass) -> None:
        """Ask IAM again at the next call: EC2 says that the profile made for a class's role is not there."""
        if node_class.role and not node_class.instance_profile:
            self._ready.expire(self._wanted_profile(node_class))

    async def delete_of(self, node_class: NodeClass) -> int:
        """Delete all that was made for a node class, and make nothing for it any more; how many there were.

        A VPC without a route to IAM keeps no class: what may have been made before stays (Karpenter v1).

        Raises:
            CloudError: Not all is deleted; only for a class that names a role. What another may have left
                is the sweep's.
        """
        uid = node_class.reference.uid
        self._ended.add(uid)
        path = class_path(self._session.region, self.settings.cluster_name, uid)
        if node_class.role:
            try:
                return await self._delete_under(path, (self._wanted_profile(node_class).name,))
            except CloudUnavailable as error:
                # With evidence IAM has answered, for example that it is throttled: then it can be reached.
                if error.evidence or not self.settings.isolated_vpc:
                    raise
                return 0
        if self.settings.isolated_vpc:
            return 0
        try:
            return await self._delete_under(path)
        except CloudError:
            return 0

    async def delete_all(self) -> int:
        """Delete all that was made for the cluster's node classes; how many there were."""
        return await self._delete_under(cluster_path(self._session.region, self.settings.cluster_name))

    async def sweep(self, node_classes: Iterable[NodeClass], in_use: Collection[str]) -> int:
        """Delete what no node class wants and no instance bears, now and at the last sweep; how many.

        Args:
            node_classes: All there are; of those that cannot be read all profiles are kept.
            in_use: Names of the profiles of live instances.
        """
        region, cluster = self._session.region, self.settings.cluster_name
        known = tuple(node_classes)
        kept = {self._wanted_profile(node_class).name for node_class in known if node_class.role} | set(
            in_use
        )
        unread = {
            class_path(region, cluster, node_class.reference.uid)
            for node_class in known
            if node_class.invalid
        }
        found = await self._made.under(cluster_path(region, cluster))
        unused = frozenset(name for name, path in found.items() if name not in kept and path not in unread)
        again, self._unused = unused & self._unused, unused
        return sum([await self._made.delete(name) for name in sorted(again)])

    def _wanted_profile(self, node_class: NodeClass) -> WantedProfile:
        tags: Mapping[str, str] = self.settings.tags
        return wanted_profile(self._session.region, self.settings.cluster_name, node_class, tags)

    async def _of_role(self, node_class: NodeClass) -> str:
        wanted = self._wanted_profile(node_class)
        ended = node_class.deletion_timestamp is not None or node_class.reference.uid in self._ended
        if self._reads_only or ended:
            return wanted.name
        try:
            return await self._ready.get(wanted, lambda: self._made.ensure(wanted))
        except CloudError as error:
            fault = self._fault(node_class, wanted, error)
            if fault is None:
                raise
            raise fault from error

    def _fault(
        self, node_class: NodeClass, wanted: WantedProfile, error: CloudError
    ) -> NodeClassUnresolved | None:
        """What an error says of the node class; None: nothing, it may pass."""
        text = f"cannot create an instance profile for role {wanted.role}: {error.message}"
        match error:
            case CredentialsRefused(code=code) if code in FORBIDDEN:
                reason, hint = "Unauthorized", f"{error.hint}, or {_OR_NAME_ONE}"
            case AwsCallRefused(code=code):
                reason, hint = _REFUSALS.get(code, ("InstanceProfileFailed", _OR_NAME_ONE))
            case CloudUnavailable() if self.settings.isolated_vpc:
                reason, hint = "IamUnreachable", f"give the VPC a route to IAM, or {_OR_NAME_ONE}"
            case _:
                return None
        return NodeClassUnresolved(node_class.reference, "role", text, hint, reason, error.evidence)

    async def _delete_under(self, path: str, names: Iterable[str] = ()) -> int:
        try:
            # A list may not show yet what was made a moment ago.
            found = {*names, *await self._made.under(path)}
        except CredentialsRefused as error:
            if error.code not in FORBIDDEN:
                raise
            found = await self._present(names)
        return sum([await self._made.delete(name) for name in sorted(found)])

    async def _present(self, names: Iterable[str]) -> set[str]:
        """Those that are there; none where we may not even look, for then we made none."""
        try:
            return {name for name in names if await self._made.find(name) is not None}
        except CredentialsRefused as error:
            if error.code not in FORBIDDEN:
                raise
            return set()
