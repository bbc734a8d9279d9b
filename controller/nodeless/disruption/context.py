"""One disruption pass: the candidates, what waits for a place, what budgets leave, and the verdicts."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from nodeless.disruption.budgets import Allowance, allowance
from nodeless.disruption.candidates import Candidate, candidates
from nodeless.disruption.command_history import NOTHING_REMEMBERED, CommandHistory
from nodeless.disruption.faults import AtWork
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.disruption.simulation import (
    ScheduledSnapshot,
    apply_command,
    leaving_soon,
    schedule_pending,
    with_buffers,
)
from nodeless.disruption.vertical_targets import with_vertical_targets
from nodeless.model.disruption import Command, DisruptionReason, Verdict, VerdictCode
from nodeless.model.instance_types import Catalog
from nodeless.model.pods import Pod
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import with_running_choices
from nodeless.scheduling.capacity.coverage import running_coverage
from nodeless.scheduling.capacity.pricing import priced


class DisruptionContext:
    """What the kinds of commands share. `verdicts` says, by claim name, why each one is left alone."""

    def __init__(
        self,
        snapshot: Snapshot,
        catalog: Catalog,
        policy: DisruptionPolicy,
        now: float,
        memory: CommandHistory = NOTHING_REMEMBERED,
        again: Command | None = None,
        excluded: Mapping[str, Verdict] = MappingProxyType({}),
        at: AtWork | None = None,
    ) -> None:
        """`excluded`: claims that are not looked at, with their verdicts; `at` learns what it has come to."""
        self.excluded = excluded
        self.at = at or AtWork()
        chosen = {name: command for command in memory.commands for name in command.claims}
        self.now, self.tried = now, memory.tried
        solving = replace(policy.solving, now=now)
        #: As given, before the prices below are made: the very same in each pass until something changes.
        self.given = catalog, policy
        #: Of what its catalog prices: adjustments and the fee are in there, and no solve adds them once more.
        self.policy = replace(policy, solving=replace(solving, price_adjustments=(), node_fee=0.0))
        snapshot = with_buffers(with_vertical_targets(snapshot, catalog), catalog, solving)
        snapshot = with_running_choices(snapshot, catalog, solving)
        self.snapshot = leaving_soon(snapshot, chosen)
        self.catalog = priced(catalog, snapshot.pools.values(), solving.price_adjustments, solving.node_fee)
        #: What commitments pay of the nodes that stay.
        self.coverage = running_coverage(self.snapshot, self.catalog, solving.commitments)
        self.candidates, self.verdicts = candidates(
            self.snapshot, self.catalog, now, self.at, excluded, self.coverage
        )
        for name, command in chosen.items():
            self.verdicts[name] = Verdict(
                VerdictCode.CHOSEN, f"looked at once more before it is done: {command.message}"
            )
        self._promised = frozenset(
            pod.key
            for name, command in chosen.items()
            if command.replacements and name in snapshot.claims
            for pod in _pods_of(snapshot, name)
        )
        names = again.claims if again is not None else ()
        self._ending = frozenset(snapshot.claims[name].node_name for name in names if name in snapshot.claims)
        self.kept = memory.held
        self.rate_limited_workloads = memory.rate_limited_workloads(snapshot, now)
        self._scheduled: ScheduledSnapshot | None = None
        self._allowances: dict[tuple[str, DisruptionReason], Allowance] = {}
        #: Names of nodes to which pods come by the commands of this pass.
        self.receiving: set[str] = set()

    @property
    def scheduled(self) -> ScheduledSnapshot:
        if self._scheduled is None:
            self._scheduled = schedule_pending(
                self.snapshot, self.catalog, self.policy.solving, self.now, self._promised, self._ending
            )
        return self._scheduled

    def record_command(self, candidate: Candidate, placements: Mapping[str, str]) -> None:
        """Count a command as made: the room that its pods take is not there for the next one."""
        before = self.scheduled
        self._scheduled = replace(before, snapshot=apply_command(before.snapshot, candidate, placements))
        self.receiving |= {placements[pod.key] for pod in candidate.pods if pod.key in placements}

    def allowance(self, pool: Pool, reason: DisruptionReason) -> Allowance:
        """What a pool's budgets leave now for a reason."""
        # Counts all nodes of the pool, and is asked for each of them that its budgets hold.
        key = pool.key, reason
        if key not in self._allowances:
            self._allowances[key] = allowance(self.snapshot, pool, reason, self.now)
        return self._allowances[key]

    def remaining_budgets(self, reason: DisruptionReason) -> dict[str, int]:
        return {key: self.allowance(pool, reason).remaining for key, pool in self.snapshot.pools.items()}

    def soon_left(self, reason: DisruptionReason) -> dict[str, int]:
        """What budgets leave in each pool once the nodes that began to leave a short while ago are gone."""
        return {key: self.allowance(pool, reason).soon_remaining for key, pool in self.snapshot.pools.items()}

    def refuse(self, some: Iterable[Candidate], code: VerdictCode, message: str) -> None:
        for candidate in some:
            # What was found first stands: an expired node that waits says that, not how full it is.
            self.verdicts.setdefault(candidate.name, Verdict(code, message))


def _pods_of(snapshot: Snapshot, claim_name: str) -> Iterable[Pod]:
    node = snapshot.node_of(snapshot.claims[claim_name])
    return snapshot.pods_on(node.name) if node is not None else ()
