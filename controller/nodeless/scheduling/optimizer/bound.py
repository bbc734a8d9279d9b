"""What the pods cost at least: a lower bound on the price of every plan.

The largest of some bounds, each of which leaves out something that plans must keep to:

- what resources cost in fractions of nodes (of many classes: `joining_shapes`), and on whole nodes with
  fractions of pods (`resource_program`);
- of few pods or few classes, whole nodes with every way to fill small ones (`whole_nodes`, which proves many
  plans to be the cheapest);
- fractions of nodes that are filled with whole pods (`configuration_bound`): it knows what is lost because
  pods are not divided, how many may be on one host, and what rules say of zones.

Weights of pools are followed where no limit, rule or preference of pods can lead to a lighter one. Other
rules across nodes and preferences are left out by all of them.
"""

from collections.abc import Callable, Iterable, Sequence

from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.optimizer.balances import Balance
from nodeless.scheduling.optimizer.bound_problem import Placed, by_zone, problem_of
from nodeless.scheduling.optimizer.configuration_bound import configuration_bound
from nodeless.scheduling.optimizer.existing_node_repack import ExistingNodeRepack
from nodeless.scheduling.optimizer.joining_shapes import bound_by_joining_shapes
from nodeless.scheduling.optimizer.known import Known
from nodeless.scheduling.optimizer.resource_program import program_of
from nodeless.scheduling.optimizer.whole_nodes import SAME, whole_nodes
from nodeless.scheduling.optimizer.work_budget import Effort

#: What rounding in the simplex may add to the bound, as a share.
_ROUNDING = 1e-7
#: Pods, or classes, up to which `whole_nodes` is asked.
_WHOLE_PODS, _WHOLE_CLASSES = 150, 25
#: Nodes in fractions beyond which whole ones raise the bound by less than it takes to know.
_MANY_NODES = 200.0
#: The part of the effort that `configuration_bound` may take.
_CONFIGURATIONS = 0.6


def lower_bound(
    placed: Iterable[Placed],
    standing: ExistingNodeRepack,
    budgets: RemainingLimits,
    tables: Sequence[PoolTable],
    meter: Meter,
    effort: Effort,
    price: float,
    known: Known,
    balances: Callable[[], Sequence[Balance]] = tuple,
) -> float | None:
    """Dollars an hour that no plan for these numbers of pods can go below.

    Args:
        placed: The pods.
        standing: The existing nodes.
        budgets: The limits of pools.
        tables: The usable pools, heaviest first.
        meter: Counts what goes before the programs.
        effort: What whole nodes may take; without any they are bought in fractions.
        price: Of the plan that the bound is for, in dollars an hour.
        known: What was found while the plan was made.
        balances: Finds what rules over zones say of the pods.

    Returns:
        None when it is not found, or not within what `meter` allows.
    """
    placed = [each for each in placed if each.number]
    if not placed:
        return 0.0
    problem = problem_of(placed, standing, budgets, tables, meter)
    if problem is None:
        return None if meter.over else 0.0
    program = program_of(problem)
    bound = program.solve(effort) if program is not None else None
    if program is None or bound is None:
        return None
    proved = price * (1 - SAME)
    bounds = [bound]
    # Where no proof is asked for, as in most plans of consolidation, no second program is made.
    if bound < proved and program.poured and effort.left > 0:
        bounds.append(bound_by_joining_shapes(problem, program.bought, effort))
    few = sum(each.number for each in placed) <= _WHOLE_PODS or len(placed) <= _WHOLE_CLASSES
    few = few and program.bought.sum() < _MANY_NODES and (problem.singly or not problem.hosts().count)
    before = known.of(problem.cover(), problem.hosts()) if bound < proved and few else None
    if before is not None:
        bounds.append(min(price, before))
    if max(bounds) < proved and known.configurations is not None:
        divided = by_zone(problem, placed, standing, budgets, meter, balances)
        # Of few pods, whole nodes say more wherever zones do not matter.
        if divided is not None or not few:
            closest = divided or problem
            own = Effort(_CONFIGURATIONS * effort.left)
            effort.left -= own.left
            configurations = known.configurations(closest, own)
            if configurations:
                bounds.append(configuration_bound(closest, configurations, own, proved))
            effort.left += own.left
    if max(bounds) < proved and program.bought.sum() < _MANY_NODES:
        if few and before is None:
            found = whole_nodes(problem.cover(), problem.hosts(), effort, below=price)
            bounds.append(min(price, found.bound) if found is not None else 0.0)
        # The program with as few variables for more pods has nothing to add to the one for few.
        if not few or max(bounds) == bound:
            bounds.append(program.solve_whole(effort, price) or 0.0)
    # A bound above what the plan costs would be wrong: programs of whole numbers are not trusted then.
    bound = max(each for each in bounds if each <= max(price * (1 + SAME), bound))
    return max(0.0, bound * (1 - _ROUNDING))
