"""Prices as data: reading GetProducts' documents, and the bundled table for the time before them. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from nodeless.model.bill import PriceSource
from nodeless.model.labels import SPOT

_COMMON = {
    "serviceCode": "AmazonEC2",
    "preInstalledSw": "NA",
    "operatingSystem": "Linux",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
_SWEEPS = (
    {"tenancy": "Shared", "productFamily": "Compute Instance"},
    {"tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"},
)


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars an hour (yuan in China). `spot` None: not known yet, taken to cost as much as on-demand."""

    on_demand: Mapping[str, float] = field(hash=False)
    spot: Mapping[tuple[str, str], float] | None = field(default=None, hash=False)
    version: int = 0
    on_demand_source: PriceSource | None = None
    spot_source: PriceSource | None = None
    older: Mapping[str | tuple[str, str], PriceSource | None] = field(default_factory=dict, hash=False)
    """Where prices are from that the last answer left out: on-demand by type, spot by type and zone."""

    def of(self, instance_type: str, zone: str, capacity_type: str) -> float | None:
        """The price of an offering; None when it is not known."""
        if capacity_type == SPOT and self.spot is not None:
            return self.spot.get((instance_type, zone))
        return self.on_demand.get(instance_type)

    def source(self, instance_type: str, zone: str, capacity_type: str) -> PriceSource | None:
        """Where the price of an offering is from; None: not told."""
        if capacity_type == SPOT and self.spot is not None:
            return self.older.get((instance_type, zone), self.spot_source)
        source = self.older.get(instance_type, self.on_demand_source)
        return _instead_of_spot(source) if source is not None and capacity_type == SPOT else source

    def updated(
        self,
        on_demand: Mapping[str, float] | None,
        on_demand_source: PriceSource | None,
        spot: Mapping[tuple[str, str], float] | None,
        spot_source: PriceSource | None,
        version: int,
    ) -> "Prices":
        """With answers laid over; None: there is none yet. What an answer leaves out keeps its price."""
        older = dict(self.older)
        _keep_sources(older, self.on_demand, on_demand, self.on_demand_source)
        _keep_sources(older, self.spot or {}, spot, self.spot_source)
        return Prices(
            {**self.on_demand, **(on_demand or {})},
            self.spot if spot is None else {**(self.spot or {}), **spot},
            version,
            self.on_demand_source if on_demand is None else on_demand_source,
            self.spot_source if spot is None else spot_source,
            older,
        )


_Key = TypeVar("_Key", str, tuple[str, str])


def _keep_sources(
    older: dict[str | tuple[str, str], PriceSource | None],
    before: Mapping[_Key, float],
    answer: Mapping[_Key, float] | None,
    source: PriceSource | None,
) -> None:
    """Note for each price that an answer leaves out where it was from before."""
    if answer is None:
        return
    for key in before:
        if key in answer:
            older.pop(key, None)
        else:
            older.setdefault(key, source)


@cache
def _instead_of_spot(source: PriceSource) -> PriceSource:
    return PriceSource(f"on-demand, as spot is not known yet, by {source.name}", source.date)


#: Whatever costs more an hour, in dollars or yuan, is a mistake: the dearest type costs some 400 dollars.
_HIGHEST = 100_000.0


def product_requests(region: str) -> tuple[dict[str, Any], ...]:
    """GetProducts requests whose answers together price every Linux instance type of a region."""
    return tuple(
        {
            "ServiceCode": "AmazonEC2",
            "Filters": [
                {"Type": "TERM_MATCH", "Field": field, "Value": value}
                for field, value in {"regionCode": region, **_COMMON, **sweep}.items()
            ],
        }
        for sweep in _SWEEPS
    )


def pricing_region(region: str) -> str:
    """The region whose Pricing API knows a region's prices."""
    for prefix, endpoint in (("ap-", "ap-south-1"), ("cn-", "cn-northwest-1"), ("eu-", "eu-central-1")):
        if region.startswith(prefix):
            return endpoint
    return "us-east-1"


def read_products(documents: Iterable[str], currency: str = "USD") -> dict[str, float]:
    """On-demand prices per hour by instance type; documents without a positive price are passed over."""
    prices: dict[str, float] = {}
    for document in documents:
        try:
            product = json.loads(document)
            name = product["product"]["attributes"]["instanceType"]
            price = _price(product["terms"]["OnDemand"], currency)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        if name and price is not None:
            prices[name] = price
    return prices


def _price(terms: Mapping[str, Any], currency: str) -> float | None:
    """The last price of a product's terms."""
    price = None
    for term in terms.values():
        for dimension in term.get("priceDimensions", {}).values():
            found = read_price(dimension.get("pricePerUnit", {}).get(currency))
            price = price if found is None else found
    return price


def read_spot_history(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Spot prices per hour by type and zone; rows without a positive price or a time are passed over.

    DescribeSpotPriceHistory that begins now tells of each type and zone the price that is valid now.
    """
    prices: dict[tuple[str, str], float] = {}
    for row in rows:
        price = read_price(row.get("SpotPrice"))
        if price is not None and {"InstanceType", "AvailabilityZone", "Timestamp"} <= row.keys():
            prices[row["InstanceType"], row["AvailabilityZone"]] = price
    return prices


def read_price(text: object) -> float | None:
    """A price an hour, as AWS writes it; None for what is no number, not above zero or beyond all prices."""
    try:
        price = float(str(text))
    except ValueError:
        return None
    return price if 0 < price < _HIGHEST else None


def bundled_prices(region: str = "") -> dict[str, float]:
    """The on-demand prices of a region that come with this distribution; by default those of us-east-1.

    GovCloud has no Pricing API, and China one of its own, in yuan: their regions have tables of their own.
    Every other region begins with the prices of us-east-1, as Karpenter's do.
    """
    prices: dict[str, float] = _read_bundled_table(region)["onDemand"]
    return prices


def bundled_date(region: str = "") -> str:
    """The day that the bundled prices of a region are of (ISO 8601)."""
    return str(_read_bundled_table(region)["date"])


def bundled_source(region: str = "") -> PriceSource:
    """What the bundled prices of a region are, which may be those of another one."""
    table = _read_bundled_table(region)
    return PriceSource(f"AWS's price list of {table['region']}, bundled", str(table["date"]))


def _read_bundled_table(region: str) -> dict[str, Any]:
    own = _read("prices_of_partitions.json")["regions"] if region.startswith(("us-gov-", "cn-")) else {}
    named = region if region in own else _nearest(own, region)
    return {**own[named], "region": named} if named else _read("prices.json")


def _nearest(tables: Iterable[str], region: str) -> str:
    """Another region of the partition: at least its currency is the same; empty where there is none."""
    partition = region.partition("-")[0]
    return next((name for name in sorted(tables) if name.startswith(partition)), "")


def _read(name: str) -> dict[str, Any]:
    text = files("nodeless.cloudprovider.aws").joinpath(name).read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
