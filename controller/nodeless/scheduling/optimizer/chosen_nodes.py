"""Whether chosen nodes hold some pods one by one, and which pods are on which of them.

Together the nodes have room for the pods; whether each pod has room on one of them is another question. The
nodes are filled in turn (`filled_in_turn`), which finds out quickly where much room is left over, and where
very little is. In between an integer program may.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import (
    PLAIN_SEARCH,
    Rows,
    Values,
    looks_within,
    run_within,
    seconds_of,
    tree_search,
    whole_numbers,
)
from nodeless.scheduling.optimizer.cover import Chosen, Cover
from nodeless.scheduling.optimizer.every_filling import full_fillings
from nodeless.scheduling.optimizer.filled_in_turn import FilledInTurn, Held
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts
from nodeless.scheduling.spread.sharing import ENDLESS

#: With so many nodes for each shape on average the program is asked first: it knows which are alike.
_ALIKE = 3
#: Nodes, and variables, of the program; nodes of its search tree.
_NODES, _PLACES, _PLACES_TREE = 60, 900, 200
#: Fillings of one shape up to which they are listed in the program.
_EACH_ALIKE = 600
#: Seconds for a node of that tree and each variable there, about; for fewer nodes none is begun.
_VARIABLE, _LEAST_TREE = 15e-6, 30
#: How many times as long as other searches (`seconds_of`) this one takes: it has no objective to go by.
_SEARCHING = 3


def on_chosen_nodes(
    cover: Cover, hosts: HostLimits, chosen: Sequence[Chosen], effort: Effort
) -> tuple[bool | None, list[Chosen] | None]:
    """Whether the chosen nodes hold all pods one by one, None: not known; and how they do.

    Nodes with a filling keep it if the others hold the rest; else those pods may go anywhere, too.
    """
    filled = [one for one in chosen if one.filling.any()]
    empty = [one.shape for one in chosen if not one.filling.any() for _ in range(one.times)]
    kept = sum((one.filling * one.times for one in filled), np.zeros_like(cover.needed))
    left = np.maximum(cover.needed - kept, 0)
    if not left.any():
        return True, filled
    held, pods = _placed(cover, hosts, left, empty, effort) if empty else (False, None)
    if pods is not None:
        return True, [
            *filled,
            *(Chosen(shape, row, 1) for shape, row in zip(empty, pods, strict=True) if row.any()),
        ]
    if not filled:
        return held, None
    every = [*empty, *(one.shape for one in filled for _ in range(one.times))]
    held, pods = _placed(cover, hosts, cover.needed, every, effort)
    if pods is None:
        return held, None
    return True, [Chosen(shape, row, 1) for shape, row in zip(every, pods, strict=True) if row.any()]


def _placed(cover: Cover, hosts: HostLimits, left: Amounts, nodes: Sequence[int], effort: Effort) -> Held:
    """Whether some nodes hold pods, and how (`FilledInTurn`)."""
    if len(nodes) > _NODES:
        return None, None
    search = FilledInTurn(cover, hosts, left, nodes)
    alike = len(nodes) >= _ALIKE * len(set(nodes))

    def by_program(effort: Effort) -> Held:
        return _by_program(cover, hosts, left, nodes, effort)

    in_turn = (search.in_few_ways, search.in_all_ways)
    for way in (by_program, *in_turn) if alike else (*in_turn, by_program):
        held, pods = way(effort)
        if held is not None:
            return held, pods
    return None, None


def _by_program(cover: Cover, hosts: HostLimits, left: Amounts, nodes: Sequence[int], effort: Effort) -> Held:
    """The same, by an integer program."""
    program = _Places(cover, hosts, left, nodes, effort)
    tree = int(min(_PLACES_TREE, effort.left / (_VARIABLE * max(1, program.count))))
    if program.count > _PLACES or tree < _LEAST_TREE:
        return None, None
    rows, upper = program.rows(), program.upper()
    solver = tree_search(tree, 0.5, **PLAIN_SEARCH)
    nothing = np.zeros(program.count)
    solver.passModel(rows.of_integers(nothing, nothing, upper, highspy.ObjSense.kMinimize))
    looks = max(1, looks_within(effort.left / _SEARCHING, solver))
    effort.left -= _SEARCHING * seconds_of(run_within(solver, looks), solver)
    values = whole_numbers(solver)
    if values is not None:
        return True, program.pods(values)
    return (False if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible else None), None


class _Places:
    """Which pods are on which of some nodes.

    Of nodes that are alike the full fillings are listed, so that the search does not meet an answer twice.
    """

    def __init__(
        self, cover: Cover, hosts: HostLimits, left: Amounts, nodes: Sequence[int], effort: Effort
    ) -> None:
        self._cover = cover
        self._hosts = hosts
        self._left = left
        self._nodes = nodes
        alike = _fillings_of_alike(replace(cover, needed=left), hosts, nodes, effort)
        self._alike = {shape: nodes.count(shape) for shape in alike}
        self._filled = [(shape, row) for shape, pods in alike.items() for row in pods]
        self._single = [node for node, shape in enumerate(nodes) if shape not in alike]
        self._items = np.flatnonzero(left).tolist()
        self._first = {
            item: len(self._filled) + place * len(self._single) for place, item in enumerate(self._items)
        }
        limited = [item for item in self._items if (hosts.most[item] < ENDLESS).any()]
        self._marks = list(product(limited, range(len(self._single))))
        self._placed = len(self._filled) + len(self._items) * len(self._single)
        self.count = self._placed + len(self._marks)

    def upper(self) -> Values:
        """The most that each variable may be."""
        shapes = [self._nodes[node] for node in self._single]
        open_to = self._cover.shapes.allowed[np.ix_(shapes, self._items)].T
        places = self._left[self._items][:, None] * open_to
        filled = np.array([self._alike[shape] for shape, _ in self._filled], dtype=np.int64)
        ones = np.ones(len(self._marks))
        return np.concatenate([filled, places.reshape(-1), ones]).astype(np.float64)

    def rows(self) -> Rows:
        """What holds between the variables."""
        rows = Rows()
        for shape, number in self._alike.items():
            own = [at for at, (other, _) in enumerate(self._filled) if other == shape]
            rows.most(((at, 1.0) for at in own), float(number))
        single = range(len(self._single))
        for item in self._items:
            filled = [(at, float(row[item])) for at, (_, row) in enumerate(self._filled)]
            alone = [(self._first[item] + number, 1.0) for number in single]
            rows.least([*filled, *alone], float(self._left[item]))
        requests = self._cover.requests[self._items]
        for resource in np.flatnonzero(requests.any(axis=0)).tolist():
            asked = requests[:, resource] / float(requests[:, resource].max())
            for number in single:
                used = [
                    (self._first[item] + number, float(each))
                    for item, each in zip(self._items, asked, strict=True)
                ]
                room = max(0, self._cover.shapes.room[self._nodes[self._single[number]], resource])
                rows.most(used, float(room) / float(requests[:, resource].max()))
        self._limit_pods_beside(rows)
        return rows

    def _limit_pods_beside(self, rows: Rows) -> None:
        """Where a pod with limits is, no more pods are than it allows."""
        left, hosts = self._left, self._hosts
        for mark, (item, number) in enumerate(self._marks, start=self._placed):
            rows.most([(self._first[item] + number, 1.0), (mark, -float(left[item]))], 0.0)
            for limit in np.flatnonzero(hosts.most[item] < ENDLESS).tolist():
                counted = [other for other in self._items if hosts.adds[other, limit]]
                spare = float(left[counted].sum())
                entries = [(self._first[other] + number, 1.0) for other in counted]
                rows.most([*entries, (mark, spare)], float(hosts.most[item, limit]) + spare)

    def pods(self, values: NDArray[np.int64]) -> Amounts:
        """Pods of each item on each node; shape (nodes, items)."""
        pods: Amounts = np.zeros((len(self._nodes), len(self._left)), dtype=np.int64)
        places = values[len(self._filled) : self._placed].reshape(len(self._items), len(self._single))
        pods[np.ix_(self._single, self._items)] = places.T
        free = {
            shape: [node for node, other in enumerate(self._nodes) if other == shape] for shape in self._alike
        }
        for (shape, row), times in zip(self._filled, values.tolist(), strict=False):
            for _ in range(times):
                pods[free[shape].pop()] = row
        return pods


def _fillings_of_alike(
    cover: Cover, hosts: HostLimits, nodes: Sequence[int], effort: Effort
) -> dict[int, Amounts]:
    """The full fillings of each shape of which there are several nodes, where they are few."""
    listed: dict[int, Amounts] = {}
    most: Amounts = np.full(len(cover.shapes), _EACH_ALIKE, dtype=np.int64)
    for shape in sorted({shape for shape in nodes if nodes.count(shape) > 1}):
        fillings = full_fillings(cover, hosts, [shape], most, effort)
        if fillings is not None and not len(fillings.beside):
            listed[shape] = fillings.pods
    return listed
