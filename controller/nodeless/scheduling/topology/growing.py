"""Arrays that grow by a row at a time: one row for each node that a solve opens."""

from collections.abc import Sequence

import numpy as np

from nodeless.scheduling.pods.classes import Amounts

_FIRST = 32


class Growing:
    """Integers, one row after the other; a row that was never written holds `fill`."""

    def __init__(self, *shape: int, fill: int = 0) -> None:
        self._fill = fill
        self._rows: Amounts = np.full((_FIRST, *shape), fill, dtype=np.int64)

    def first(self, count: int) -> Amounts:
        """The first rows, writable."""
        while count > len(self._rows):
            self._rows = np.concatenate([self._rows, np.full_like(self._rows, self._fill)])
        return self._rows[:count]

    def write(self, index: int, row: Amounts | Sequence[int] | int) -> None:
        self.first(index + 1)[index] = row

    def add(self, index: int, amount: int) -> None:
        self.first(index + 1)[index] += amount
