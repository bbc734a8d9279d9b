"""What the pods cost at least: a lower bound on the price of every plan.

Problem
-------
Let nodes be bought in fractions z_s and the pods of a class be divided among shapes, y_cs:

    min  sum_s w_s z_s
    s.t. sum_c q_c[r] y_cs <= b_s[r] z_s       for each shape s, resource r
         sum_s y_cs = n_c                      for each class c; y_cs = 0 where c may not run on s
         sum_{c counted by h} y_cs <= k_h z_s  for each limit h of pods on one host
         sum_{s of pool p} g_s[r] z_s <= G_p[r]   for each limit of a pool
         z_e <= 1, w_e = 0                     for each existing node e

Every plan is a solution of this, so its optimum is a bound; topology across nodes, weights of pools
and preferences are left out. b_s[r] is first rounded down to a multiple of the greatest common divisor
of all requests of r, which every sum of them is.

Where there are too many pairs of class and shape, classes that may run on the same shapes are poured
together: their requests of each resource become a class of their own. What is given up is that a
pod's resources must come from one node, and limits on one host, so the bound can only get lower.
Classes that need many nodes because of such limits stay apart as far as the number of pairs allows.
Limits of pools leave many more shapes, for of two types the smaller one counts less against them: there such
liquids are poured together as well as may run on different shapes of the same pools.

Both programs are solved by HiGHS with a limit on simplex iterations; when it is reached, there is
no bound (None).

Whole nodes
-----------
In fractions one pod on the cheapest node that holds it has a bound of a fraction of that node. So z_s is a
whole number, as far as the time box allows: of few pods or few classes with every way to fill small nodes
(`whole_nodes`, which proves many plans to be the cheapest), of more in the program above.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import (
    PLAIN_SEARCH,
    bound_of,
    iterations_of,
    look_of,
    quiet_solver,
    run_within,
    whole_numbers_of,
)
from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.covering import caps_of
from nodeless.scheduling.optimizer.existing_node_repack import ExistingNodeRepack
from nodeless.scheduling.optimizer.items import HostLimits, Item
from nodeless.scheduling.optimizer.shapes import Shapes, shapes_for
from nodeless.scheduling.optimizer.whole_nodes import SAME, KnownBounds, whole_nodes
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass
from nodeless.scheduling.spread.sharing import ENDLESS

#: Pairs of class and shape beyond which classes are poured together.
_PAIRS = 6000
#: Pairs of those that stay apart because limits on one host make them need many nodes.
_APART = 4000
_ITERATIONS = 20000
#: Seconds for each pair of a class and a shape that is looked at.
_PAIR = 20e-9
#: What rounding in the simplex may add to the bound, as a share.
_ROUNDING = 1e-7
#: Pods, or classes, up to which `whole_nodes` is asked.
_WHOLE_PODS, _WHOLE_CLASSES = 150, 25
#: Nodes in fractions beyond which whole ones raise the bound by less than it takes to know.
_MANY_NODES = 200.0
#: Seconds for each variable of the program at a node of the search tree, and nodes of it, as a rule.
_VARIABLE, _LEAST_TREE, _MOST_TREE = 11e-6, 10, 500
#: What prices add up to in a program of whole numbers, about: HiGHS's tolerances are fixed amounts.
_SCALE = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class _PodClass:
    """Pods (or resources) that are divided among shapes."""

    requests: Amounts
    number: float
    allowed: Mask
    hosts: tuple[tuple[int, int], ...] = ()
    """Topology groups of the host that count them, and the most that they allow."""


#: Alternatives, host ports and rules of a class with which it still counts in the bound.
_ALTERNATIVES, _LIMITS = 32, 32


def lower_bound(
    classes: Iterable[tuple[PodClass, int]],
    standing: ExistingNodeRepack,
    budgets: RemainingLimits,
    tables: Sequence[PoolTable],
    meter: Meter,
    effort: Effort,
    price: float,
    known: KnownBounds,
) -> float | None:
    """Dollars an hour that no plan for these numbers of pods can go below.

    Args:
        classes: The pods, and how many of each class are placed.
        standing: The existing nodes.
        budgets: The limits of pools.
        tables: The usable pools, heaviest first.
        meter: Counts what goes before the programs.
        effort: What whole nodes may take; without any they are bought in fractions.
        price: Of the plan that the bound is for, in dollars an hour.
        known: Bounds that were found while the plan was made.

    Returns:
        None when it is not found, or not within what `meter` allows.
    """
    items, owners = _items(classes, tables, meter)
    if not items:
        return None if meter.over else 0.0
    shapes = None if meter.over else shapes_for(items, meter)
    if shapes is None:
        return None
    room, there, alike = standing.at_most(items, meter)
    meter.spend(_PAIR * len(items) * (len(shapes) + len(room)))
    if meter.over:
        return None
    allowed = np.concatenate([shapes.allowed, there])
    pod_classes = every = _pod_classes(items, owners, allowed)
    if _pairs(pod_classes) > _PAIRS:
        pod_classes = _fewer(pod_classes)
    if _pairs(pod_classes) > _PAIRS:
        pod_classes = _poured(pod_classes)
    if _pairs(pod_classes) > _PAIRS:
        pod_classes = _widened(pod_classes, lambda pods: _pools_of(pods, shapes))
    if _pairs(pod_classes) > _PAIRS:
        pod_classes = _widened(pod_classes, lambda _: b"")
    if _pairs(pod_classes) > _PAIRS:
        return None
    requests: Amounts = np.array([item.pods.requests for item in items], dtype=np.int64)
    divisors: Amounts = np.maximum(np.gcd.reduce(requests, axis=0), 1)
    whole = np.concatenate([np.maximum(shapes.room, 0), np.maximum(room, 0)])
    left = [budgets.left(table, ()) for table in shapes.tables]
    whole = whole // divisors * divisors
    program = _Program(shapes, whole, pod_classes, left, alike)
    bound = program.solve()
    if bound is None:
        return None
    bounds = [bound]
    if bound < price * (1 - SAME) and program.nodes < _MANY_NODES:
        if sum(pods.number for pods in every) <= _WHOLE_PODS or len(every) <= _WHOLE_CLASSES:
            cover, hosts = (
                _cover(shapes, np.concatenate([shapes.room, room]), every, left),
                HostLimits(_first_items(items, owners), any_order=True),
            )
            if alike == 1 or not hosts.count:
                bounds.append(_on_whole_nodes(cover, hosts, effort, price, known))
        # The program with as few variables for more pods has nothing to add to the one for few.
        if max(bounds) == bound:
            bounds.append(program.solve_whole(effort, price) or 0.0)
    # A bound above what the plan costs would be wrong: programs of whole numbers are not trusted then.
    bound = max(each for each in bounds if each <= max(price * (1 + SAME), bound))
    return max(0.0, bound * (1 - _ROUNDING))


def _on_whole_nodes(
    cover: Cover, hosts: HostLimits, effort: Effort, price: float, known: KnownBounds
) -> float:
    bound = known.of(cover, hosts)
    if bound is None:
        found = whole_nodes(cover, hosts, effort, below=price)
        bound = found.bound if found is not None else 0.0
    return min(bound, price)


def _first_items(items: Sequence[Item], owners: Sequence[int]) -> list[Item]:
    """One item of each class."""
    return list({owner: item for item, owner in reversed(list(zip(items, owners, strict=True)))}.values())[
        ::-1
    ]


def _cover(shapes: Shapes, room: Amounts, pod_classes: Sequence[_PodClass], left: Sequence[Amounts]) -> Cover:
    """The classes as items to cover, at prices without corrections; existing nodes are the last shapes."""
    there = len(room) - len(shapes)
    uses, caps = caps_of(shapes, left, there)
    nothing = np.zeros(0)
    whole = Shapes(
        shapes.tables,
        np.concatenate([shapes.pool, np.full(there, -1, dtype=np.intp)]),
        room,
        np.concatenate([shapes.price, np.zeros(there)]),
        [*shapes.charge, *([np.zeros(0, dtype=np.int64)] * there)],
        np.array([pods.allowed for pods in pod_classes]).T,
    )
    return Cover(
        whole,
        np.array([pods.requests for pods in pod_classes], dtype=np.int64),
        np.array([pods.number for pods in pod_classes], dtype=np.int64),
        whole.price,
        uses,
        caps,
        np.zeros(len(pod_classes)),
        np.zeros(len(pod_classes)),
        whole.pool < 0,
        np.zeros(0, dtype=np.intp),
        {},
        nothing.reshape(0, room.shape[1]),
    )


def _items(
    classes: Iterable[tuple[PodClass, int]], tables: Sequence[PoolTable], meter: Meter
) -> tuple[list[Item], list[int]]:
    """An item for each class and alternative of its required terms, and the class that each belongs to."""
    items, owners = [], []
    for owner, (pods, number) in enumerate(classes):
        if not number or len(pods.demand.required) > _ALTERNATIVES or _many_limits(pods):
            # A bound for fewer pods is a bound for all.
            continue
        if meter.over:
            break
        open_to = _open_to(pods, tables)
        for node_requirements in pods.demand.required:
            items.append(Item(pods, node_requirements, pods.hard_rules, open_to, pods.pods[:number]))
            owners.append(owner)
    return items, owners


def _many_limits(pods: PodClass) -> bool:
    return len(pods.shape.host_ports) + sum(1 for _ in pods.hard_rules.topology_groups()) > _LIMITS


def _open_to(pods: PodClass, tables: Sequence[PoolTable]) -> tuple[PoolTable, ...]:
    """The pools that may take a class; PreferNoSchedule counts where a pool without it has no limits."""
    tolerant, welcoming = (
        tuple(table for table in tables if table.refuses(pods.shape.tolerations, soft=soft) is None)
        for soft in (True, False)
    )
    surely = any(
        not table.limit_names
        and any(table.fresh(pods, node_requirements) for node_requirements in pods.demand.required)
        for table in welcoming
    )
    return welcoming if surely else tolerant


def _pod_classes(items: Sequence[Item], owners: Sequence[int], allowed: Mask) -> list[_PodClass]:
    hosts = HostLimits(items, any_order=True)
    pod_classes: dict[int, _PodClass] = {}
    for index, (item, owner) in enumerate(zip(items, owners, strict=True)):
        if owner in pod_classes:
            known = pod_classes[owner]
            pod_classes[owner] = _PodClass(
                known.requests, known.number, known.allowed | allowed[:, index], known.hosts
            )
            continue
        topology_groups = tuple(
            (int(topology_group), int(hosts.most[index, topology_group]))
            for topology_group in hosts.touched[index]
            if hosts.adds[index, topology_group] and hosts.most[index, topology_group] < ENDLESS
        )
        pod_classes[owner] = _PodClass(
            item.pods.requests, float(item.count), allowed[:, index], topology_groups
        )
    return list(pod_classes.values())


def _pairs(pod_classes: Iterable[_PodClass]) -> int:
    return sum(int(pod_class.allowed.sum()) for pod_class in pod_classes)


def _fewer(pod_classes: Sequence[_PodClass]) -> list[_PodClass]:
    """Kinds with fewer pairs that cost no more: those apart that need many nodes, the others as liquids."""
    alone: dict[tuple[tuple[int, int], ...], list[_PodClass]] = {}
    for pod_class in pod_classes:
        if pod_class.hosts:
            alone.setdefault(pod_class.hosts, []).append(pod_class)
    by_nodes = sorted(alone.items(), key=lambda entry: (-_nodes(*entry), entry[0]))
    kept: list[_PodClass] = []
    dropped = [pod_class for pod_class in pod_classes if not pod_class.hosts]
    for _, group in by_nodes:
        merged = _merged(group)
        if _pairs(kept) + _pairs(merged) <= _APART:
            kept += merged
        else:
            dropped += group
    return [*kept, *_poured(dropped)]


def _nodes(hosts: tuple[tuple[int, int], ...], pod_classes: Iterable[_PodClass]) -> float:
    """How many nodes the limits on one host make of some kinds, at least."""
    return sum(pod_class.number for pod_class in pod_classes) / max(1, min(most for _, most in hosts))


def _merged(pod_classes: Iterable[_PodClass]) -> list[_PodClass]:
    """Kinds with the same limits; equal requests that may run on the same shapes are one."""
    alike: dict[tuple[bytes, bytes], _PodClass] = {}
    for pod_class in pod_classes:
        same = pod_class.requests.tobytes(), pod_class.allowed.tobytes()
        known = alike.get(same)
        number = pod_class.number + (known.number if known is not None else 0.0)
        alike[same] = _PodClass(pod_class.requests, number, pod_class.allowed, pod_class.hosts)
    return list(alike.values())


def _poured(pod_classes: Sequence[_PodClass]) -> list[_PodClass]:
    """Kinds that may run on the same shapes as one liquid for each resource."""
    groups: dict[bytes, list[_PodClass]] = {}
    for pod_class in pod_classes:
        groups.setdefault(pod_class.allowed.tobytes(), []).append(pod_class)
    result = []
    for group in groups.values():
        total = sum(pod_class.requests * pod_class.number for pod_class in group)
        for resource, amount in enumerate(np.asarray(total, dtype=np.float64)):
            if amount > 0:
                unit = np.zeros(len(group[0].requests), dtype=np.int64)
                unit[resource] = 1
                result.append(_PodClass(unit, float(amount), group[0].allowed))
    return result


def _pools_of(pod_class: _PodClass, shapes: Shapes) -> bytes:
    """The pools whose shapes take some pods, and whether existing nodes do."""
    new = pod_class.allowed[: len(shapes)]
    return np.unique(shapes.pool[new]).tobytes() + bytes([bool(pod_class.allowed[len(shapes) :].any())])


def _widened(pod_classes: Sequence[_PodClass], alike: Callable[[_PodClass], bytes]) -> list[_PodClass]:
    """Liquids of one resource that are alike as one, which may run wherever any of them may."""
    known: dict[tuple[bytes, bytes], _PodClass] = {}
    for pods in pod_classes:
        same = pods.requests.tobytes(), alike(pods)
        before = known.get(same, _PodClass(pods.requests, 0.0, np.zeros_like(pods.allowed)))
        known[same] = _PodClass(pods.requests, before.number + pods.number, before.allowed | pods.allowed)
    return list(known.values())


class _Program:
    """The linear program, in scaled units so that its numbers are near one."""

    def __init__(
        self,
        shapes: Shapes,
        room: Amounts,
        pod_classes: Sequence[_PodClass],
        left: Sequence[Amounts],
        alike: int,
    ) -> None:
        """`alike`: how many existing nodes each of the last rows of `room` stands for."""
        self._alike = alike
        self.nodes = 0.0
        """How many nodes the optimum buys, in fractions."""
        self._shapes = shapes
        self._pod_classes = pod_classes
        self._left = left
        requests = np.array([pod_class.requests for pod_class in pod_classes])
        self._asked = np.flatnonzero(requests.any(axis=0))
        self._unit = np.maximum(room[:, self._asked].max(axis=0, initial=1), 1).astype(np.float64)
        self._room = room[:, self._asked] / self._unit
        self._count = len(room)

    def solve(self) -> float | None:
        """The optimum; None when it is not reached or the pods cannot be placed."""
        solver = self._solver = quiet_solver()
        solver.setOptionValue("simplex_iteration_limit", _ITERATIONS)
        rows = self._add_rows(solver)
        self._add_nodes(solver, rows)
        for index, pod_class in enumerate(self._pod_classes):
            self._add_pod_class(solver, rows, index, pod_class)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        self.nodes = float(sum(solver.getSolution().col_value[: len(self._shapes)]))
        return float(solver.getInfo().objective_function_value)

    def solve_whole(self, effort: Effort, price: float) -> float | None:
        """What the optimum is at least where new nodes are whole; after `solve`. None: not known.

        Args:
            effort: What it may take; what it takes is taken from it.
            price: What the optimum is about, in dollars an hour.
        """
        columns = self._solver.getNumCol()
        tree = int(min(_MOST_TREE, effort.left / (_VARIABLE * columns)))
        if tree < _LEAST_TREE:
            return None
        scale = _SCALE / price
        for shape, dollars in enumerate(self._shapes.price.tolist()):
            self._solver.changeColCost(shape, dollars * scale)
        solver = whole_numbers_of(
            self._solver, range(len(self._shapes)), tree, _SCALE * SAME / 10, **PLAIN_SEARCH
        )
        # The tree alone says little: most of the work may be at its first node.
        run_within(solver, max(1, int(effort.left / look_of(columns + solver.getNumRow()))))
        effort.spend_solving(iterations_of(solver), solver.getNumRow(), columns)
        bound = bound_of(solver)
        return None if bound is None else bound / scale

    def _add_rows(self, solver: highspy.Highs) -> dict[object, int]:
        """Rows by what they are about: (shape, resource), kind, (topology group, shape), (pool, limit)."""
        infinite = highspy.kHighsInf
        rows: dict[object, int] = {}

        def row(name: object, low: float, high: float) -> None:
            if name not in rows:
                rows[name] = len(rows)
                solver.addRow(low, high, 0, _NO_INDEX, _NO_VALUE)

        for shape in range(self._count):
            for resource in range(len(self._asked)):
                row(("room", shape, resource), -infinite, 0.0)
        for index in range(len(self._pod_classes)):
            row(("kind", index), 1.0, infinite)
        for pod_class in self._pod_classes:
            for topology_group, _ in pod_class.hosts:
                for place in np.flatnonzero(pod_class.allowed):
                    row(("host", topology_group, int(place)), -infinite, 0.0)
        for number, amounts in enumerate(self._left):
            for position, amount in enumerate(amounts):
                row(("limit", number, position), -infinite, float(max(amount, 0)) / _scale(amount))
        return rows

    def _add_nodes(self, solver: highspy.Highs, rows: dict[object, int]) -> None:
        most: dict[int, int] = {}
        for pod_class in self._pod_classes:
            for topology_group, limit in pod_class.hosts:
                most[topology_group] = max(limit, most.get(topology_group, 0))
        for shape in range(self._count):
            entries = {
                rows["room", shape, resource]: -float(self._room[shape, resource])
                for resource in range(len(self._asked))
                if self._room[shape, resource] > 0
            }
            for topology_group, limit in most.items():
                if ("host", topology_group, shape) in rows:
                    nodes = 1 if shape < len(self._shapes) else self._alike
                    entries[rows["host", topology_group, shape]] = -float(limit * nodes)
            new = shape < len(self._shapes)
            if new:
                number = int(self._shapes.pool[shape])
                for position, amount in enumerate(self._shapes.charge[shape]):
                    if amount > 0:
                        scale = _scale(self._left[number][position])
                        entries[rows["limit", number, position]] = float(amount) / scale
            price = float(self._shapes.price[shape]) if new else 0.0
            _add(solver, price, highspy.kHighsInf if new else 1.0, entries)

    def _add_pod_class(
        self, solver: highspy.Highs, rows: dict[object, int], index: int, pod_class: _PodClass
    ) -> None:
        """A variable for each shape: the share of the kind that is there."""
        amounts = pod_class.requests[self._asked] * pod_class.number / self._unit
        for shape in np.flatnonzero(pod_class.allowed):
            entries = {
                rows["room", int(shape), resource]: float(amount)
                for resource, amount in enumerate(amounts)
                if amount > 0
            }
            entries[rows["kind", index]] = 1.0
            for topology_group, _ in pod_class.hosts:
                entries[rows["host", topology_group, int(shape)]] = pod_class.number
            _add(solver, 0.0, highspy.kHighsInf, entries)


def _scale(amount: float | np.int64) -> float:
    return float(max(amount, 1))


def _add(solver: highspy.Highs, price: float, most: float, entries: dict[int, float]) -> None:
    order = sorted(entries)
    index: NDArray[np.int32] = np.array(order, dtype=np.int32)
    solver.addCol(price, 0.0, most, len(order), index, np.array([entries[row] for row in order]))


_NO_INDEX = np.array([], dtype=np.int32)
_NO_VALUE = np.array([], dtype=np.float64)
