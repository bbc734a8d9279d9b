"""The lifecycle of every claim: look at it whenever something about it changes, do the next step.

A step that fails is taken anew, with a growing delay for that claim alone. One that fails for a reason
which nobody foresaw, or whose write the API server refuses for what it says, puts the claim into quarantine:
an event and the condition `Quarantined` say why, and the others go on.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import nullcontext

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
from nodeless.controllers.executor.evictions import PodRequest
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.controllers.nodeclaim.eviction_order import EvictionOrder
from nodeless.controllers.nodeclaim.launcher import Launcher, RetryLaterError
from nodeless.controllers.nodeclaim.pod_events import PodEvents
from nodeless.controllers.provisioning.nominations import PodNominator
from nodeless.kube.cluster import Cluster
from nodeless.kube.event_recorder import Recorder
from nodeless.kube.workqueue import KeyedQueue
from nodeless.model import events
from nodeless.model.conditions import Condition, same
from nodeless.model.events import Event
from nodeless.model.instructions import (
    CheckInstance,
    Instruction,
    LaunchInstance,
    RebootInstance,
    TerminateInstance,
    UpdateClaimStatus,
)
from nodeless.model.nodes import INITIALIZED_CONDITION, REGISTERED_CONDITION, Node, NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim import ClaimView, step, step_orphan
from nodeless.nodeclaim.draining import attachments_of
from nodeless.nodeclaim.startup_taints import is_closed
from nodeless.nodeclaim.surging import surge_pending, surge_started
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.semaphore import Slots
from nodeless.operator.timing import TIMING, Timing
from nodeless.operator.work_metrics import CLAIM_LIFECYCLE, Outcome
from nodeless.scheduling.devices import own_nodes, served_on, serving_classes

#: Claims that are worked on at a time, beside those that wait for the cloud or for evictions.
WORKERS = 32
#: What may take as long as the cloud, or a webhook on evictions, wants.
_SLOW = (PodRequest, CheckInstance, RebootInstance, TerminateInstance)
_FIRST_DELAY = 0.5
_LONGEST_DELAY = 60.0
_MOST_DOUBLINGS = 7
_NODE_PREFIX = "node:"


class ClaimLoop:
    """Work over a queue of claim names (and of orphaned nodes, as `node:NAME`)."""

    def __init__(
        self,
        cluster: Cluster,
        executor: InstructionExecutor,
        launcher: Launcher,
        metrics: Metrics,
        recorder: Recorder | None = None,
        nominator: PodNominator | None = None,
        timing: Timing = TIMING,
    ) -> None:
        self._timing, self._now = timing, timing.wall_clock
        self._boundary = ErrorBoundary("claim", metrics, recorder)
        self._cluster = cluster
        self._executor = executor
        self._launcher = launcher
        self._metrics = metrics
        self._queue = KeyedQueue(metrics.work.queue(CLAIM_LIFECYCLE, WORKERS))
        self._slots = Slots(WORKERS)
        self._failures: dict[str, int] = {}
        #: When a failed launch may be tried again, by claim; other steps of the claim need not wait for it.
        self._launch_after: dict[str, float] = {}
        #: When the Nodes of registered claims were first found missing, by claim; watches may lag.
        self._missed: dict[str, float] = {}
        self._pod_events = PodEvents()
        self._eviction_order = EvictionOrder(cluster, executor.evictions.is_refused, timing)
        self._log = logger("lifecycle")
        self._nominator = nominator
        if nominator is not None:
            nominator.on_complete(self._queue.add)
        cluster.listen(self._on_event)

    def _on_event(self, event: Event, before: Snapshot, after: Snapshot) -> None:
        match event:
            case events.ClaimSeen(claim):
                self._queue.add(claim.name)
            case events.ClaimGone(name):
                self._launch_after.pop(name, None)
                self._boundary.record_success(name)
                self._pod_events.forget(name)
                self._missed.pop(name, None)
                left = before.node_of(before.claims[name]) if name in before.claims else None
                if left is not None:
                    self._add_node(after, left.name)
            case events.NodeSeen(node):
                self._add_node(after, node.name)
            case events.NodeGone(name):
                self._add_node(before, name)
            case events.PodSeen(pod):
                known = before.pods.get(pod.key)
                self._pod_events.observe(pod, known, after)
                for name in {pod.node_name, known.node_name if known else ""} - {""}:
                    self._add_node(after, name)
            case events.PodGone(key) if key in before.pods:
                self._pod_events.note_gone(before.pods[key], after)
                self._add_node(after, before.pods[key].node_name)
            case events.VolumeAttachmentGone(name) if name in before.attachments:
                self._add_node(after, before.attachments[name].node_name)
            case events.PoolSeen(pool):
                known_pool = before.pools.get(pool.key)
                # Its status follows each of its claims: none of them need look at itself for that.
                if known_pool is None or not pool.wants_the_same(known_pool):
                    self._add_claims(after, lambda claim: claim.pool == pool.reference)
            case events.BuffersPlaced():
                self._on_kept_room(before, after)
            case events.NodeClassSeen(node_class):
                # Its status lists subnets by their free addresses, so it is written while nodes come and go.
                if node_class != before.node_classes.get(node_class.key):
                    self._add_claims(after, lambda claim: claim.node_class == node_class.reference)
            case _:
                self._on_device_event(event, after)

    def _on_device_event(self, event: Event, after: Snapshot) -> None:
        """Look at the claims of nodes whose devices may serve now what the nodes were launched for."""
        match event:
            case events.ResourceSliceSeen(resource_slice):
                for name in own_nodes([resource_slice]):
                    self._add_node(after, name)
            case events.DeviceClassSeen() | events.DeviceClassGone():
                for name, claim in after.claims.items():
                    if not claim.is_true(INITIALIZED_CONDITION):
                        self._queue.add(name)

    def _on_kept_room(self, before: Snapshot, after: Snapshot) -> None:
        """Look at the claims of nodes on which room is kept from now on, or no more; after a start at all."""
        if not before.room_placed:
            for name in after.claims:
                self._queue.add(name)
        for name in {*before.buffered} ^ {*after.buffered}:
            if name in after.claims:
                self._queue.add(name)
            self._add_node(after, name)

    def _add_claims(self, snapshot: Snapshot, concerned: Callable[[NodeClaim], bool]) -> None:
        """What these claims depend on has changed: perhaps the very thing that made a launch fail."""
        for name, claim in snapshot.claims.items():
            if concerned(claim):
                self._launch_after.pop(name, None)
                self._queue.add(name)

    def _add_node(self, snapshot: Snapshot, name: str) -> None:
        node = snapshot.nodes.get(name)
        if node is None:
            return
        claim = snapshot.claim_of(node)
        if claim is not None:
            self._queue.add(claim.name)
        elif node.terminating:
            self._queue.add(_NODE_PREFIX + name)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._eviction_order.run(self._queue.add))
            while True:
                key = await self._slots.take_for(self._queue.get)
                group.create_task(self._work(key))

    async def _work(self, key: str) -> None:
        claim = self._cluster.snapshot.claims.get(key)
        version = claim.resource_version if claim is not None else ""
        try:
            rest = self._boundary.seconds_to_rest(key, version)
            if rest:
                self._queue.add_in(key, rest)
                return
            with self._metrics.work.measure_reconciliation(CLAIM_LIFECYCLE) as outcome:
                await self._step(key, outcome)
            if key not in self._launch_after:
                self._failures.pop(key, None)
            await self._record_success(key)
        except RetryLaterError:
            self._launch_after[key] = self._now() + self._again(key)
        except ProcessMustEnd:
            raise
        except Exception as error:
            if not is_transient(error):
                await self._set_aside(key, claim, version, error)
                return
            if not is_conflict(error):
                self._log.warning(f"reconciliation failed, trying again: {error}", key=key)
            self._again(key)
        finally:
            self._queue.done(key)
            self._slots.give_back()

    async def _set_aside(self, key: str, claim: NodeClaim | None, version: str, error: Exception) -> None:
        subject = Subject("NodeClaim", claim.name, claim.uid) if claim is not None else None
        self._queue.add_in(key, self._boundary.record_failure(key, error, version, subject))
        if claim is not None:
            await self._show(claim, quarantine_conditions(claim.conditions, cause_of(error), self._now()))

    async def _record_success(self, key: str) -> None:
        self._boundary.record_success(key)
        claim = self._cluster.snapshot.claims.get(key)
        if claim is not None and claim.is_true(QUARANTINED):
            await self._show(claim, release_conditions(claim.conditions, self._now()))

    async def _show(self, claim: NodeClaim, conditions: tuple[Condition, ...]) -> None:
        """Write the conditions of a claim, if they say something new; a failure stops nothing."""
        if same(claim.conditions, conditions):
            return
        try:
            await self._executor.claims.show_conditions(claim, conditions)
        except ProcessMustEnd:
            raise
        except Exception as error:
            self._log.debug("the condition could not be written", key=claim.name, exc_info=error)

    def _again(self, key: str) -> float:
        """Have the key taken anew after a while that grows with each failure; gives back the seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = min(failures + 1, _MOST_DOUBLINGS)
        delay: float = min(_FIRST_DELAY * 2**failures, _LONGEST_DELAY)
        self._queue.add_in(key, delay)
        return delay

    async def _step(self, key: str, outcome: Outcome) -> None:
        snapshot = self._cluster.snapshot
        if key.startswith(_NODE_PREFIX):
            node = snapshot.nodes.get(key.removeprefix(_NODE_PREFIX))
            if node is not None and snapshot.claim_of(node) is None:
                orphaned = step_orphan(node, snapshot.pods_on(node.name), self._now())
                await self._carry_out(orphaned.instructions)
                if orphaned.again_at is not None:
                    self._queue.add_in(key, orphaned.again_at - self._now())
            return
        claim = snapshot.claims.get(key)
        if claim is None:
            self._failures.pop(key, None)
            return
        if claim.deletion_timestamp is not None:
            self._launch_after.pop(key, None)
        view = self._view(snapshot, claim)
        gone = view.instance_gone
        decided = step(view, self._now())
        launches = [each.claim for each in decided.instructions if isinstance(each, LaunchInstance)]
        await self._carry_out(each for each in decided.instructions if not isinstance(each, LaunchInstance))
        for launched in launches:
            await self._launch(launched)
        noted, again = self._pod_events.to_write(claim, self._now())
        if noted is not None:
            await self._executor.carry_out(
                (UpdateClaimStatus(f"claim:{claim.name}", claim.name, last_pod_event=noted),)
            )
        if again is not None:
            self._queue.add_in(key, again)
        if decided.again_at is not None:
            outcome.again_later()
            self._queue.add_in(key, decided.again_at - self._now())
        if not gone and claim.name in self._executor.instances.gone:
            # The instance went during this step: take the last one without waiting for the clock.
            self._queue.add_in(key, 0)

    async def _carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Carry out a step; what waits for something outside keeps no other claim from being worked on."""
        some = tuple(instructions)
        slow = any(isinstance(each, _SLOW) for each in some)
        async with self._slots.lent() if slow else nullcontext():
            await self._executor.carry_out(some)

    async def _launch(self, claim: NodeClaim) -> None:
        wait = self._launch_after.get(claim.name, 0.0) - self._now()
        if wait > 0:
            self._queue.add_in(claim.name, wait)
            return
        await self._launcher.launch(claim, self._slots.lent)
        self._launch_after.pop(claim.name, None)

    def _view(self, snapshot: Snapshot, claim: NodeClaim) -> ClaimView:
        node = snapshot.node_of(claim)
        # Only the end of a claim has to know them all.
        duplicates = (
            snapshot.duplicates_of(node) if node is not None and claim.deletion_timestamp is not None else ()
        )
        pods = tuple(
            pod for each in (node, *duplicates) if each is not None for pod in snapshot.pods_on(each.name)
        )
        names = (claim.name, node.name if node else "")
        expecting = self._nominator if self._opens(claim, node) else None
        device_classes = _serving(snapshot, claim, node)
        return ClaimView(
            claim=claim,
            node=node,
            duplicates=duplicates,
            device_classes=device_classes,
            served_by_devices=served_on(snapshot, node.name, device_classes)
            if node is not None and device_classes
            else frozenset(),
            pods=pods,
            pool=snapshot.pools.get(str(claim.pool)),
            attachments=attachments_of(snapshot, claim, node, self._now())
            if node is not None and claim.deletion_timestamp is not None
            else (),
            buffered=snapshot.room_unknown or any(name in snapshot.buffered for name in names),
            nominated_until=max(snapshot.nominations.get(name, 0.0) for name in names),
            instance_gone=claim.name in self._executor.instances.gone,
            first_bulk=self._eviction_order.first_bulk() if claim.deletion_timestamp is not None else 0.0,
            expects_pods=expecting is not None and expecting.expects(claim),
            awaits_nominations=expecting is not None and node is not None and expecting.awaits(claim, node),
            surge_pending=self._alone(snapshot, claim, pods),
            surge_started=surge_started(snapshot, pods)
            if claim.deletion_timestamp is not None
            else frozenset(),
            unmarked=frozenset(pod.key for pod in pods if pod.uid in self._executor.checkpoints.refused),
            missed_since=self._missed_since(claim, node),
            deadlines=self._timing.claims,
        )

    def _missed_since(self, claim: NodeClaim, node: Node | None) -> float | None:
        if node is not None or not claim.is_true(REGISTERED_CONDITION):
            self._missed.pop(claim.name, None)
            return None
        return self._missed.setdefault(claim.name, self._now())

    @staticmethod
    def _opens(claim: NodeClaim, node: Node | None) -> bool:
        """Whether the claim's node has joined and is not open for pods yet."""
        return node is not None and not claim.is_true(INITIALIZED_CONDITION) and is_closed(node)

    def _alone(self, snapshot: Snapshot, claim: NodeClaim, pods: tuple[Pod, ...]) -> frozenset[str]:
        if claim.deletion_timestamp is None:
            return frozenset()
        refused = self._executor.surges.refused
        return surge_pending(snapshot, (pod for pod in pods if pod.uid not in refused))


def _serving(snapshot: Snapshot, claim: NodeClaim, node: Node | None) -> dict[str, str]:
    """By requested resource that a claim's node does not announce, the DeviceClass that serves it."""
    if node is None or not snapshot.device_classes:
        return {}
    lacking = [name for name, amount in claim.requests.items() if amount and not node.allocatable.get(name)]
    serving = serving_classes(snapshot) if lacking else {}
    return {name: serving[name].name for name in lacking if name in serving}
