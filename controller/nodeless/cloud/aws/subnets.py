"""Subnets of a node class, and the addresses that launches under way will take from them."""

from collections.abc import Callable, Iterable

from nodeless.cloud.aws.caching import Cache, Clock
from nodeless.cloud.aws.selectors import filters_of, nothing_selected
from nodeless.cloud.aws.session import AwsSession
from nodeless.launch.resolved import Subnet
from nodeless.launch.unavailable import UNAVAILABLE_SECONDS
from nodeless.model.pools import NodeClass

#: Seconds: Karpenter's own time to live, and how long an old answer serves while a new one is fetched.
FRESH = 60.0
USABLE = 600.0


class Subnets:
    """Finds subnets by selector; keeps count of addresses between two answers of EC2."""

    def __init__(
        self, session: AwsSession, clock: Clock, shifted: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._session = session
        #: Whether AWS shifts work away from a zone, by the zone's id.
        self._shifted = shifted
        #: Ids of the zones by name, of all subnets that were ever selected.
        self.zone_ids: dict[str, str] = {}
        self._clock = clock
        self._cache: Cache[tuple[Subnet, ...]] = Cache(clock, FRESH, USABLE)
        #: Addresses promised to launches since EC2 last told the count, by subnet id.
        self._promised: dict[str, int] = {}
        #: Time until which a subnet is left alone in which EC2 found no address, by subnet id.
        self._full_until: dict[str, float] = {}

    async def select(self, node_class: NodeClass, *, refresh: bool = False) -> tuple[Subnet, ...]:
        """The subnets, sorted by zone and id, with the addresses that are left.

        Raises:
            nodeless.cloud.NodeClassUnresolved: None is selected.
        """
        get = self._cache.refresh if refresh else self._cache.get
        found = await get(node_class.subnets, lambda: self._fetch(node_class))
        now = self._clock()
        return tuple(
            Subnet(
                each.id,
                each.zone,
                each.free_addresses - self._promised.get(each.id, 0),
                full=self._full_until.get(each.id, 0.0) > now,
                zone_id=each.zone_id,
                shifted=self._shifted(each.zone_id),
            )
            for each in found
        )

    def keep(self, seconds: float) -> None:
        """Let EC2's answers serve for so long from now on."""
        self._cache.keep(seconds)

    def promise(self, subnet_id: str, addresses: int) -> None:
        """Count addresses that a new node's pods will take."""
        self._promised[subnet_id] = self._promised.get(subnet_id, 0) + addresses

    def mark_full(self, subnet_ids: Iterable[str]) -> None:
        """Leave subnets alone in which EC2 found no address, as long as other things sold out."""
        until = self._clock() + UNAVAILABLE_SECONDS
        self._full_until.update(dict.fromkeys(subnet_ids, until))

    def forget(self) -> None:
        """Ask EC2 again: a subnet that was chosen is not there."""
        self._cache.forget()

    async def _fetch(self, node_class: NodeClass) -> tuple[Subnet, ...]:
        found: dict[str, Subnet] = {}
        for term in node_class.subnets:
            request = {"Filters": filters_of(term, id_filter="subnet-id", name_filter="tag:Name")}
            for entry in await self._session.pages("ec2", "describe_subnets", request, "Subnets"):
                subnet = Subnet(
                    entry["SubnetId"],
                    entry["AvailabilityZone"],
                    entry["AvailableIpAddressCount"],
                    zone_id=entry.get("AvailabilityZoneId", ""),
                )
                found[subnet.id] = subnet
                self.zone_ids[subnet.zone] = subnet.zone_id
        if not found:
            raise nothing_selected(
                node_class, "subnetSelector", node_class.subnets, "subnets", self._session.region
            )
        for identifier in found:
            self._promised.pop(identifier, None)
        return tuple(sorted(found.values(), key=lambda each: (each.zone, each.id)))
