"""From pending pods to claims: batch, plan, write the claims, tell everybody.

The plan is made on a snapshot in a worker thread, so that watches and probes go on. Pods
that stay pending are planned again every ten seconds; claims in flight count as capacity,
so nothing is launched twice.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from nodeless.cloudprovider import CloudError, CloudProvider
from nodeless.cloudprovider.pool_catalogs import pool_catalogs, pool_subnets
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.controllers.provisioning.batcher import Batcher
from nodeless.controllers.provisioning.capacity_buffers import Buffers
from nodeless.controllers.provisioning.deferred_pods import DeferredPods, Turns, is_refusal, without
from nodeless.controllers.provisioning.launch_backoff import LaunchBackoff
from nodeless.controllers.provisioning.nominations import PodNominator
from nodeless.controllers.provisioning.provisioning_requests import Requests
from nodeless.controllers.provisioning.rejected_pods import culprits
from nodeless.controllers.provisioning.suggestions import Advisor
from nodeless.controllers.provisioning.tenants import Tenants
from nodeless.controllers.provisioning.terminating_pods import TerminatingPods
from nodeless.controllers.tracing.pod_traces import PodTraces
from nodeless.explain import events as texts
from nodeless.explain import log_messages
from nodeless.explain.decisions import Situation
from nodeless.explain.realizing import Realizing
from nodeless.explain.why import one_line
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.kube.event_recorder import Recorder
from nodeless.launch.claims import claims_for
from nodeless.model import events
from nodeless.model.buffers import CapacityBuffer
from nodeless.model.events import Event
from nodeless.model.instance_types import InstanceType
from nodeless.model.instructions import AnnotateClaim, CreateClaim, PublishEvent
from nodeless.model.labels import PLANNED_PODS
from nodeless.model.namespaces import Namespace
from nodeless.model.nodes import INITIALIZED_CONDITION, NodeClaim
from nodeless.model.plan import Plan, PlannedNode, Refusal
from nodeless.model.pods import Pod
from nodeless.model.pools import NODE_POOL_KIND
from nodeless.model.snapshot import Snapshot
from nodeless.operator.clock import wall_clock
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.solver_policy import disruption_policy_of, policy_of, price_terms_of
from nodeless.operator.work_metrics import PROVISIONER
from nodeless.scheduling import Policy, pods_to_place, static_shortage, with_placeholders
from nodeless.scheduling.capacity.terminating import waiting, with_room_to_come
from nodeless.scheduling.pods.buffers import is_placeholder
from nodeless.scheduling.pods.eligibility import held_pods
from nodeless.scheduling.pods.gangs import gang_of
from nodeless.scheduling.pods.requests import request_of
from nodeless.state.expected import claims_to_note

#: Pending pods are planned again this often (Karpenter's pod trigger).
RETRY_SECONDS = 10.0
#: Refused claims of a pass for which it is found out which pods are to blame.
_SEARCHED = 5
#: Karpenter nominates for twice the longest batch window, at least ten seconds.
_SHORTEST_NOMINATION = 10.0
#: Seconds for which it is shown what a plan came to: less than its alert lasts before it fires.
_REALIZED_SECONDS = 3000.0
#: Seconds for which no node is bought for a pod whose place others took while nodes are being opened.
_LONGEST_HOLD = 15.0
Record = Callable[[Situation, Plan], object]
"""Told of every decision, in a worker thread."""


class Provisioning:
    """The loop that plans."""

    def __init__(
        self,
        cluster: Cluster,
        cloud: CloudProvider,
        executor: InstructionExecutor,
        recorder: Recorder,
        metrics: Metrics,
        settings: GlobalSettings,
        record: Record | None = None,
        buffers: Buffers | None = None,
        nominator: PodNominator | None = None,
        traces: PodTraces | None = None,
        requests: Requests | None = None,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """The controller; `prepare` is awaited before its first pass."""
        self._prepare = prepare
        self._requests = requests
        self._traces = traces
        self._nominator = nominator
        self._buffers = buffers
        self._cluster = cluster
        self._cloud = cloud
        self._executor = executor
        self._recorder = recorder
        self._metrics = metrics
        self._record = record
        self._batcher = Batcher(settings.batch_idle_seconds, settings.batch_max_seconds)
        self._nomination = max(2 * settings.batch_max_seconds, _SHORTEST_NOMINATION)
        self._settings = settings
        self._planned: dict[str, tuple[str, ...]] = {}
        self._leaving: set[str] = set()
        #: A cluster in which nothing waits.
        self._content: Snapshot | None = None
        #: What keeps pools from being used, by pool, as it was logged: each cause is logged once.
        self._problems: dict[str, str] = {}
        self._guard = LaunchBackoff()
        #: Where the last passes put pods that wait, by key: the next one keeps them there.
        self._places: dict[str, str] = {}
        #: By key of a pod that had its place: since when no node is bought for it.
        self._held_since: dict[str, float] = {}
        self._realizing = Realizing()
        self._advisor = Advisor()
        self._resting = DeferredPods(metrics, recorder)
        self._tenants = Tenants()
        self._terminating = TerminatingPods()
        #: Pods for which the last pass expected room that terminating ones would leave.
        self._waited: frozenset[str] = frozenset()
        #: What plans were made without, as it was logged.
        self._faults: set[str] = set()
        self._log = logger("provisioner")
        cluster.listen(self._on_event)

    def use(self, settings: GlobalSettings) -> None:
        """Plan by other settings from the next window on."""
        self._batcher.use(settings.batch_idle_seconds, settings.batch_max_seconds)
        self._nomination = max(2 * settings.batch_max_seconds, _SHORTEST_NOMINATION)
        self._settings = settings

    def pods_of(self, claim_name: str) -> tuple[str, ...]:
        """The pods that this process plans on a claim that is known."""
        return self._planned.get(claim_name, ())

    def _on_event(self, event: Event, before: Snapshot, _after: Snapshot) -> None:
        match event:
            case events.PodSeen(pod) if pod.provisionable:
                if _asks_for_something_new(pod, before.pods.get(pod.key)):
                    self._batcher.trigger(pod.uid, pod.namespace)
            case events.PodSeen(pod) if pod.node_name:
                self._guard.forget(pod.uid)
            case events.PodGone(key) if key in before.pods:
                self._guard.forget(before.pods[key].uid)
            case events.NodeSeen(node) if node.deletion_timestamp is not None:
                # Its pods will be evicted: their new home is planned while they still run.
                if node.uid not in self._leaving:
                    self._leaving.add(node.uid)
                    self._batcher.trigger(node.uid)
            case events.NodeGone(name) if name in before.nodes:
                self._leaving.discard(before.nodes[name].uid)
            case events.PoolSeen(pool) if pool.replicas is not None:
                self._batcher.trigger(pool.key)
            case events.NamespaceSeen(namespace) if _has_other_labels(before, namespace):
                self._trigger_pending()
            case events.ClaimGone(name):
                self._planned.pop(name, None)
                self._trigger_pending()
            case events.GangSizeSeen(size) if before.gang_sizes.get(size.key) != size:
                self._trigger_pending()
            case events.GangSizeGone(key) if key in before.gang_sizes:
                self._trigger_pending()
            case events.GangsPaused() | events.OverlaysApplied():
                self._trigger_pending()
            case _:
                self._on_placeholders(event, before)

    def _on_placeholders(self, event: Event, before: Snapshot) -> None:
        match event:
            case events.CapacityBufferSeen(buffer) if self._generation_changed(buffer, before):
                self._batcher.trigger(f"{buffer.key} {buffer.generation}")
            case events.CapacityBufferGone(key) | events.ProvisioningRequestGone(key):
                # Its room may be kept until a pass says that it is not.
                self._batcher.trigger(key)
            case events.ClaimSeen(claim) if before.provisioning_requests and _became_ready(claim, before):
                self._batcher.trigger(f"{claim.uid} is ready")
            case events.ProvisioningRequestSeen(request) if request.ours:
                known = before.provisioning_requests.get(request.key)
                if known is None or (known.uid, known.phase) != (request.uid, request.phase):
                    self._batcher.trigger(f"{request.key} {request.uid} {request.phase}")
            case events.PodSourceSeen(source) if before.pod_sources.get(source.key) != source:
                if any(buffer.source == source.key for buffer in before.capacity_buffers.values()) or any(
                    source.key == pods.source
                    for request in before.provisioning_requests.values()
                    for pods in request.pod_sets
                ):
                    self._batcher.trigger(source.key)

    def _generation_changed(self, buffer: CapacityBuffer, before: Snapshot) -> bool:
        known = before.capacity_buffers.get(buffer.key)
        return known is None or known.generation != buffer.generation

    def _trigger_pending(self) -> None:
        """Have everything that waits planned again. A cluster in which nothing did is not searched twice."""
        snapshot = self._cluster.snapshot
        if snapshot is self._content:
            return
        now = wall_clock()
        waiting = [pod.uid for pod in pods_to_place(with_placeholders(snapshot), now)]
        if not waiting:
            # Those that had no place are gone, and no pass may come that says so.
            self._metrics.pending_pods.set(0)
        waiting += [*snapshot.capacity_buffers, *static_shortage(snapshot)]
        waiting += self._requests.waiting(snapshot) if self._requests is not None else ()
        for each in waiting:
            self._batcher.trigger(each)
        # The protection of a pod on a leaving node ends without any change of the cluster.
        self._content = None if waiting or held_pods(snapshot, now) else snapshot

    async def run(self) -> None:
        """Plan until cancelled."""
        if self._prepare is not None:
            await self._prepare()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._retry())
            group.create_task(self._advisor.run(self._say_refused))
            while True:
                count = await self._batcher.wait()
                self._log.debug("batch window closed", pods=count)
                try:
                    with self._metrics.work.measure_reconciliation(PROVISIONER):
                        await self.plan_once()
                except (ApiError, ApiUnavailable, CloudError) as error:
                    self._log.error(f"planning failed, the next attempt is in {RETRY_SECONDS:.0f} s: {error}")

    async def _retry(self) -> None:
        clock, until = asyncio.get_running_loop().time, 0.0
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            self._trigger_pending()
            self._realizing, ratios = self._realizing.measure(self._cluster.snapshot, wall_clock())
            for ratio in ratios:
                self._metrics.plan_realized.set(ratio)
                until = clock() + _REALIZED_SECONDS
            if clock() >= until:
                self._metrics.plan_realized.set(float("nan"))

    async def plan_once(self) -> Plan | None:
        """One pass over all pending pods; then one over those that were set aside, when they are due."""
        turns = self._turns()
        plan = await self._pass(turns.first, frozenset())
        if turns.second is not None:
            again = self._turns()
            plan = await self._pass(again.second or again.first, again.late) or plan
        for refusal in turns.resting:
            self._say_refused(refusal, ())
        return plan

    def _turns(self) -> Turns:
        heavy = self._tenants.heavy(time.monotonic())
        seen = self._cluster.snapshot
        snapshot = with_placeholders(seen)
        if self._requests is not None and seen.provisioning_requests:
            snapshot = self._requests.without_resting(snapshot, seen.provisioning_requests.values())
        return self._resting.turns(snapshot, wall_clock(), heavy)

    async def _pass(self, snapshot: Snapshot, late: frozenset[str]) -> Plan | None:
        """One pass over the pods of a snapshot; `late`: those among them that come after the others."""
        started = time.perf_counter()
        now = wall_clock()
        seen = self._cluster.snapshot
        if snapshot.teardown or not (pods_to_place(snapshot, now) or static_shortage(snapshot)):
            self._metrics.pending_pods.set(0)
            await self._tell_buffers(seen, Plan())
            await self._tell_requests(seen, Plan(), policy_of(self._settings, nominates=False))
            return None
        catalog, problems = await self._catalog(snapshot)
        subnets = await pool_subnets(self._cloud, snapshot, catalog)
        nominates = self._nominator is None or not self._nominator.refused
        policy = replace(
            policy_of(self._settings, nominates=nominates).at(now),
            pool_problems=problems,
            subnets=subnets,
            late=late,
            places=dict(self._places),
        )
        shorter = self._tenants.deadline({key.partition("/")[0] for key in late}, time.monotonic())
        if late and shorter is not None:
            policy = replace(policy, deadline=shorter)
        solving = time.perf_counter()
        prices, disruption = price_terms_of(self._settings), disruption_policy_of(self._settings)
        situation, plan, waits = await self._solve(
            Situation(snapshot, catalog, policy, now, prices, disruption)
        )
        solved = time.perf_counter() - solving
        if self._record is not None:
            await asyncio.to_thread(self._record, situation, plan)
        self._terminating.note(seen, waits, now)
        placements = {key: name for key, name in plan.placements.items() if key not in waits}
        plan = replace(plan, placements=placements)
        self._metrics.scheduling_seconds.observe(time.perf_counter() - started)
        self._metrics.plan_cost.set(plan.cost_per_hour)
        self._metrics.plan_bound.set(float("nan") if plan.lower_bound is None else plan.lower_bound)
        self._metrics.plan_gap.set(float("nan") if plan.gap is None else plan.gap)
        if self._traces is not None:
            self._traces.note_plan(plan, now, wall_clock())
        self._realizing = self._realizing.planned(plan, snapshot, catalog, policy, now)
        await self._tell_buffers(seen, plan)
        over = await self._tell_requests(seen, plan, policy)
        plan = without_nodes_of(plan, over) if over else plan
        refusals = tuple(each for each in plan.refusals if not is_placeholder(each.pod))
        plan = replace(plan, refusals=refusals)
        self._metrics.pending_pods.set(len(plan.refusals))
        plan = self._hold_back(plan, snapshot, now)
        self._resting.note(plan, snapshot, late)
        self._tenants.note(plan, time.monotonic())
        for fault in set(plan.fault_notes()) - self._faults:
            self._log.error(fault)
        self._faults |= set(plan.fault_notes())
        await self._launch(plan, situation, waits)
        self._metrics.decision_seconds.observe(time.perf_counter() - started)
        await self._note_pods(plan, snapshot, now)
        self._report(plan, snapshot, now)
        self._report_waiting(waits, snapshot, now, situation.policy.termination_wait)
        self._advisor.ask(situation, plan, solved)
        self._say_unusable(plan)
        return plan

    async def _solve(self, asked: Situation) -> tuple[Situation, Plan, Mapping[str, str]]:
        """The plan, the situation that it is the plan of, and the pods that wait for terminating ones.

        Each of these is given with its node. Where one that must not wait would have to, the plan is made
        without the room that is to come, and without those that may wait for it.
        """
        snapshot, now, longest = asked.snapshot, asked.now, asked.policy.termination_wait
        situation, plan, waits = await asyncio.to_thread(_plan_with_room_to_come, asked)
        may_wait = {
            key: name
            for key, name in waits.items()
            if not self._terminating.must_not_wait(snapshot, key, now, longest)
        }
        if len(may_wait) < len(waits):
            situation = replace(asked, snapshot=without(snapshot, may_wait))
            plan = await asyncio.to_thread(situation.plan)
        return situation, plan, may_wait

    async def _tell_buffers(self, seen: Snapshot, plan: Plan) -> None:
        if self._buffers is not None and (
            seen.capacity_buffers or seen.provisioning_requests or seen.buffered
        ):
            await self._buffers.tell(seen, plan)

    async def _tell_requests(self, seen: Snapshot, plan: Plan, policy: Policy) -> frozenset[str]:
        """Keys of the requests that are over."""
        if self._requests is None or not seen.provisioning_requests or seen.teardown:
            return frozenset()
        return await self._requests.tell(seen, plan, policy)

    async def _catalog(
        self, snapshot: Snapshot
    ) -> tuple[dict[str, tuple[InstanceType, ...]], dict[str, str]]:
        """Types of each usable pool; and what is wrong with the others."""
        catalog, problems = await pool_catalogs(self._cloud, snapshot)
        for key, problem in problems.items():
            if problem != self._problems.get(key):
                self._log.error(f"pool {key} cannot be used: {problem}")
        self._problems = problems
        return catalog, problems

    def _hold_back(self, plan: Plan, snapshot: Snapshot, now: float) -> Plan:
        """Leave out nodes for pods that earlier nodes did not help, or whose nodes are being opened."""
        kept = []
        opening = self._nominator is not None and self._nominator.is_opening()
        for node in plan.new_nodes:
            if node.is_static:
                kept.append(node)
                continue
            if opening and self._had_places(node, snapshot) and self._held_for(node, now) < _LONGEST_HOLD:
                self._log.debug("other pods took the place of pods that wait for new nodes", pods=node.pods)
                continue
            wait = self._guard.wait_for(node, snapshot, now)
            if not wait:
                kept.append(node)
                continue
            message = (
                "a node launched for this pod is ready, but the pod was not scheduled there"
                f"; next try in {wait:.0f} s"
                "; hint: compare the pod's requests and constraints with what the node offers"
            )
            for key in node.pods:
                if self._tell(snapshot, key, "Warning", "NodeDidNotHelp", message):
                    self._log.warning(message, pod=key)
        return replace(plan, new_nodes=tuple(kept))

    def _had_places(self, node: PlannedNode, snapshot: Snapshot) -> bool:
        """Whether all pods of a planned node were expected elsewhere, and others took their room there.

        kube-scheduler binds hundreds of pods within seconds, those of closed nodes on the open ones, too. Who
        has no room half way there has it in the end, as a rule: where the others were to go.
        """
        if not self._waited.isdisjoint(node.pods):
            return False
        places = {self._places.get(key, "") for key in node.pods}
        return bool(places) and all(place in snapshot.claims or place in snapshot.nodes for place in places)

    def _held_for(self, node: PlannedNode, now: float) -> float:
        """Seconds since a node for one of these pods was first left out; from now on where none was."""
        return max(now - self._held_since.setdefault(key, now) for key in node.pods)

    async def _launch(self, plan: Plan, situation: Situation, waits: Mapping[str, str]) -> None:
        if not plan.new_nodes:
            self._expect(plan, situation.snapshot, (), waits)
            return
        snapshot, now = situation.snapshot, situation.now
        cause = f"pass:{now:.3f}"
        log = self._log.bind(**{"pass": cause.removeprefix("pass:")})
        pods = len(plan.placements) + sum(len(node.pods) for node in plan.new_nodes)
        if pods:
            log.info(log_messages.found_pods(pods))
        for line in (*log_messages.computed(plan), log_messages.reused(plan), log_messages.spilled(plan)):
            if line:
                log.info(line, cost_per_hour=round(plan.cost_per_hour, 4))
        creates = claims_for(
            plan,
            dict(snapshot.pools),
            now,
            cause=cause,
            taken=frozenset(snapshot.claims),
            node_classes=dict(snapshot.node_classes),
            reason=one_line,
            pods=snapshot.pods,
            catalog=situation.catalog,
            gangs=_gangs_of(plan, snapshot),
            requests=_requests_of(plan),
        )
        for create, node in zip(creates, plan.new_nodes, strict=True):
            self._planned[create.claim.name] = node.pods
            log.info(
                log_messages.launching(node),
                claim=create.claim.name,
                provisioner=node.pool.name,
                node_template=str(node.node_class),
                requirements=str(node.requirements),
            )
        relaxed = plan.relaxed_preferences()
        # Each claim stands for itself: one refused write must not take the others with it.
        self._expect(plan, snapshot, [create.claim.name for create in creates], waits)
        outcomes = await asyncio.gather(
            *(
                self._create(create, node, situation)
                for create, node in zip(creates, plan.new_nodes, strict=True)
            ),
            return_exceptions=True,
        )
        searched = 0
        for create, node, outcome in zip(creates, plan.new_nodes, outcomes, strict=True):
            if isinstance(outcome, ApiError | ApiUnavailable):
                self._planned.pop(create.claim.name, None)
                log.error(f"claim {create.claim.name} could not be written: {outcome}")
                if is_refusal(outcome) and searched < _SEARCHED and not node.is_static:
                    searched += 1
                    await self._find_culprits(situation, node, outcome)
                continue
            if isinstance(outcome, BaseException):
                raise outcome
            self._guard.note_launch(create.claim.name, node, snapshot, now)
            for key in node.pods:
                message = texts.nominated(create.claim.name, node, relaxed.get(key, ()))
                self._tell(snapshot, key, "Normal", texts.NOMINATED, message)

    async def _note_pods(self, plan: Plan, snapshot: Snapshot, now: float) -> None:
        """Name pods on the claims under way where the pass put them: another leader goes on from there."""
        places = {key: place for key, place in plan.placements.items() if not is_placeholder(key)}
        notes = await asyncio.to_thread(claims_to_note, snapshot, places) if places else {}
        cause = f"pass:{now:.3f}"
        writes = [AnnotateClaim(cause, name, {PLANNED_PODS: note}) for name, note in notes.items()]
        outcomes = await asyncio.gather(
            *(self._executor.carry_out((write,)) for write in writes), return_exceptions=True
        )
        for write, outcome in zip(writes, outcomes, strict=True):
            if isinstance(outcome, ApiError | ApiUnavailable):
                # This process remembers them; the next pass tries again.
                self._log.warning(f"the pods of claim {write.name} could not be noted on it: {outcome}")
            elif outcome is not None:
                raise outcome

    async def _find_culprits(self, situation: Situation, node: PlannedNode, error: Exception) -> None:
        """Set those aside because of whom a claim was refused; the others are planned again at once."""
        for pod, refusal in await culprits(situation, node, error, self._executor.claims.offer):
            self._resting.note_refusal(pod, refusal, situation.snapshot)
        self._trigger_pending()

    def _expect(
        self, plan: Plan, snapshot: Snapshot, claims: Sequence[str], waits: Mapping[str, str]
    ) -> None:
        """Remember where the pass expects its pods, and have them nominated once their nodes are there."""
        places = {key: place for key, place in plan.placements.items() if not is_placeholder(key)}
        for node, name in zip(plan.new_nodes, claims, strict=True):
            places.update(dict.fromkeys(node.pods, name))
        places.update(waits)
        self._waited = frozenset(waits)
        still = {key for key in self._places if (pod := snapshot.pods.get(key)) and not pod.node_name}
        refused = {refusal.pod for refusal in plan.refusals}
        self._places = {key: self._places[key] for key in still - refused} | places
        self._held_since = {
            key: since for key, since in self._held_since.items() if key in self._places and key not in places
        }
        if self._nominator is None:
            return
        considered = [*places, *(refusal.pod for refusal in plan.refusals)]
        seen = self._cluster.snapshot.pods
        pods = (snapshot.pods.get(key) or seen.get(key) for key in considered)
        self._nominator.expect(filter(None, pods), places, waits)

    async def _create(self, create: CreateClaim, node: PlannedNode, situation: Situation) -> None:
        name, began, problem = create.claim.name, wall_clock(), ""
        try:
            await self._executor.carry_out((create,))
        except Exception as error:
            problem = str(error)
            raise
        finally:
            if self._traces is not None:
                types = situation.catalog.get(str(node.pool), ())
                self._traces.note_write(name, node, types, began, wall_clock(), problem)
        self._cluster.handle(events.Nominated(name, situation.now + self._nomination))

    def _report(self, plan: Plan, snapshot: Snapshot, now: float) -> None:
        for name in {name for key, name in plan.placements.items() if not is_placeholder(key)}:
            self._cluster.handle(events.Nominated(name, now + self._nomination))
        relaxed = plan.relaxed_preferences()
        for key, name in sorted(plan.placements.items()):
            if is_placeholder(key):
                if name in snapshot.nodes:
                    self._guard.forget(snapshot.pods[key].uid)
                continue
            if name in self._cluster.snapshot.claims and key not in self.pods_of(name):
                # Also pods for which another replica made the claim are told when its launch fails.
                self._planned[name] = (*self.pods_of(name), key)
            self._tell(snapshot, key, "Normal", texts.NOMINATED, texts.placed(name, relaxed.get(key, ())))

    def _report_waiting(
        self, waits: Mapping[str, str], snapshot: Snapshot, now: float, longest: float
    ) -> None:
        if waits:
            self._log.info(log_messages.waiting_for_termination(len(waits)))
        for key, name in sorted(waits.items()):
            self._cluster.handle(events.Nominated(name, now + self._nomination))
            self._tell(snapshot, key, "Normal", texts.WAITING, texts.waits(name, longest))

    def _say_refused(self, refusal: Refusal, helping: Sequence[str]) -> None:
        message = texts.failed_scheduling(refusal, helping)
        if self._tell(self._cluster.snapshot, refusal.pod, "Warning", texts.FAILED_SCHEDULING, message):
            self._log.warning(f"no capacity for pod: {message}", pod=refusal.pod)

    def _say_unusable(self, plan: Plan) -> None:
        """Tell NodePools that can make no node (Karpenter v1)."""
        for refusal in plan.unusable_pools:
            pool = self._cluster.snapshot.pools.get(str(refusal.pool))
            if pool is None or pool.reference.kind != NODE_POOL_KIND:
                continue
            message = texts.no_compatible_instance_types(refusal)
            event = PublishEvent(
                "pass",
                NODE_POOL_KIND,
                pool.name,
                "Warning",
                texts.NO_COMPATIBLE_TYPES,
                message,
                uid=pool.reference.uid,
            )
            if self._recorder.publish(event):
                self._log.warning(f"no node can be created: {refusal.message}", pool=pool.key)

    def _tell(self, snapshot: Snapshot, key: str, type_: str, reason: str, message: str) -> bool:
        pod = snapshot.pods.get(key)
        if pod is None or pod.node_name or pod.shape.placeholder:
            return False
        return self._recorder.publish(
            PublishEvent("pass", "Pod", pod.name, type_, reason, message, pod.namespace, pod.uid)
        )


def _plan_with_room_to_come(asked: Situation) -> tuple[Situation, Plan, Mapping[str, str]]:
    """The plan with the room of pods that are soon gone, its situation, and who waits for such room."""
    freed, nodes = with_room_to_come(asked.snapshot, asked.now, asked.policy.termination_wait)
    situation = replace(asked, snapshot=freed)
    plan = situation.plan()
    return situation, plan, waiting(asked.snapshot, nodes, plan.placements)


def _has_other_labels(before: Snapshot, namespace: Namespace) -> bool:
    """Whether a known namespace bears other labels now, by which pods of others may mean its pods."""
    known = before.namespaces.get(namespace.name)
    return known is not None and known != namespace


def _gangs_of(plan: Plan, snapshot: Snapshot) -> dict[str, str]:
    """The gangs of the pods for which nodes are launched, by pod; those in none are left out."""
    pods, sizes = snapshot.pods, snapshot.gang_sizes
    keys = (key for node in plan.new_nodes for key in node.pods if key in pods)
    return {key: name for key in keys if (name := gang_of(pods[key], sizes))}


def _requests_of(plan: Plan) -> dict[str, str]:
    """The provisioning requests of the placeholders for which nodes are launched, by placeholder."""
    keys = (key for node in plan.new_nodes for key in node.pods)
    return {key: request for key in keys if (request := request_of(key))}


def without_nodes_of(plan: Plan, requests: frozenset[str]) -> Plan:
    """The plan without new nodes that hold pods of these provisioning requests alone."""
    kept = [node for node in plan.new_nodes if node.is_static or {*map(request_of, node.pods)} - requests]
    return replace(plan, new_nodes=tuple(kept))


def _became_ready(claim: NodeClaim, before: Snapshot) -> bool:
    """Whether the node of a claim is initialized and was not: room that was waited for is there."""
    known = before.claims.get(claim.name)
    was = known is not None and known.is_true(INITIALIZED_CONDITION)
    return claim.is_true(INITIALIZED_CONDITION) and not was


def _asks_for_something_new(pod: Pod, known: Pod | None) -> bool:
    """Whether a pod that needs capacity did not do so before, or asks for something else now.

    kube-scheduler writes to a pod each time it tries it in vain: that is no news.
    """
    return known is None or known.uid != pod.uid or not known.provisionable or known.shape != pod.shape
