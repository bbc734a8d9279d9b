"""Which offering a node that exists is of."""

from nodeless.model.instance_types import Catalog, InstanceType, Offering
from nodeless.model.labels import ON_DEMAND


class NodeOfferings:
    """Finds the offerings of nodes in a catalog, to be had now or not."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        #: By pool key and name: of tens of thousands of offerings only those of a node's type are searched.
        self._types: dict[str, dict[str, InstanceType]] = {}

    def find(self, pool: str, instance_type: str, zone: str, capacity_type: str) -> Offering | None:
        """The cheapest of these that a pool, by key, buys; None: it buys none, or nobody prices it."""
        sold = self._types_of(pool).get(instance_type)
        offerings = (
            offering
            for offering in (sold.offerings if sold is not None else ())
            if (offering.zone, offering.capacity_type) == (zone, capacity_type) and offering.price_known
        )
        return min(offerings, key=lambda offering: offering.price, default=None)

    def _types_of(self, pool: str) -> dict[str, InstanceType]:
        if pool not in self._types:
            sold = self._catalog.get(pool, ())
            self._types[pool] = {instance_type.name: instance_type for instance_type in sold}
        return self._types[pool]


class NodePrices:
    """Finds the offerings of nodes also where their own pool does not buy them any more."""

    def __init__(self, catalog: Catalog) -> None:
        self._offerings = NodeOfferings(catalog)
        self._pools = sorted(catalog)
        self._found: dict[tuple[str, str, str, str], Offering | None] = {}

    def find(self, pool: str, instance_type: str, zone: str, capacity_type: str) -> Offering | None:
        """The offering of a node; None: its price is not known.

        The cheapest of the pool, by key, else of the first pool that buys such nodes. A node without a
        capacity type is taken as on-demand.
        """
        wanted = pool, instance_type, zone, capacity_type or ON_DEMAND
        if wanted not in self._found:
            found = (self._offerings.find(each, *wanted[1:]) for each in (pool, *self._pools))
            self._found[wanted] = next((offering for offering in found if offering is not None), None)
        return self._found[wanted]
