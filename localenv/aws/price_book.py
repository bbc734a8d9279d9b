"""Prices of the local AWS, in US dollars per instance and hour. Pure.

On-demand prices for Linux come from `price_book.json`, AWS's list prices of us-east-1 at the date in the
file. Other regions are the same price times a rounded factor per region, the ratio of m5.large there to
us-east-1. Spot prices are synthetic: AWS's vary by the minute. A pool (type, zone) costs between 24 % and 48
% of on-demand, fixed by a digest of its names, so that every zone has a price of its own, no price ever
changes, and spot is always below on-demand.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

#: Price of m5.large in the region over its price in us-east-1, rounded; a region not listed costs 1.15.
REGION_FACTORS = {
    "us-east-1": 1.0,
    "us-east-2": 1.0,
    "us-west-1": 1.17,
    "us-west-2": 1.0,
    "ca-central-1": 1.11,
    "eu-central-1": 1.2,
    "eu-north-1": 1.06,
    "eu-west-1": 1.11,
    "eu-west-2": 1.16,
    "eu-west-3": 1.17,
    "ap-northeast-1": 1.29,
    "ap-northeast-2": 1.23,
    "ap-south-1": 1.05,
    "ap-southeast-1": 1.25,
    "ap-southeast-2": 1.25,
    "sa-east-1": 1.59,
}
DEFAULT_FACTOR = 1.15


@dataclass(frozen=True, slots=True)
class PriceBook:
    """On-demand list prices and the spot prices derived from them."""

    #: The day the list was taken, ISO 8601.
    date: str
    #: us-east-1, Linux, shared tenancy (dedicated for bare metal), by instance type.
    list_prices: dict[str, float]

    def on_demand(self, instance_type: str, region: str) -> float | None:
        """The on-demand price, or `None` for a type without a list price."""
        price = self.list_prices.get(instance_type)
        if price is None:
            return None
        return round(price * REGION_FACTORS.get(region, DEFAULT_FACTOR), 6)

    def spot(self, instance_type: str, zone: str) -> float | None:
        """The spot price in a zone, or `None` for a type without a list price."""
        price = self.on_demand(instance_type, zone[:-1])
        if price is None:
            return None
        depth = 0.3 + 0.1 * _fraction(instance_type)
        spread = 0.8 + 0.4 * _fraction(f"{instance_type} {zone}")
        return round(price * depth * spread, 6)


def load() -> PriceBook:
    """The price book that is checked in."""
    document: dict[str, Any] = json.loads(files(__package__).joinpath("price_book.json").read_text())
    return PriceBook(document["date"], document["onDemand"])


def _fraction(text: str) -> float:
    """A number in [0, 1) fixed by the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32
