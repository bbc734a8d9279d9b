"""What pools may buy by a catalog file, at the prices of nodes: for plans that ask no cloud. Pure."""

from collections.abc import Iterable
from functools import lru_cache
from typing import cast

from nodeless.cloudprovider.aws.catalog_file import CatalogFile
from nodeless.cloudprovider.aws.instance_type_builder import Known, build
from nodeless.cloudprovider.aws.node_shape import NodeShape, shape_of
from nodeless.cloudprovider.aws.price_list import Prices
from nodeless.cloudprovider.billing.catalogs import bill_catalog
from nodeless.cloudprovider.billing.parts import Location
from nodeless.cloudprovider.billing.room import named_by_pods, with_room
from nodeless.cloudprovider.billing.terms import BillTerms
from nodeless.launch.overlays import Evaluation, evaluate, laid_over
from nodeless.model.identity import Identity
from nodeless.model.instance_types import InstanceType
from nodeless.model.pools import NodeClass, Pool, kubelet_of
from nodeless.model.snapshot import Snapshot
from nodeless.state import PoolUnusable, usable


def offline_catalogs(
    catalog: CatalogFile,
    snapshot: Snapshot,
    zones: Iterable[str],
    terms: BillTerms | None = None,
    *,
    allowed_only: bool = True,
) -> tuple[dict[str, tuple[InstanceType, ...]], dict[str, str]]:
    """Types of each usable pool at the prices of its nodes, and what is wrong with the others.

    The NodeOverlays of the snapshot are laid over.

    Args:
        catalog: What is sold.
        snapshot: The pools and their node classes.
        zones: Zones of the subnets, which a file does not tell.
        terms: What counts as part of a price; None: the default.
        allowed_only: Leave out types that the pool's requirements do not allow.
    """
    terms, named, location = terms or BillTerms(), named_by_pods(snapshot), Location(catalog.region)
    sold, problems = _list_sold_types(catalog, snapshot, zones)
    overlays = evaluate(snapshot.node_overlays.values(), sold).accepted if snapshot.node_overlays else ()
    catalogs: dict[str, tuple[InstanceType, ...]] = {}
    for pool, types in sold:
        _, node_class = usable(snapshot, pool.reference, pool.node_class)
        if overlays:  # which may be for one pool alone
            laid = laid_over(overlays, pool, types)
            chosen = bill_catalog(laid, pool.name, node_class, location, terms)
        else:
            chosen = _billed(Identity(types), terms.name_for(pool.name), node_class, location, terms)
        if allowed_only:
            conflict = pool.requirements.conflict
            chosen = tuple(each for each in chosen if conflict(each.requirements) is None)
        catalogs[pool.key] = with_room(chosen, pool.requirements, node_class, named, terms)
    return catalogs, problems


def offline_evaluation(catalog: CatalogFile, snapshot: Snapshot, zones: Iterable[str]) -> Evaluation:
    """Which NodeOverlays of a snapshot count for its pools, as far as a file tells."""
    return evaluate(snapshot.node_overlays.values(), _list_sold_types(catalog, snapshot, zones)[0])


def _list_sold_types(
    catalog: CatalogFile, snapshot: Snapshot, zones: Iterable[str]
) -> tuple[list[tuple[Pool, tuple[InstanceType, ...]]], dict[str, str]]:
    """Each usable pool with all that is sold in the zones, and what is wrong with the others."""
    where = frozenset(zones)
    sold: list[tuple[Pool, tuple[InstanceType, ...]]] = []
    problems: dict[str, str] = {}
    for key, pool in sorted(snapshot.pools.items()):
        try:
            shape = _shape(*usable(snapshot, pool.reference, pool.node_class))
        except PoolUnusable as error:
            problems[key] = str(error)
        else:
            sold.append((pool, _types(catalog, shape, where)))
    return sold, problems


#: A command asks several times for the same types: with and without what a pool allows, and as if changed.
@lru_cache(maxsize=8)
def _types(catalog: CatalogFile, shape: NodeShape, zones: frozenset[str]) -> tuple[InstanceType, ...]:
    prices = Prices(
        catalog.on_demand,
        catalog.spot or None,
        on_demand_source=catalog.source,
        spot_source=catalog.spot_source,
    )
    return build(Known(catalog.facts, catalog.zones), shape, zones, prices, catalog.region)


#: Likewise, for as many node classes as clusters have; and pools that pay the same share their types.
@lru_cache(maxsize=64)
def _billed(
    types: Identity, pool: str, node_class: NodeClass, location: Location, terms: BillTerms
) -> tuple[InstanceType, ...]:
    (sold,) = types.objects
    return bill_catalog(cast("tuple[InstanceType, ...]", sold), pool, node_class, location, terms)


def _shape(pool: Pool, node_class: NodeClass) -> NodeShape:
    return shape_of(node_class, kubelet_of(pool, node_class))
