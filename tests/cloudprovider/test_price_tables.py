"""Prices by worked examples: how a price list and a spot history are read, and what is asked of AWS (3)."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from localenv.aws import LocalAws
from nodeless.cloudprovider.aws.price_list import read_products, read_spot_history
from nodeless.cloudprovider.aws.pricing import Pricing
from nodeless.cloudprovider.aws.session import AwsSession
from tests.cloudprovider.test_provider import made_by


def a_product(*prices: dict[str, str], name: str = "m5.large", **terms: Any) -> str:
    """A document of GetProducts with one term, whose price dimensions have these prices."""
    dimensions = {f"d{number}": {"pricePerUnit": price} for number, price in enumerate(prices)}
    on_demand = {"OnDemand": {"t": {"priceDimensions": dimensions}}}
    return json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms or on_demand})


@pytest.mark.parametrize(
    ("documents", "prices"),
    [
        pytest.param([a_product({"USD": "0.096"})], {"m5.large": 0.096}, id="AWS-3.1-price"),
        pytest.param(
            [a_product({"USD": "0.0960000000"}), a_product({"USD": "4.608"}, name="m5.metal")],
            {"m5.large": 0.096, "m5.metal": 4.608},
            id="AWS-3.1-both-sweeps",
        ),
        pytest.param(
            [a_product({"USD": "0.1"}, {"USD": "0.2"})], {"m5.large": 0.2}, id="AWS-3.1-the-last-wins"
        ),
        pytest.param(
            [a_product({"USD": "0.1"}), a_product({"USD": "0.3"})],
            {"m5.large": 0.3},
            id="AWS-3.1-the-last-document-wins",
        ),
        pytest.param(
            [a_product({"USD": "0.1"}, {"USD": "0.0000000000"})], {"m5.large": 0.1}, id="AWS-3.1-zero-is-none"
        ),
        pytest.param([a_product({"USD": "nan"})], {}, id="AWS-3.1-no-number"),
        pytest.param([a_product({"USD": "inf"})], {}, id="AWS-3.1-not-finite"),
        pytest.param([a_product({"USD": "-1"})], {}, id="AWS-3.1-below-zero"),
        pytest.param([a_product({"CNY": "1.013"})], {}, id="AWS-3.1-another-currency"),
        pytest.param([a_product({"USD": "1"}, name="")], {}, id="AWS-3.1-no-type"),
        pytest.param([a_product(Reserved={})], {}, id="AWS-3.1-reserved-alone"),
        pytest.param(
            ["{", "[]", "null", a_product({"USD": "2"})], {"m5.large": 2.0}, id="AWS-3.1-no-product"
        ),
    ],
)
def test_a_price_list_gives_the_price_of_each_type(documents: list[str], prices: dict[str, float]) -> None:
    assert read_products(documents) == prices


NOW = datetime(2026, 3, 1, tzinfo=UTC)


def a_row(price: str, zone: str = "us-east-1a", **changes: Any) -> dict[str, Any]:
    row = {"InstanceType": "m5.large", "AvailabilityZone": zone, "SpotPrice": price, "Timestamp": NOW}
    return {key: value for key, value in {**row, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("rows", "prices"),
    [
        pytest.param(
            [a_row("0.0345"), a_row("0.04", "us-east-1b")],
            {("m5.large", "us-east-1a"): 0.0345, ("m5.large", "us-east-1b"): 0.04},
            id="AWS-3.2-by-type-and-zone",
        ),
        pytest.param(
            [a_row("0.03"), a_row("0.05")], {("m5.large", "us-east-1a"): 0.05}, id="AWS-3.2-the-last-wins"
        ),
        pytest.param([a_row("cheap"), a_row(""), a_row("nan"), a_row("0")], {}, id="AWS-3.2-no-number"),
        pytest.param([a_row("0.03", Timestamp=None)], {}, id="AWS-3.2-no-time"),
        pytest.param([a_row("0.03", AvailabilityZone=None)], {}, id="AWS-3.2-no-zone"),
    ],
)
def test_a_spot_history_gives_the_price_of_each_type_in_each_zone(
    rows: list[dict[str, Any]], prices: dict[tuple[str, str], float]
) -> None:
    assert read_spot_history(rows) == prices


async def test_aws_3_2_the_spot_prices_asked_for_are_those_of_linux_from_now_on(aws: LocalAws) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    session = AwsSession("us-east-1")
    try:
        prices = await Pricing(session, lambda: 1e9, structlog.get_logger(), isolated=True).current()
    finally:
        await session.close()
    assert prices.spot
    first, *later = made_by(aws, "DescribeSpotPriceHistory")
    assert all(call["parameters"]["NextToken"] for call in later)
    assert first["parameters"]["ProductDescriptions"] == ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]
    began = datetime.fromisoformat(str(first["parameters"]["StartTime"])).replace(tzinfo=UTC)
    assert before <= began <= datetime.now(UTC)


async def test_aws_3_2_a_zone_that_the_history_leaves_out_keeps_its_price() -> None:
    pricing = Pricing(AwsSession("us-east-1"), lambda: 0.0, structlog.get_logger(), isolated=True)
    half = pricing._spot
    half._due, half._tried = float("inf"), True
    for version, answer in ((1, {("m5.large", "us-east-1a"): 0.03}), (2, {("m5.large", "us-east-1b"): 0.04})):
        half.fetched, half.version = answer, version
        spot = (await pricing.current()).spot
    assert spot == {("m5.large", "us-east-1a"): 0.03, ("m5.large", "us-east-1b"): 0.04}
