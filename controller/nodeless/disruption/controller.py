"""`disrupt`: from a snapshot to the commands that make it better, and why every other node stays.

The order is Karpenter's, that of v0.27 for Provisioners (expired, drifted, empty, underutilised) and that
of v1 for NodePools (empty, drifted, underutilised), broken nodes first; the first kind of command that is
found is the answer. Graceful commands (empty, underutilised) respect every pod that blocks.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType

from nodeless.disruption.balance import least_saving
from nodeless.disruption.candidates import Candidate
from nodeless.disruption.command_history import NOTHING_REMEMBERED, CommandHistory
from nodeless.disruption.consolidation import Consolidation
from nodeless.disruption.context import DisruptionContext
from nodeless.disruption.drift_and_expiration import replacement_commands
from nodeless.disruption.faults import AtWork, isolate_failures
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.disruption.repair_controller import repair_commands
from nodeless.disruption.searches import Searches
from nodeless.model.disruption import Command, Decisions, DisruptionReason, Verdict, VerdictCode
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import DO_NOT_CONSOLIDATE
from nodeless.model.pools import NODE_POOL_KIND, PROVISIONER
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import workload_of
from nodeless.nodeclaim.checkpoints import instance_ends
from nodeless.state.last_pod_event_time import consolidates_after, last_pod_event_time

#: Seconds before the known end of an instance (a capacity block's) from which no pod is moved to its node.
ENDS_SOON = 2 * 3600.0


def disrupt(
    snapshot: Snapshot,
    catalog: Catalog,
    policy: DisruptionPolicy,
    now: float,
    memory: CommandHistory = NOTHING_REMEMBERED,
    searches: Searches | None = None,
    excluded: Mapping[str, Verdict] = MappingProxyType({}),
    *,
    sparing: bool = False,
) -> Decisions:
    """What to disrupt.

    Args:
        snapshot: The cluster.
        catalog: What each pool may buy, by pool key, at list prices.
        policy: How commands are judged.
        now: Seconds since the epoch.
        memory: What earlier passes decided: commands that wait count as made, and workloads rest.
        searches: What earlier passes found, and this one will; nothing is kept when None.
        excluded: Claims that are left alone, with their verdicts.
        sparing: Whether nothing is searched that takes long: replacements in a cluster that is not the one of
            `searches`.

    Returns:
        Commands that may be carried out side by side, and a verdict for every claim that is in none. A claim
        at which the pass fails for a reason that nobody foresaw is left alone with that verdict.
    """
    if snapshot.teardown:
        return Decisions()

    def decide_on(excluded: Mapping[str, Verdict], at: AtWork) -> Decisions:
        context = DisruptionMethods(snapshot, catalog, policy, now, memory, excluded=excluded, at=at)
        return _decisions(context, context.commands(searches, sparing=sparing))

    decisions, faults = isolate_failures(decide_on, excluded)
    return replace(decisions, faults=faults)


def _decisions(context: "DisruptionMethods", commands: tuple[Command, ...]) -> Decisions:
    chosen = {name for command in commands for name in command.claims}
    verdicts = {name: verdict for name, verdict in context.verdicts.items() if name not in chosen}
    held = dict(sorted(context.held.items()))
    return Decisions(commands, dict(sorted(verdicts.items())), held, again_at=context.again_at)


class DisruptionMethods(DisruptionContext):
    """A pass that decides."""

    #: When a command is worth it that its pass has refused for the age of its nodes (seconds since the
    #: epoch).
    again_at = math.inf

    @cached_property
    def held(self) -> dict[str, float]:
        """Empty nodes that only a budget keeps, with their prices."""
        return {}

    def commands(self, searches: Searches | None = None, *, sparing: bool = False) -> tuple[Command, ...]:
        first = (
            repair_commands(self)
            or replacement_commands(self, DisruptionReason.EXPIRED)
            or replacement_commands(self, DisruptionReason.DRIFTED, (PROVISIONER,))
        )
        if first:
            return first
        # Looked for before the empty ones: a drifted node that stays says that, not how full it is.
        drifted = replacement_commands(self, DisruptionReason.DRIFTED, (NODE_POOL_KIND,))
        return self._empty() or drifted or self._consolidation_commands(searches, sparing=sparing)

    def saving_commands(self) -> tuple[Command, ...]:
        """Commands that make the cluster cheaper, whatever else there is to do."""
        return self._empty() or self._consolidation_commands()

    def consolidatable(self) -> list[Candidate]:
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
            return Verdict(VerdictCode.CONSOLIDATION_DISABLED, f"{pool.reference} does not consolidate")
        if candidate.node.annotations.get(DO_NOT_CONSOLIDATE) == "true":
            return Verdict(
                VerdictCode.CONSOLIDATION_FORBIDDEN, f"the node has the annotation {DO_NOT_CONSOLIDATE}=true"
            )
        wait = last_pod_event_time(claim) + after - self.now
        if wait > 0:
            text = f"pods came or left {after - wait:.0f} s ago; consolidateAfter is {after} s"
            return Verdict(VerdictCode.NOT_QUIET, text)
        if candidate.blocked is not None:
            return candidate.blocked
        if self.rate_limited_workloads and (rate_limited := self._rate_limited(candidate)) is not None:
            return rate_limited
        if candidate.committed and not candidate.empty and self._is_hardly_paid(candidate):
            text = f"its instance is paid for by {candidate.committed}, whether it runs or not"
            if candidate.price:
                text += f"; the other {candidate.price:.4f} USD/h are not worth a command"
            return Verdict(VerdictCode.COMMITTED, text)
        if candidate.price is None and not candidate.empty:  # an empty node goes, whatever it costs
            node = candidate.node
            text = f"the price of {node.instance_type} ({node.capacity_type}, {node.zone}) is not known"
            return Verdict(VerdictCode.PRICE_UNKNOWN, text)
        return None

    def _is_hardly_paid(self, candidate: Candidate) -> bool:
        """Whether what commitments leave of its price is less than a command must save."""
        price = candidate.price or 0.0
        least = least_saving([candidate], self.policy.least_saving)
        return price <= least * (price + candidate.covered)

    def _rate_limited(self, candidate: Candidate) -> Verdict | None:
        for pod in candidate.pods:
            rate = self.rate_limited_workloads.get(workload_of(pod))
            if rate is not None:
                text = (
                    f"pods of {workload_of(pod)} were moved {rate:.1f} times each in the last hour: they rest"
                )
                return Verdict(VerdictCode.RESTLESS, text)
        return None

    def _empty(self) -> tuple[Command, ...]:
        left = self.soon_left(DisruptionReason.EMPTY)
        names: list[Candidate] = []
        since = self.kept
        for candidate in sorted(
            self.consolidatable(), key=lambda candidate: since.get(candidate.name, self.now)
        ):
            if names and names[0].name in since and candidate.name not in since:
                break  # Those that have waited already need not wait for the others.
            if not candidate.empty:
                continue
            if coming := self.expected_pods(candidate):
                self.refuse([candidate], VerdictCode.EXPECTING, f"{coming} pods are expected on it")
            elif left[candidate.pool.key] <= 0:
                budget = self.allowance(candidate.pool, DisruptionReason.EMPTY)
                self.refuse([candidate], VerdictCode.BUDGET, f"empty, but {budget}")
                self.held[candidate.name] = candidate.price or 0.0
            else:
                left[candidate.pool.key] -= 1
                names.append(candidate)
        return (empty_nodes_command(names),) if names else ()

    def expected_pods(self, candidate: Candidate) -> int:
        """How many pods are expected on its node."""
        expected = self.scheduled.expected
        return expected.get(candidate.name, 0) + expected.get(candidate.node.name, 0)

    def _consolidation_commands(
        self, searches: Searches | None = None, *, sparing: bool = False
    ) -> tuple[Command, ...]:
        some = []
        for candidate in self.consolidatable():
            if candidate.empty:
                continue
            if not candidate.pool.consolidation_enabled:
                self.refuse(
                    [candidate],
                    VerdictCode.ONLY_WHEN_EMPTY,
                    f"{candidate.pool.reference} ends only empty nodes",
                )
            else:
                some.append(candidate)
        if not some:
            return ()
        if self.scheduled.planning:
            text = f"{self.scheduled.planning} waiting pods get their capacity first"
            self.refuse(some, VerdictCode.PLANNING, text)
            return ()
        left = self.soon_left(DisruptionReason.UNDERUTILIZED)
        for candidate in some:
            if left[candidate.pool.key] <= 0:
                budget = self.allowance(candidate.pool, DisruptionReason.UNDERUTILIZED)
                self.refuse([candidate], VerdictCode.BUDGET, str(budget))
        for candidate in some:
            if coming := self.expected_pods(candidate):
                self.refuse([candidate], VerdictCode.EXPECTING, f"{coming} pods are expected on it")
        some = [candidate for candidate in some if not self.expected_pods(candidate)]
        search = self.consolidation(searches, sparing=sparing)
        command = search.search([candidate for candidate in some if left[candidate.pool.key] > 0], left)
        self.verdicts = search.verdicts | self.verdicts
        self.again_at = search.again_at
        return (command,) if command is not None else ()

    def consolidation(self, searches: Searches | None = None, *, sparing: bool = False) -> Consolidation:
        """A search in what is there once everything that waits has its place."""
        snapshot, closed = self.scheduled.snapshot, self.closed_nodes()
        if searches is not None:
            sparing = sparing and not searches.holds(snapshot, *self.given, closed)
            if not sparing:
                searches.reset_unless_same(snapshot, *self.given, closed)
        return Consolidation(
            snapshot,
            self.catalog,
            self.policy,
            self.now,
            closed,
            tried=self.tried,
            at=self.at,
            searches=None if sparing else searches,
            sparing=sparing,
        )

    def closed_nodes(self) -> frozenset[str]:
        """Nodes that changed a short while ago, or end soon: no pod is moved there."""
        names = set()
        for claim in self.snapshot.claims.values():
            node, pool = self.snapshot.node_of(claim), self.snapshot.pools.get(str(claim.pool))
            after = consolidates_after(pool) if pool is not None else None
            if node is not None and after and last_pod_event_time(claim) + after > self.now:
                names.add(node.name)
            ends = instance_ends(claim)
            if node is not None and ends is not None and ends - self.now < ENDS_SOON:
                names.add(node.name)
        return frozenset(names)


def empty_nodes_command(candidates: Sequence[Candidate]) -> Command:
    """The end of empty nodes, all at once."""
    price = sum(candidate.price or 0.0 for candidate in candidates)
    pods = sum(len(candidate.pods) for candidate in candidates)
    text = f"{len(candidates)} empty nodes: {price:.4f} USD/h less"
    return Command(
        DisruptionReason.EMPTY,
        tuple(sorted(candidate.name for candidate in candidates)),
        (),
        price,
        0.0,
        pods,
        text,
    )
