"""Caches, batches, prices, selectors and images, each on its own."""

import asyncio
import json
from collections.abc import Callable, Mapping

import pytest
import structlog
from botocore.utils import parse_timestamp

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.batching import Batcher
from nodeless.cloudprovider.aws.caching import Cache
from nodeless.cloudprovider.aws.image_parameters import parameters_for
from nodeless.cloudprovider.aws.images import in_order, read_image
from nodeless.cloudprovider.aws.price_list import (
    Prices,
    bundled_date,
    bundled_prices,
    product_requests,
    read_products,
)
from nodeless.cloudprovider.aws.pricing import Pricing
from nodeless.cloudprovider.aws.selectors import describe, filters_of
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.cloudprovider.aws.times import read_time
from nodeless.launch.resolved import Image
from nodeless.model.bill import PriceSource
from nodeless.model.pools import SelectorTerm
from nodeless.model.requirements import Requirement, Requirements


class Source:
    """Counts how often it is asked; fails while `error` is set."""

    def __init__(self) -> None:
        self.asked = 0
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.asked += 1
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return self.asked


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition is another task's doing
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    "written",
    [
        "2026-11-22T06:08:03.000Z",
        "2026-11-22T06:08:03Z",
        "2026-11-22T06:08:03.123456Z",
        "2026-11-22T06:08:03+02:00",
        "2026-11-22T06:08:03",
        "20261122T060803Z",
        "Sun, 22 Nov 2026 06:08:03 GMT",
        "1795327683",
        "1795327683.5",
        1795327683,
        1795327683.5,
    ],
)
def test_times_of_answers_are_read_as_botocore_reads_them(written: str | float) -> None:
    assert read_time(written) == parse_timestamp(written)


@pytest.mark.parametrize("written", ["soon", "2026-11-22Tnoon", ""])
def test_what_is_no_time_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="timestamp"):
        read_time(written)


async def test_a_cache_asks_once_for_many_and_refreshes_behind_their_back() -> None:
    now, source = [0.0], Source()
    cache: Cache[int] = Cache(lambda: now[0], fresh=10, usable=100)
    assert await asyncio.gather(*(cache.get("k", source) for _ in range(5))) == [1] * 5
    now[0] = 11
    assert await cache.get("k", source) == 1
    await until(lambda: cache.peek("k") == 2)
    now[0] = 200
    assert await cache.get("k", source) == 3


async def test_a_cache_keeps_no_error_and_gives_the_old_value_while_it_will_do() -> None:
    now, source = [0.0], Source()
    cache: Cache[int] = Cache(lambda: now[0], fresh=10, usable=100)
    source.error = CloudError("down")
    with pytest.raises(CloudError, match="down"):
        await cache.get("k", source)
    source.error = None
    assert await cache.get("k", source) == 2
    now[0], source.error = 50, CloudError("down")
    assert await cache.get("k", source) == 2
    now[0] = 500
    with pytest.raises(CloudError, match="down"):
        await cache.get("k", source)


async def test_a_batch_answers_everyone_once_and_errors_go_to_their_own() -> None:
    calls: list[list[str]] = []

    async def carry_out(keys: Mapping[str, int]) -> Mapping[str, str | Exception]:
        calls.append(list(keys))
        return {key: ValueError(key) if key == "bad" else key.upper() for key in keys if key != "lost"}

    batcher = Batcher("test", carry_out, "missing", idle=0.001)
    answers = await asyncio.gather(*(batcher.ask(key, 0) for key in ("b", "a", "b", "lost")))
    assert answers == ["B", "A", "B", "missing"]
    mixed = await asyncio.gather(batcher.ask("bad", 0), batcher.ask("good", 0), return_exceptions=True)
    assert isinstance(mixed[0], ValueError)
    assert mixed[1] == "GOOD"
    assert calls == [["a", "b", "lost"], ["bad", "good"]]


async def test_a_failed_batch_fails_all_and_a_full_one_goes_at_once() -> None:
    async def fail(keys: Mapping[str, int]) -> Mapping[str, str]:
        raise CloudError(f"{len(keys)} refused")

    batcher = Batcher("test", fail, "missing", idle=3600, limit=2)
    results = await asyncio.gather(batcher.ask("a", 0), batcher.ask("b", 0), return_exceptions=True)
    assert [str(result) for result in results] == ["2 refused"] * 2


def document(name: str, price: str, currency: str = "USD") -> str:
    dimension = {"pricePerUnit": {currency: price}}
    terms = {"OnDemand": {"t": {"priceDimensions": {"d": dimension}}}}
    return json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms})


def test_a_price_list_is_read_and_useless_prices_are_passed_over() -> None:
    documents = [
        document("a", "0.5"),
        document("b", "0"),
        document("c", "x"),
        document("d", "7", "CNY"),
        "{}",
    ]
    assert read_products(documents) == {"a": 0.5}
    assert read_products(documents, "CNY") == {"d": 7.0}


def test_both_sweeps_ask_for_plain_linux() -> None:
    shared, metal = (
        {entry["Field"]: entry["Value"] for entry in request["Filters"]}
        for request in product_requests("eu-west-1")
    )
    assert shared["regionCode"] == metal["regionCode"] == "eu-west-1"
    assert (shared["tenancy"], shared["productFamily"]) == ("Shared", "Compute Instance")
    assert (metal["tenancy"], metal["productFamily"]) == ("Dedicated", "Compute Instance (bare metal)")
    assert shared["operatingSystem"] == "Linux"


def test_spot_costs_as_much_as_on_demand_until_its_price_is_known() -> None:
    assert Prices({"a": 1.0}).of("a", "z", "spot") == 1.0
    known = Prices({"a": 1.0}, {("a", "z"): 0.3})
    assert (known.of("a", "z", "spot"), known.of("a", "y", "spot"), known.of("b", "z", "on-demand")) == (
        0.3,
        None,
        None,
    )


def test_prices_say_where_they_are_from_also_those_that_an_answer_leaves_out() -> None:
    bundled, first, second = (PriceSource(name) for name in ("bundled", "first", "second"))
    history = PriceSource("history", "2026-11-26T10:00:00Z")
    prices = Prices({"a": 1.0, "b": 2.0, "c": 3.0}, on_demand_source=bundled)
    spot = prices.source("a", "z", "spot")
    assert str(spot) == "on-demand, as spot is not known yet, by bundled"

    prices = prices.updated({"a": 1.1, "b": 2.1}, first, {("a", "z"): 0.3}, history, 1)
    prices = prices.updated({"a": 1.2}, second, {("a", "y"): 0.4}, PriceSource("later"), 2)
    assert [prices.source(name, "z", "on-demand") for name in "abc"] == [second, first, bundled]
    assert prices.source("a", "z", "spot") == history
    assert str(prices.source("a", "y", "spot")) == "later"
    assert prices.of("c", "z", "on-demand") == 3.0

    prices = prices.updated({"a": 1.0, "b": 2.0, "c": 3.0}, second, None, None, 3)
    assert {prices.source(name, "z", "on-demand") for name in "abc"} == {second}
    assert prices.source("a", "z", "spot") == history


async def test_prices_come_from_aws_and_survive_its_failure(aws: LocalAws) -> None:
    now = [1_800_000_000.0]
    session = AwsSession()
    pricing = Pricing(session, lambda: now[0], structlog.get_logger())
    try:
        prices = await pricing.current()
        assert prices.of("m5.large", "us-east-1a", "on-demand") == 0.096
        assert 0 < (prices.of("m5.large", "us-east-1a", "spot") or 0) < 0.096
        assert await pricing.current() is prices
        on_demand, spot = (prices.source("m5.large", "us-east-1a", kind) for kind in ("on-demand", "spot"))
        assert str(on_demand) == "AWS Price List API (2027-01-15T08:00:00Z)"
        assert str(spot) == "EC2's spot price history (2027-01-15T08:00:00Z)"
    finally:
        await session.close()


async def test_without_aws_the_bundled_prices_serve(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    session = AwsSession()
    try:
        prices = await Pricing(session, lambda: 1e9, structlog.get_logger()).current()
    finally:
        await session.close()
    assert prices.on_demand == bundled_prices()
    assert prices.on_demand["m5.large"] == 0.096
    assert prices.spot is None
    source = prices.source("m5.large", "us-east-1a", "on-demand")
    assert str(source) == f"AWS's price list of us-east-1, bundled ({bundled_date()})"


def test_selector_terms_become_filters_that_all_must_match() -> None:
    term = SelectorTerm(tags=(("a", ("*",)), ("b", ("x", "y*"))), ids=("subnet-1",))
    assert filters_of(term, id_filter="subnet-id", name_filter="tag:Name") == [
        {"Name": "subnet-id", "Values": ["subnet-1"]},
        {"Name": "tag-key", "Values": ["a"]},
        {"Name": "tag:b", "Values": ["x", "y*"]},
    ]
    assert describe([term, SelectorTerm(names=("n",))]) == "a=*, b=x,y*, ids=subnet-1 or names=n"


def test_the_newest_image_of_each_kind_comes_first() -> None:
    def image(identifier: str, created: str, architecture: str = "amd64") -> Image:
        requirement = Requirement.of("kubernetes.io/arch", "In", [architecture])
        return Image(identifier, Requirements([requirement]), identifier, created)

    images = [image("old", "2023"), image("arm", "2022", "arm64"), image("new", "2024")]
    assert [each.id for each in in_order(images)] == ["new", "arm"]


def test_tags_of_an_image_with_well_known_keys_limit_its_types() -> None:
    tags = [{"Key": "karpenter.k8s.aws/instance-family", "Value": "g5"}, {"Key": "team", "Value": "a"}]
    image = read_image({"ImageId": "ami-1", "Architecture": "arm64", "Tags": tags})
    assert image is not None
    assert {key: requirement.values for key, requirement in image.requirements.items()} == {
        "kubernetes.io/arch": {"arm64"},
        "karpenter.k8s.aws/instance-family": {"g5"},
    }
    assert read_image({"ImageId": "ami-1", "Architecture": "x86_64_mac"}) is None


def test_parameters_name_the_version() -> None:
    names = [each.name for each in parameters_for("AL2", "1.29")]
    assert names == [
        "/aws/service/eks/optimized-ami/1.29/amazon-linux-2/recommended/image_id",
        "/aws/service/eks/optimized-ami/1.29/amazon-linux-2-gpu/recommended/image_id",
        "/aws/service/eks/optimized-ami/1.29/amazon-linux-2-arm64/recommended/image_id",
    ]
    assert parameters_for("Custom", "1.29") == ()
