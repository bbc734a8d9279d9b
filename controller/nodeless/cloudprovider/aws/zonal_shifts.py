"""Zones that AWS shifts the cluster's work away from (ARC zonal shift), by their ids.

A zone that was shifted away from is closed until its shift ends, whether or not AWS can be asked meanwhile.
"""

import asyncio
from datetime import datetime
from typing import Any

from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.caching import Clock
from nodeless.cloudprovider.aws.cluster import ClusterFacts
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.session import AwsSession

#: Seconds between two questions, as Karpenter v1.
_ROUND = 30.0
_NOT_MANAGED = "ResourceNotFoundException"


class ZonalShifts:
    """Asks for the shifts of one cluster, twice a minute once it was started. `log` is a structlog logger."""

    def __init__(self, session: AwsSession, cluster: ClusterFacts, clock: Clock, log: Any) -> None:
        self._session = session
        self._cluster = cluster
        self._clock = clock
        self._log = log
        #: Ends of the shifts, by id of the zone that they lead away from.
        self._until: dict[str, float] = {}
        self._refresh_task: asyncio.Task[None] | None = None

    def is_closed(self, zone_id: str) -> bool:
        """Whether there is a shift away from a zone."""
        return self._until.get(zone_id, 0.0) > self._clock()

    async def start(self) -> None:
        """Ask once, and go on asking.

        Raises:
            CloudError: Zonal shift is not enabled on the cluster, or may not be asked for.
        """
        await self.ask()
        if self._refresh_task is None:
            self._refresh_task = asyncio.create_task(self._keep())

    async def ask(self) -> None:
        """Learn of the shifts as they are now. Raises CloudError."""
        arn = await self._cluster.arn()
        request = {"resourceIdentifier": arn}
        try:
            answer = await self._session.call("arc-zonal-shift", "get_managed_resource", request)
        except AwsCallRefused as error:
            if error.code != _NOT_MANAGED:
                raise
            raise CloudError(
                f"zonal shift is not enabled on {arn}",
                "run: aws eks update-cluster-config --name NAME --zonal-shift-config enabled=true; "
                "or do not set nodeless.zonalShift (ENABLE_ZONAL_SHIFT)",
            ) from error
        until = {
            str(shift["awayFrom"]): _seconds(shift["expiryTime"])
            for shift in answer.get("zonalShifts", ())
            if shift.get("appliedStatus") == "APPLIED"
        }
        before = {zone for zone in self._until if self.is_closed(zone)}
        self._until = until
        self._tell(before, {zone for zone in until if self.is_closed(zone)})

    async def close(self) -> None:
        """Ask no more."""
        if self._refresh_task is not None:
            self._refresh_task.cancel()
            await asyncio.gather(self._refresh_task, return_exceptions=True)
        self._refresh_task = None

    def _tell(self, before: set[str], after: set[str]) -> None:
        for zone_id in sorted(after - before):
            self._log.warning(
                "AWS shifts away from a zone: nodeless neither launches nor terminates instances there",
                zone_id=zone_id,
            )
        for zone_id in sorted(before - after):
            self._log.info("the shift away from a zone has ended", zone_id=zone_id)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_ROUND)
            try:
                await self.ask()
            except CloudError as error:
                self._log.warning("zonal shifts are not known", error=str(error))


def _seconds(moment: datetime) -> float:
    return moment.timestamp()
