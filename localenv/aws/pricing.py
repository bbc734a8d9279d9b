"""Prices over AWS's calls: pricing.GetProducts and ec2.DescribeSpotPriceHistory, both from the price book.

GetProducts knows Linux compute instances without pre-installed software; TERM_MATCH filters on product
attributes. DescribeSpotPriceHistory gives the price valid now, one row per type, zone and product
description: no history.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from localenv.aws import price_book
from localenv.aws.calls import AwsError, Call, Handlers, digest
from localenv.aws.instance_types import instance_types, zones_of
from localenv.aws.upstream.pages import page

BOOK = price_book.load()
DESCRIPTIONS = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
#: Regions whose price list GetProducts can give: those of the book's factors.
REGIONS = tuple(price_book.REGION_FACTORS)


def get_products(call: Call) -> dict[str, Any]:
    """pricing.GetProducts for ServiceCode AmazonEC2."""
    if call.parameters.get("ServiceCode", "AmazonEC2") != "AmazonEC2":
        raise AwsError("NotFoundException", f"Service {call.parameters['ServiceCode']} was not found")
    wanted: dict[str, str] = {}
    for entry in call.parameters.get("Filters", []):
        if entry.get("Type") != "TERM_MATCH":
            raise AwsError("InvalidParameterException", f"Unsupported filter type {entry.get('Type')}")
        wanted[entry["Field"]] = entry["Value"]
    products = [p for p in _products(wanted) if _matches(p["product"], wanted)]
    parameters = {**call.parameters, "MaxResults": call.parameters.get("MaxResults", 100)}
    chosen, token = page(products, parameters, default=100, maximum=100)
    answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(p) for p in chosen]}
    return answer | ({"NextToken": token} if token else {})


def describe_spot_price_history(call: Call) -> dict[str, Any]:
    """ec2.DescribeSpotPriceHistory: the prices valid now, which never change."""
    parameters = call.parameters
    filters = {f["Name"]: f.get("Values", []) for f in parameters.get("Filters", [])}
    types = parameters.get("InstanceTypes") or filters.get("instance-type")
    descriptions = parameters.get("ProductDescriptions") or filters.get("product-description") or DESCRIPTIONS
    zone = [parameters["AvailabilityZone"]] if parameters.get("AvailabilityZone") else None
    zones = zone or filters.get("availability-zone")
    now = datetime.now(UTC).replace(microsecond=0)
    rows = [
        {
            "InstanceType": name,
            "AvailabilityZone": where,
            "ProductDescription": description,
            "SpotPrice": f"{price:.6f}",
            "Timestamp": now,
        }
        for name, where, price in _spot_prices(call)
        if (not types or name in types) and (not zones or where in zones)
        for description in DESCRIPTIONS
        if description in descriptions
    ]
    chosen, token = page(rows, parameters, default=1000, maximum=1000)
    return {"SpotPriceHistory": chosen, "NextToken": token or ""}


def _spot_prices(call: Call) -> Iterator[tuple[str, str, float]]:
    for name, record in instance_types(call).items():
        if "spot" not in record.get("SupportedUsageClasses", []):
            continue
        for zone in zones_of(call, name):
            price = BOOK.spot(name, zone)
            if price is not None:
                yield name, zone, price


def _products(wanted: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    regions = [wanted["regionCode"]] if "regionCode" in wanted else list(REGIONS)
    names = [wanted["instanceType"]] if "instanceType" in wanted else sorted(BOOK.list_prices)
    for region in regions:
        for name in names:
            price = BOOK.on_demand(name, region)
            if price is not None:
                yield _product(name, region, price)


def _product(name: str, region: str, price: float) -> dict[str, Any]:
    """A product as the price list service writes it."""
    metal = ".metal" in name
    sku = digest([name, region], 16).upper()
    term, rate = f"{sku}.JRTCKXETXF", f"{sku}.JRTCKXETXF.6YS6EN2CT7"
    tenancy = "Dedicated" if metal else "Shared"
    return {
        "product": {
            "productFamily": "Compute Instance (bare metal)" if metal else "Compute Instance",
            "attributes": {
                "instanceType": name,
                "regionCode": region,
                "servicecode": "AmazonEC2",
                "serviceCode": "AmazonEC2",
                "preInstalledSw": "NA",
                "operatingSystem": "Linux",
                "capacitystatus": "Used",
                "marketoption": "OnDemand",
                "tenancy": tenancy,
                "operation": "RunInstances",
                "licenseModel": "No License required",
            },
            "sku": sku,
        },
        "serviceCode": "AmazonEC2",
        "terms": {
            "OnDemand": {
                term: {
                    "sku": sku,
                    "offerTermCode": "JRTCKXETXF",
                    "effectiveDate": f"{BOOK.date}T00:00:00Z",
                    "termAttributes": {},
                    "priceDimensions": {
                        rate: {
                            "rateCode": rate,
                            "unit": "Hrs",
                            "beginRange": "0",
                            "endRange": "Inf",
                            "description": f"${price} per On Demand Linux {name} Instance Hour",
                            "appliesTo": [],
                            "pricePerUnit": {"USD": f"{price:.10f}"},
                        }
                    },
                }
            }
        },
        "version": BOOK.date.replace("-", ""),
        "publicationDate": f"{BOOK.date}T00:00:00Z",
    }


def _matches(product: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    attributes = {**product["attributes"], "productFamily": product["productFamily"]}
    return all(attributes.get(name, "").lower() == value.lower() for name, value in wanted.items())


HANDLERS: Handlers = {
    ("pricing", "GetProducts"): get_products,
    ("ec2", "DescribeSpotPriceHistory"): describe_spot_price_history,
}
