"""The master program of the configuration LP, on HiGHS.

Problem
-------
A configuration k is a node of a shape with a filling a_k, bought at w_k dollars an hour.

    min  sum_k w_k z_k
    s.t. sum_k a_ik z_k >= n_i           every pod has a place          dual v_i >= 0
         sum_k g_kr z_k <= G_r           limits of pools, addresses     dual -m_r <= 0
         sum_{k on slot e} z_k <= 1      each existing node once        dual -s_e <= 0
         z >= 0

The duals price the next fillings: a configuration can improve the program only when
sum_i v_i a_ik > w_k + sum_r m_r g_kr + s_e.

Columns are added to one model that stays warm, so each solve continues from the last basis. Work
is counted in simplex iterations and bounded by the caller; HiGHS runs in one thread with a fixed
seed, so the same columns give the same solution.
"""

from collections.abc import Sequence

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import (
    PLAIN_SEARCH,
    looks_within,
    quiet_solver,
    run_within,
    seconds_of,
    whole_numbers,
    whole_numbers_of,
)
from nodeless.scheduling.optimizer.patterns import Values
from nodeless.scheduling.pods.classes import Amounts

#: What a pod without a place costs, beside the dearest that one can cost in a sensible plan.
_MISSING = 10.0


class Master:
    """The program, with the columns found so far."""

    def __init__(self, needed: Amounts, caps: Values, dearest: float) -> None:
        """A program in which every pod may still go without, at a high price.

        Args:
            needed: Pods of each item.
            caps: Right sides of the other rows.
            dearest: The price of the dearest shape.
        """
        self._items = len(needed)
        self._solver = quiet_solver()
        infinite = highspy.kHighsInf
        for number in needed:
            self._solver.addRow(float(number), infinite, 0, _NO_INDEX, _NO_VALUE)
        for cap in caps:
            self._solver.addRow(-infinite, float(cap), 0, _NO_INDEX, _NO_VALUE)
        for index in range(self._items):
            self._solver.addCol(
                _MISSING * dearest, 0.0, infinite, 1, np.array([index], dtype=np.int32), np.ones(1)
            )
        self.columns = 0
        self.iterations = 0
        """Simplex iterations of all solves."""

    def add(self, prices: Values, fillings: Amounts, uses: Sequence[dict[int, float]]) -> None:
        """Add configurations.

        Args:
            prices: Dollars an hour; shape (configurations,).
            fillings: Pods of each item; shape (configurations, items).
            uses: For each configuration what it takes of the other rows, by row.
        """
        starts: list[int] = []
        indices: list[int] = []
        values: list[float] = []
        for filling, use in zip(fillings, uses, strict=True):
            starts.append(len(indices))
            for index in np.flatnonzero(filling):
                indices.append(int(index))
                values.append(float(filling[index]))
            for row, amount in use.items():
                indices.append(self._items + row)
                values.append(amount)
        number = len(prices)
        self._solver.addCols(
            number,
            np.asarray(prices, dtype=np.float64),
            np.zeros(number),
            np.full(number, highspy.kHighsInf),
            len(indices),
            np.array(starts, dtype=np.int32),
            np.array(indices, dtype=np.int32),
            np.array(values, dtype=np.float64),
        )
        self.columns += number

    def drop(self, columns: Sequence[int]) -> None:
        """Take some configurations no more."""
        for column in columns:
            self._solver.changeColBounds(self._items + column, 0.0, 0.0)

    def needs(self, needed: Amounts, caps: Values) -> None:
        """Change the right sides: what is left after configurations were taken."""
        infinite = highspy.kHighsInf
        for index, number in enumerate(needed):
            self._solver.changeRowBounds(index, float(number), infinite)
        for row, cap in enumerate(caps):
            self._solver.changeRowBounds(self._items + row, -infinite, float(cap))

    def solve(self, iterations: int, *, grown: bool) -> tuple[Values, Values, Values]:
        """Solve with at most so many simplex iterations.

        Args:
            iterations: The most iterations.
            grown: Only columns were added since the last time: the primal simplex goes on from there.

        Returns:
            How often each configuration is taken, the values of the items' pods, and the prices of the
            other rows. When the iterations end early they belong to the last basis.
        """
        self._solver.setOptionValue("simplex_strategy", _PRIMAL if grown else _DUAL)
        self._solver.setOptionValue("simplex_iteration_limit", max(1, iterations))
        self._solver.run()
        self.iterations += int(self._solver.getInfo().simplex_iteration_count)
        solution = self._solver.getSolution()
        taken: NDArray[np.float64] = np.array(solution.col_value, dtype=np.float64)[self._items :]
        duals: NDArray[np.float64] = np.array(solution.row_dual, dtype=np.float64)
        return taken, np.maximum(duals[: self._items], 0.0), np.maximum(-duals[self._items :], 0.0)

    def whole(self, seconds: float, below: float) -> tuple[NDArray[np.int64] | None, float]:
        """The program in whole numbers.

        Args:
            seconds: Of work, as counted.
            below: What the answer must cost less than.

        Returns:
            How often each configuration is taken, None where nothing is found, and the seconds that it took.
        """
        looks = looks_within(seconds, self._solver)
        if looks < 1:
            return None, 0.0
        columns = range(self._items, self._items + self.columns)
        search = whole_numbers_of(
            self._solver, columns, _MOST_TREE, _ROUNDING, **PLAIN_SEARCH | _WITH_PRICES, objective_bound=below
        )
        spent = seconds_of(run_within(search, looks), search)
        taken = whole_numbers(search)
        if taken is None or float(search.getInfo().objective_function_value) >= below:
            return None, spent
        return taken[self._items :], spent


#: A search among the configurations whose nodes cost little more than their pods are worth.
_WITH_PRICES: dict[str, float | bool] = {"mip_heuristic_run_root_reduced_cost": True}
#: Nodes of the search tree at most, and what rounding may hide of what an answer costs.
_MOST_TREE, _ROUNDING = 100_000, 1e-6
#: Strategies of HiGHS's simplex.
_DUAL, _PRIMAL = 1, 4
_NO_INDEX = np.array([], dtype=np.int32)
_NO_VALUE = np.array([], dtype=np.float64)
