"""HiGHS as the programs of a solve use it: in one thread, with a fixed seed, silent.

The same program has the same answer on every machine, for work is bounded by counting, never by a clock.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import highspy
import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def quiet_solver() -> highspy.Highs:
    """A HiGHS that is deterministic, runs in this thread and prints nothing."""
    return _with_options(
        highspy.Highs(),
        {
            "output_flag": False,
            "threads": 1,
            "parallel": "off",
            "random_seed": 0,
            "presolve": "off",
            "solver": "simplex",
        },
    )


def tree_search(most_nodes: int, gap: float, **options: float | bool) -> highspy.Highs:
    """A quiet HiGHS for whole numbers.

    Args:
        most_nodes: Nodes of the search tree, after which it ends with what it has.
        gap: How much worse than the best the answer may be, as the objective counts.
        options: Others, by HiGHS's names.
    """
    return _with_options(
        quiet_solver(),
        {
            "presolve": "on",
            "solver": "choose",
            "mip_max_nodes": most_nodes,
            "mip_allow_restart": False,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": gap,
            **options,
        },
    )


def _with_options(solver: highspy.Highs, options: dict[str, float | bool | str]) -> highspy.Highs:
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver


@dataclass(slots=True, eq=False)
class Rows:
    """Rows of a program, as HiGHS takes them."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lower)

    def most(self, entries: Iterable[tuple[int, float]], upper: float) -> None:
        """The sum of these is at most so much."""
        self._add(entries, -highspy.kHighsInf, upper)

    def least(self, entries: Iterable[tuple[int, float]], lower: float) -> None:
        """The sum of these is at least so much."""
        self._add(entries, lower, highspy.kHighsInf)

    def _add(self, entries: Iterable[tuple[int, float]], lower: float, upper: float) -> None:
        self.starts.append(len(self.index))
        for column, value in entries:
            if value:
                self.index.append(column)
                self.value.append(value)
        self.lower.append(lower)
        self.upper.append(upper)

    def of_integers(
        self, gain: Values, lower: Values, upper: Values, sense: highspy.ObjSense
    ) -> highspy.HighsLp:
        """A program with these rows and variables that are whole numbers, by what each of them counts."""
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(gain), len(self)
        model.sense_ = sense
        model.col_cost_ = gain
        model.col_lower_ = lower
        model.col_upper_ = upper
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(gain)
        model.row_lower_, model.row_upper_ = np.array(self.lower), np.array(self.upper)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array([*self.starts, len(self.index)], dtype=np.int32)
        model.a_matrix_.index_ = np.array(self.index, dtype=np.int32)
        model.a_matrix_.value_ = np.array(self.value, dtype=np.float64)
        return model


def whole_numbers(solver: highspy.Highs) -> NDArray[np.int64] | None:
    """The answer of a program of integers that was run; None where there is none."""
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    answer: NDArray[np.int64] = np.rint(np.array(solver.getSolution().col_value)).astype(np.int64)
    return answer


def iterations_of(solver: highspy.Highs) -> int:
    """Simplex iterations of the last run."""
    return max(0, int(solver.getInfo().simplex_iteration_count))
