"""Security groups of a node class: all that its selector matches are put on every instance."""

from collections.abc import Iterable

from nodeless.cloudprovider.aws.caching import Cache, Clock
from nodeless.cloudprovider.aws.selectors import filters_of, nothing_selected
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.cloudprovider.aws.subnets import FRESH, USABLE
from nodeless.model.pools import NodeClass


class SecurityGroups:
    """Finds security groups by selector."""

    def __init__(self, session: AwsSession, clock: Clock) -> None:
        self._session = session
        self._cache: Cache[tuple[str, ...]] = Cache(clock, FRESH, USABLE)
        self._names: dict[str, str] = {}

    async def select(self, node_class: NodeClass, *, refresh: bool = False) -> tuple[str, ...]:
        """Their ids, sorted: the order that EC2 answers in must not make another launch template.

        Raises:
            nodeless.cloudprovider.NodeClassUnresolved: None is selected.
        """
        get = self._cache.refresh if refresh else self._cache.get
        return await get(node_class.security_groups, lambda: self._fetch(node_class))

    def names(self, groups: Iterable[str]) -> dict[str, str]:
        """Names of groups that were selected."""
        return {group: self._names[group] for group in groups if group in self._names}

    def expire(self, node_class: NodeClass) -> None:
        """Ask EC2 again: a group that was chosen is not there."""
        self._cache.expire(node_class.security_groups)

    async def _fetch(self, node_class: NodeClass) -> tuple[str, ...]:
        found: set[str] = set()
        for term in node_class.security_groups:
            request = {"Filters": filters_of(term, id_filter="group-id", name_filter="group-name")}
            for entry in await self._session.pages(
                "ec2", "describe_security_groups", request, "SecurityGroups"
            ):
                found.add(entry["GroupId"])
                self._names[entry["GroupId"]] = entry.get("GroupName", "")
        if not found:
            raise nothing_selected(
                node_class,
                "securityGroupSelector",
                node_class.security_groups,
                "security groups",
                self._session.region,
            )
        return tuple(sorted(found))
