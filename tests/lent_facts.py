"""What EC2 tells of instance types and prices, which no test changes: asked once, for all providers.

To ask for it, and to build catalogs of it, takes a provider and the local AWS some seconds of processor.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import structlog

from localenv.aws import LocalAws
from nodeless.cloudprovider.aws import AwsProvider, AwsSettings
from nodeless.cloudprovider.aws.instance_type_builder import Known
from nodeless.cloudprovider.aws.instance_types import CatalogKey
from nodeless.model.instance_types import InstanceType

#: What `Prices.version` is as long as nobody has asked for either kind of prices again.
_LENT_VERSION = 2


@dataclass(slots=True)
class _Lent:
    """Facts of types and prices by kind; and catalogs made of these, of no others."""

    known: Known | None = None
    prices: dict[str, Any] = field(default_factory=dict)
    built: dict[CatalogKey, tuple[InstanceType, ...]] = field(default_factory=dict)


_lent = _Lent()


def fetch_once(aws: LocalAws) -> None:
    """Ask an AWS without faults, which boto3 finds by the environment, unless that was done before."""
    if _lent.known is None:
        fetch()
        aws.forget_calls()


def fetch() -> None:
    """Ask the AWS that boto3 finds by the environment."""
    asyncio.run(_fetch())


async def _fetch() -> None:
    provider = AwsProvider(AwsSettings(cluster_name="any"), structlog.get_logger())
    try:
        known = await provider._types.get_facts()
        await provider._pricing.current()
    finally:
        await provider.close()
    halves = (provider._pricing._on_demand, provider._pricing._spot)
    _lent.prices = {half._name: half.fetched for half in halves}
    assert None not in _lent.prices.values(), "the local AWS does not tell all prices"
    _lent.known = known


def lend(provider: AwsProvider) -> None:
    """A provider that has asked for all of it just now; where nothing was fetched, it asks by itself."""
    if _lent.known is None:
        return
    provider._types._cache.put("types", _lent.known)
    for key, catalog in _lent.built.items():
        provider._types._built.put(key, catalog)
    for half in (provider._pricing._on_demand, provider._pricing._spot):
        half.fetched, half.version = _lent.prices[half._name], 1
        half._tried, half._due = True, float("inf")


def keep_catalogs(provider: AwsProvider) -> None:
    """For the next provider, the catalogs that this one has made of what was lent to it."""
    _lent.built = {
        key: catalog
        for key, catalog in provider._types._built.items()
        if key[0] is _lent.known and key[-1] == _LENT_VERSION
    }
