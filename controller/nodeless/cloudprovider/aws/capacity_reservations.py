"""Capacity reservations of a node class: on-demand ones and capacity blocks, and what is left of them.

EC2 tells what is left once a minute at most; what launches take meanwhile is counted here, and a
reservation that EC2 said is full is left alone for as long as other things that sold out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from nodeless.cloudprovider.aws.caching import Cache, Clock
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.selectors import filters_of
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.cloudprovider.aws.subnets import FRESH, USABLE
from nodeless.launch.families import family_of
from nodeless.launch.resolved import Image
from nodeless.launch.unavailable import UNAVAILABLE_SECONDS
from nodeless.model.bill import LINUX
from nodeless.model.placement import CapacityReservation
from nodeless.model.pools import NodeClass, SelectorTerm

_NOT_FOUND = "InvalidCapacityReservationId.NotFound"
_OWN_LICENSE = "Windows BYOL"
#: Beginnings of `PlatformDetails` of images, and of `InstancePlatform` of reservations where it differs.
_RENAMED = {"Red Hat Enterprise Linux with": "RHEL with", "SQL Server": "Linux with SQL Server"}
_ACTIVE = {"Name": "state", "Values": ["active"]}


class CapacityReservations:
    """Finds reservations by selector; keeps count of what launches take between two answers of EC2."""

    def __init__(self, session: AwsSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._cache: Cache[tuple[CapacityReservation, ...]] = Cache(clock, FRESH, USABLE)
        #: By reservation, as EC2 last told it to whichever class: what is left, and what launches took since.
        self._counted: dict[str, int] = {}
        self._taken: dict[str, int] = {}
        self._full_until: dict[str, float] = {}

    async def select(
        self, node_class: NodeClass, *, refresh: bool = False
    ) -> tuple[CapacityReservation, ...]:
        """The reservations that instances of the class can be bought from, sorted by id; maybe none."""
        terms = node_class.capacity_reservations
        if not terms:
            return ()
        get = self._cache.refresh if refresh else self._cache.get
        found = await get(terms, lambda: self._fetch(terms))
        return tuple(replace(reservation, remaining=self._free_slots(reservation)) for reservation in found)

    def take(self, reservation: str) -> None:
        """Count an instance that was launched into a reservation."""
        if reservation:
            self._taken[reservation] = self._taken.get(reservation, 0) + 1

    def exhaust(self, reservations: Iterable[str]) -> None:
        """Leave reservations alone of which EC2 said that nothing is left."""
        until = self._clock() + UNAVAILABLE_SECONDS
        self._full_until.update(dict.fromkeys(reservations, until))

    def expire(self, node_class: NodeClass) -> None:
        """Ask EC2 again: a reservation that was chosen is not there."""
        self._cache.expire(node_class.capacity_reservations)

    def _free_slots(self, reservation: CapacityReservation) -> int:
        now = self._clock()
        ended = reservation.expiring(now) or (reservation.ends is not None and reservation.ends <= now)
        if ended or self._full_until.get(reservation.id, 0.0) > now:
            return 0
        counted = self._counted.get(reservation.id, reservation.remaining)
        return max(counted - self._taken.get(reservation.id, 0), 0)

    async def _fetch(self, terms: tuple[SelectorTerm, ...]) -> tuple[CapacityReservation, ...]:
        records = await self._of_ids([id_ for term in terms for id_ in term.ids])
        for term in terms:
            if not term.ids:
                records += await self._pages({"Filters": [_ACTIVE, *_filters(term)]})
        found = {
            record["CapacityReservationId"]: _read(record)
            for record in records
            # An instance on hosts of its own cannot be bought from it.
            if record.get("Tenancy") == "default"
        }
        for identifier, reservation in found.items():
            self._counted[identifier] = reservation.remaining
            self._taken.pop(identifier, None)
        return tuple(reservation for _, reservation in sorted(found.items()))

    async def _of_ids(self, ids: list[str]) -> list[Mapping[str, Any]]:
        if not ids:
            return []
        try:
            return await self._pages({"CapacityReservationIds": ids, "Filters": [_ACTIVE]})
        except AwsCallRefused as error:
            if error.code != _NOT_FOUND:
                raise
            # One unknown id fails the whole call: ask for each alone.
            return [] if len(ids) == 1 else [one for id_ in ids for one in await self._of_ids([id_])]

    async def _pages(self, request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return list(
            await self._session.pages(
                "ec2", "describe_capacity_reservations", request, "CapacityReservations"
            )
        )


def of_platforms(
    reservations: Iterable[CapacityReservation], node_class: NodeClass, images: Iterable[Image]
) -> tuple[CapacityReservation, ...]:
    """Those whose instances may boot from some of the images: EC2 reserves for one platform each."""
    plain = "Windows" if family_of(node_class.ami_family).windows_build else LINUX
    platforms = {_platform_of(image, plain) for image in images} or {plain}
    return tuple(reservation for reservation in reservations if reservation.platform in platforms)


def _platform_of(image: Image, plain: str) -> str:
    """What a reservation for an image calls its platform; an image says it in other words (`_RENAMED`)."""
    if not image.platform or image.platform == _OWN_LICENSE:
        return plain
    for of_image, of_reservation in _RENAMED.items():
        if image.platform.startswith(of_image):
            return of_reservation + image.platform.removeprefix(of_image)
    return image.platform


def _filters(term: SelectorTerm) -> list[dict[str, Any]]:
    filters = filters_of(term, id_filter="", name_filter="")
    if term.owners:
        filters.append({"Name": "owner-id", "Values": list(term.owners)})
    if term.match_criteria:
        filters.append({"Name": "instance-match-criteria", "Values": [term.match_criteria]})
    return filters


def _read(record: Mapping[str, Any]) -> CapacityReservation:
    ends = record.get("EndDate")
    return CapacityReservation(
        id=record["CapacityReservationId"],
        instance_type=record["InstanceType"],
        zone=record["AvailabilityZone"],
        remaining=int(record.get("AvailableInstanceCount", 0)),
        type=record.get("ReservationType") or "default",
        match_criteria=record.get("InstanceMatchCriteria") or "open",
        owner=record.get("OwnerId", ""),
        platform=record.get("InstancePlatform", ""),
        interruptible=bool(record.get("Interruptible")),
        ends=None if ends is None else ends.timestamp(),
    )
