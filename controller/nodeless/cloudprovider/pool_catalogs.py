"""What each pool may buy now, and where its nodes find addresses, as a solve wants it.

An error that nobody expects, a defect, concerns the pool that meets it alone: that pool cannot be used, and
its problem says so.
"""

from collections.abc import Iterable

from nodeless.cloudprovider import CloudError, CloudProvider, NodeClassUnresolved
from nodeless.cloudprovider.billing.room import named_by_pods
from nodeless.model.instance_types import InstanceType
from nodeless.model.pools import NodeClass, Pool
from nodeless.model.snapshot import Snapshot
from nodeless.model.subnets import SubnetRoom
from nodeless.scheduling.faults import one_line
from nodeless.state import PoolUnusable, usable


async def pool_catalogs(
    cloud: CloudProvider, snapshot: Snapshot
) -> tuple[dict[str, tuple[InstanceType, ...]], dict[str, str]]:
    """Types of each usable pool at the prices of nodes; and what is wrong with the others, by pool key."""
    named = named_by_pods(snapshot)
    catalog: dict[str, tuple[InstanceType, ...]] = {}
    problems: dict[str, str] = {}
    for key, pool in sorted(snapshot.pools.items()):
        if pool.deletion_timestamp is not None:
            continue
        try:
            seen = usable(snapshot, pool.reference, pool.node_class)
            catalog[key] = await cloud.billed_catalog(*seen, named)
        except (PoolUnusable, CloudError) as error:
            problems[key] = str(error)
        except Exception as error:  # a defect must not keep the other pools from their nodes
            problems[key] = _defect(error)
    return catalog, problems


def _defect(error: Exception) -> str:
    return f"its instance types cannot be listed ({one_line(error)}); hint: report this as a bug"


async def pools_sold(
    cloud: CloudProvider, snapshot: Snapshot
) -> tuple[list[tuple[Pool, tuple[InstanceType, ...]]], dict[str, str]]:
    """Usable pools with what is sold to them, no NodeOverlay laid over; of others, what the cloud said."""
    sold: list[tuple[Pool, tuple[InstanceType, ...]]] = []
    problems: dict[str, str] = {}
    for key, pool in sorted(snapshot.pools.items()):
        if pool.deletion_timestamp is not None:
            continue
        try:
            usable_pool, node_class = usable(snapshot, pool.reference, pool.node_class)
            sold.append((usable_pool, await cloud.list_sold_types(usable_pool, node_class)))
        except PoolUnusable:
            continue
        except CloudError as error:
            problems[key] = str(error)
        except Exception as error:  # as in `pool_catalogs`
            problems[key] = _defect(error)
    return sold, problems


async def pool_subnets(
    cloud: CloudProvider, snapshot: Snapshot, pools: Iterable[str]
) -> dict[str, tuple[SubnetRoom, ...]]:
    """The subnets of some pools, by pool key; those that a launch found full have no addresses."""
    subnets: dict[str, tuple[SubnetRoom, ...]] = {}
    for key in sorted(pools):
        pool = snapshot.pools[key]
        try:
            _, node_class = usable(snapshot, pool.reference, pool.node_class)
            resolved = await cloud.resolve(node_class)
        except (PoolUnusable, CloudError):
            continue
        subnets[key] = tuple(
            SubnetRoom(
                subnet.id,
                subnet.zone,
                0 if subnet.full else subnet.free_addresses,
                subnet.zone_id,
                resolved.pods_take_addresses,
            )
            for subnet in resolved.subnets
        )
    return subnets


async def assert_bootable(cloud: CloudProvider, snapshot: Snapshot, node_class: NodeClass) -> None:
    """Raise NodeClassUnresolved when none of a class's pools can start its images."""
    problem: NodeClassUnresolved | None = None
    for _, pool in sorted(snapshot.pools.items()):
        if str(pool.node_class) != node_class.key or pool.invalid or pool.deletion_timestamp is not None:
            continue
        try:
            await cloud.catalog(pool, node_class)
        except NodeClassUnresolved as error:
            problem = error
        else:
            return
    if problem is not None:
        raise problem
