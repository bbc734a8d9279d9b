"""Fillings of nodes, improved by exchanging some of their pods for others.

A greedy filling (`patterns`) of large pods often leaves a tenth of what the best one is worth, since the room
that is left holds no other pod. The best one is found by an integer program (`knapsacks`), which takes a
hundred times as long and looks at one shape at a time.

Method: of one item one pod or a few leave, and as many of another one come as fit then. Of all such
exchanges the one that gains the most is made, for all shapes at once, until none gains anything.
"""

import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.optimizer.shapes import Shapes
from nodeless.scheduling.pods.classes import Amounts
from nodeless.scheduling.pods.matmul import matmul

#: How many pods may leave in an exchange, and exchanges of one filling at most.
_LEAVING, _MOST = np.array([0, 1, 2, 3]), 12
#: Elements of an array that does not take much memory.
_ELEMENTS = 500_000
#: What rounding may hide of the number of pods that fit, and of what an exchange gains.
_ROUNDING, _GAIN = 1e-9, 1e-9


class Exchanges:
    """For fixed shapes and items; values and numbers change from call to call."""

    def __init__(self, shapes: Shapes, requests: Amounts, hosts: HostLimits) -> None:
        """Prepare the arrays.

        Args:
            shapes: What may be bought, or stands there.
            requests: Of one pod of each item; shape (items, resources).
            hosts: Limits for a single node. Pods of items with a limit that concerns others, too, stay, and
                no more of them come.
        """
        asked = np.flatnonzero(requests.any(axis=0))
        self._needs = requests[:, asked]
        self._room = np.maximum(shapes.room[:, asked], 0)
        self._free = hosts.own_only()
        self._most = np.where(self._free & shapes.allowed, hosts.alone(), 0)
        self.steps = 0
        self.elements = 0
        """Steps so far, and the elements of the arrays that they went through."""

    def improved(self, fillings: Amounts, values: Values, left: Amounts, rows: NDArray[np.intp]) -> Amounts:
        """Fillings that are worth as much as these at least; they fit, too.

        Args:
            fillings: Pods of each item; shape (rows, items).
            values: Of one pod of each item; those without a positive value do not come.
            left: The most pods of each item.
            rows: The shapes that are filled.

        Returns:
            Pods of each item; shape (rows, items).
        """
        items = np.flatnonzero((values > 0) & (left > 0))
        result = fillings.copy()
        if not len(items):
            return result
        different = max(int(np.count_nonzero(fillings, axis=1).max(initial=0)), 1)
        at_once = 1
        while (
            2 * at_once * len(_LEAVING) * min(2 * at_once * different, len(items)) * len(items) <= _ELEMENTS
        ):
            at_once *= 2
        for start in range(0, len(rows), at_once):
            some = slice(start, start + at_once)
            room = self._room[rows[some]] - matmul(fillings[some], self._needs)
            most = np.minimum(self._most[np.ix_(rows[some], items)], left[items])
            result[some, items] = self._exchanged(fillings[some, items], values[items], items, room, most)
        return result

    def _exchanged(
        self, filled: Amounts, value: Values, items: NDArray[np.intp], room: Amounts, most: Amounts
    ) -> Amounts:
        """Fillings of some rows with some items, after all exchanges that gain anything.

        Args:
            filled: Pods of each item before; shape (rows, items).
            value: Of one pod of each item.
            items: Their numbers.
            room: That is left; shape (rows, resources).
            most: Pods of each item at most; shape (rows, items).
        """
        needs, free = self._needs[items], self._free[items]
        asked, per_need = needs > 0, 1.0 / np.maximum(needs, 1)
        active = np.arange(len(filled))
        for _ in range(_MOST):
            here = filled[active]
            there = np.flatnonzero(here.any(axis=0) & free)
            if not len(there):
                break
            # Shape (fillings, numbers that leave, items that leave).
            can = here[:, None, there] >= _LEAVING[:, None]
            rest = room[active][:, None, None] + _LEAVING[:, None, None] * needs[there]
            come = np.full((*can.shape, len(items)), np.inf)
            for resource in np.flatnonzero(asked.any(axis=0)).tolist():
                fits = rest[..., resource, None] * per_need[:, resource]
                np.minimum(come, fits, out=come, where=asked[:, resource])
            np.floor(come + _ROUNDING, out=come)
            np.minimum(come, (most[active] - here)[:, None, None], out=come)
            gain = come * value
            gain -= (_LEAVING[:, None] * value[there])[..., None]
            gain[~can] = -np.inf
            # What leaves does not come.
            gain[:, :, np.arange(len(there)), there] = -np.inf
            self.steps += 1
            self.elements += gain.size
            gain = gain.reshape(len(active), -1)
            best, one = gain.argmax(axis=1), np.arange(len(active))
            number, leaves, comes = np.unravel_index(best, come.shape[1:])
            leaves, number = there[leaves], _LEAVING[number]
            more = come.reshape(len(active), -1)[one, best].astype(np.int64)
            after = room[active] + number[:, None] * needs[leaves] - more[:, None] * needs[comes]
            enough = _GAIN * np.maximum(matmul(here, value), _GAIN)
            gains = (gain[one, best] > enough) & (after >= 0).all(axis=1)
            if not gains.any():
                break
            active, leaves, comes, number, more = (
                each[gains] for each in (active, leaves, comes, number, more)
            )
            room[active] = after[gains]
            filled[active, leaves] -= number
            filled[active, comes] += more
        return filled
