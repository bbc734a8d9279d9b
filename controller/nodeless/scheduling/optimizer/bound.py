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

Both programs are solved by HiGHS with a limit on simplex iterations; when it is reached, there is
no bound (None).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import quiet_solver
from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.optimizer.existing_node_repack import ExistingNodeRepack
from nodeless.scheduling.optimizer.items import HostLimits, Item
from nodeless.scheduling.optimizer.shapes import Shapes, shapes_for
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


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Pods (or resources) that are divided among shapes."""

    requests: Amounts
    number: float
    allowed: Mask
    hosts: tuple[tuple[int, int], ...] = ()
    """Tallies of the host that count them, and the most that they allow."""


#: Alternatives, host ports and rules of a class with which it still counts in the bound.
_ALTERNATIVES, _LIMITS = 32, 32


def lower_bound(
    classes: Iterable[tuple[PodClass, int]],
    standing: ExistingNodeRepack,
    budgets: RemainingLimits,
    tables: Sequence[PoolTable],
    meter: Meter,
) -> float | None:
    """Dollars an hour that no plan for these numbers of pods can go below.

    None when it is not found, or not within what `meter` allows.
    """
    items, owners = _items(classes, tables, meter)
    if not items:
        return None if meter.over else 0.0
    shapes = None if meter.over else shapes_for(items, meter)
    if shapes is None:
        return None
    room, there = standing.at_most(items, meter)
    meter.spend(_PAIR * len(items) * (len(shapes) + len(room)))
    if meter.over:
        return None
    allowed = np.concatenate([shapes.allowed, there])
    kinds = _kinds(items, owners, allowed)
    if _pairs(kinds) > _PAIRS:
        kinds = _fewer(kinds)
    if _pairs(kinds) > _PAIRS:
        kinds = _poured(kinds)
    if _pairs(kinds) > _PAIRS:
        return None
    requests: Amounts = np.array([item.pods.requests for item in items], dtype=np.int64)
    divisors: Amounts = np.maximum(np.gcd.reduce(requests, axis=0), 1)
    whole = np.concatenate([np.maximum(shapes.room, 0), np.maximum(room, 0)])
    left = [budgets.left(table, ()) for table in shapes.tables]
    bound = _Program(shapes, whole // divisors * divisors, kinds, left).solve()
    return None if bound is None else max(0.0, bound * (1 - _ROUNDING))


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
        for wish in pods.demand.required:
            items.append(Item(pods, wish, pods.hard_rules, open_to, pods.pods[:number]))
            owners.append(owner)
    return items, owners


def _many_limits(pods: PodClass) -> bool:
    return len(pods.shape.host_ports) + sum(1 for _ in pods.hard_rules.tallies()) > _LIMITS


def _open_to(pods: PodClass, tables: Sequence[PoolTable]) -> tuple[PoolTable, ...]:
    """The pools that may take a class; PreferNoSchedule counts where a pool without it has no limits."""
    tolerant, welcoming = (
        tuple(table for table in tables if table.refuses(pods.shape.tolerations, soft=soft) is None)
        for soft in (True, False)
    )
    surely = any(
        not table.limit_names and any(table.fresh(pods, wish) for wish in pods.demand.required)
        for table in welcoming
    )
    return welcoming if surely else tolerant


def _kinds(items: Sequence[Item], owners: Sequence[int], allowed: Mask) -> list[_Kind]:
    hosts = HostLimits(items)
    kinds: dict[int, _Kind] = {}
    for index, (item, owner) in enumerate(zip(items, owners, strict=True)):
        if owner in kinds:
            known = kinds[owner]
            kinds[owner] = _Kind(known.requests, known.number, known.allowed | allowed[:, index], known.hosts)
            continue
        tallies = tuple(
            (int(tally), int(hosts.most[index, tally]))
            for tally in hosts.touched[index]
            if hosts.adds[index, tally] and hosts.most[index, tally] < ENDLESS
        )
        kinds[owner] = _Kind(item.pods.requests, float(item.count), allowed[:, index], tallies)
    return list(kinds.values())


def _pairs(kinds: Iterable[_Kind]) -> int:
    return sum(int(kind.allowed.sum()) for kind in kinds)


def _fewer(kinds: Sequence[_Kind]) -> list[_Kind]:
    """Kinds with fewer pairs that cost no more: those apart that need many nodes, the others as liquids."""
    alone: dict[tuple[tuple[int, int], ...], list[_Kind]] = {}
    for kind in kinds:
        if kind.hosts:
            alone.setdefault(kind.hosts, []).append(kind)
    by_nodes = sorted(alone.items(), key=lambda entry: (-_nodes(*entry), entry[0]))
    kept: list[_Kind] = []
    dropped = [kind for kind in kinds if not kind.hosts]
    for _, group in by_nodes:
        merged = _merged(group)
        if _pairs(kept) + _pairs(merged) <= _APART:
            kept += merged
        else:
            dropped += group
    return [*kept, *_poured(dropped)]


def _nodes(hosts: tuple[tuple[int, int], ...], kinds: Iterable[_Kind]) -> float:
    """How many nodes the limits on one host make of some kinds, at least."""
    return sum(kind.number for kind in kinds) / max(1, min(most for _, most in hosts))


def _merged(kinds: Iterable[_Kind]) -> list[_Kind]:
    """Kinds with the same limits; equal requests that may run on the same shapes are one."""
    alike: dict[tuple[bytes, bytes], _Kind] = {}
    for kind in kinds:
        same = kind.requests.tobytes(), kind.allowed.tobytes()
        known = alike.get(same)
        number = kind.number + (known.number if known is not None else 0.0)
        alike[same] = _Kind(kind.requests, number, kind.allowed, kind.hosts)
    return list(alike.values())


def _poured(kinds: Sequence[_Kind]) -> list[_Kind]:
    """Kinds that may run on the same shapes as one liquid for each resource."""
    groups: dict[bytes, list[_Kind]] = {}
    for kind in kinds:
        groups.setdefault(kind.allowed.tobytes(), []).append(kind)
    result = []
    for group in groups.values():
        total = sum(kind.requests * kind.number for kind in group)
        for resource, amount in enumerate(np.asarray(total, dtype=np.float64)):
            if amount > 0:
                unit = np.zeros(len(group[0].requests), dtype=np.int64)
                unit[resource] = 1
                result.append(_Kind(unit, float(amount), group[0].allowed))
    return result


class _Program:
    """The linear program, in scaled units so that its numbers are near one."""

    def __init__(
        self, shapes: Shapes, room: Amounts, kinds: Sequence[_Kind], left: Sequence[Amounts]
    ) -> None:
        self._shapes = shapes
        self._kinds = kinds
        self._left = left
        requests = np.array([kind.requests for kind in kinds])
        self._asked = np.flatnonzero(requests.any(axis=0))
        self._unit = np.maximum(room[:, self._asked].max(axis=0, initial=1), 1).astype(np.float64)
        self._room = room[:, self._asked] / self._unit
        self._count = len(room)

    def solve(self) -> float | None:
        """The optimum; None when it is not reached or the pods cannot be placed."""
        solver = quiet_solver()
        solver.setOptionValue("simplex_iteration_limit", _ITERATIONS)
        rows = self._add_rows(solver)
        self._add_nodes(solver, rows)
        for index, kind in enumerate(self._kinds):
            self._add_kind(solver, rows, index, kind)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return float(solver.getInfo().objective_function_value)

    def _add_rows(self, solver: highspy.Highs) -> dict[object, int]:
        """Rows by what they are about: (shape, resource), kind, (tally, shape), (pool, limit)."""
        infinite = highspy.kHighsInf
        rows: dict[object, int] = {}

        def row(name: object, low: float, high: float) -> None:
            if name not in rows:
                rows[name] = len(rows)
                solver.addRow(low, high, 0, _NO_INDEX, _NO_VALUE)

        for shape in range(self._count):
            for resource in range(len(self._asked)):
                row(("room", shape, resource), -infinite, 0.0)
        for index in range(len(self._kinds)):
            row(("kind", index), 1.0, infinite)
        for kind in self._kinds:
            for tally, _ in kind.hosts:
                for place in np.flatnonzero(kind.allowed):
                    row(("host", tally, int(place)), -infinite, 0.0)
        for number, amounts in enumerate(self._left):
            for position, amount in enumerate(amounts):
                row(("limit", number, position), -infinite, float(max(amount, 0)) / _scale(amount))
        return rows

    def _add_nodes(self, solver: highspy.Highs, rows: dict[object, int]) -> None:
        most: dict[int, int] = {}
        for kind in self._kinds:
            for tally, limit in kind.hosts:
                most[tally] = max(limit, most.get(tally, 0))
        for shape in range(self._count):
            entries = {
                rows["room", shape, resource]: -float(self._room[shape, resource])
                for resource in range(len(self._asked))
                if self._room[shape, resource] > 0
            }
            for tally, limit in most.items():
                if ("host", tally, shape) in rows:
                    entries[rows["host", tally, shape]] = -float(limit)
            new = shape < len(self._shapes)
            if new:
                number = int(self._shapes.pool[shape])
                for position, amount in enumerate(self._shapes.charge[shape]):
                    if amount > 0:
                        scale = _scale(self._left[number][position])
                        entries[rows["limit", number, position]] = float(amount) / scale
            price = float(self._shapes.price[shape]) if new else 0.0
            _add(solver, price, highspy.kHighsInf if new else 1.0, entries)

    def _add_kind(self, solver: highspy.Highs, rows: dict[object, int], index: int, kind: _Kind) -> None:
        """A variable for each shape: the share of the kind that is there."""
        amounts = kind.requests[self._asked] * kind.number / self._unit
        for shape in np.flatnonzero(kind.allowed):
            entries = {
                rows["room", int(shape), resource]: float(amount)
                for resource, amount in enumerate(amounts)
                if amount > 0
            }
            entries[rows["kind", index]] = 1.0
            for tally, _ in kind.hosts:
                entries[rows["host", tally, int(shape)]] = kind.number
            _add(solver, 0.0, highspy.kHighsInf, entries)


def _scale(amount: float | np.int64) -> float:
    return float(max(amount, 1))


def _add(solver: highspy.Highs, price: float, most: float, entries: dict[int, float]) -> None:
    order = sorted(entries)
    index: NDArray[np.int32] = np.array(order, dtype=np.int32)
    solver.addCol(price, 0.0, most, len(order), index, np.array([entries[row] for row in order]))


_NO_INDEX = np.array([], dtype=np.int32)
_NO_VALUE = np.array([], dtype=np.float64)
