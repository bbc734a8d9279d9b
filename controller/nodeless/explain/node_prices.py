"""What a node that exists costs: the offering by which it could be bought now."""

from nodeless.model.instance_types import Catalog, Offering
from nodeless.model.labels import ON_DEMAND
from nodeless.model.node_offerings import NodeOfferings


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
