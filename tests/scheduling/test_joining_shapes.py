"""Where a program of all classes and shapes is too large, shapes join as long as they make it cheaper."""

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from nodeless.scheduling.optimizer.bound_problem import BoundProblem, Kind
from nodeless.scheduling.optimizer.existing_node_repack import ExistingNodes
from nodeless.scheduling.optimizer.joining_shapes import bound_by_joining_shapes
from nodeless.scheduling.optimizer.resource_program import ResourceProgram
from nodeless.scheduling.optimizer.shapes import Shapes
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.rules import NO_RULES


def a_problem(chance: Random, *, limited: bool, existing: int, keep_off: bool) -> BoundProblem:
    """Pods of two dozen sizes, three families of nodes in a dozen sizes and two pools, at uneven prices."""
    sizes = [
        (0.04 * cpu * chance.uniform(0.8, 1.3), cpu * 980, int(cpu * 980 * chance.choice((2.1, 4.2, 8.4))))
        for cpu in chance.choices((1, 2, 4, 8, 12, 16, 24, 32, 48, 64), k=36)
    ]
    sizes.append((5.0, 96 * 980, 96 * 980 * 9))
    pool = np.array([chance.randrange(2) for _ in sizes])
    there = [(chance.randint(200, 9000), chance.randint(500, 40000)) for _ in range(existing)]
    room = np.array([[cpu, memory] for _, cpu, memory in sizes])
    left = [np.array([chance.randint(20_000, 300_000)] if limited else []), np.zeros(0)]
    charge = [row[:1] if limited and number == 0 else row[:0] for row, number in zip(room, pool, strict=True)]
    pool[-1], charge[-1] = 1, room[-1][:0]  # what always has room for more
    rooms = np.concatenate([room, np.array(there).reshape(existing, 2)])
    kinds = []
    for group in range(chance.randint(10, 24)):
        requests = np.array([chance.randint(100, 20_000), chance.randint(100, 60_000)])
        number = float(chance.randint(1, 30))
        hosts = ((group, chance.randint(1, 3)),) if keep_off and chance.random() < 0.3 else ()
        kinds.append(Kind(requests, number, (requests <= rooms).all(axis=1), hosts))
    shapes = Shapes(
        (),
        pool,
        room,
        np.array([price for price, _, _ in sizes]),
        charge,
        np.array([kind.allowed[: len(sizes)] for kind in kinds]).T,
    )
    return BoundProblem(
        items=[an_item(kind) for kind in kinds],
        owners=[(index, None) for index in range(len(kinds))],
        kinds=kinds,
        shapes=shapes,
        existing=ExistingNodes(
            rooms[len(room) :],
            np.array([kind.allowed[len(sizes) :] for kind in kinds]).T.reshape(existing, len(kinds)),
            np.ones(existing, dtype=np.int64),
        ),
        left=left,
    )


def an_item(kind: Kind) -> SimpleNamespace:
    """What is read of an item without rules."""
    plain = SimpleNamespace(requests=kind.requests, adds=(), shape=SimpleNamespace(host_ports=()))
    return SimpleNamespace(pods=plain, rules=NO_RULES)


def with_all_shapes(problem: BoundProblem) -> float:
    program = ResourceProgram(problem, problem.kinds)
    program.open(range(len(problem.shapes) + len(problem.existing.nodes)))
    return program.solve(Effort(1.0))


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("existing", [0, 12])
@pytest.mark.parametrize("keep_off", [False, True])
def test_with_time_it_is_the_optimum_of_all_shapes_wherever_it_begins(limited, existing, keep_off):
    chance = Random(f"{limited} {existing} {keep_off}")
    for _ in range(12):
        problem = a_problem(chance, limited=limited, existing=existing, keep_off=keep_off)
        optimum = with_all_shapes(problem)
        bought = np.array([float(chance.random() < 0.05) for _ in range(len(problem.shapes))])
        assert bound_by_joining_shapes(problem, bought, Effort(10.0)) == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("seconds", [0.0, 0.005, 0.01, 0.02, 0.05])
def test_with_less_time_it_is_never_above_it(seconds):
    chance = Random(seconds)
    proved = []
    for _ in range(12):
        problem = a_problem(chance, limited=chance.random() < 0.5, existing=6, keep_off=True)
        optimum = with_all_shapes(problem)
        effort = Effort(seconds)
        bound = bound_by_joining_shapes(problem, np.zeros(len(problem.shapes)), effort)
        assert 0 <= bound <= optimum * (1 + 1e-5)
        assert effort.left > -0.05
        proved.append(bound / optimum)
    assert seconds > 0 or min(proved) < 0.999  # else it had time enough
