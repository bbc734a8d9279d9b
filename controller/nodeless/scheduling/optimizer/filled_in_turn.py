"""Whether some nodes hold some pods: nodes are filled in turn, in every way that may lead to an answer.

The smallest node comes first. Which pods are left is all that matters of a way to fill the nodes so far, so
of ways that leave the same pods one is followed. A node is filled until no further pod has room, and with so
much that the other nodes have room for the rest together: where nodes have little more room than the pods
need, few ways are left. All ways are worked on at once, item by item.

At first only a few are followed, those that look best: where there is much room, they soon hold all pods.
Then all are, unless they are too many. Where none was left out and none places all pods, the nodes do not
hold them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.items import HostCounts, HostLimits
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts
from nodeless.scheduling.pods.matmul import matmul
from nodeless.scheduling.spread.sharing import ENDLESS

#: Ways that go on from node to node, and rows of one node, at most: of a few ways, and of all ways.
_FEW_AT_MOST, _ALL_AT_MOST = (30, 1_000), (50_000, 100_000)
#: Amounts that the rows of one step may have; more would take too much memory (8 bytes each, several times).
_AMOUNTS_AT_ONCE = 8_000_000
#: The part of the effort that following all ways may take.
_PART = 0.35
#: Seconds for each amount of a row that is made.
_AMOUNT = 15e-9
#: How many kinds of rows can be numbered.
_NUMBERS = 1 << 63

Held = tuple[bool | None, Amounts | None]


@dataclass(frozen=True, slots=True, eq=False)
class _Ways:
    """Ways to fill the nodes so far; row by row."""

    left: Amounts
    """Pods of each item that have no place yet."""
    spare: Amounts
    """How much more room the nodes that are not filled yet have than these pods ask for, of each resource."""
    before: NDArray[np.intp]
    """The way, one node earlier, that each goes on with."""

    def only(self, rows: NDArray[np.intp]) -> "_Ways":
        return _Ways(self.left[rows], self.spare[rows], self.before[rows])


class FilledInTurn:
    """Whether some nodes hold some pods one by one, and how.

    What it says is whether they do, None where that is not found out; and where they do, pods of each item on
    each node, of shape (nodes, items).
    """

    def __init__(self, cover: Cover, hosts: HostLimits, left: Amounts, nodes: Sequence[int]) -> None:
        """Prepare the search.

        Args:
            cover: The items, and what the shapes are.
            hosts: What items allow beside each other on one node.
            left: Pods of each item.
            nodes: The shape of each node.
        """
        asked = np.flatnonzero(cover.requests.any(axis=0))
        room: Amounts = np.maximum(cover.shapes.room[nodes][:, asked], 0)
        largest = np.maximum(room.max(axis=0, initial=0), 1)
        sizes = (cover.requests[:, asked] / largest).max(axis=1, initial=0.0)
        items = np.flatnonzero(left)
        self._items = items[np.argsort(-sizes[items], kind="stable")]
        self._order = np.argsort((room / largest).sum(axis=1), kind="stable")
        self._shape = left.shape
        self._hosts = hosts
        self._requests: Amounts = cover.requests[np.ix_(self._items, asked)]
        self._room: Amounts = room[self._order]
        self._allowed = cover.shapes.allowed[np.ix_(np.array(nodes)[self._order], self._items)]
        self._needed: Amounts = left[self._items]
        self._weights: Values = (self._requests / largest).sum(axis=1) ** 2
        self._scale: Values = 1 / largest
        self._elsewhere = self._later_nodes_hold()
        self._spare: Amounts = self._room.sum(axis=0) - matmul(self._needed, self._requests)

    def _later_nodes_hold(self) -> Amounts:
        """For each node the most pods of each item that those after it hold, if they hold nothing else."""
        requests = self._requests
        own = self._hosts.alone()[self._items]
        room = self._room[:, None, :] // np.maximum(requests, 1)
        fits = np.where(requests > 0, room, ENDLESS).min(axis=2, initial=ENDLESS)
        most: Amounts = np.where(self._allowed, np.minimum(np.minimum(fits, own), self._needed), 0)
        later: Amounts = most[::-1].cumsum(axis=0)[::-1] - most
        return later

    def in_few_ways(self, effort: Effort) -> Held:
        """By the ways that look best; what that takes is taken from the effort, up to all of it."""
        return (False, None) if (self._spare < 0).any() else self._follow(_FEW_AT_MOST, effort, 0.0)

    def in_all_ways(self, effort: Effort) -> Held:
        """By all ways, for a part of the effort, which is taken from it."""
        return self._follow(_ALL_AT_MOST, effort, effort.left * (1 - _PART))

    def _follow(self, most: tuple[int, int], effort: Effort, least: float) -> Held:
        """Follow some ways.

        Args:
            most: Ways that go on to the next node, and rows of one node, at most.
            effort: What it takes is taken from it.
            least: How much of the effort stays.
        """
        ways = _Ways(self._needed[None, :], self._spare[None, :], np.zeros(1, dtype=np.intp))
        path, left_out = [ways], False
        for node in range(len(self._room)):
            filled = self._fill(node, ways, most[1], effort, least)
            if filled is None:
                return None, None
            ways, fewer = filled
            left_out |= fewer
            done = np.flatnonzero(~ways.left.any(axis=1))
            if len(done):
                return True, self._pods([*path, ways], int(done[0]))
            ways = ways.only(_distinct(ways.left, self._needed))
            if len(ways.left) > most[0]:
                left_out = True
                ways = ways.only(np.argsort(matmul(ways.left, self._weights), kind="stable")[: most[0]])
            path.append(ways)
            if not len(ways.left):
                break
        return (None if left_out else False), None

    def _fill(
        self, node: int, ways: _Ways, most: int, effort: Effort, least: float
    ) -> tuple[_Ways, bool] | None:
        """Every way to fill one more node, and whether some are left out; None where it takes too much."""
        begun = _Begun(ways, self._room[node], self._hosts)
        width = len(self._items) + self._room.shape[1] + 2 * self._hosts.count
        later: Amounts = matmul(np.where(self._allowed[node], ways.left, 0), self._requests)
        left_out = False
        for place in np.flatnonzero(self._allowed[node]).tolist():
            item, request = int(self._items[place]), self._requests[place]
            later = later - ways.left[begun.way, place][:, None] * request
            fits = begun.fits(place, item, request)
            each = fits + 1
            total = int(each.sum())
            takes = _AMOUNT * total * width
            if total * width > _AMOUNTS_AT_ONCE or effort.left - takes <= least:
                return None
            effort.left -= takes
            rows = np.repeat(np.arange(len(fits)), each)
            number = np.arange(total) - np.repeat(np.cumsum(each) - each, each)
            # Room that is left when everything that may follow is on the node, too.
            over = begun.room[rows] - number[:, None] * request - later[rows]
            keep = (over <= ways.spare[begun.way[rows]]).all(axis=1)
            keep &= begun.left[rows, place] - number <= self._elsewhere[node, place]
            if not len(self._hosts.touched[item]):
                used = request > 0
                keep &= (number == fits[rows]) | (over[:, used] < request[used]).any(axis=1)
            rows, number, later = rows[keep], number[keep], later[rows[keep]]
            begun.take(rows, number, place, item, request)
            if len(rows) > most:
                left_out = True
                kept = np.sort(np.argsort(matmul(begun.room, self._scale), kind="stable")[:most])
                begun.keep(kept)
                later = later[kept]
        spare = ways.spare[begun.way] - begun.room
        possible = np.flatnonzero((spare >= 0).all(axis=1))
        return _Ways(begun.left, spare, begun.way).only(possible), left_out

    def _pods(self, path: Sequence[_Ways], row: int) -> Amounts:
        """The pods of each item on each node, of the way that a row of the last ways is."""
        pods: Amounts = np.zeros((len(self._order), *self._shape), dtype=np.int64)
        for place in range(len(path) - 1, 0, -1):
            before = int(path[place].before[row])
            pods[self._order[place - 1], self._items] = path[place - 1].left[before] - path[place].left[row]
            row = before
        return pods


class _Begun:
    """Ways to fill one node that are decided for some of the items; row by row."""

    def __init__(self, ways: _Ways, room: Amounts, hosts: HostLimits) -> None:
        number = len(ways.left)
        self.way = np.arange(number)
        self.left = ways.left
        self.room: Amounts = np.broadcast_to(room, (number, len(room)))
        self._counts = HostCounts(hosts, number)

    def fits(self, place: int, item: int, request: Amounts) -> Amounts:
        """How many pods of an item have room beside what is there, and are left."""
        used = request > 0
        room = (self.room[:, used] // request[used]).min(axis=1, initial=ENDLESS)
        return self._counts.limited(np.minimum(room, self.left[:, place]), item)

    def take(self, rows: NDArray[np.intp], number: Amounts, place: int, item: int, request: Amounts) -> None:
        """Go on with copies of some rows, and so many pods of an item on each."""
        self.keep(rows)
        self.room = self.room - number[:, None] * request
        self.left[:, place] -= number
        self._counts.add(number, item)

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Go on with some rows."""
        self.way, self.left, self.room = self.way[rows], self.left[rows], self.room[rows]
        self._counts.keep(rows)


def _distinct(left: Amounts, most: Amounts) -> NDArray[np.intp]:
    """One row of each kind, of amounts between 0 and the most of their column."""
    kinds: Amounts = np.zeros(len(left), dtype=np.int64)
    number = 1
    for amounts, largest in zip(left.T, most.tolist(), strict=True):
        if number * (largest + 1) >= _NUMBERS:
            known, kinds = np.unique(kinds, return_inverse=True)
            number = len(known)
        kinds = kinds * (largest + 1) + amounts
        number *= largest + 1
    return np.sort(np.unique(kinds, return_index=True)[1])
