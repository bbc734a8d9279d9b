"""Voluntary commands, carried out: look, wait, look again, begin; and every second the next steps.

Commands that make the cluster cheaper are looked at again 15 seconds later on the fresh snapshot
(Karpenter's period) before anything is done; those found together as one batch. Meanwhile the search
and other commands go on. What is kept in this process, as a `CommandHistory`, may be lost: commands that wait
are found again.
"""

import asyncio
from dataclasses import replace

from nodeless.cloudprovider import CloudError, CloudProvider
from nodeless.cloudprovider.pool_catalogs import pool_catalogs, pool_subnets
from nodeless.controllers.error_boundary import ErrorBoundary, Subject, is_conflict, is_transient, must_end
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.disruption import (
    CommandHistory,
    CommandStep,
    ConsolidationState,
    DisruptionPolicy,
    Searches,
    batch_instructions,
    begin,
    disrupt,
    is_consolidated,
    next_steps,
    target,
    validate,
    what_changed,
)
from nodeless.disruption.candidates import claims_by_replacement
from nodeless.disruption.command_history import Waiting
from nodeless.disruption.events import BLOCKED, command_events, invalid_annotation_events, reason_of
from nodeless.disruption.validating import Validation, held_by_budgets
from nodeless.explain.why import one_line
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.kube.event_recorder import Recorder
from nodeless.model.disruption import Command, Decisions, DisruptionReason, Verdict, VerdictCode
from nodeless.model.events import Nominated
from nodeless.model.instance_types import Catalog
from nodeless.model.instructions import CreateClaim, Instruction, PublishEvent
from nodeless.model.nodes import NodeClaim
from nodeless.model.snapshot import Snapshot
from nodeless.operator.event_reasons import rule_of
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.solver_policy import disruption_policy_of, policy_of
from nodeless.operator.timing import TIMING, Timing
from nodeless.operator.work_metrics import DEPROVISIONING

#: What may fail for a reason that nobody foresaw: the search for commands, the next step of those under way.
_LOOK, _STEP = "search", "commands"
#: Seconds for which commands that are to be one batch are searched for on one snapshot.
_COMMAND_SECONDS = 2.0
#: Seconds that a search may take without a rest after it, and the rest for each second of a longer one.
_SHORT_SEARCH, _REST_AFTER = 1.0, 5.0
#: Reasons of commands that save money, and wait for validation.
_SAVING = (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED)
#: What is told on a node, by the code of its verdict; the others are the ordinary course of things.
_EVENTS = {
    VerdictCode.UNCONSOLIDATABLE: "Unconsolidatable",
    VerdictCode.CONSOLIDATION_DISABLED: "Unconsolidatable",
    VerdictCode.CONSOLIDATION_FORBIDDEN: "Unconsolidatable",
    VerdictCode.NODE_PROTECTED: BLOCKED,
    VerdictCode.POD_PROTECTED: BLOCKED,
    VerdictCode.BUDGET_EXHAUSTED: BLOCKED,
    VerdictCode.SEVERAL_BUDGETS: BLOCKED,
    VerdictCode.BUDGET: BLOCKED,
    VerdictCode.NO_REPLACEMENT: BLOCKED,
    VerdictCode.PAUSED: BLOCKED,
    VerdictCode.PRICE_UNKNOWN: BLOCKED,
    VerdictCode.RESTLESS: BLOCKED,
    VerdictCode.COMMITTED: "Unconsolidatable",
    VerdictCode.UNBALANCED: "Unconsolidatable",
    VerdictCode.EVICTIONS_TOO_DEAR: "Unconsolidatable",
    VerdictCode.BREAKER: "NodeRepairBlocked",
    VerdictCode.REPAIR_BLOCKED: "NodeRepairBlocked",
    VerdictCode.FAILED: BLOCKED,
}


class DisruptionLoop:
    """The loop that makes commands."""

    def __init__(
        self,
        cluster: Cluster,
        cloud: CloudProvider,
        executor: InstructionExecutor,
        recorder: Recorder,
        settings: GlobalSettings,
        metrics: Metrics,
        timing: Timing = TIMING,
    ) -> None:
        self._timing, self._now, self._steady = timing, timing.wall_clock, timing.steady_clock
        self._cluster = cluster
        self._cloud = cloud
        self._executor = executor
        self._recorder = recorder
        self._metrics = metrics
        self._policy = _policy(settings)
        self._logged_verdicts: dict[str, tuple[str, float]] = {}
        self._still: tuple[ConsolidationState, tuple[Command, ...]] | None = None
        self._memory = CommandHistory()
        self._searches = Searches()
        #: Until when no replacements are searched in a cluster that `_searches` does not know (steady clock).
        self._rests_until = 0.0
        #: The cluster in which the round of passes began that is not over.
        self._round: ConsolidationState | None = None
        #: A cluster of which the last step found that no command is under way.
        self._idle: Snapshot | None = None
        #: The cluster whose distance from its target was measured last.
        self._measured: Snapshot | None = None
        self._acting = asyncio.Lock()
        self._boundary = ErrorBoundary("disruption", metrics, recorder)
        #: Commands whose step failed, or that could not be begun, by their claims; claims whose pass failed.
        self._failed_steps: set[str] = set()
        self._failed_starts: set[str] = set()
        self._failed_passes: set[str] = set()
        self._log = logger("disruption")

    def use(self, settings: GlobalSettings) -> None:
        """Judge by other settings from the next pass on."""
        self._policy = _policy(settings)
        self._still = self._round = None

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._advance())
            while True:
                acted = False
                try:
                    acted = await self.reconcile_once()
                    self._boundary.record_success(_LOOK)
                except (ApiError, ApiUnavailable, CloudError) as error:
                    self._log.warning(f"disruption failed, trying again: {error}")
                except Exception as error:
                    if must_end(error):
                        raise
                    await asyncio.sleep(self._boundary.record_failure(_LOOK, error))
                await asyncio.sleep(self._timing.disruption_step if acted else self._pause())

    async def _advance(self) -> None:
        """The next step of every command, also of those that another leader has begun."""
        while True:
            await asyncio.sleep(self._timing.disruption_step)
            rest = 0.0
            async with self._acting:
                try:
                    await self.advance_once()
                    self._boundary.record_success(_STEP)
                except (ApiError, ApiUnavailable, CloudError) as error:
                    self._say_interrupted(error)
                except Exception as error:
                    if must_end(error):
                        raise
                    rest = self._boundary.record_failure(_STEP, error)
            await asyncio.sleep(rest)

    async def advance_once(self) -> None:
        """The next step of every command; a cluster without commands is left alone until it changes."""
        snapshot = self._cluster.snapshot
        if snapshot is self._idle:
            return
        steps = next_steps(snapshot, self._now())
        outcomes = await asyncio.gather(
            *(self._take(step, snapshot) for step in steps), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        for key in self._failed_steps - {step.key for step in steps}:
            self._record_success(self._failed_steps, key)
        await self._executor.carry_out(command_events(self._cluster.snapshot))
        self._idle = snapshot if not steps and not claims_by_replacement(snapshot) else None

    async def _take(self, step: CommandStep, snapshot: Snapshot) -> None:
        """The next step of one command; what fails there is kept to that command, which rests for a while."""
        version = self._version(step.key, snapshot)
        if self._boundary.seconds_to_rest(step.key, version):
            return
        try:
            if step.fault is not None:
                raise step.fault
            await self._carry_out(step.instructions, snapshot)
            self._metrics.disruption.failures.inc(sum(map(_is_failure, step.instructions)))
            self._record_success(self._failed_steps, step.key)
        except Exception as error:
            if must_end(error):
                raise
            if is_transient(error):
                self._say_interrupted(error)
            else:
                self._record_failure(self._failed_steps, step.key, error, version)

    def _say_interrupted(self, error: Exception) -> None:
        if not is_conflict(error):
            self._log.warning(f"a command could not be continued, trying again: {error}")

    def _record_failure(self, failed: set[str], key: str, error: Exception, version: str = "") -> None:
        """Note what failed; `key` names claims, the first of which says so by an event."""
        failed.add(key)
        claim = self._cluster.snapshot.claims.get(key.removeprefix("look:").partition(",")[0])
        subject = Subject("NodeClaim", claim.name, claim.uid) if claim is not None else None
        self._boundary.record_failure(key, error, version, subject)

    def _record_success(self, failed: set[str], key: str) -> None:
        failed.discard(key)
        self._boundary.record_success(key)

    @staticmethod
    def _version(key: str, snapshot: Snapshot) -> str:
        """What the claims of a command are now: it is taken up again when one changes."""
        claims = (snapshot.claims.get(name) for name in key.split(","))
        return ",".join(claim.resource_version for claim in claims if claim is not None)

    def _pause(self) -> float:
        """Seconds until the next pass: a command may be due sooner, or a still cluster's next moment come."""
        now = self._now()
        waits = [each.at + self._timing.disruption_validation - now for each in self._memory.waiting]
        if self._still is not None:
            waits.append(self._still[0].ends - self._steady())
        longest = self._timing.disruption_look
        return max(min(longest, *waits, longest), self._timing.disruption_step)

    @property
    def consolidated(self) -> bool:
        """Whether the last pass found nothing to do and nothing has changed since."""
        return self._nothing_new(self._cluster.snapshot)

    async def reconcile_once(self) -> bool:
        """One pass; whether a command was found or begun.

        The validation of each batch that is due and the search for others are rounds of their own.
        """
        self._metrics.disruption.show_budgets(self._cluster.snapshot, self._now())
        if self._cluster.snapshot.teardown:
            self._memory = CommandHistory()
            return False
        begun = False
        for batch in self._memory.batches(self._now(), self._timing.disruption_validation):
            if held_by_budgets([each.command for each in batch], self._cluster.snapshot, self._now()):
                continue
            with self._metrics.work.measure_reconciliation(DEPROVISIONING):
                begun = await self._validate(batch) or begun
        with self._metrics.work.measure_reconciliation(DEPROVISIONING):
            return await self._search() or begun

    async def _search(self) -> bool:
        """Search for commands, which become one batch, until there are no more; whether one was found."""
        snapshot = self._cluster.snapshot
        if self._nothing_new(snapshot):
            return False
        now, started, self._still = self._now(), self._steady(), None
        if self._round is None or not self._round.holds(snapshot, started):
            self._round, self._memory = None, replace(self._memory, tried=frozenset())
        found: list[Command] = []
        while True:
            decisions = await self._decide(snapshot, now)
            self._tell(decisions, snapshot)
            found += decisions.commands
            for command in decisions.commands:
                if command.reason in _SAVING:
                    self._memory = self._memory.with_waiting(command, now, snapshot)
                else:
                    await self._begin_kept(command)
            over = self._steady() - started > _COMMAND_SECONDS
            if (
                over
                or not decisions.commands
                or not all(each.reason in _SAVING for each in decisions.commands)
            ):
                break
        self._memory = self._memory.with_held_nodes(decisions, now)
        seconds = self._steady() - started
        if seconds > _SHORT_SEARCH:
            self._rests_until = self._steady() + _REST_AFTER * seconds
        self._metrics.disruption.show_pass(replace(decisions, commands=tuple(found)), snapshot, seconds)
        await self._measure(decisions, snapshot, now)
        if decisions.commands:
            return True
        still = ConsolidationState.after(
            snapshot, self._policy, now, started, self._memory, self._round, decisions.again_at
        )
        self._memory = self._memory.after_search(decisions)
        self._round = (self._round or still) if self._memory.tried else None
        if is_consolidated(decisions) and not self._failed_starts:
            self._still = still, self._memory.commands
        return bool(found)

    async def _measure(self, decisions: Decisions, snapshot: Snapshot, now: float) -> None:
        """How far the cluster is from its target, and what budgets hold."""
        validation = self._timing.disruption_validation
        held = (
            each.command.saving
            for each in self._memory.waiting
            if now - each.at >= validation and held_by_budgets([each.command], snapshot, now)
        )
        self._metrics.disruption.show_waiting(sum(decisions.held.values()) + sum(held))
        if snapshot is self._measured:
            return
        self._measured = snapshot
        if decisions.faults:
            # How far it is to the target cannot be said of a cluster that cannot be looked at whole.
            return
        catalog, policy = await self._market(snapshot)
        found = await asyncio.to_thread(target, snapshot, catalog, policy, now, self._memory)
        self._metrics.disruption.show_target(found)

    def _nothing_new(self, snapshot: Snapshot) -> bool:
        if self._still is None:
            return False
        consolidation_state, waiting = self._still
        return waiting == self._memory.commands and consolidation_state.holds(snapshot, self._steady())

    async def _decide(self, snapshot: Snapshot, now: float) -> Decisions:
        catalog, policy = await self._market(snapshot)
        self._metrics.disruption.show_costs(
            snapshot, catalog, policy.solving.node_fee, policy.solving.commitments
        )
        decisions = await asyncio.to_thread(
            disrupt,
            snapshot,
            catalog,
            policy,
            now,
            self._memory,
            self._searches,
            self._resting(snapshot),
            sparing=self._steady() < self._rests_until,
        )
        for name, error in decisions.faults.items():
            self._record_failure(self._failed_passes, f"look:{name}", error)
        for key in self._failed_passes - {f"look:{name}" for name in decisions.faults}:
            self._record_success(self._failed_passes, key)
        return decisions

    def _resting(self, snapshot: Snapshot) -> dict[str, Verdict]:
        """Claims of commands that could not be begun and are not tried again yet: others come before them."""
        found: dict[str, Verdict] = {}
        for key in sorted(self._failed_starts):
            there = [name for name in key.split(",") if name in snapshot.claims]
            if not there:
                self._record_success(self._failed_starts, key)
            elif self._boundary.seconds_to_rest(key):
                text = f"its command could not be begun and is tried again: {self._boundary.cause(key)}"
                found |= dict.fromkeys(there, Verdict(VerdictCode.FAILED, text))
        return found

    async def _market(self, snapshot: Snapshot) -> tuple[Catalog, DisruptionPolicy]:
        """What may be bought, and how to judge by what there is of subnets."""
        catalog, _ = await pool_catalogs(self._cloud, snapshot)
        subnets = await pool_subnets(self._cloud, snapshot, catalog)
        solving = replace(self._policy.solving.at(self._now()), subnets=subnets)
        return catalog, replace(self._policy, solving=solving)

    async def _validate(self, batch: tuple[Waiting, ...]) -> bool:
        """Begin the commands of one batch that has waited, as far as they are still right."""
        snapshot, commands = self._cluster.snapshot, [each.command for each in batch]
        catalog, policy = await self._market(snapshot)
        validations = await asyncio.to_thread(
            validate, commands, snapshot, catalog, policy, self._now(), self._memory
        )
        valid: list[Command] = []
        for waited, validation in zip(batch, validations, strict=True):
            if validation.held:
                continue
            if validation.fault is not None:
                self._record_failure(self._failed_passes, _key(waited.command), validation.fault)
            self._memory = self._memory.drop(waited.command)
            if validation.command is None:
                self._drop(waited, validation, snapshot)
            else:
                valid.append(validation.command)
        begun = [command for command in valid if await self._begin_kept(command)]
        for command in begun:
            self._memory = self._memory.with_executed(command, snapshot, self._now())
        return bool(begun)

    async def _begin_kept(self, command: Command) -> bool:
        """Begin a command; a fault is kept to it, and its claims rest. Whether it was begun."""
        key = _key(command)
        try:
            begun = await self._begin(command)
            self._record_success(self._failed_starts, key)
        except Exception as error:
            if must_end(error):
                raise
            if isinstance(error, ApiUnavailable) or is_conflict(error):
                self._say_interrupted(error)
            else:
                self._record_failure(self._failed_starts, key, error)
            return False
        return begun

    def _drop(self, waited: Waiting, validation: Validation, snapshot: Snapshot) -> None:
        """Tell why a command is not made, and what changed in the cluster since it was found."""
        command, dropped = waited.command, validation.dropped
        self._metrics.disruption.show_invalid(command)
        if dropped is None:
            return
        changed = what_changed(waited.seen, snapshot, command) if waited.seen is not None else ""
        self._metrics.disruption.show_dropped(dropped.code)
        self._log.info(
            f"no longer valid: {command.message}",
            nodes=_nodes(snapshot, command),
            code=dropped.code,
            because=dropped.message,
            changed=changed,
        )

    async def _begin(self, command: Command) -> bool:
        """Begin a command, unless a node that it replaces is on its way out by now; whether it was begun."""
        snapshot, now = self._cluster.snapshot, self._now()
        claims = [snapshot.claims.get(name) for name in command.claims] if command.replacements else []
        if snapshot.teardown or any(map(_is_leaving, claims)):
            return False
        self._log.info(
            f"disrupting by {command.action}: {command.message}",
            reason=command.reason,
            nodes=_nodes(snapshot, command),
            replacements=[node.instance_type for node in command.replacements],
        )
        self._metrics.disruption.show_command(command)
        catalog = (await pool_catalogs(self._cloud, snapshot))[0] if command.replacements else None
        pools = dict(snapshot.pools)
        instructions = begin(command, snapshot, pools, now, reason=one_line, catalog=catalog)
        async with self._acting:
            await self._carry_out(instructions, snapshot)
        for instruction in instructions:
            if isinstance(instruction, CreateClaim):
                # Pods come to it only once their old node is drained.
                self._cluster.handle(Nominated(instruction.claim.name, now + self._timing.disruption_look))
        return True

    async def _carry_out(self, instructions: tuple[Instruction, ...], snapshot: Snapshot) -> None:
        for part in batch_instructions(instructions, snapshot):
            await self._executor.carry_out_side_by_side(part)

    def _tell(self, decisions: Decisions, snapshot: Snapshot) -> None:
        now = self._steady()
        for event in invalid_annotation_events(snapshot):
            self._recorder.publish(event)
        for name, verdict in decisions.verdicts.items():
            claim = snapshot.claims.get(name)
            node = snapshot.node_of(claim) if claim is not None else None
            reason = _EVENTS.get(verdict.code)
            if claim is None or node is None or reason is None:
                continue
            if reason == BLOCKED:
                reason = reason_of(claim.pool, BLOCKED)
            # The recorder goes by messages, and those name figures that change.
            said, at = self._logged_verdicts.get(name, ("", 0.0))
            if said == verdict.code and now - at < rule_of(reason).silent_seconds:
                continue
            self._logged_verdicts[name] = (verdict.code, now)
            self._recorder.publish(
                PublishEvent("disruption", "Node", node.name, "Normal", reason, verdict.message, uid=node.uid)
            )
        for name in set(self._logged_verdicts) - set(snapshot.claims):
            del self._logged_verdicts[name]


def _policy(settings: GlobalSettings) -> DisruptionPolicy:
    """Simulations take the first-fit plan: what it does not find cheaper is not worth a command."""
    return replace(disruption_policy_of(settings), solving=replace(policy_of(settings), time_box=0.0))


def _is_leaving(claim: NodeClaim | None) -> bool:
    return claim is None or claim.deletion_timestamp is not None


def _key(command: Command) -> str:
    return ",".join(command.claims)


def _is_failure(instruction: Instruction) -> bool:
    return isinstance(instruction, PublishEvent) and instruction.reason == "DisruptionFailed"


def _nodes(snapshot: Snapshot, command: Command) -> list[str]:
    return [snapshot.claims[name].node_name for name in command.claims if name in snapshot.claims]
