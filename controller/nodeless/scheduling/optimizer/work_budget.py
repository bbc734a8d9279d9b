"""How much work a search may do: a time box that a second run repeats to the bit.

A clock would make two runs differ, so work is counted instead: simplex iterations by the size of
the program, fillings by their steps and the size of their arrays, each at what it takes on a
shared virtual processor. On a machine half as fast the same work takes twice as long; the answer
is the same.
"""

from dataclasses import dataclass

#: Seconds for a solve, for each simplex iteration in it, and for each row and column in an iteration.
_SOLVE, _ITERATION, _ITERATION_ROW, _ITERATION_COLUMN = 300e-6, 10e-6, 80e-9, 10e-9
#: Seconds for fillings that are asked for together, for one step of them, and for each element of its arrays.
_FILLINGS, _STEP, _STEP_ELEMENT = 120e-6, 36e-6, 11e-9
#: Seconds for a step of exchanges, and for each element of its arrays.
_EXCHANGE, _EXCHANGE_ELEMENT = 100e-6, 10e-9
#: Seconds for each pair of a shape and an item when it is estimated what a filling is worth at most.
_PAIR = 20e-9
#: Pairs that what is counted for the filling itself covers.
_COVERED = 200_000


@dataclass(slots=True)
class Effort:
    """Seconds of work that are left, as counted."""

    left: float

    def spend_solving(self, iterations: int, rows: int, columns: int) -> None:
        self.left -= _SOLVE + iterations * (_ITERATION + _ITERATION_ROW * rows + _ITERATION_COLUMN * columns)

    def iterations(self, rows: int) -> int:
        """How many simplex iterations are left."""
        return int(max(0.0, self.left) / (_ITERATION + _ITERATION_ROW * rows))

    def spend_filling(self, steps: int, elements: int) -> None:
        self.left -= _FILLINGS + steps * _STEP + elements * _STEP_ELEMENT

    def spend_exchanging(self, steps: int, elements: int) -> None:
        self.left -= steps * _EXCHANGE + elements * _EXCHANGE_ELEMENT

    def spend_estimating(self, pairs: int) -> None:
        """Only what is much beside the filling that follows."""
        self.left -= _PAIR * max(0, pairs - _COVERED)
