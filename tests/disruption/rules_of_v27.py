"""What Karpenter v0.27's consolidation would do: its published rules as a model, to be compared with.

Candidates in ascending order of disruption cost; first all empty nodes end; else the largest prefix of
two or more for which a command is found, by binary search; else the first single node with a command. A
command: the candidates' pods fit on the nodes that stay (delete), or on those and one new node of types
that cost less than the candidates do together (replace). Where v0.27's scheduler would put pods, the
solver of nodeless with the packing that Karpenter has is asked, which packs no worse: what is compared
are the rules of consolidation. Nothing of `nodeless.disruption` is used but the form of a command.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nodeless.model.disruption import Command, Decisions, DisruptionReason
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import CAPACITY_TYPE, SPOT
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.plan import Alternative, PlannedNode
from nodeless.model.pods import Pod
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import FEWEST_NODES, Policy, solve

_POLICY = Policy(packing=FEWEST_NODES, time_box=0.0)


@dataclass(frozen=True)
class _Candidate:
    claim: NodeClaim
    node: Node
    pods: tuple[Pod, ...]
    price: float

    @property
    def cost(self) -> float:
        """The sum over the pods of 1, more or less by deletion cost and priority, from -10 to 10."""
        deletion = "controller.kubernetes.io/pod-deletion-cost"
        return sum(
            min(max(1 + int(pod.annotations.get(deletion, "0")) / 2**27 + pod.priority / 2**25, -10), 10)
            for pod in self.pods
        )


def consolidate(snapshot: Snapshot, types: Sequence[InstanceType], now: float) -> Decisions:
    """The one command of a round of v0.27, as a command; none when the cluster is as it should be."""
    rules = _Rules(snapshot, types, now)
    command = rules.empty() or rules.multi() or rules.single()
    return Decisions((command,)) if command is not None else Decisions()


class _Rules:
    """One round."""

    def __init__(self, snapshot: Snapshot, types: Sequence[InstanceType], now: float) -> None:
        self._snapshot, self._now = snapshot, now
        self._types = {kind.name: kind for kind in types}
        found = [self._candidate(claim) for claim in snapshot.claims.values()]
        some = [each for each in found if each is not None]
        self._candidates = sorted(some, key=lambda each: (each.cost, each.claim.name))

    def _candidate(self, claim: NodeClaim) -> _Candidate | None:
        snapshot = self._snapshot
        node, pool = snapshot.node_of(claim), snapshot.pools.get(str(claim.pool))
        if node is None or not node.initialized or pool is None or not pool.consolidation_enabled:
            return None
        pods = tuple(pod for pod in snapshot.pods_on(node.name) if pod.occupies)
        if any(self._blocks(pod) for pod in pods):
            return None
        price = self._own_price(node)
        return _Candidate(claim, node, pods, price) if price is not None else None

    def _blocks(self, pod: Pod) -> bool:
        guards = self._snapshot.disruption_budgets.values()
        guarded = any(
            budget.namespace == pod.namespace
            and budget.disruptions_allowed == 0
            and budget.selector is not None
            and set(budget.selector.match_labels) <= set(dict(pod.labels).items())
            for budget in guards
        )
        return guarded or pod.annotations.get("karpenter.sh/do-not-evict") == "true"

    def _own_price(self, node: Node) -> float | None:
        for offering in self._types[node.instance_type].offerings:
            if (offering.zone, offering.capacity_type) == (node.zone, node.capacity_type):
                return offering.price
        return None

    def empty(self) -> Command | None:
        some = [candidate for candidate in self._candidates if not candidate.pods]
        return _move(DisruptionReason.EMPTY, some, (), 0.0) if some else None

    def multi(self) -> Command | None:
        low, high, found = 1, len(self._candidates) - 1, None
        while low <= high:
            middle = (low + high) // 2
            command = self._command(self._candidates[: middle + 1])
            if command is not None:
                found, low = command, middle + 1
            else:
                high = middle - 1
        return found

    def single(self) -> Command | None:
        commands = (self._command([candidate]) for candidate in self._candidates)
        return next((command for command in commands if command is not None), None)

    def _command(self, candidates: list[_Candidate]) -> Command | None:
        moving = {pod.key for candidate in candidates for pod in candidate.pods}
        nodes = self._snapshot.nodes.mutate()
        for each in candidates:
            nodes[each.node.name] = replace(each.node, deletion_timestamp=self._now)
        catalog = dict.fromkeys(self._snapshot.pools, tuple(self._types.values()))
        plan = solve(replace(self._snapshot, nodes=nodes.finish()), catalog, _POLICY)
        if any(refusal.pod in moving for refusal in plan.refusals) or len(plan.new_nodes) > 1:
            return None
        if not plan.new_nodes:
            return _move(DisruptionReason.UNDERUTILIZED, candidates, (), 0.0)
        return self._replacement(candidates, plan.new_nodes[0])

    def _replacement(self, candidates: list[_Candidate], planned: PlannedNode) -> Command | None:
        offered = {
            alternative.instance_type: [
                offering
                for offering in self._types[alternative.instance_type].offerings
                if offering.available and offering.allowed_by(planned.requirements)
            ]
            for alternative in planned.alternatives
        }
        spot = any(each.capacity_type == SPOT for every in offered.values() for each in every)
        if spot and all(candidate.node.capacity_type == SPOT for candidate in candidates):
            return None
        worst = {name: _worst(every) for name, every in offered.items()}
        limit = sum(candidate.price for candidate in candidates)
        if len(candidates) > 1:
            # Merging nodes into one of their own type is deleting the others.
            same = [
                candidate.price
                for candidate in candidates
                if worst.get(candidate.node.instance_type, limit) < limit
            ]
            limit = min([limit, *same])
        kept = {name: price for name, price in worst.items() if price < limit}
        if not kept:
            return None
        kind = [Requirement.of(CAPACITY_TYPE, IN, [SPOT])] if spot else []
        node = replace(
            planned,
            requirements=Requirements([*planned.requirements.values(), *kind]),
            alternatives=tuple(
                Alternative(name, min(o for o in offered[name] if not spot or o.capacity_type == SPOT))
                for name in sorted(kept, key=lambda name: (kept[name], name))
                if not spot or any(o.capacity_type == SPOT for o in offered[name])
            ),
        )
        return _move(DisruptionReason.UNDERUTILIZED, candidates, (node,), max(kept.values()))


def _worst(offerings: Sequence) -> float:
    """The dearest offering to be had: of spot, if any is."""
    spot = [offering.price for offering in offerings if offering.capacity_type == SPOT]
    return max(spot or [offering.price for offering in offerings], default=float("inf"))


def _move(
    reason: str, candidates: Sequence[_Candidate], replacements: tuple[PlannedNode, ...], after: float
) -> Command:
    names = tuple(sorted(candidate.claim.name for candidate in candidates))
    before = sum(candidate.price for candidate in candidates)
    return Command(
        reason, names, replacements, before, after, sum(len(candidate.pods) for candidate in candidates)
    )
