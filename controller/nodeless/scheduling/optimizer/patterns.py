"""Good fillings of one node, for every shape at once.

Problem (pricing)
-----------------
A filling x of a node of shape s with room b holds x_i pods of item i. Given values v_i:

    max  sum_i v_i x_i
    s.t. sum_i q_i[r] x_i <= b[r]      for each resource r
         x_i <= u_i                    no more than are left
         x_i = 0                       where s is not allowed for i
         host limits hold              (`items.HostLimits`)

Method: greedy by value density. At each step every shape takes pods of the item of the highest
v_i / (q_i . m), where the weight m_r of a resource grows as its room runs out:

    m_r = (b[r] / room left[r])^p / b[r]

so that a filling that has used much of one resource turns to items that need more of the others,
and fills a node in all of them. Several powers p are tried side by side, and the best filling of each
shape is kept. Steps are array operations over all shapes and items; their number depends on how many
different items go into a node, not on pods.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.shapes import Shapes
from nodeless.scheduling.pods.classes import Amounts, Mask
from nodeless.scheduling.pods.matmul import matmul
from nodeless.scheduling.spread.sharing import ENDLESS

Values = NDArray[np.float64]


class Filler:
    """Fillings for fixed shapes and items; values and numbers change from call to call."""

    def __init__(self, shapes: Shapes, requests: Amounts, hosts: HostLimits) -> None:
        """Prepare the arrays.

        Args:
            shapes: What may be bought, or stands there.
            requests: Of one pod of each item; shape (items, resources).
            hosts: Limits for a single node.
        """
        self.hosts = hosts
        """Limits for a single node."""
        asked = np.flatnonzero(requests.any(axis=0))
        self._unit = np.maximum(shapes.room[:, asked].max(axis=0), 1).astype(np.float64)
        self._needs = requests[:, asked]
        self._size = self._needs / self._unit
        self._room = shapes.room[:, asked]
        self._allowed = shapes.allowed
        self.steps = 0
        self.elements = 0
        """Steps so far, and the elements of the arrays that they went through."""

    def best(self, values: Values, left: Amounts, rows: NDArray[np.intp], *, quick: bool = False) -> Amounts:
        """The most valuable filling found for each shape.

        Args:
            values: Of one pod of each item, for all rows or for each of them; items without a positive value
                are left out.
            left: The most pods of each item.
            rows: The shapes to fill.
            quick: With the first of the ways to balance only.

        Returns:
            Pods of each item; shape (rows, items).
        """
        values = np.atleast_2d(values)
        useful = np.flatnonzero((values > 0).any(axis=0) & (left > 0))
        best: Amounts = np.zeros((len(rows), len(left)), dtype=np.int64)
        if not len(rows) or not len(useful):
            return best
        ways = _WAYS[:1] if quick else _WAYS
        own = values[:, useful] if len(values) == 1 else np.tile(values[:, useful], (len(ways), 1))
        filled = self._fill(own, left[useful], useful, np.tile(rows, len(ways)), ways)
        worth = (filled * own).sum(axis=1).reshape(len(ways), len(rows))
        chosen = worth.argmax(axis=0) * len(rows) + np.arange(len(rows))
        best[:, useful] = filled[chosen]
        return best

    def at_once(self, left: Amounts) -> int:
        """How many shapes are best filled in one call."""
        return max(1, _ELEMENTS // (len(_WAYS) * max(1, len(np.flatnonzero(left)))))

    def _fill(
        self,
        values: Values,
        left: Amounts,
        useful: NDArray[np.intp],
        rows: NDArray[np.intp],
        ways: Sequence[tuple[int, float]],
    ) -> Amounts:
        """One greedy filling of each row with the useful items; shape (rows, useful).

        The rows are the same shapes once for each way to balance; `values` are the same for all of them, or a
        row for each.
        """
        way = np.repeat(np.arange(len(ways)), len(rows) // len(ways))
        powers = np.array([power for power, _ in ways])[way, None] == np.arange(3)
        chunk = np.array([share for _, share in ways])[way]
        needs, size = self._needs[useful], self._size[useful].T
        columns = np.ascontiguousarray(needs.T)
        room = np.maximum(self._room[rows], 0)
        full = np.maximum(room / self._unit, 1e-12)
        can = self._allowed[np.ix_(rows, useful)] & _fit(columns, room)
        filled: Amounts = np.zeros(can.shape, dtype=np.int64)
        beside = _Beside(self.hosts, useful, len(rows)) if self.hosts.count else None
        active = np.arange(len(rows))
        each = active
        while len(active):
            self.steps += 1 if beside is None else _STEPS_BESIDE
            self.elements += can.size + _ELEMENTS_BESIDE * len(active) * self.hosts.count
            share = full / np.maximum(room / self._unit, 1e-9)
            weight = powers[:, :1] + powers[:, 1:2] * share + powers[:, 2:] * (share * share)
            density = matmul(weight / full, size)
            score = np.where(can, values / density, -1.0)
            item = score.argmax(axis=1)
            found = score[each, item] > 0
            if not found.all():
                active, item, room, full = active[found], item[found], room[found], full[found]
                can, powers, chunk = can[found], powers[found], chunk[found]
                values = values if len(values) == 1 else values[found]
                each = each[: len(active)]
            need = needs[item]
            fits = np.where(need > 0, room // np.maximum(need, 1), ENDLESS).min(axis=1, initial=ENDLESS)
            rest = left[item] - filled[active, item]
            take = np.minimum(np.maximum(1, (fits * chunk).astype(np.int64)), rest)
            if beside is not None:
                take = beside.admit(active, item, take)
                can[each, item] &= take > 0
            filled[active, item] += take
            room -= need * take[:, None]
            can[each, item] &= rest > take
            can &= _fit(columns, room)
        return filled


class _Beside:
    """The host limits of the rows of one filling."""

    def __init__(self, hosts: HostLimits, useful: NDArray[np.intp], rows: int) -> None:
        self._adds, self._own = hosts.adds[useful], hosts.most[useful]
        self._counted: Amounts = np.zeros((rows, hosts.count), dtype=np.int64)
        self._most: Amounts = np.full((rows, hosts.count), ENDLESS, dtype=np.int64)

    def admit(self, rows: NDArray[np.intp], item: NDArray[np.intp], take: Amounts) -> Amounts:
        """How many of what fits the limits allow; they count from now on."""
        adds, own, counted = self._adds[item], self._own[item], self._counted[rows]
        room = np.minimum(self._most[rows], own) - counted
        take = np.minimum(take, np.where(adds, room, ENDLESS).min(axis=1, initial=ENDLESS))
        take[(~adds & (own < counted)).any(axis=1)] = 0
        take = np.maximum(take, 0)
        self._counted[rows] += adds * take[:, None]
        present = take > 0
        self._most[rows[present]] = np.minimum(self._most[rows[present]], own[present])
        return take


def _fit(columns: Amounts, room: Amounts) -> Mask:
    """Whether one pod of each item fits; needs of shape (resources, items), the result (rows, items)."""
    fits: Mask = np.ones((len(room), columns.shape[1]), dtype=np.bool_)
    for resource, needs in enumerate(columns):
        fits &= needs <= room[:, resource, None]
    return fits


#: Steps that one with limits for a single node counts as, and elements that each row and limit of it does.
_STEPS_BESIDE, _ELEMENTS_BESIDE = 2, 2
#: Elements of an array that still stay in a core's cache.
_ELEMENTS = 40_000
#: Power of the balance (at most 2), and share of what fits that is taken at once.
_WAYS = ((2, 0.5), (0, 1.0), (1, 0.25))


def multiplicity(filling: Amounts, left: Amounts) -> int:
    """How many nodes can be filled alike with what is left."""
    used = filling > 0
    return int((left[used] // filling[used]).min()) if used.any() else 0
