"""How long answers of AWS serve before they are asked for again, and what serves when AWS does not answer."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import structlog
from structlog.testing import capture_logs

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudUnavailable
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.cloudprovider.aws.caching import Cache
from nodeless.cloudprovider.aws.price_list import (
    bundled_date,
    bundled_prices,
    bundled_source,
    pricing_region,
)
from nodeless.cloudprovider.aws.pricing import Pricing
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.kube.leader_election import NotLeadingError
from nodeless.model.pools import SelectorTerm
from tests.cloudprovider.conftest import SETTINGS, World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, POOL, made_by

SELECTED = replace(NODE_CLASS, images=(SelectorTerm(names=("amazon-eks-node-1.29-*",)),))


async def resolved(provider: AwsProvider) -> None:
    await provider.resolve(SELECTED)


async def found(provider: AwsProvider) -> None:
    await provider.resolve(NODE_CLASS)


async def sold(provider: AwsProvider) -> None:
    await provider.catalog(POOL, NODE_CLASS)


@pytest.mark.parametrize(
    ("action", "seconds", "ask"),
    [
        pytest.param("DescribeSubnets", 60, resolved, id="AWS-1.3-subnets"),
        pytest.param("DescribeSecurityGroups", 60, resolved, id="AWS-1.3-security-groups"),
        pytest.param("DescribeImages", 60, resolved, id="AWS-1.3-selected-images"),
        pytest.param("GetParameter", 3600, found, id="AWS-1.3-parameters"),
        pytest.param("DescribeInstanceTypes", 3600, sold, id="AWS-1.3-instance-types"),
    ],
)
async def test_an_answer_serves_for_its_time(
    aws: LocalAws, world: World, action: str, seconds: float, ask: Callable[[AwsProvider], Awaitable[None]]
) -> None:
    now = [1_800_000_000.0]
    async with a_provider(clock=lambda: now[0]) as provider:
        await ask(provider)
        once = twice = len(made_by(aws, action))
        if once:  # what other tests have learned of types serves at first
            now[0] += 61
            await ask(provider)
            twice = 2 * once
            await asked(provider, aws, action, twice)
        now[0] += seconds - 1
        await ask(provider)
        assert len(made_by(aws, action)) == twice
        now[0] += 2
        await ask(provider)
        await asked(provider, aws, action, max(twice + once, 1))


async def test_a_long_answer_that_differs_from_the_one_before_is_asked_for_again_after_a_minute() -> None:
    now, answers, made = [0.0], iter("aabbbccc"), []

    async def fetch() -> str:
        made.append(next(answers))
        return made[-1]

    cache: Cache[str] = Cache(lambda: now[0], 3600.0, 12 * 3600.0)
    for seconds, known, calls in (
        (0, "a", 1),
        (59, "a", 1),
        (1, "a", 2),  # confirmed
        (3599, "a", 2),
        (1, "b", 3),  # another one
        (60, "b", 4),  # confirmed
        (3599, "b", 4),
    ):
        now[0] += seconds
        await cache.get("key", fetch)
        async with asyncio.timeout(5):
            while cache._fetches:  # noqa: ASYNC110 - another task's
                await asyncio.sleep(0)
        assert (cache.peek("key"), len(made)) == (known, calls)


async def test_an_answer_that_was_found_wrong_serves_only_while_aws_does_not_answer() -> None:
    now, answers = [0.0], iter("abc")
    throttled, made = [False], []

    async def fetch() -> str:
        made.append("call")
        if throttled[0]:
            raise CloudUnavailable("ec2", "Request limit exceeded.")
        return next(answers)

    cache: Cache[str] = Cache(lambda: now[0], 60.0, 600.0)
    assert await cache.get("key", fetch) == "a"
    cache.expire("key")
    assert await cache.get("key", fetch) == "b"
    assert await cache.get("key", fetch) == "b"
    assert len(made) == 2
    cache.expire("key")
    throttled[0] = True
    assert await cache.get("key", fetch) == "b"
    throttled[0] = False
    assert await cache.get("key", fetch) == "c"
    cache.expire("key")
    throttled[0] = True
    now[0] += 600
    with pytest.raises(CloudUnavailable):
        await cache.get("key", fetch)


async def asked(provider: AwsProvider, aws: LocalAws, action: str, count: int) -> None:
    """Wait until AWS was asked so often, and the answers are kept: they bear the time at which they came."""
    async with asyncio.timeout(60):
        while len(made_by(aws, action)) < count:  # noqa: ASYNC110 - the calls are another task's
            await asyncio.sleep(0.05)
        images, others = provider._images, (provider._subnets._cache, provider._types._cache)
        caches = (images._selected, images._default, *others)
        while any(cache._fetches for cache in (*caches, provider._resolver._security_groups._cache)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("later", [False, True], ids=["at start", "while it runs"])
async def test_aws_1_2_answers_on_images_and_subnets_serve_as_long_as_the_settings_say(
    aws: LocalAws, world: World, later: bool
) -> None:
    now = [1_800_000_000.0]
    settings = replace(SETTINGS, image_refresh_seconds=900.0, subnet_refresh_seconds=7200.0)
    async with a_provider(clock=lambda: now[0], settings=SETTINGS if later else settings) as provider:
        provider.use(settings)
        await resolved(provider)
        images = len(made_by(aws, "DescribeImages"))
        # What was never heard before is asked for once more.
        now[0] += 61
        await resolved(provider)
        await asked(provider, aws, "DescribeImages", 2 * images)
        await asked(provider, aws, "DescribeSubnets", 2)
        now[0] += 899
        await resolved(provider)
        assert len(made_by(aws, "DescribeImages")) == 2 * images
        now[0] += 2
        await resolved(provider)
        await asked(provider, aws, "DescribeImages", 3 * images)
        now[0] += 6298
        await resolved(provider)
        await asked(provider, aws, "DescribeImages", 4 * images)
        assert len(made_by(aws, "DescribeSubnets")) == 2
        now[0] += 2
        await resolved(provider)
        await asked(provider, aws, "DescribeSubnets", 3)


async def test_aws_1_2_a_cluster_that_eks_does_not_know_is_told_by_its_api_server(
    aws: LocalAws, world: World
) -> None:
    now, versions = [1_800_000_000.0], iter(["1.28", "1.29"])

    async def ask_version() -> str:
        return next(versions)

    async with a_provider(
        clock=lambda: now[0], settings=replace(SETTINGS, kubernetes_version=""), ask_version=ask_version
    ) as provider:
        assert (await provider._cluster.get()).version == "1.28"
        now[0] += 301
        await provider._cluster.get()
        async with asyncio.timeout(200):
            while (await provider._cluster.get()).version != "1.29":  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
    assert made_by(aws, "DescribeCluster") == []


@pytest.mark.parametrize(
    ("region", "endpoint"),
    [
        ("us-west-2", "us-east-1"),
        ("ap-southeast-2", "ap-south-1"),
        ("cn-north-1", "cn-northwest-1"),
        ("eu-west-1", "eu-central-1"),
        ("sa-east-1", "us-east-1"),
    ],
)
def test_aws_3_1_prices_are_asked_of_the_region_that_knows_them(region: str, endpoint: str) -> None:
    assert pricing_region(region) == endpoint


async def test_aws_3_1_where_there_is_no_pricing_api_none_is_asked(aws: LocalAws) -> None:
    session = AwsSession("us-gov-west-1")
    pricing = Pricing(session, lambda: 1e9, structlog.get_logger())
    try:
        with capture_logs():
            prices = await pricing.current(spot=False)
    finally:
        await session.close()
    assert prices.on_demand["m5.large"] == 0.121
    assert made_by(aws, "GetProducts") == []


async def test_aws_3_3_when_prices_cannot_be_had_the_log_says_of_what_day_those_are_that_serve(
    aws: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    session = AwsSession("us-east-1")
    try:
        with capture_logs() as reported:
            await Pricing(session, lambda: 1e9, structlog.get_logger()).current(spot=False)
    finally:
        await session.close()
    (warning,) = [each for each in reported if each["event"] == "prices not updated"]
    assert warning["serving"] == f"those bundled on {bundled_date()}"
    assert len(bundled_date()) == len("2026-01-01")


async def test_aws_3_4_prices_are_asked_for_again_after_twelve_hours(aws: LocalAws) -> None:
    now = [1_800_000_000.0]
    session = AwsSession("us-east-1")
    pricing = Pricing(session, lambda: now[0], structlog.get_logger())
    try:
        await pricing.current()
        once = len(made_by(aws, "DescribeSpotPriceHistory"))
        now[0] += 12 * 3600 - 1
        await pricing.current()
        assert len(made_by(aws, "DescribeSpotPriceHistory")) == once
        now[0] += 1
        await pricing.current()
        async with asyncio.timeout(60):
            while pricing._spot.version < 2:  # noqa: ASYNC110 - the update is another task
                await asyncio.sleep(0.05)
        assert len(made_by(aws, "DescribeSpotPriceHistory")) > once
    finally:
        await session.close()


@pytest.mark.parametrize(
    ("region", "as_in", "m5_large"),
    [
        pytest.param("us-east-1", "us-east-1", 0.096, id="AWS-3.3-bundled"),
        pytest.param("us-gov-west-1", "us-gov-west-1", 0.121, id="AWS-3.3-no-pricing-api"),
        pytest.param("us-gov-east-1", "us-gov-east-1", 0.121, id="AWS-3.3-govcloud-east"),
        pytest.param("cn-north-1", "cn-north-1", 1.013, id="AWS-3.3-yuan"),
        pytest.param("cn-northwest-1", "cn-north-1", 1.013, id="AWS-3.3-the-nearest-of-its-partition"),
        pytest.param("eu-west-1", "us-east-1", 0.096, id="AWS-3.3-the-rest-begin-with-us-east-1"),
    ],
)
def test_before_the_first_update_prices_are_those_that_came_along(
    region: str, as_in: str, m5_large: float
) -> None:
    assert bundled_prices(region) == bundled_prices(as_in)
    assert bundled_prices(region)["m5.large"] == m5_large
    assert len(bundled_date(region)) == len("2026-01-01")
    assert str(bundled_source(region)) == f"AWS's price list of {as_in}, bundled ({bundled_date(region)})"


async def test_aws_3_3_in_govcloud_the_bundled_prices_are_the_prices() -> None:
    session = AwsSession("us-gov-west-1")
    try:
        pricing = Pricing(session, lambda: 1e9, structlog.get_logger())
        assert (await pricing.current(spot=False)).on_demand == bundled_prices("us-gov-west-1")
    finally:
        await session.close()


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("kept", ["prices", "descriptions"])
async def test_a_fetch_in_the_background_ends_without_a_word_when_the_lease_is_given_up(
    aws: LocalAws, kept: str, begun: bool
) -> None:
    now, unheard = [1_800_000_000.0], list[dict[str, object]]()
    leads, refused = [True], threading.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))

    def assert_leading() -> None:
        if not leads[0]:
            refused.set()
            raise NotLeadingError

    session = AwsSession(assert_allowed=assert_leading)
    pricing = Pricing(session, lambda: now[0], structlog.get_logger())
    zones = Cache[list[object]](lambda: now[0], 60.0, 1e9)

    async def ask() -> None:
        if kept == "prices":
            await pricing.current(spot=True)
        else:
            await zones.get("", lambda: session.pages("ec2", "describe_subnets", {}, "Subnets"))

    try:
        await ask()
        leads[0], now[0] = False, now[0] + 24 * 3600
        with capture_logs() as lines:
            await ask()
            if begun:
                assert await asyncio.to_thread(refused.wait, 30)
    finally:
        await session.close()
    await asyncio.sleep(0)
    gc.collect()
    assert (unheard, lines) == ([], [])
