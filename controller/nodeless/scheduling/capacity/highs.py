"""HiGHS as the programs of a solve use it: in one thread, with a fixed seed, silent.

The same program has the same answer on every machine, for work is bounded by counting, never by a clock.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, inf

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


#: Cuts that a search keeps. With the 10,000 of HiGHS's default a program of 644 rows had a full pool after 25
#: rounds of cuts, each of which took 0.3 s then: 28 s in a box of one; with 500 2.2 s, for a better bound.
_MOST_CUTS = 500


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
            "mip_pool_soft_limit": _MOST_CUTS,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": gap,
            **options,
        },
    )


def whole_numbers_of(
    program: highspy.Highs, columns: Sequence[int], most_nodes: int, gap: float, **options: float | bool
) -> highspy.Highs:
    """A search for the optimum of a linear program in which some columns are whole numbers.

    Args:
        program: The program.
        columns: Those of its columns.
        most_nodes: Nodes of the search tree at most.
        gap: How much worse than the best the answer may be, as the objective counts.
        options: Others, by HiGHS's names.
    """
    solver = tree_search(most_nodes, gap, **options)
    solver.passModel(program.getLp())
    kinds = np.array([highspy.HighsVarType.kInteger] * len(columns))
    solver.changeColsIntegrality(len(columns), np.array(columns, dtype=np.int32), kinds)
    return solver


#: Without searches in parts of the program, which look at no limits and took most of the time, and without
#: cuts at every node, which slow down what follows.
PLAIN_SEARCH: dict[str, float | bool] = {
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_allow_cut_separation_at_nodes": False,
}
#: Seconds for each row and column until a search first looks whether it has to end; for each look, and for
#: each entry of the program in it; for each simplex iteration, and for each row and column in it.
_BEFORE, _LOOK, _LOOK_ENTRY, _ITERATION, _ITERATION_SIZE = 0.1e-3, 140e-6, 37e-9, 19e-6, 29e-9
#: Simplex iterations from one look to the next, about: nothing tells of them before the search has ended.
_BETWEEN = 4
#: Seconds more for each entry beyond so many in a look at the first node of the search tree, where rounds of
#: cuts come between: measured 1 ms with 1,000 entries, as elsewhere, 13 ms with 10,000.
_ROUND_ENTRY, _ROUND_SMALL = 1e-6, 2500


def looks_within(seconds: float, search: highspy.Highs) -> int:
    """How often a search may look in some seconds of work whether it has to end (`run_within`).

    Args:
        seconds: Of work, as counted.
        search: Or the program of it.

    Returns:
        Less than one where that does not suffice to begin.
    """
    return int((seconds - _BEFORE * _size(search)) / (_look(search) + _BETWEEN * _iteration(search)))


def seconds_of(looks: int, search: highspy.Highs) -> float:
    """What a search that has ended took, in seconds of work."""
    iterations = iterations_of(search) * _iteration(search)
    return _BEFORE * _size(search) + looks * _look(search) + iterations


def _look(search: highspy.Highs) -> float:
    return _LOOK + _LOOK_ENTRY * float(search.getNumNz())


def _looks_of_round(search: highspy.Highs) -> float:
    """As how many looks one at the first node of the search tree counts."""
    return 1 + _ROUND_ENTRY * max(0.0, float(search.getNumNz()) - _ROUND_SMALL) / _look(search)


def _iteration(search: highspy.Highs) -> float:
    return _ITERATION + _ITERATION_SIZE * _size(search)


def _size(search: highspy.Highs) -> int:
    return int(search.getNumRow() + search.getNumCol())


def run_within(solver: highspy.Highs, checks: int, enough: float = -inf) -> int:
    """Run a search of whole numbers, which ends with what it has when it has looked so often whether to end.

    It does so around every linear program that it solves, at the first node of the search tree as well, where
    nodes say nothing of the work. There a look counts as several where the program is large.

    Args:
        solver: The search.
        checks: How often at most.
        enough: Of what is to be as much as possible: it ends as well once no answer can be as much.

    Returns:
        How often it did, as counted.
    """
    done, at_first = 0.0, _looks_of_round(solver)

    def look(event: highspy.HighsCallbackEvent) -> None:
        nonlocal done
        done += 1 if event.data_out.mip_node_count else at_first
        if done >= checks or event.data_out.mip_dual_bound < enough:
            event.interrupt()

    solver.cbMipInterrupt.subscribe(look)
    solver.run()
    # HiGHS and what it calls refer to each other.
    solver.cbMipInterrupt.clear()
    solver.disableCallbacks()
    return ceil(done)


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
        model = self.of_fractions(gain, lower, upper, sense)
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(gain)
        return model

    def of_fractions(
        self, gain: Values, lower: Values, upper: Values, sense: highspy.ObjSense
    ) -> highspy.HighsLp:
        """A program with these rows and variables, by what each of them counts."""
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(gain), len(self)
        model.sense_ = sense
        model.col_cost_ = gain
        model.col_lower_ = lower
        model.col_upper_ = upper
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


def bound_of(solver: highspy.Highs) -> float | None:
    """What no answer of a program of whole numbers counts less than, after a run; None: not known."""
    if solver.getModelStatus() not in _ENDED:
        return None
    bound = float(solver.getInfo().mip_dual_bound)
    return bound if abs(bound) < highspy.kHighsInf else None


#: How a search of whole numbers ends that has an answer, or might have found one.
_ENDED = (
    highspy.HighsModelStatus.kOptimal,
    highspy.HighsModelStatus.kSolutionLimit,
    highspy.HighsModelStatus.kInterrupt,
)


def iterations_of(solver: highspy.Highs) -> int:
    """Simplex iterations of the last run."""
    return max(0, int(solver.getInfo().simplex_iteration_count))
