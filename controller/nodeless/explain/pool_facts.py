"""What there is to say about one pool: whether it makes nodes, what it has, and what it refused."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import fsum

from nodeless.disruption.budgets import UNLIMITED, allowance, state_of
from nodeless.disruption.windows import reasons_of, windows
from nodeless.explain.bill import sum_lines
from nodeless.explain.decisions import Situation
from nodeless.explain.fill import NodeFill, existing_nodes
from nodeless.explain.words import amounts, count, listed, price
from nodeless.explain.workload_counts import workloads_of
from nodeless.model.conditions import READY
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import EC2_NODE_CLASS_NAME, NODE_POOL, PAUSE, PROVISIONER_NAME
from nodeless.model.plan import Plan
from nodeless.model.pools import Pool
from nodeless.model.resources import CPU, MEMORY
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload
from nodeless.state.readiness import PoolUnusable, usable
from nodeless.state.usage import pool_members, pool_usage

#: The limit on the number of nodes.
_NODES = "nodes"
#: Labels that every pool bears a value of its own of.
_NAMES = frozenset({PROVISIONER_NAME, NODE_POOL, EC2_NODE_CLASS_NAME})
#: Seconds for which it is looked when a budget allows disruption again.
_AHEAD = 31 * 86400.0


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit of a pool, and what its nodes use of it; in the units of `model.resources`."""

    resource: str
    limit: int
    used: int

    def __str__(self) -> str:
        return f"{_amount(self.resource, self.used)} of at most {_amount(self.resource, self.limit)}"


@dataclass(frozen=True, slots=True)
class RefusedPods:
    """Pods without a place that the pool cannot take, and why."""

    code: str
    message: str
    pods: tuple[str, ...]
    workloads: tuple[tuple[Workload, int], ...]


@dataclass(frozen=True, slots=True)
class BudgetState:
    """What a pool's budgets allow now for some reasons of disruption."""

    reasons: tuple[str, ...]
    allowed: int | None
    """Nodes at the same time; None: any number."""
    disrupted: int
    nodes: int
    """Nodes that count; a percentage is of them."""
    opens: float | None = None
    """When more are allowed than none, in seconds since the epoch; None: they are now, or not soon."""
    unready: int = 0
    """Those of `disrupted` that are only not Ready."""

    def __str__(self) -> str:
        subject = f"budgets for {', '.join(self.reasons)}"
        if self.allowed is None:
            return f"{subject}: any number of nodes at once"
        if not self.nodes:
            return f"{subject}: there is no initialized node"
        left = max(self.allowed - self.disrupted, 0)
        end = f", from {_when(self.opens)} on more" if self.opens is not None else ""
        used = f"{self.disrupted} of at most {self.allowed} are {state_of(self.unready)}"
        return f"{subject}: {left} more now ({used}){end}"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Another pool that the same pods may go to."""

    pool: str
    weight: int
    types: int
    """Instance types that both may buy."""


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """One pool as it is, and what a plan does with it."""

    pool: str
    ready: bool
    problems: tuple[str, ...]
    """Why it makes no nodes, or not those that it should."""
    weight: int
    types: int
    """Instance types that it may buy."""
    limits: tuple[LimitUse, ...]
    nodes: tuple[NodeFill, ...]
    planned: int
    """Nodes of it that the plan launches."""
    planned_pods: int
    planned_price: float
    """Of these nodes, in US dollars an hour."""
    refused: tuple[RefusedPods, ...]
    budgets: tuple[BudgetState, ...]
    paused: bool
    """Whether its annotation keeps its nodes from disruption."""
    overlaps: tuple[Overlap, ...] = field(default=())

    @property
    def price(self) -> float:
        """Of the nodes whose price is known, in US dollars an hour."""
        return fsum(node.price for node in self.nodes if node.price is not None)

    def lines(self) -> Iterator[str]:
        """The text that people read."""
        yield (
            f"is ready, weight {self.weight}, {count(self.types, 'instance type')}"
            if self.ready
            else (f"is not ready: {self.problems[0]}")
        )
        yield from (f"but: {problem}" for problem in self.problems[0 if self.ready else 1 :])
        yield from (f"limit: {limit}" for limit in self.limits)
        unpriced = sum(node.price is None for node in self.nodes)
        unknown = f", {count(unpriced, 'node')} of unknown price" if unpriced else ""
        yield f"has {count(len(self.nodes), 'node')}, {price(self.price)}{unknown}"
        yield from sum_lines([node.parts for node in self.nodes if node.price is not None])
        yield from (f"  {_node_line(node)}" for node in self.nodes)
        if self.planned:
            pods = count(self.planned_pods, "pod")
            yield f"to launch: {count(self.planned, 'node')} for {pods}, +{price(self.planned_price)}"
        for group in self.refused:
            names = listed([str(workload) for workload, _ in group.workloads])
            yield f"refused {count(len(group.pods), 'pod')} of {names}: {group.message} [{group.code}]"
        if self.paused:
            yield f"disruption is paused by the annotation {PAUSE}"
        yield from map(str, self.budgets)
        yield from (self._overlap_line(other) for other in self.overlaps)

    def _overlap_line(self, other: Overlap) -> str:
        shared = count(other.types, "instance type")
        if other.weight == self.weight:
            return f"overlaps with {other.pool}, of the same weight: {shared} of both; pods may go to either"
        order = "comes before" if self.weight > other.weight else "comes after"
        return f"{order} {other.pool} (weight {other.weight}), with which it shares {shared}"


def pool_facts(situation: Situation, catalog: Catalog, plan: Plan, pool: Pool) -> PoolFacts:
    """What there is to say about a pool.

    Args:
        situation: Of the cluster.
        catalog: What each pool may buy, at the prices of nodes.
        plan: For the pods that wait there.
        pool: One of the situation's.
    """
    snapshot = situation.snapshot
    types = {kind.name for kind in situation.catalog.get(pool.key, ())}
    hindrances, remarks = _hindrances(situation, plan, pool), _remarks(snapshot, pool)
    new = [node for node in plan.new_nodes if str(node.pool) == pool.key]
    # Nodes as they are, without the pods that are to come.
    fills = existing_nodes(
        snapshot, catalog, replace(plan, new_nodes=(), placements={}), situation.policy.commitments
    )
    return PoolFacts(
        pool.key,
        not hindrances,
        tuple(dict.fromkeys((*hindrances, *remarks))),
        pool.weight,
        len(types),
        tuple(_limits(snapshot, pool)),
        tuple(node for node in fills if node.pool == pool.key),
        len(new),
        sum(len(node.pods) for node in new),
        fsum(node.price for node in new),
        tuple(_refused(snapshot, plan, pool)),
        tuple(_budgets(snapshot, pool, situation.now)),
        pool.own_annotations.get(PAUSE) == "true",
        tuple(_overlaps(situation, pool)),
    )


def _hindrances(situation: Situation, plan: Plan, pool: Pool) -> list[str]:
    """Why the pool makes no node at all."""
    found = []
    if situation.snapshot.teardown:
        found.append("the stack is being destroyed, and no pool creates nodes")
    if pool.deletion_timestamp is not None:
        found.append("it is being deleted")
    try:
        usable(situation.snapshot, pool.reference, pool.node_class)
    except PoolUnusable as error:
        found.append(str(error))
    if problem := situation.policy.pool_problems.get(pool.key):
        found.append(problem)
    unusable = [refusal.message for refusal in plan.unusable_pools if refusal.pool == pool.reference]
    if not unusable and not found and not situation.catalog.get(pool.key):
        unusable = ["none of the instance types that it allows is sold"]
    return [*found, *unusable]


def _remarks(snapshot: Snapshot, pool: Pool) -> Iterator[str]:
    """What the conditions of the pool and its node class say."""
    node_class = snapshot.node_classes.get(str(pool.node_class))
    of_class = node_class.conditions if node_class is not None else ()
    for subject, conditions in (("", pool.conditions), (f"{pool.node_class}: ", of_class)):
        for condition in conditions:
            if condition.status == "False" and condition.type != READY:
                text = condition.message or condition.reason
                yield f"{subject}{condition.type} is False: {text}"


def _limits(snapshot: Snapshot, pool: Pool) -> Iterator[LimitUse]:
    used = pool_usage(snapshot, pool)
    living = sum(claim.deletion_timestamp is None for claim, _ in pool_members(snapshot, pool))
    for resource, limit in sorted((pool.limits or {}).items()):
        yield LimitUse(resource, limit, living if resource == _NODES else used.get(resource, 0))


def _refused(snapshot: Snapshot, plan: Plan, pool: Pool) -> Iterator[RefusedPods]:
    groups: dict[tuple[str, str], list[str]] = {}
    for refusal in plan.refusals:
        for reason in refusal.reasons:
            if reason.pool == pool.reference:
                groups.setdefault((str(reason.code), reason.message), []).append(refusal.pod)
    for (code, message), keys in groups.items():
        yield RefusedPods(code, message, tuple(sorted(keys)), workloads_of(snapshot, keys))


def _budgets(snapshot: Snapshot, pool: Pool, now: float) -> Iterator[BudgetState]:
    """Of each reason, those with the same figures together; none for a pool without budgets."""
    if not pool.budgets:
        return
    groups: dict[tuple[int | None, int, int, float | None, int], list[str]] = {}
    for reason in reasons_of(pool):
        found = allowance(snapshot, pool, reason, now)
        allowed = None if found.allowed == UNLIMITED else found.allowed
        opens = None
        if allowed == 0 and found.nodes:
            ahead = windows(pool, reason, found.nodes, now, now + _AHEAD)
            opens = next((window.start for window in ahead if window.nodes != 0), None)
        figures = (allowed, found.disrupted, found.nodes, opens, found.unready)
        groups.setdefault(figures, []).append(str(reason))
    for figures, reasons in groups.items():
        yield BudgetState(tuple(reasons), *figures)


def _overlaps(situation: Situation, pool: Pool) -> Iterator[Overlap]:
    """The other pools, the heaviest first, to which pods may go that tolerate the taints of both."""
    mine = {kind.name for kind in situation.catalog.get(pool.key, ())}
    others = sorted(situation.snapshot.pools.values(), key=lambda other: (-other.weight, other.key))
    for other in others:
        if other.key == pool.key or other.invalid or other.deletion_timestamp is not None:
            continue
        shared = mine & {kind.name for kind in situation.catalog.get(other.key, ())}
        ours, theirs = pool.requirements, other.requirements
        common = ours.keys() & theirs.keys() - _NAMES
        if (
            shared
            and set(pool.taints) == set(other.taints)
            and all(ours[key].overlaps(theirs[key]) for key in common)
        ):
            yield Overlap(other.key, other.weight, len(shared))


def _node_line(node: NodeFill) -> str:
    full = [f"{resource} {node.fraction(resource):.0%}" for resource in (CPU, MEMORY) if node.allocatable]
    cost = price(node.price) if node.price is not None else "price not known"
    parts = (node.instance_type, node.capacity_type, node.zone, cost, *full, count(node.pods, "pod"))
    return f"{node.name}: {', '.join(part for part in parts if part)}"


def _amount(resource: str, amount: int) -> str:
    if resource == _NODES or not amount:
        return f"{resource} {amount}"
    return amounts({resource: amount})


def _when(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%a %Y-%m-%d %H:%M} UTC"
