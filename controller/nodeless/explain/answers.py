"""Answers to "why": one pod or one node of a plan."""

import difflib
from dataclasses import dataclass
from typing import Any

from nodeless.explain.decisions import Situation
from nodeless.explain.fill import NodeFill, new_nodes, standing_nodes
from nodeless.explain.report import unplaced
from nodeless.explain.why import why
from nodeless.explain.words import amounts, count, listed, price
from nodeless.model.instance_types import Catalog
from nodeless.model.plan import Plan
from nodeless.model.workloads import workload_of
from nodeless.solve.capacity.pricing import priced


class NotThere(LookupError):
    """Neither pod nor node; the text names what is near."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What there is to say about a pod or a node."""

    subject: str
    lines: tuple[str, ...]
    placed: bool = True
    """False for a pod without a place."""

    def to_json(self) -> dict[str, Any]:
        return {"subject": self.subject, "placed": self.placed, "reasons": list(self.lines)}


def answer(situation: Situation, plan: Plan, name: str, wider: Catalog | None = None) -> Answer:
    """The answer on a pod (`namespace/name`, or its name alone) or a node. Raises NotThere."""
    snapshot, policy = situation.snapshot, situation.policy
    catalog = priced(situation.catalog, snapshot.pools.values(), policy.price_adjustments, policy.node_fee)
    new = new_nodes(snapshot, catalog, plan)
    standing = standing_nodes(snapshot, catalog, plan)
    keys = [key for key in snapshot.pods if name in (key, key.partition("/")[2])]
    if keys:
        return _of_pod(situation, plan, min(keys), new, standing, wider)
    for node, fill in zip(plan.new_nodes, new, strict=True):
        if fill.name == name:
            return Answer(f"{name}, a new node of {fill.pool}", (*why(node).splitlines(), *_held(fill)))
    for fill in standing:
        if fill.name == name:
            return Answer(f"{name}, {fill.state}", (_bought(fill), *_held(fill)))
    names = [*snapshot.pods, *(fill.name for fill in (*new, *standing))]
    near = difflib.get_close_matches(name, names, 5) or sorted(names)
    raise NotThere(f"{name} is neither pod nor node; hint: there is {listed(near) or 'none'}")


def _of_pod(
    situation: Situation,
    plan: Plan,
    key: str,
    new: tuple[NodeFill, ...],
    standing: tuple[NodeFill, ...],
    wider: Catalog | None,
) -> Answer:
    pod = situation.snapshot.pods[key]
    subject = f"{key}, of {workload_of(pod)}, requests {amounts(pod.requests)}"
    for refusal in plan.refusals:
        if refusal.pod == key:
            (group,) = unplaced(situation, (refusal,), wider)
            reasons = [
                f"{f'{listed(each.pools)}: ' if each.pools else ''}{each.message} [{each.code}]"
                for each in group.obstacles
            ]
            helping = [f"would fit: {remedy}" for remedy in group.remedies]
            return Answer(subject, ("has no place", *reasons, *helping), placed=False)
    for node, fill in zip(plan.new_nodes, new, strict=True):
        if key in node.pods:
            return Answer(
                subject, (f"lands on {fill.name}, a new node of {fill.pool}", *why(node).splitlines())
            )
    if key in plan.placements:
        name = plan.placements[key]
        lines = (f"lands on {name}, which has room",)
        return Answer(subject, (*lines, *(_bought(fill) for fill in standing if fill.name == name)))
    if pod.node_name:
        return Answer(subject, (f"runs on {pod.node_name}",))
    return Answer(
        subject, ("is not looked at: the scheduler has not refused it, or it is not for our nodes",)
    )


def _bought(fill: NodeFill) -> str:
    cost = price(fill.price) if fill.price is not None else "price not known"
    where = ", ".join(each for each in (fill.instance_type, fill.capacity_type, fill.zone, fill.pool) if each)
    return f"{where or 'no type known'}, {cost}"


def _held(fill: NodeFill) -> tuple[str, ...]:
    daemons = (f"DaemonSets: {amounts(fill.daemons)}",) if fill.daemons else ()
    shares = (
        f"{share.workload}: {count(share.pods, 'pod')}"
        f"{f' ({share.arriving} of them arriving)' if share.arriving < share.pods and share.arriving else ''}"
        for share in fill.shares
    )
    return (*daemons, *shares)
