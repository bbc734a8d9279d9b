"""What a node that exists costs: the offering by which it could be bought now."""

from nodeless.model.instance_types import Catalog, Offering
from nodeless.model.labels import ON_DEMAND


class NodePrices:
    """Finds the offerings of nodes in a catalog, to be had now or not."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._pools = sorted(catalog)
        self._known: dict[str, dict[tuple[str, str, str], Offering]] = {}

    def find(self, pool: str, instance_type: str, zone: str, capacity_type: str) -> Offering | None:
        """The offering of a node; None: its price is not known.

        That of the pool, by key, else of the first pool that buys such nodes. A node without a capacity type
        is taken as on-demand.
        """
        wanted = instance_type, zone, capacity_type or ON_DEMAND
        for key in (pool, *self._pools):
            found = self._of(key).get(wanted)
            if found is not None:
                return found
        return None

    def _of(self, pool: str) -> dict[tuple[str, str, str], Offering]:
        """The cheapest offering of each kind that a pool buys."""
        known = self._known.get(pool)
        if known is None:
            known = self._known[pool] = {}
            for instance_type in self._catalog.get(pool, ()):
                for offering in instance_type.offerings:
                    key = instance_type.name, offering.zone, offering.capacity_type
                    if offering.price_known and (key not in known or offering.price < known[key].price):
                        known[key] = offering
        return known
