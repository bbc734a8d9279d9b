"""The placement group that a node class names."""

from nodeless.cloudprovider import NodeClassUnresolved
from nodeless.cloudprovider.aws.caching import Cache, Clock
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.cloudprovider.aws.subnets import FRESH, USABLE
from nodeless.model.placement import PlacementGroup
from nodeless.model.pools import NodeClass

_UNKNOWN = ("InvalidPlacementGroup.Unknown", "InvalidPlacementGroupId.Malformed")
_FIELD = "placementGroupSelector"


class PlacementGroups:
    """Finds placement groups."""

    def __init__(self, session: AwsSession, clock: Clock) -> None:
        self._session = session
        self._cache: Cache[PlacementGroup] = Cache(clock, FRESH, USABLE)

    async def select(self, node_class: NodeClass) -> PlacementGroup | None:
        """The group; None for a class that names none.

        Raises:
            NodeClassUnresolved: There is no such group, or none that can be used.
        """
        if not node_class.placement_group:
            return None
        return await self._cache.get(node_class.placement_group, lambda: self._fetch(node_class))

    def expire(self, node_class: NodeClass) -> None:
        """Ask EC2 again: a group that was there is gone."""
        self._cache.expire(node_class.placement_group)

    async def _fetch(self, node_class: NodeClass) -> PlacementGroup:
        named = node_class.placement_group
        member = "GroupIds" if named.startswith("pg-") else "GroupNames"
        try:
            answer = await self._session.call("ec2", "describe_placement_groups", {member: [named]})
        except AwsCallRefused as error:
            if error.code not in _UNKNOWN:
                raise
            answer = {}
        found = next(
            (
                placement_group
                for placement_group in answer.get("PlacementGroups", ())
                if placement_group["State"] == "available"
            ),
            None,
        )
        if found is None:
            raise NodeClassUnresolved(
                node_class.reference,
                _FIELD,
                f"there is no placement group {named} in {self._session.region}",
                f"create it, or correct spec.{_FIELD}",
                "PlacementGroupNotFound",
            )
        return PlacementGroup(
            found["GroupId"], found["GroupName"], found["Strategy"], int(found.get("PartitionCount") or 0)
        )
