"""Pools, node classes and the teardown guard: finalizers, status, and the end of all things."""

from collections.abc import Mapping
from dataclasses import replace

from nodeless.api.kinds import KIND_OF_NAME
from nodeless.api.writing import conditions_to_api
from nodeless.cloudprovider import VALIDATION, CloudError, CloudProvider, NodeClassUnresolved
from nodeless.cloudprovider.pool_catalogs import assert_bootable
from nodeless.controllers.error_boundary import (
    QUARANTINED,
    ErrorBoundary,
    ProcessMustEnd,
    Subject,
    cause_of,
    is_conflict,
    is_transient,
    quarantine_conditions,
    release_conditions,
)
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.controllers.executor.instances import StillThereError
from nodeless.controllers.nodeclass.checks import NodeClassChecks
from nodeless.controllers.nodepool.object_status import (
    deletion_status,
    invalid_class_status,
    pool_conditions,
    resolved_status,
    unresolved_status,
    usage_status,
    validation,
)
from nodeless.kube import ApiClient, ApiError
from nodeless.kube.cluster import Cluster
from nodeless.kube.event_recorder import Recorder
from nodeless.kube.workqueue import KeyedQueue
from nodeless.model import events
from nodeless.model.conditions import READY, Condition, same
from nodeless.model.events import Event
from nodeless.model.instructions import PublishEvent, ReleaseGuard
from nodeless.model.nodes import NodeClaim
from nodeless.model.pools import (
    AWS_NODE_TEMPLATE,
    EC2_NODE_CLASS,
    NODE_POOL_KIND,
    NodeClass,
    Pool,
    Reference,
)
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim import step_node_class, step_pool, step_teardown
from nodeless.nodeclaim.ownership_sync import deletion_progress
from nodeless.nodeclaim.registration_health import RegistrationHealth, launch_outcome
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import TIMING, Timing
from nodeless.operator.work_metrics import POOLS
from nodeless.state import PoolUnusable, pool_members, pool_usage, usable

_RETRY_SECONDS = 2.0
#: Claims change in crowds: a pool's status is written once for all that change within so many seconds.
_GATHER_SECONDS = 0.2
#: Node classes are resolved anew this often (Karpenter's node template controller).
_RESOLVE_SECONDS = 300.0
#: What cannot be resolved is tried again after this long, and twice as long each time, up to the longest.
_UNRESOLVED_SECONDS, _LONGEST_UNRESOLVED_SECONDS = 10.0, 60.0
#: A status was written, by us or by somebody else.
_ECHO_SECONDS = 1.0
_TEARDOWN = "teardown"
_GUARD = "guard"
#: An inline provider has no object of its own to write to.
_CLASS_KINDS = (AWS_NODE_TEMPLATE, EC2_NODE_CLASS)


class PoolLoop:
    """One worker over pools, node classes and the guard."""

    def __init__(
        self,
        client: ApiClient,
        cluster: Cluster,
        cloud: CloudProvider,
        executor: InstructionExecutor,
        recorder: Recorder,
        metrics: Metrics,
        timing: Timing = TIMING,
    ) -> None:
        self._timing, self._now = timing, timing.wall_clock
        self._client = client
        self._cluster = cluster
        self._cloud = cloud
        self._executor = executor
        self._recorder = recorder
        self._metrics = metrics
        self._queue = KeyedQueue(metrics.work.queue(POOLS, 1))
        self._boundary = ErrorBoundary("pool or node class", metrics, recorder)
        self._checks = NodeClassChecks(cloud, cluster, self._queue.add_in)
        #: The guard was released: whatever was made for a node class from now on, nobody would delete.
        self._torn_down = False
        self._guarded = False
        #: What became of the last launches of NodePools, by pool key.
        self._health: dict[str, RegistrationHealth] = {}
        #: How often in a row a node class could not be resolved, by its key.
        self._failures: dict[str, int] = {}
        self._log = logger("pools")
        cluster.listen(self._on_event)

    def _on_event(self, event: Event, before: Snapshot, after: Snapshot) -> None:
        match event:
            case events.PoolSeen(pool):
                self._on_pool(before.pools.get(pool.key), pool)
            case events.PoolGone(key) if key in before.pools:
                self._boundary.record_success(key)
                self._cloud.forget(before.pools[key].reference)
                self._health.pop(key, None)
                self._metrics.show_pools(after, before.pools[key].name)
            case events.NodeClassSeen(node_class):
                self._on_class(before.node_classes.get(node_class.key), node_class, after)
            case events.NodeClassGone(key):
                self._failures.pop(key, None)
                self._boundary.record_success(key)
                self._add_pools_of(after, key)
            case events.ClaimSeen(claim):
                self._queue.add_in(str(claim.pool), _GATHER_SECONDS)
                self._count(self._outcome(before, claim), claim, after)
            case events.ClaimGone(name) if name in before.claims:
                self._queue.add(str(before.claims[name].pool))
                self._queue.add(str(before.claims[name].node_class))
            case events.GuardSeen(deleting):
                self._guarded = True
                self._torn_down = self._torn_down and deleting
            case events.GuardGone():
                self._guarded = False
                self._queue.add_in(_GUARD, self._timing.guard_restore)
        if after.teardown:
            self._queue.add(_TEARDOWN)
        elif before.teardown and not self._torn_down:
            # Called off: what was due meanwhile was left alone.
            for key in (*after.pools, *after.node_classes):
                self._queue.add(key)

    def _outcome(self, before: Snapshot, claim: NodeClaim) -> bool | None:
        return launch_outcome(before.claims.get(claim.name), claim, self._timing.claims)

    def _on_pool(self, known: Pool | None, seen: Pool) -> None:
        """Follow what a user changed at once; what we wrote ourselves must not start the next round."""
        if known is not None and seen.wants_the_same(known):
            self._queue.add_in(seen.key, _ECHO_SECONDS)
            return
        self._queue.add(seen.key)
        if known is None or known.generation != seen.generation:
            # Whether its images can be started depends on its pools.
            self._queue.add(str(seen.node_class))

    def _on_class(self, known: NodeClass | None, seen: NodeClass, snapshot: Snapshot) -> None:
        """Follow what a user changed at once; what we wrote ourselves must not start the next round."""
        if known is None or not _differ_in_status_alone(known, seen):
            self._failures.pop(seen.key, None)
            self._queue.add(seen.key)
            self._add_pools_of(snapshot, seen.key)
            return
        if seen.key not in self._failures:
            self._queue.add_in(seen.key, _ECHO_SECONDS)
        if _readiness(known) != _readiness(seen):
            self._add_pools_of(snapshot, seen.key)

    def _add_pools_of(self, snapshot: Snapshot, node_class: str) -> None:
        for pool in snapshot.pools.values():
            if str(pool.node_class) == node_class:
                self._queue.add(pool.key)

    def _count(self, joined: bool | None, claim: NodeClaim, snapshot: Snapshot) -> None:
        pool = snapshot.pools.get(str(claim.pool))
        if joined is not None and pool is not None:
            self._health[pool.key] = self._health_of(pool, snapshot).after(joined)

    def _health_of(self, pool: Pool, snapshot: Snapshot) -> RegistrationHealth:
        reported = RegistrationHealth.of(pool, snapshot.node_classes.get(str(pool.node_class)))
        known = self._health.get(pool.key, reported)
        same = (known.generation, known.class_generation) == (reported.generation, reported.class_generation)
        return known if same else reported

    async def run(self) -> None:
        """Work until cancelled."""
        # It may have gone while nobody looked.
        self._queue.add_in(_GUARD, self._timing.guard_restore)
        try:
            await self._work()
        finally:
            self._checks.close()

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                found = self._subject(key)
                if rest := self._boundary.seconds_to_rest(key, str(found.generation) if found else ""):
                    self._queue.add_in(key, rest)
                    continue
                with self._metrics.work.measure_reconciliation(POOLS):
                    await self._step(key)
            except StillThereError as error:
                self._log.info(str(error))
                self._queue.add_in(key, _RETRY_SECONDS)
            except ProcessMustEnd:
                raise
            except Exception as error:
                await self._retry_later(key, error)
            else:
                await self._record_success(key)
            finally:
                self._queue.done(key)

    def _subject(self, key: str) -> Pool | NodeClass | None:
        snapshot = self._cluster.snapshot
        return snapshot.pools.get(key) or snapshot.node_classes.get(key)

    async def _retry_later(self, key: str, error: Exception) -> None:
        """Try again: soon after what passes with time, ever later after what nobody foresaw."""
        if is_transient(error):
            if not is_conflict(error):
                self._log.warning(f"{key}: {error}")
            self._queue.add_in(key, self._timing.guard_restore if key == _GUARD else _RETRY_SECONDS)
            return
        found = self._subject(key)
        on = Subject(found.reference.kind, found.reference.name, found.reference.uid) if found else None
        wait = self._boundary.record_failure(key, error, str(found.generation) if found else "", on)
        self._queue.add_in(key, max(wait, _RETRY_SECONDS))
        if found is not None:
            await self._show(found, quarantine_conditions(found.conditions, cause_of(error), self._now()))

    async def _record_success(self, key: str) -> None:
        self._boundary.record_success(key)
        found = self._subject(key)
        known = {each.type: each for each in found.conditions} if found is not None else {}
        if found is not None and QUARANTINED in known and known[QUARANTINED].status == "True":
            await self._show(found, release_conditions(found.conditions, self._now()))

    async def _show(self, found: Pool | NodeClass, conditions: tuple[Condition, ...]) -> None:
        """Write conditions, if they say something new; whatever comes of it, the work goes on."""
        if same(found.conditions, conditions) or found.reference.kind not in KIND_OF_NAME:
            return
        try:
            await self._write_status(found.reference, {"conditions": conditions_to_api(conditions)})
        except ProcessMustEnd:
            raise
        except Exception as error:
            self._log.debug(f"{found.key}: the condition could not be written", exc_info=error)

    async def _step(self, key: str) -> None:
        snapshot = self._cluster.snapshot
        if key == _TEARDOWN:
            await self._step_teardown(snapshot)
            return
        if key == _GUARD:
            self._executor.assert_leading()
            if not self._guarded:
                await self._executor.guard.restore(snapshot.teardown_drain)
            return
        pool = snapshot.pools.get(key)
        if pool is not None:
            await self._step_pool(snapshot, pool)
        node_class = snapshot.node_classes.get(key)
        if node_class is not None and node_class.reference.kind in _CLASS_KINDS:
            await self._step_class(snapshot, node_class)

    async def _step_teardown(self, snapshot: Snapshot) -> None:
        """End everything step by step, as long as no hold says that the guard's deletion is not meant."""
        if not snapshot.teardown:
            return
        if holds := await self._executor.guard.holds():
            self._executor.guard.spare(holds)
            await self._executor.carry_out((ReleaseGuard(_TEARDOWN),))
            return
        await self._checks.wait_for_end()
        steps = step_teardown(snapshot)
        # First: the guard may be seen gone before the request is answered.
        self._torn_down = any(isinstance(each, ReleaseGuard) for each in steps)
        await self._executor.carry_out(steps)
        self._queue.add_in(_TEARDOWN, _RETRY_SECONDS)

    async def _step_class(self, snapshot: Snapshot, node_class: NodeClass) -> None:
        """Protect and resolve a living node class; end a deleted one when nothing uses it any more."""
        if node_class.deletion_timestamp is None and (snapshot.teardown or self._torn_down):
            return
        subject = node_class.reference
        if node_class.deletion_timestamp is not None:
            await self._checks.wait_for_end(node_class.key)
        try:
            await self._executor.carry_out(step_node_class(snapshot, node_class))
        except CloudError as error:
            self._recorder.publish(
                PublishEvent(
                    node_class.key,
                    subject.kind,
                    subject.name,
                    "Warning",
                    "CleanUpFailed",
                    str(error),
                    uid=subject.uid,
                )
            )
            raise
        if node_class.deletion_timestamp is None or subject.kind == AWS_NODE_TEMPLATE:
            await self._resolve(node_class)

    async def _step_pool(self, snapshot: Snapshot, pool: Pool) -> None:
        if snapshot.teardown and pool.deletion_timestamp is None:
            return
        await self._executor.carry_out(step_pool(snapshot, pool, self._now()))
        if not pool.invalid:
            nodes = sum(node is not None for _, node in pool_members(snapshot, pool))
            await self._write_status(pool.reference, usage_status(pool, pool_usage(snapshot, pool), nodes))
        if pool.deletion_timestamp is not None and (progress := deletion_progress(snapshot, pool)):
            await self._write_status(pool.reference, deletion_status(pool, progress, self._now()))
        self._metrics.show_pools(snapshot, pool.name)
        await self._warm(snapshot, pool)

    async def _warm(self, snapshot: Snapshot, pool: Pool) -> None:
        """Fetch what a launch will need; what is missing is said now, not at the first pending pod."""
        if pool.deletion_timestamp is not None or snapshot.teardown:
            return
        problem = ""
        if pool.invalid:
            # Told when it was read; there is nothing to fetch until it is corrected.
            self._cloud.forget(pool.reference)
        else:
            known = snapshot.node_classes.get(str(pool.node_class))
            if known is not None and known.deletion_timestamp is None:
                # Before anything is made for it.
                await self._executor.carry_out(step_node_class(snapshot, known))
            try:
                await self._cloud.warm(*usable(snapshot, pool.reference, pool.node_class))
            except (PoolUnusable, CloudError) as error:
                problem = str(error)
                self._report_invalid(pool.reference, problem, getattr(error, "evidence", ""))
                if isinstance(error, PoolUnusable):
                    self._cloud.forget(pool.reference)
            self._queue.add_in(pool.key, _UNRESOLVED_SECONDS if problem else _RESOLVE_SECONDS)
        node_class = snapshot.node_classes.get(str(pool.node_class))
        now, health = self._now(), None
        if pool.reference.kind == NODE_POOL_KIND:
            health = self._health_of(pool, snapshot).condition(pool, now)
        await self._write_status(pool.reference, pool_conditions(pool, node_class, problem, now, health))

    async def _resolve(self, node_class: NodeClass) -> None:
        """Write what the selectors find into the object's status, as Karpenter does."""
        if node_class.invalid:
            await self._write_status(node_class.reference, invalid_class_status(node_class, self._now()))
            return
        try:
            resolved = await self._cloud.resolve(node_class)
            await assert_bootable(self._cloud, self._cluster.snapshot, node_class)
        except CloudError as error:
            self._report_invalid(node_class.reference, str(error), error.evidence)
            self._queue.add_in(node_class.key, self._next_try(node_class))
            status = unresolved_status(node_class, error, self._now())
            if isinstance(error, NodeClassUnresolved) and VALIDATION in error.what:
                self._checks.begin(node_class, str(error))
        else:
            self._failures.pop(node_class.key, None)
            self._queue.add_in(node_class.key, _RESOLVE_SECONDS)
            passed, problem = self._cloud.is_validated(node_class, resolved), self._checks.problem(node_class)
            checked = validation(node_class, problem, passed=passed)
            status = resolved_status(node_class, resolved, self._now(), checked)
            self._checks.begin(node_class, "" if passed else None if problem is None else str(problem))
        await self._write_status(node_class.reference, status)

    def _next_try(self, node_class: NodeClass) -> float:
        """Seconds until a class that failed is resolved again: longer each time it has not changed."""
        tries = self._failures[node_class.key] = self._failures.get(node_class.key, 0) + 1
        return float(min(_UNRESOLVED_SECONDS * 2 ** (tries - 1), _LONGEST_UNRESOLVED_SECONDS))

    async def _write_status(self, subject: Reference, status: Mapping[str, object]) -> None:
        if not status:
            return
        path = KIND_OF_NAME[subject.kind].path(subject.name, subresource="status")
        try:
            await self._client.patch(path, {"status": status})
        except ApiError as error:
            # Deleted meanwhile: the watch will say so.
            if error.status != 404:
                raise

    def _report_invalid(self, subject: Reference, problem: str, evidence: str = "") -> None:
        kind, name = subject.kind, subject.name
        event = PublishEvent(str(subject), kind, name, "Warning", "NotReady", problem, uid=subject.uid)
        if self._recorder.publish(event):
            self._log.error(f"{subject} cannot be used: {problem}" + (f" ({evidence})" if evidence else ""))


def _differ_in_status_alone(left: NodeClass, right: NodeClass) -> bool:
    return replace(left, conditions=()) == replace(right, conditions=())


def _readiness(node_class: NodeClass) -> str:
    return next((each.status for each in node_class.conditions if each.type == READY), "")
