"""Prices as data: reading GetProducts' documents, and the bundled table for the time before them. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

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

    def of(self, instance_type: str, zone: str, capacity_type: str) -> float | None:
        """The price of an offering; None when it is not known."""
        if capacity_type == SPOT and self.spot is not None:
            return self.spot.get((instance_type, zone))
        return self.on_demand.get(instance_type)


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
            found = _positive(dimension.get("pricePerUnit", {}).get(currency))
            price = price if found is None else found
    return price


def read_spot_history(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Spot prices per hour by type and zone; rows without a positive price or a time are passed over.

    DescribeSpotPriceHistory that begins now tells of each type and zone the price that is valid now.
    """
    prices: dict[tuple[str, str], float] = {}
    for row in rows:
        price = _positive(row.get("SpotPrice"))
        if price is not None and {"InstanceType", "AvailabilityZone", "Timestamp"} <= row.keys():
            prices[row["InstanceType"], row["AvailabilityZone"]] = price
    return prices


def _positive(text: object) -> float | None:
    """A price as AWS writes it; None for what is no number, not above zero or beyond all prices."""
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


def _read_bundled_table(region: str) -> dict[str, Any]:
    own = _read("prices_of_partitions.json")["regions"] if region.startswith(("us-gov-", "cn-")) else {}
    table: dict[str, Any] = own.get(region) or _nearest(own, region) or _read("prices.json")
    return table


def _nearest(tables: Mapping[str, dict[str, Any]], region: str) -> dict[str, Any] | None:
    """That of another region of the partition: at least its currency is the same."""
    partition = region.partition("-")[0]
    return next((tables[name] for name in sorted(tables) if name.startswith(partition)), None)


def _read(name: str) -> dict[str, Any]:
    text = files("nodeless.cloudprovider.aws").joinpath(name).read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
