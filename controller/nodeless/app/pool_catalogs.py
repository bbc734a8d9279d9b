"""What each pool may buy now, as a solve wants it."""

from nodeless.cloud import CloudError, CloudProvider
from nodeless.model.instance_types import InstanceType
from nodeless.model.snapshot import Snapshot
from nodeless.state import PoolUnusable, usable


async def pool_catalogs(
    cloud: CloudProvider, snapshot: Snapshot
) -> tuple[dict[str, tuple[InstanceType, ...]], dict[str, str]]:
    """Types of each usable pool; and what is wrong with the others, both by pool key."""
    catalog: dict[str, tuple[InstanceType, ...]] = {}
    problems: dict[str, str] = {}
    for key, pool in sorted(snapshot.pools.items()):
        if pool.deletion_timestamp is not None:
            continue
        try:
            catalog[key] = await cloud.catalog(*usable(snapshot, pool.reference, pool.node_class))
        except (PoolUnusable, CloudError) as error:
            problems[key] = str(error)
    return catalog, problems
