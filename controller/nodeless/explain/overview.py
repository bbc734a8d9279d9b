"""The cluster at a glance: each node with its fill, its price and its disruption, and what comes next."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any

from nodeless.disruption import disrupt
from nodeless.disruption.validating import held_by_budgets
from nodeless.explain.bill import BillSum, CommitmentUse, commitment_uses, sum_lines, sums, unknown_parts
from nodeless.explain.decisions import Situation
from nodeless.explain.disruption import saving_work
from nodeless.explain.fill import NodeFill, existing_nodes, new_nodes
from nodeless.explain.report import Launch, launches_of
from nodeless.explain.words import count
from nodeless.model.bill import HOURS_A_MONTH, INSTANCE, BillPart
from nodeless.model.disruption import Command, Decisions
from nodeless.model.nodes import DISRUPTION_REASON, NodeClaim
from nodeless.model.resources import CPU, MEMORY
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.coverage import running_coverage
from nodeless.scheduling.capacity.pricing import priced
from nodeless.state.expected import planned_for
from nodeless.state.saving import plain


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node, or one claim whose node has not appeared."""

    fill: NodeFill
    age: float
    """Seconds since it was created."""
    planned: int = 0
    """Pods for which it was launched, as far as they are still there."""
    kept: int = 0
    """How many of these run on it."""
    disrupted: bool = False
    code: str = ""
    """Why it is disrupted or not: a command's reason or a verdict's code; empty for nodes of others."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """What `nodeless top` shows; money in US dollars an hour."""

    rows: tuple[NodeRow, ...]
    launches: tuple[Launch, ...]
    """What the pods that wait would be given now."""
    waiting: int
    """Pods that wait for one of these launches."""
    placed: int
    """Pods that wait and fit on nodes that are there or start."""
    refused: int
    """Pods that no pool can place."""
    commands: tuple[Command, ...]
    """Disruption that would begin now."""
    held: float
    """What empty nodes and commands that only budgets hold back would save."""
    faults: tuple[str, ...] = field(default=())
    """Claims at which the pass failed."""
    commitments: tuple[CommitmentUse, ...] = ()
    """What is used of each commitment."""

    def only(self, names: Collection[str], snapshot: Snapshot) -> "Overview":
        """The part that is about some nodes and pools: pods that wait for other nodes are not counted.

        Args:
            names: Each as `Node/NAME`, `NodeClaim/NAME`, `NodePool/NAME` or `Provisioner/NAME`.
            snapshot: Of the cluster that is seen.

        Raises:
            KeyError: One of them is not there.
        """
        by_name = {row.fill.name: row for row in self.rows}
        chosen, pools = set[str](), set[str]()
        for named in names:
            kind, _, name = named.partition("/")
            if named in snapshot.pools:
                pools.add(named)
                chosen |= {row.fill.name for row in self.rows if row.fill.pool == named}
                continue
            if kind == "NodeClaim" and (claim := snapshot.claims.get(name)) is not None:
                node = snapshot.node_of(claim)
                name = claim.name if node is None else node.name
            if kind not in ("Node", "NodeClaim") or name not in by_name:
                raise KeyError(named)
            chosen.add(name)
        launches = tuple(launch for launch in self.launches if launch.pool in pools)
        return replace(
            self,
            rows=tuple(row for row in self.rows if row.fill.name in chosen),
            launches=launches,
            waiting=sum(launch.count * pods for launch in launches for _, pods in launch.workloads),
            placed=0,
            refused=0,
            commands=tuple(
                command
                for command in self.commands
                if chosen & {_node_name(snapshot, claim) for claim in command.claims}
            ),
            held=0.0,
            faults=tuple(name for name in self.faults if _node_name(snapshot, name) in chosen),
        )

    @property
    def price(self) -> float:
        """Of the nodes whose price is known."""
        return fsum(row.fill.price for row in self.rows if row.fill.price is not None)

    @property
    def unpriced(self) -> int:
        return sum(row.fill.price is None for row in self.rows)

    @property
    def parts(self) -> tuple[BillSum, ...]:
        """What the nodes cost by part of their bills, as far as it is known."""
        return sums(self._bills)

    @property
    def _bills(self) -> list[tuple[BillPart, ...]]:
        """Of the nodes whose price is known."""
        return [row.fill.parts for row in self.rows if row.fill.price is not None]

    @property
    def unknown_parts(self) -> dict[str, int]:
        """Of how many nodes a part of the bill is not known, the price of the instance among them."""
        missing = {name: number for name, number in unknown_parts(self._bills).items() if number}
        return {**({INSTANCE: self.unpriced} if self.unpriced else {}), **missing}

    @property
    def realized(self) -> float | None:
        """The part of the pods that run where their node was launched for them; None when none is known."""
        planned = sum(row.planned for row in self.rows)
        return sum(row.kept for row in self.rows) / planned if planned else None

    def lines(self) -> Iterator[str]:
        """The summary, a line for each figure that there is."""
        unpriced = f", {count(self.unpriced, 'node')} of unknown price" if self.unpriced else ""
        pods = count(sum(row.fill.pods for row in self.rows), "pod")
        yield (
            f"{count(len(self.rows), 'node')}, {pods}, {self.price:,.4f} USD/h, "
            f"{self.price * HOURS_A_MONTH:,.2f} USD/month{unpriced}"
        )
        yield from sum_lines(self._bills)
        yield from (f"commitment {use}" for use in self.commitments)
        if self.launches:
            nodes, added = sum(launch.count for launch in self.launches), self.added
            yield f"to launch: {count(nodes, 'node')} for {count(self.waiting, 'pod')}, +{added:,.4f} USD/h"
        if self.placed:
            yield f"{count(self.placed, 'pod')} to be bound to nodes that are there or start"
        if self.refused:
            yield f"{count(self.refused, 'pod')} cannot be placed: see `nodeless plan`"
        if self.commands:
            saving = fsum(command.saving for command in self.commands)
            evictions = count(sum(command.evictions for command in self.commands), "eviction")
            yield f"to disrupt: {count(len(self.commands), 'move')}, -{saving:,.4f} USD/h for {evictions}"
        if self.held:
            yield f"held back by disruption budgets: -{self.held:,.4f} USD/h"
        if self.realized is not None:
            yield f"{self.realized:.0%} of the pods run on the node that was launched for them"
        if self.faults:
            yield f"could not be judged: {', '.join(self.faults)}"

    @property
    def added(self) -> float:
        """What the launches cost."""
        return fsum(launch.count * launch.price for launch in self.launches)

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        realized = self.realized
        return {
            "price": round(self.price, 6),
            "unpriced": self.unpriced,
            "parts": {part.name: round(part.dollars, 6) for part in self.parts},
            "unknown_parts": self.unknown_parts,
            "nodes": [_row(row) for row in self.rows],
            "launch": {
                "nodes": sum(launch.count for launch in self.launches),
                "pods": self.waiting,
                "price": round(self.added, 6),
            },
            "placed": self.placed,
            "refused": self.refused,
            "moves": [
                {
                    "reason": command.reason,
                    "action": command.action,
                    "claims": list(command.claims),
                    "saving": round(command.saving, 6),
                    "evictions": command.evictions,
                }
                for command in self.commands
            ],
            "held": round(self.held, 6),
            "realized": None if realized is None else round(realized, 4),
            "faults": list(self.faults),
            "commitments": [plain(use) for use in self.commitments],
        }


def overview(situation: Situation) -> Overview:
    """Plan for the pods that wait, look for disruption, and lay both beside the nodes.

    Args:
        situation: Of the cluster, now.
    """
    snapshot = situation.snapshot
    plan = situation.plan()
    chosen = situation.disruption_policy
    solving = chosen.solving
    catalog = priced(situation.catalog, snapshot.pools.values(), solving.price_adjustments, solving.node_fee)
    decisions = disrupt(snapshot, situation.catalog, chosen, situation.now)
    held = [command for command in decisions.commands if held_by_budgets([command], snapshot, situation.now)]
    # Nodes as they are, without the pods that are to come.
    fills = existing_nodes(snapshot, catalog, replace(plan, new_nodes=(), placements={}), solving.commitments)
    coverage = running_coverage(snapshot, catalog, solving.commitments)
    return Overview(
        tuple(_node_row(situation, decisions, fill) for fill in fills),
        launches_of(plan, new_nodes(snapshot, catalog, plan)),
        sum(len(node.pods) for node in plan.new_nodes),
        len(plan.placements),
        len(plan.refusals),
        tuple(command for command in decisions.commands if command not in held),
        fsum((*decisions.held.values(), *(command.saving for command in held))),
        tuple(sorted(decisions.faults)),
        commitment_uses(solving.commitments, coverage, catalog),
    )


def _node_name(snapshot: Snapshot, name: str) -> str:
    """The name by which a claim is in the overview."""
    claim = snapshot.claims.get(name)
    node = snapshot.node_of(claim) if claim is not None else None
    return name if node is None else node.name


def _node_row(situation: Situation, decisions: Decisions, fill: NodeFill) -> NodeRow:
    snapshot = situation.snapshot
    node = snapshot.nodes.get(fill.name)
    claim = snapshot.claim_of(node) if node is not None else snapshot.claims.get(fill.name)
    thing = node or claim
    age = max(situation.now - thing.created_at, 0.0) if thing is not None else 0.0
    if claim is None:
        return NodeRow(fill, age)
    _, pods = planned_for(snapshot, claim)
    kept = sum(node is not None and pod.node_name == node.name for pod in pods)
    return NodeRow(fill, age, len(pods), kept, *_judgment(situation, decisions, claim))


def _judgment(situation: Situation, decisions: Decisions, claim: NodeClaim) -> tuple[bool, str, str]:
    snapshot = situation.snapshot
    if claim.deletion_timestamp is not None:
        saving = saving_work(snapshot, claim, situation.now)
        return True, "Terminating", "; ".join(("it is being drained or terminated", *saving))
    condition = claim.condition(DISRUPTION_REASON)
    if condition is not None and condition.status == "True":
        return True, condition.reason, condition.message or "it was decided earlier"
    if snapshot.node_of(claim) is None:
        return False, "Starting", "its node has not appeared"
    for command in decisions.commands:
        if claim.name in command.claims:
            return True, command.reason, command.message
    verdict = decisions.verdicts.get(claim.name)
    return (False, verdict.code, verdict.message) if verdict is not None else (False, "", "")


def _row(row: NodeRow) -> dict[str, Any]:
    fill = row.fill
    return {
        "name": fill.name,
        "state": fill.state,
        "pool": fill.pool,
        "instance_type": fill.instance_type,
        "zone": fill.zone,
        "capacity_type": fill.capacity_type,
        "price": fill.price,
        "parts": plain(fill.parts),
        "cpu": round(fill.fraction(CPU), 4),
        "memory": round(fill.fraction(MEMORY), 4),
        "pods": fill.pods,
        "age": round(row.age),
        "planned": row.planned,
        "kept": row.kept,
        "disrupted": row.disrupted,
        "code": row.code,
        "message": row.message,
    }
