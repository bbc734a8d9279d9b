"""What an hour costs: on-demand from the Pricing API, spot from EC2's price history.

Both are asked for when prices are first needed and every 12 hours then. A failure keeps
what is known (at first the bundled on-demand table) and is tried again a minute later:
no launch ever waits for a price list twice.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from nodeless.api.times import format_time
from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.caching import Clock, report_failure
from nodeless.cloudprovider.aws.price_list import (
    Prices,
    bundled_date,
    bundled_prices,
    bundled_source,
    pricing_region,
    product_requests,
    read_products,
    read_spot_history,
)
from nodeless.cloudprovider.aws.session import AwsSession, each_entry
from nodeless.model.bill import PriceSource

T = TypeVar("T")

_PERIOD = 12 * 3600.0
_RETRY = 60.0
#: Partitions of AWS without a Pricing API.
_NO_PRICING_API = ("us-gov-", "us-iso")
_DESCRIPTIONS = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]


class _Half(Generic[T]):
    """One kind of prices: fetched when first needed and when due; the first fetch alone is waited for."""

    def __init__(
        self, name: str, api: str, fetch: Callable[[], T], session: AwsSession, clock: Clock, log: Any
    ) -> None:
        self._name = name
        self._api = api
        self._fetch = fetch
        self._session = session
        self._clock = clock
        self._log = log
        self._due = 0.0
        self._bundled = bundled_date(session.region)
        self._update: asyncio.Task[None] | None = None
        self.fetched: T | None = None
        self.source: PriceSource | None = None
        """Whom AWS was asked by, and when."""
        self.version = 0
        self._tried = False

    async def refresh(self) -> None:
        """Fetch when due; return when the first fetch has ended, well or not."""
        if self._clock() >= self._due and self._update is None:
            self._update = asyncio.create_task(self._run())
            self._update.add_done_callback(report_failure)
        if not self._tried and self._update is not None:
            await asyncio.shield(self._update)

    async def _run(self) -> None:
        try:
            self.fetched = await self._session.run(self._fetch)
            self.source = PriceSource(self._api, format_time(self._clock()))
            self.version += 1
            self._due = self._clock() + _PERIOD
        except CloudError as error:
            self._due = self._clock() + _RETRY
            serving = "those of the last update" if self.version else f"those bundled on {self._bundled}"
            self._log.warning("prices not updated", prices=self._name, serving=serving, error=str(error))
        finally:
            self._tried = True
            self._update = None


class Pricing:
    """Keeps the prices current. `log` is a structlog logger; `isolated`: the Pricing API is out of reach."""

    def __init__(self, session: AwsSession, clock: Clock, log: Any, *, isolated: bool = False) -> None:
        self._session = session
        self._isolated = isolated or session.region.startswith(_NO_PRICING_API)
        self._on_demand = _Half("on-demand", "AWS Price List API", self._read_products, session, clock, log)
        self._spot = _Half("spot", "EC2's spot price history", self._read_spot, session, clock, log)
        self._prices = Prices(bundled_prices(session.region), on_demand_source=bundled_source(session.region))

    async def current(self, *, spot: bool = True) -> Prices:
        """The prices as known; spot prices are fetched only where `spot` is of interest.

        Waits for the first fetch alone; later ones go on behind the asker's back.
        """
        halves = []
        if spot:
            halves.append(self._spot.refresh())
        if not self._isolated:
            halves.append(self._on_demand.refresh())
        await asyncio.gather(*halves)
        version = self._on_demand.version + self._spot.version
        if version != self._prices.version:
            self._prices = self._prices.updated(
                self._on_demand.fetched,
                self._on_demand.source,
                self._spot.fetched,
                self._spot.source,
                version,
            )
        return self._prices

    def _read_products(self) -> dict[str, float]:
        region = self._session.region
        currency = "CNY" if region.startswith("cn-") else "USD"
        prices: dict[str, float] = {}
        with self._session.borrow_client("pricing", pricing_region(region)) as client:
            for request in product_requests(region):
                entries = each_entry(client, "get_products", request, "PriceList")
                prices |= read_products(entries, currency)
        if not prices:
            raise CloudError(f"pricing:GetProducts returned no price for region {region}")
        return prices

    def _read_spot(self) -> dict[tuple[str, str], float]:
        request = {"ProductDescriptions": _DESCRIPTIONS, "StartTime": datetime.now(UTC)}
        client = self._session.client("ec2")
        rows = each_entry(client, "describe_spot_price_history", request, "SpotPriceHistory")
        prices = read_spot_history(rows)
        if not prices:
            raise CloudError("ec2:DescribeSpotPriceHistory returned no spot price")
        return prices
