"""The cheapest cover of few pods with few new nodes, by an integer program.

Problem
-------
Items i of n_i pods with requests q_i, existing nodes e with room f_e, at most K new nodes k, each of one
shape s with room a_s at w_s:

    x[i, p] pods of item i on place p, an existing node or a new one      z[k, s] = 1: node k is of shape s
    u[i, k] = 1 where any pod of i may be on k, for items with limits for a single node

    min   sum w_s z[k, s]
    s.t.  sum_p x[i, p] = n_i
          sum_i q_i x[i, p] <= f_p or sum_s a_s z[k, s]                     room, in every resource
          x[i, k] <= n_i sum_{s open to i} z[k, s],   sum_s z[k, s] <= 1
          sum_ks g_sr z[k, s] <= G_r                                        limits of pools
          x[i, k] <= n_i u[i, k],   sum_{j adds h} x[j, k] <= m_ih where u[i, k] = 1
          sum w_s z[k, s] <= what is to be beaten

New nodes are ordered by their shapes, so that the search does not meet one plan many times. Column generation
and dives buy many nodes well, but where two or three hold everything, the whole numbers are the problem; so
is a bound on their number, which no value of a pod expresses.
"""

from collections.abc import Iterator

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import Rows, Values, iterations_of, tree_search, whole_numbers
from nodeless.scheduling.optimizer.cover import Chosen, Cover
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts
from nodeless.scheduling.spread.sharing import ENDLESS

#: New nodes, and variables, that a program may have; one with more is not begun.
MOST_NODES, MOST_VARIABLES = 6, 150
#: Seconds that a program takes at most, as a rule, for each pair of its variables.
_PAIR = 25e-6
#: Nodes of the search tree, after which it ends with what it has.
_TREE = 400
#: By how much a cover must be cheaper than what is to be beaten.
_CHEAPER = 1e-7


def few_nodes(
    cover: Cover, hosts: HostLimits, nodes: int, below: float, effort: Effort
) -> list[Chosen] | None:
    """The cheapest cover with no more new nodes than `nodes`.

    Args:
        cover: What to cover, with what.
        hosts: What items allow beside each other on one node.
        nodes: New nodes at most.
        below: What the cover must count less than; infinity: nothing.
        effort: What the search takes is taken from it.

    Returns:
        The best that was found; None where there is none, or the program would be too large for the effort.
    """
    if not 0 < nodes <= MOST_NODES:
        return None
    program = _Program(cover, hosts, nodes, below)
    if program.count > MOST_VARIABLES or _PAIR * program.count**2 > effort.left:
        return None
    rows = program.rows()
    solver = tree_search(_TREE, _CHEAPER)
    lower, upper = np.zeros(program.count), program.most
    solver.passModel(rows.of_integers(program.cost, lower, upper, highspy.ObjSense.kMinimize))
    solver.run()
    effort.spend_solving(iterations_of(solver), len(rows), program.count)
    values = whole_numbers(solver)
    return None if values is None else program.chosen(values)


class _Program:
    """Where the variables are, and what they must keep to."""

    def __init__(self, cover: Cover, hosts: HostLimits, nodes: int, below: float) -> None:
        self._cover = cover
        self._hosts = hosts
        self._below = below
        self._items = len(cover.needed)
        self._standing: NDArray[np.intp] = np.flatnonzero(cover.standing)
        new = np.flatnonzero(~cover.standing & (cover.cost < below))
        self._shapes: NDArray[np.intp] = new[np.argsort(cover.cost[new], kind="stable")]
        self._nodes = range(len(self._standing), len(self._standing) + nodes)
        self._limited = [item for item in range(self._items) if (hosts.most[item] < ENDLESS).any()]
        self._made = self._items * self._nodes.stop
        self._marks = self._made + nodes * len(self._shapes)
        self.count = self._marks + nodes * len(self._limited)

    def _pods(self, item: int, place: int) -> int:
        return item * self._nodes.stop + place

    def _shape(self, node: int, number: int) -> int:
        return self._made + (node - self._nodes.start) * len(self._shapes) + number

    def _mark(self, node: int, number: int) -> int:
        return self._marks + (node - self._nodes.start) * len(self._limited) + number

    @property
    def cost(self) -> Values:
        """What each variable counts."""
        cost = np.zeros(self.count)
        cost[self._made : self._marks] = np.tile(self._cover.cost[self._shapes], len(self._nodes))
        return cost

    @property
    def most(self) -> Values:
        """The most that each variable may be."""
        most = np.ones(self.count)
        allowed = self._cover.shapes.allowed
        for item, needed in enumerate(self._cover.needed.tolist()):
            open_to = [*allowed[self._standing, item].tolist(), *([True] * len(self._nodes))]
            most[self._pods(item, 0) : self._pods(item, 0) + self._nodes.stop] = needed * np.array(open_to)
        return most

    def rows(self) -> Rows:
        """What holds between the variables."""
        rows = Rows()
        for item, needed in enumerate(self._cover.needed.tolist()):
            entries = [(self._pods(item, place), 1.0) for place in range(self._nodes.stop)]
            rows.most(entries, needed)
            rows.least(entries, needed)
        self._room(rows)
        for node in self._nodes:
            self._one_shape(rows, node)
            self._limit_pods_beside(rows, node)
        for cap, left in enumerate(self._cover.caps.tolist()):
            rows.most(((at, self._uses(number, cap)) for at, number in self._choices()), left)
        if np.isfinite(self._below):
            prices = self._cover.cost[self._shapes]
            rows.most(((at, float(prices[number])) for at, number in self._choices()), self._below - _CHEAPER)
        return rows

    def _choices(self) -> Iterator[tuple[int, int]]:
        """Each variable of a new node's shape, and which shape that is."""
        for node in self._nodes:
            for number in range(len(self._shapes)):
                yield self._shape(node, number), number

    def _uses(self, number: int, cap: int) -> float:
        return self._cover.uses[int(self._shapes[number])].get(cap, 0.0)

    def _room(self, rows: Rows) -> None:
        requests, room = self._cover.requests, self._cover.shapes.room
        for resource in np.flatnonzero(requests.any(axis=0)).tolist():
            unit = float(requests[:, resource].max())
            for place in range(self._nodes.stop):
                used = [
                    (self._pods(item, place), requests[item, resource] / unit) for item in range(self._items)
                ]
                if place in self._nodes:
                    used += [
                        (self._shape(place, number), -max(0, room[shape, resource]) / unit)
                        for number, shape in enumerate(self._shapes)
                    ]
                    rows.most(used, 0.0)
                else:
                    rows.most(used, max(0, room[self._standing[place], resource]) / unit)

    def _one_shape(self, rows: Rows, node: int) -> None:
        """A node is of one shape at most, which takes its pods, and of no later one than the node before."""
        numbers = range(len(self._shapes))
        rows.most(((self._shape(node, number), 1.0) for number in numbers), 1.0)
        for item, needed in enumerate(self._cover.needed.tolist()):
            open_to = np.flatnonzero(self._cover.shapes.allowed[self._shapes, item])
            taking = ((self._shape(node, number), -float(needed)) for number in open_to.tolist())
            rows.most([(self._pods(item, node), 1.0), *taking], 0.0)
        if node > self._nodes.start:
            before = ((self._shape(node - 1, number), -(number + 1.0)) for number in numbers)
            rows.most([*((self._shape(node, number), number + 1.0) for number in numbers), *before], 0.0)

    def _limit_pods_beside(self, rows: Rows, node: int) -> None:
        """Where a pod with limits is, no more pods are than it allows."""
        needed = self._cover.needed
        for number, item in enumerate(self._limited):
            mark = self._mark(node, number)
            rows.most([(self._pods(item, node), 1.0), (mark, -float(needed[item]))], 0.0)
            for limit in np.flatnonzero(self._hosts.most[item] < ENDLESS).tolist():
                counted = np.flatnonzero(self._hosts.adds[:, limit])
                spare = float(needed[counted].sum())
                most = float(self._hosts.most[item, limit])
                entries = [(self._pods(other, node), 1.0) for other in counted.tolist()]
                rows.most([*entries, (mark, spare)], most + spare)

    def chosen(self, values: NDArray[np.int64]) -> list[Chosen]:
        """The nodes that an answer takes."""
        pods: Amounts = values[: self._made].reshape(self._items, self._nodes.stop)
        made = values[self._made : self._marks].reshape(len(self._nodes), len(self._shapes))
        standing = zip(self._standing.tolist(), pods.T, strict=False)
        new = zip(made, pods.T[len(self._standing) :], strict=True)
        return [
            *(Chosen(shape, filling, 1) for shape, filling in standing if filling.any()),
            *(Chosen(int(self._shapes[row.argmax()]), filling, 1) for row, filling in new if filling.any()),
        ]
