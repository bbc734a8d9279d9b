"""A region's instance types and prices out of AWS, as a file holds them."""

from typing import Any

from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.caching import Clock
from nodeless.cloudprovider.aws.catalog_file import CatalogFile
from nodeless.cloudprovider.aws.instance_types import InstanceTypes
from nodeless.cloudprovider.aws.pricing import Pricing
from nodeless.cloudprovider.aws.session import AwsSession


async def fetch_catalog(session: AwsSession, clock: Clock, log: Any, date: str, *, spot: bool) -> CatalogFile:
    """Ask EC2 and the Pricing API; types that no zone sells are there without zones.

    Raises:
        CloudError: One of them cannot be asked.
    """
    if not session.region:
        raise CloudError("no AWS region is known", "set AWS_REGION or give --region")
    known = await InstanceTypes(session, clock).get_facts()
    prices = await Pricing(session, clock, log).current(spot=spot)
    names = {fact.name for fact in known.facts}
    return CatalogFile(
        date=date,
        region=session.region,
        facts=known.facts,
        zones={name: known.zones.get(name, frozenset()) for name in sorted(names)},
        on_demand={name: price for name, price in prices.on_demand.items() if name in names},
        spot={key: price for key, price in (prices.spot or {}).items() if key[0] in names} if spot else {},
    )
