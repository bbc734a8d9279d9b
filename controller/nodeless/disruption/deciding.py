"""`disrupt`: from a snapshot to the moves that make it better, and why every other node stays.

The order is Karpenter's: expired, drifted, empty, underutilised; the first kind of move that
is found is the answer. Graceful moves (empty, underutilised) respect every pod that blocks;
drift ignores them where the claim bounds its drain (`terminationGracePeriod`).
"""

from collections.abc import Iterable, Sequence

from nodeless.disruption.budgets import allowance
from nodeless.disruption.candidates import Candidate, candidates, replacing
from nodeless.disruption.consolidation import Consolidation
from nodeless.disruption.memory import NOTHING_REMEMBERED, Memory
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.disruption.simulation import Settled, leaving_soon, settled, without
from nodeless.model.disruption import DRIFTED, EMPTY, EXPIRED, UNDERUTILIZED, Decisions, Move, Verdict
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import DO_NOT_CONSOLIDATE, VOLUNTARY_DISRUPTION
from nodeless.model.nodes import DRIFTED as DRIFTED_CONDITION
from nodeless.model.nodes import INITIALIZED_CONDITION, Claim
from nodeless.model.pods import Pod
from nodeless.model.pools import PROVISIONER, Pool
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import workload_of
from nodeless.solve.capacity.pricing import priced


def disrupt(
    snapshot: Snapshot,
    catalog: Catalog,
    policy: DisruptionPolicy,
    now: float,
    memory: Memory = NOTHING_REMEMBERED,
) -> Decisions:
    """What to disrupt.

    Args:
        snapshot: The cluster.
        catalog: What each pool may buy, by pool key, at list prices.
        policy: How moves are judged.
        now: Seconds since the epoch.
        memory: What earlier looks decided: moves that wait count as made, and workloads rest.

    Returns:
        Moves that may be carried out side by side, and a verdict for every claim that is in none.
    """
    if snapshot.teardown:
        return Decisions()
    look = _Look(snapshot, catalog, policy, now, memory)
    moves = look.moves()
    chosen = {name for move in moves for name in move.claims}
    verdicts = {name: verdict for name, verdict in look.verdicts.items() if name not in chosen}
    return Decisions(moves, dict(sorted(verdicts.items())))


def consolidates_after(pool: Pool) -> int | None:
    """Seconds without a change after which a pool's nodes may be consolidated; None: never."""
    if pool.reference.kind == PROVISIONER:
        return 0 if pool.consolidation_enabled else None
    return pool.consolidate_after if pool.consolidation_enabled else pool.ttl_seconds_after_empty


def quiet_since(claim: Claim) -> float:
    """When a pod last came to its node or left it, or when the node was ready for the first."""
    ready = claim.condition(INITIALIZED_CONDITION)
    since = ready.last_transition_time if ready is not None else claim.created_at
    return max(since, claim.last_pod_event or 0.0)


class _Look:
    """One look at the cluster."""

    def __init__(
        self,
        snapshot: Snapshot,
        catalog: Catalog,
        policy: DisruptionPolicy,
        now: float,
        memory: Memory = NOTHING_REMEMBERED,
        again: Move | None = None,
    ) -> None:
        chosen = {name: move for move in memory.moves for name in move.claims}
        self.snapshot, self.policy, self.now = leaving_soon(snapshot, chosen), policy, now
        solving = policy.solving
        self.catalog = priced(catalog, snapshot.pools.values(), solving.price_adjustments, solving.node_fee)
        self.candidates, self.verdicts = candidates(self.snapshot, self.catalog, now)
        for name, move in chosen.items():
            self.verdicts[name] = Verdict("Chosen", f"looked at once more before it is done: {move.message}")
        self._promised = frozenset(
            pod.key
            for name, move in chosen.items()
            if move.replacements and name in snapshot.claims
            for pod in _pods_of(snapshot, name)
        )
        names = again.claims if again is not None else ()
        self._ending = frozenset(snapshot.claims[name].node_name for name in names if name in snapshot.claims)
        self._restless = memory.restless(snapshot, now)
        self._settled: Settled | None = None

    @property
    def settled(self) -> Settled:
        if self._settled is None:
            self._settled = settled(
                self.snapshot, self.catalog, self.policy.solving, self.now, self._promised, self._ending
            )
        return self._settled

    def moves(self) -> tuple[Move, ...]:
        for found in (self._replaced(EXPIRED), self._replaced(DRIFTED), self._empty(), self._consolidated()):
            if found:
                return found
        return ()

    def _left(self, reason: str) -> dict[str, int]:
        return {
            key: allowance(self.snapshot, pool, reason, self.now).remaining
            for key, pool in self.snapshot.pools.items()
        }

    def _refuse(self, some: Iterable[Candidate], code: str, message: str) -> None:
        for candidate in some:
            # What was found first stands: an expired node that waits says that, not how full it is.
            self.verdicts.setdefault(candidate.name, Verdict(code, message))

    # Expired and drifted: one a pool, oldest first.

    def _replaced(self, reason: str) -> tuple[Move, ...]:
        left, moves = self._left(reason), []
        busy = {str(self.snapshot.claims[name].pool) for name in replacing(self.snapshot)}
        for pool in sorted({candidate.pool.key for candidate in self.candidates}):
            some = [each for each in self.candidates if each.pool.key == pool and self._due(each, reason)]
            if not some:
                continue
            if not some[0].pool.budgets and pool in busy:
                self._refuse(some, "Waiting", f"{reason.lower()}; another node of {pool} is being replaced")
                continue
            if left[pool] <= 0:
                budget = allowance(self.snapshot, some[0].pool, reason, self.now)
                self._refuse(some, "Budget", f"{reason.lower()}, but {budget}")
                continue
            move = self._first(sorted(some, key=lambda each: self._age(each, reason)), reason)
            if move is not None:
                moves.append(move)
        return tuple(moves)

    def _due(self, candidate: Candidate, reason: str) -> bool:
        if reason == EXPIRED:
            return candidate.node.annotations.get(VOLUNTARY_DISRUPTION) == "expired"
        first = candidate.pool.reference.kind == PROVISIONER
        if first and not self.policy.drift_of_provisioners:
            return False
        return candidate.claim.is_true(DRIFTED_CONDITION)

    def _age(self, candidate: Candidate, reason: str) -> tuple[bool, float, str]:
        if reason == EXPIRED:
            return False, candidate.node.created_at, candidate.name
        condition = candidate.claim.condition(DRIFTED_CONDITION)
        since = condition.last_transition_time if condition is not None else self.now
        return bool(candidate.pods), since, candidate.name

    def _first(self, some: Sequence[Candidate], reason: str) -> Move | None:
        for candidate in some:
            bounded = reason == DRIFTED and candidate.claim.termination_grace_period is not None
            if candidate.blocked is not None and not bounded:
                self.verdicts.setdefault(candidate.name, candidate.blocked)
                continue
            outcome = without(self.settled.snapshot, [candidate], self.catalog, self.policy.solving, self.now)
            first = candidate.pool.reference.kind == PROVISIONER
            if not outcome.placed and not first:
                self._refuse([candidate], "NoReplacement", f"{reason.lower()}, but {outcome.reason}")
                continue
            nodes = outcome.new_nodes
            price = sum(node.price for node in nodes)
            text = f"{reason.lower()}: {_why(candidate, reason)}; {len(candidate.pods)} pods move"
            before = candidate.price or 0.0
            return Move(reason, (candidate.name,), nodes, before, price, len(candidate.pods), text)
        return None

    # Empty and underutilised.

    def _consolidatable(self) -> list[Candidate]:
        """Candidates whose pool consolidates, quiet for long enough, and without pods that block."""
        found = []
        for candidate in self.candidates:
            refusal = self._refusal(candidate)
            if refusal is None:
                found.append(candidate)
            else:
                self.verdicts.setdefault(candidate.name, refusal)
        return found

    def _refusal(self, candidate: Candidate) -> Verdict | None:
        pool, claim = candidate.pool, candidate.claim
        after = consolidates_after(pool)
        if after is None:
            return Verdict("ConsolidationDisabled", f"{pool.reference} does not consolidate")
        if candidate.node.annotations.get(DO_NOT_CONSOLIDATE) == "true":
            return Verdict("NodeProtected", f"the node has the annotation {DO_NOT_CONSOLIDATE}=true")
        wait = quiet_since(claim) + after - self.now
        if wait > 0:
            text = f"pods came or left {after - wait:.0f} s ago; consolidateAfter is {after} s"
            return Verdict("NotQuiet", text)
        if candidate.blocked is not None:
            return candidate.blocked
        if self._restless and (restless := self._resting(candidate)) is not None:
            return restless
        if candidate.price is None:
            node = candidate.node
            text = f"the price of {node.instance_type} ({node.capacity_type}, {node.zone}) is not known"
            return Verdict("PriceUnknown", text)
        return None

    def _resting(self, candidate: Candidate) -> Verdict | None:
        for pod in candidate.pods:
            rate = self._restless.get(workload_of(pod))
            if rate is not None:
                text = (
                    f"pods of {workload_of(pod)} were moved {rate:.1f} times each in the last hour: they rest"
                )
                return Verdict("Restless", text)
        return None

    def _empty(self) -> tuple[Move, ...]:
        left = self._left(EMPTY)
        names: list[Candidate] = []
        for candidate in self._consolidatable():
            if not candidate.empty:
                continue
            expected = self.settled.expected
            coming = expected.get(candidate.name, 0) + expected.get(candidate.node.name, 0)
            if coming:
                self._refuse([candidate], "Expecting", f"{coming} pods are expected on it")
            elif left[candidate.pool.key] <= 0:
                budget = allowance(self.snapshot, candidate.pool, EMPTY, self.now)
                self._refuse([candidate], "Budget", f"empty, but {budget}")
            else:
                left[candidate.pool.key] -= 1
                names.append(candidate)
        if not names:
            return ()
        price = sum(candidate.price or 0.0 for candidate in names)
        pods = sum(len(candidate.pods) for candidate in names)
        text = f"{len(names)} empty nodes: {price:.4f} USD/h less"
        return (Move(EMPTY, tuple(sorted(each.name for each in names)), (), price, 0.0, pods, text),)

    def _consolidated(self) -> tuple[Move, ...]:
        some = []
        for candidate in self._consolidatable():
            if candidate.empty:
                continue
            if not candidate.pool.consolidation_enabled:
                self._refuse(
                    [candidate], "OnlyWhenEmpty", f"{candidate.pool.reference} ends only empty nodes"
                )
            else:
                some.append(candidate)
        if not some:
            return ()
        if self.settled.planning:
            text = f"capacity for {self.settled.planning} waiting pods is being planned first"
            self._refuse(some, "Planning", text)
            return ()
        left = self._left(UNDERUTILIZED)
        for candidate in some:
            if left[candidate.pool.key] <= 0:
                budget = allowance(self.snapshot, candidate.pool, UNDERUTILIZED, self.now)
                self._refuse([candidate], "Budget", str(budget))
        expected = self.settled.expected
        some = [each for each in some if not expected.get(each.name) and not expected.get(each.node.name)]
        search = Consolidation(self.settled.snapshot, self.catalog, self.policy, self.now, self._closed())
        move = search.search([each for each in some if left[each.pool.key] > 0], left)
        self.verdicts = search.verdicts | self.verdicts
        return (move,) if move is not None else ()

    def _closed(self) -> frozenset[str]:
        """Nodes that changed a short while ago: no pod is moved there."""
        names = set()
        for claim in self.snapshot.claims.values():
            node, pool = self.snapshot.node_of(claim), self.snapshot.pools.get(str(claim.pool))
            after = consolidates_after(pool) if pool is not None else None
            if node is not None and after and quiet_since(claim) + after > self.now:
                names.add(node.name)
        return frozenset(names)


def _pods_of(snapshot: Snapshot, claim_name: str) -> Iterable[Pod]:
    node = snapshot.node_of(snapshot.claims[claim_name])
    return snapshot.pods_on(node.name) if node is not None else ()


def _why(candidate: Candidate, reason: str) -> str:
    if reason == EXPIRED:
        return f"older than its {candidate.pool.ttl_seconds_until_expired} s"
    condition = candidate.claim.condition(DRIFTED_CONDITION)
    return f"{condition.reason}, {condition.message}" if condition is not None else ""


def still_right(
    move: Move,
    snapshot: Snapshot,
    catalog: Catalog,
    policy: DisruptionPolicy,
    now: float,
    memory: Memory = NOTHING_REMEMBERED,
) -> Move | None:
    """The move, if it is still right on a newer snapshot; of empty nodes those that are still empty.

    The solver must still place every pod, with as many new nodes, and would still accept every type
    that the move would launch. Other moves in `memory` that wait count as made.
    """
    look = _Look(snapshot, catalog, policy, now, memory.without(move), again=move)
    living = {candidate.name: candidate for candidate in look._consolidatable()}
    some = [living[name] for name in move.claims if name in living]
    left = look._left(move.reason)
    spent: dict[str, int] = {}
    for candidate in some:
        spent[candidate.pool.key] = spent.get(candidate.pool.key, 0) + 1
    if move.reason == EMPTY:
        return _still_empty(move, some, look, left)
    if len(some) < len(move.claims) or any(left[key] < count for key, count in spent.items()):
        return None
    outcome = without(
        look.settled.snapshot,
        some,
        look.catalog if move.replacements else {},
        policy.solving,
        now,
        look._closed(),
    )
    if not outcome.placed or len(outcome.new_nodes) != len(move.replacements):
        return None
    accepted = {
        (str(node.pool), alternative.instance_type)
        for node in outcome.new_nodes
        for alternative in node.alternatives
    }
    wanted = {
        (str(node.pool), alternative.instance_type)
        for node in move.replacements
        for alternative in node.alternatives
    }
    return move if wanted <= accepted else None


def _still_empty(move: Move, some: Sequence[Candidate], look: _Look, left: dict[str, int]) -> Move | None:
    names = []
    for candidate in some:
        expected = look.settled.expected
        coming = expected.get(candidate.name, 0) + expected.get(candidate.node.name, 0)
        if candidate.empty and not coming and left[candidate.pool.key] > 0:
            left[candidate.pool.key] -= 1
            names.append(candidate.name)
    if not names:
        return None
    price = sum(candidate.price or 0.0 for candidate in some if candidate.name in names)
    text = f"{len(names)} empty nodes: {price:.4f} USD/h less"
    return Move(EMPTY, tuple(names), (), price, 0.0, move.evictions, text)
