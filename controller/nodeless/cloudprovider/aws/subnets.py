"""Subnets of a node class, and the addresses that launches take from them between two answers of EC2.

There are two counts. Plans are told what nodes hold at least: an address each, and one for each pod they
are made for. Launches choose the subnet by what nodes may come to hold: the VPC CNI keeps addresses ahead
of pods, up to as many as a node has room for. That is promised before EC2 is asked, so that launches side
by side spread, and given back where no instance came to be (Karpenter's in-flight addresses).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from nodeless.cloudprovider.aws.caching import Cache, Clock
from nodeless.cloudprovider.aws.selectors import filters_of, nothing_selected
from nodeless.cloudprovider.aws.session import AwsSession
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
        #: By subnet id, since EC2 last told the count: that count, what nodes hold at least, what is promised
        #: beyond that, and how often EC2 has told.
        self._counted: dict[str, int] = {}
        self._held: dict[str, int] = {}
        self._promised: dict[str, int] = {}
        self._reports: dict[str, int] = {}
        #: Time until which a subnet is left alone in which EC2 found no address, by subnet id.
        self._full_until: dict[str, float] = {}

    async def select(self, node_class: NodeClass, *, refresh: bool = False) -> tuple[Subnet, ...]:
        """The subnets, sorted by zone and id, with the addresses that are left.

        Raises:
            nodeless.cloudprovider.NodeClassUnresolved: None is selected.
        """
        get = self._cache.refresh if refresh else self._cache.get
        return self.current(await get(node_class.subnets, lambda: self._fetch(node_class)))

    def current(self, subnets: Iterable[Subnet]) -> tuple[Subnet, ...]:
        """The same subnets as they are at this moment."""
        now = self._clock()
        return tuple(
            replace(
                subnet,
                free_addresses=self._counted.get(subnet.id, subnet.free_addresses)
                - self._held.get(subnet.id, 0),
                full=self._full_until.get(subnet.id, 0.0) > now,
                shifted=self._shifted(subnet.zone_id),
                promised=self._promised.get(subnet.id, 0),
            )
            for subnet in subnets
        )

    def keep(self, seconds: float) -> None:
        """Let EC2's answers serve for so long from now on."""
        self._cache.keep(seconds)

    @contextmanager
    def promise_addresses(self, addresses: Mapping[str, int]) -> Iterator[None]:
        """Count addresses, by subnet id, that a request under way may take; until it is answered."""
        reports = {subnet: self._reports.get(subnet, 0) for subnet in addresses}
        for subnet, number in addresses.items():
            self._promised[subnet] = self._promised.get(subnet, 0) + number
        try:
            yield
        finally:
            for subnet, number in addresses.items():
                # A count that EC2 has told since then has none of these promises taken off.
                if self._reports.get(subnet, 0) == reports[subnet]:
                    self._promised[subnet] -= number

    def record_launch(self, subnet: str, holds: int, most: int) -> None:
        """Count a new node, and how many addresses it holds at least and may come to hold."""
        self._held[subnet] = self._held.get(subnet, 0) + holds
        self._promised[subnet] = self._promised.get(subnet, 0) + max(most - holds, 0)

    def mark_full(self, subnet_ids: Iterable[str]) -> None:
        """Leave subnets alone in which EC2 found no address, as long as other things sold out."""
        until = self._clock() + UNAVAILABLE_SECONDS
        self._full_until.update(dict.fromkeys(subnet_ids, until))

    def expire(self, node_class: NodeClass) -> None:
        """Ask EC2 again: a subnet that was chosen is not there."""
        self._cache.expire(node_class.subnets)

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
                    public_addresses=entry.get("MapPublicIpOnLaunch"),
                )
                found[subnet.id] = subnet
                self.zone_ids[subnet.zone] = subnet.zone_id
        if not found:
            raise nothing_selected(
                node_class, "subnetSelector", node_class.subnets, "subnets", self._session.region
            )
        for identifier, subnet in found.items():
            self._counted[identifier] = subnet.free_addresses
            self._reports[identifier] = self._reports.get(identifier, 0) + 1
            self._held.pop(identifier, None)
            self._promised.pop(identifier, None)
        return tuple(sorted(found.values(), key=lambda subnet: (subnet.zone, subnet.id)))
