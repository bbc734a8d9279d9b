"""An independent judge of small clusters: is there a set of nodes whose end would save money?

Every set that is asked about is answered exactly, by trying every way to put the pods onto the nodes that
stay and onto new nodes, up to two more than would end, each of which counts for 1 % of what ends; nothing of
the solver or of `nodeless.disruption` is used. Pods ask for processors and memory alone, and nodes are of
pools that may buy every type on demand.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from nodeless.model.labels import INSTANCE_TYPE, ON_DEMAND

DIMENSIONS = ("cpu", "memory", "pods")
#: New nodes beyond the number of those that end, and the part of their price that each of them must save.
MOST_MORE, EACH_MORE = 2, 0.01
Amounts = tuple[int, ...]


@dataclass(frozen=True)
class Better:
    """Nodes that should end: what they cost, and what their pods would cost instead.

    With what each node beyond their number must save.
    """

    ending: tuple[str, ...]
    before: float
    after: float

    @property
    def saving(self) -> float:
        """The part of the price that is saved."""
        return 1 - self.after / self.before


class Judge:
    """Knows a cluster as numbers."""

    def __init__(self, snapshot, types):
        self._kinds = sorted(
            (
                min(offering.price for offering in kind.offerings if offering.capacity_type == ON_DEMAND),
                kind.name,
                tuple(kind.allocatable.get(dimension, 0) for dimension in DIMENSIONS),
            )
            for kind in types
        )
        prices = {name: price for price, name, _ in self._kinds}
        self._price, self._type, self._free, self._pods = {}, {}, {}, {}
        for name, node in snapshot.nodes.items():
            self._type[name] = node.labels[INSTANCE_TYPE]
            self._price[name] = prices[self._type[name]]
            self._pods[name] = [
                tuple(pod.requests.get(dimension, 0) for dimension in DIMENSIONS)
                for pod in snapshot.pods_on(name)
            ]
            whole = tuple(node.allocatable.get(dimension, 0) for dimension in DIMENSIONS)
            self._free[name] = _less(whole, self._pods[name])

    def worthwhile(self, sizes: Sequence[int], least: float, resting: Container[str]) -> list[Better]:
        """Those that save more than they must, none of whose nodes rests."""
        return [
            each
            for each in self.better(sizes)
            if each.saving > least * (1 + self._pods_per_node(each.ending) / 50) + 1e-9
            and not any(name in resting for name in each.ending)
        ]

    def _pods_per_node(self, names):
        return sum(len(self._pods[name]) for name in names) / len(names)

    def better(self, sizes: Sequence[int]) -> list[Better]:
        """Of all sets of these sizes, those that would end for less money; the most saving first."""
        names = sorted(self._price)
        sets = {
            combination for size in sizes if size <= len(names) for combination in combinations(names, size)
        }
        found = [self._judged(some) for some in sorted(sets)]
        return sorted(
            (each for each in found if each is not None), key=lambda each: (-each.saving, each.ending)
        )

    def _judged(self, ending: tuple[str, ...]) -> Better | None:
        before = sum(self._price[name] for name in ending)
        pods = sorted((pod for name in ending for pod in self._pods[name]), reverse=True)
        rooms = sorted(self._free[name] for name in self._free if name not in ending)
        after = self._cheapest(tuple(pods), tuple(rooms), ending, before)
        return Better(ending, before, after) if after < before - 1e-9 else None

    def _cheapest(self, pods, rooms, ending, limit):
        """The least price of new nodes for the pods that the rooms do not hold."""
        before = sum(self._price[name] for name in ending)

        def price(loads):
            more = max(len(loads) - len(ending), 0)
            return sum(self._cheapest_type(load, ending) for load in loads) + EACH_MORE * before * more

        @cache
        def least(place, rooms, loads):
            if place == len(pods):
                return price(loads)
            best = float("inf")
            pod = pods[place]
            for at, capacity in enumerate(rooms):
                if capacity not in rooms[:at] and all(
                    left >= asked for left, asked in zip(capacity, pod, strict=True)
                ):
                    after = tuple(sorted((*rooms[:at], _less(capacity, [pod]), *rooms[at + 1 :])))
                    best = min(best, least(place + 1, after, loads))
            for at, load in enumerate(loads):
                if load not in loads[:at]:
                    more = tuple(sorted((*loads[:at], _more(load, pod), *loads[at + 1 :])))
                    if price(more) < limit:
                        best = min(best, least(place + 1, rooms, more))
            if len(loads) < len(ending) + MOST_MORE:
                more = tuple(sorted((*loads, pod)))
                if price(more) < limit:
                    best = min(best, least(place + 1, rooms, more))
            return best

        return least(0, rooms, ())

    def _cheapest_type(self, load, ending):
        holding = [(price, name) for price, name, whole in self._kinds if _holds(whole, load)]
        if len(ending) > 1:
            # Several nodes become one of a type that ends only when that is the same as keeping it.
            names = {name for _, name in holding}
            alike = [self._price[name] for name in ending if self._type[name] in names]
            holding = [each for each in holding if not alike or each[0] < min(alike)]
        return min(holding, default=(float("inf"), ""))[0]


def _holds(capacity: Amounts, pod: Amounts) -> bool:
    return all(left >= asked for left, asked in zip(capacity, pod, strict=True))


def _less(whole: Amounts, parts) -> Amounts:
    return tuple(amount - sum(part[i] for part in parts) for i, amount in enumerate(whole))


def _more(load: Amounts, pod: Amounts) -> Amounts:
    return tuple(a + b for a, b in zip(load, pod, strict=True))
