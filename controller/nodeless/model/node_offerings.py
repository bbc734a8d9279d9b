"""Which offering a node that exists is of."""

from nodeless.model.instance_types import Catalog, InstanceType, Offering


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
