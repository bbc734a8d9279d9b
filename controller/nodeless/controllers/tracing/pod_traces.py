"""One trace for each pod that needed capacity: what it waited for, from its first sight to its running.

```
pod  ------------------------------------------------------------------->
     pending  batch  solve  claim  launch  register  bind  run
                                                      initialize
```

The spans are written when the pod runs, out of the times at which this process did or heard of each thing, by
its own clock (`operator.clock`). What pods share (a pass, a claim, an instance) is in the trace of each, so
that each trace is whole (docs/decisions/0029-one-trace-for-each-pod.md).

What it costs is bounded: 500 pods are followed at a time and 50 of one workload, whose pods are alike; each
has 16 steps at most. A pod that does not run in 20 minutes is given up, and its trace says so.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ParamSpec

from nodeless.api.errors import problem_of
from nodeless.model import events
from nodeless.model.events import Event
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import CAPACITY_TYPE
from nodeless.model.nodes import INITIALIZED_CONDITION, REGISTERED_CONDITION, Instance, NodeClaim
from nodeless.model.plan import Plan, PlannedNode
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.operator.clock import wall_clock
from nodeless.operator.logs import logger
from nodeless.operator.tracing import Attributes, Trace, Traces

#: Pods that are followed at a time; of one workload.
MOST_PODS, MOST_OF_A_WORKLOAD = 500, 50
#: Steps of a trace: each pass that decides anew, and each failed write or launch, is one.
MOST_STEPS = 16
#: Seconds after which a pod is followed no more: longer than an instance has for registering (15 minutes).
LONGEST = 20 * 60.0

_P = ParamSpec("_P")


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    started: float
    ended: float
    attributes: Attributes
    error: str = ""


@dataclass(slots=True)
class _ClaimTimes:
    """What happened to a claim, as far as this process saw it; 0: nothing yet."""

    types: Sequence[InstanceType] = ()
    """Those of its pool, with their prices; until it is launched."""
    launch: _Step | None = None
    registered_at: float = 0.0
    initialized_at: float = 0.0


@dataclass(slots=True)
class _Followed:
    """A pod whose trace is being made."""

    trace: Trace
    workload: str
    since: float
    """When it was seen to need capacity."""
    steps: list[_Step]
    passes: int = 0
    decision: str = ""
    """What the last pass decided, and where it is to go."""
    target: str = ""
    """The claim or node where it is to go."""
    node_name: str = ""
    claim: str = ""
    """Of the node that it is bound to; empty where that is none of ours."""
    bound_at: float = 0.0
    ran_at: float = 0.0
    found: dict[str, str | int | float | bool] = field(default_factory=dict)
    """What becomes known of it on the way."""

    def add(self, step: _Step) -> None:
        """Note a step, unless it has too many."""
        if len(self.steps) < MOST_STEPS:
            self.steps.append(step)
        else:
            self.found["nodeless.steps_left_out"] = int(self.found.get("nodeless.steps_left_out", 0)) + 1


def _harmless(method: Callable[_P, None]) -> Callable[_P, None]:
    """Nothing that traces are made of may end a pass or a launch: what fails is logged once."""
    said = False

    @functools.wraps(method)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> None:
        nonlocal said
        try:
            method(*args, **kwargs)
        except Exception as error:
            if not said:
                said = True
                logger("tracing").error(f"a trace is incomplete: {problem_of(error)}")

    return guarded


class PodTraces:
    """Follows pods by the cluster's events and by what the controllers say that they do."""

    def __init__(self, traces: Traces, now: Callable[[], float] = wall_clock) -> None:
        self._traces, self._now = traces, now
        #: By key, those that wait the longest first.
        self._pods: dict[str, _Followed] = {}
        self._workloads: Counter[str] = Counter()
        self._claims: dict[str, _ClaimTimes] = {}
        #: When pods without a node were first seen, by uid; and those of them that are not followed.
        self._pending: dict[str, float] = {}
        self._left_out: set[str] = set()

    @_harmless
    def on_event(self, event: Event, before: Snapshot, after: Snapshot) -> None:
        """Listens to the cluster (`Cluster.listen`)."""
        now = self._now()
        match event:
            case events.PodSeen(pod):
                known = before.pods.get(pod.key)
                if known is not None and known.uid != pod.uid:
                    self._pod_gone(known, now)
                self._pod_seen(pod, after, now)
            case events.PodGone(key) if key in before.pods:
                self._pod_gone(before.pods[key], now)
            case events.ClaimSeen(claim):
                self._claim_seen(claim, now)
            case events.ClaimGone(name):
                self._claim_gone(name, now)
        self._give_up(now)

    @_harmless
    def note_plan(self, plan: Plan, started: float, solved: float) -> None:
        """A pass began and had its plan."""
        if not self._pods:
            return
        new = {key: node for node in plan.new_nodes for key in node.pods if key in self._pods}
        refused = {refusal.pod: refusal for refusal in plan.refusals}
        for key, followed in self._pods.items():
            if key in new:
                node = new[key]
                attributes: Attributes = {
                    "nodeless.decision": "new node",
                    "nodeless.pool": str(node.pool),
                    "nodeless.planned.type": node.instance_type,
                    "nodeless.planned.price": node.price,
                }
                self._record_decision(followed, attributes, "", started, solved)
            elif key in plan.placements:
                where = plan.placements[key]
                attributes = {"nodeless.decision": "existing capacity", "nodeless.target": where}
                self._record_decision(followed, attributes, where, started, solved)
            elif key in refused:
                code = str(refused[key].code)
                attributes = {"nodeless.decision": "no capacity", "nodeless.refusal": code}
                self._record_decision(followed, attributes, "", started, solved, str(refused[key]))

    def _record_decision(
        self,
        followed: _Followed,
        attributes: Attributes,
        target: str,
        started: float,
        solved: float,
        error: str = "",
    ) -> None:
        """One pass considered a pod. The same decision again is no step: passes come every ten seconds."""
        if not followed.passes:
            followed.add(_Step("batch", followed.since, max(started, followed.since), {}))
        followed.passes += 1
        decision = f"{attributes['nodeless.decision']} {attributes.get('nodeless.refusal', target)}"
        if (target and target == followed.target) or (decision == followed.decision and not target and error):
            return
        followed.decision, followed.target = decision, target
        followed.add(_Step("solve", max(started, followed.since), solved, attributes, error))

    @_harmless
    def note_write(
        self,
        name: str,
        node: PlannedNode,
        types: Sequence[InstanceType],
        started: float,
        ended: float,
        error: str = "",
    ) -> None:
        """A planned node's claim was written, or refused. `types`: those of its pool, with their prices."""
        if not error:
            self._claims.setdefault(name, _ClaimTimes()).types = types
        attributes = {"nodeless.claim": name, "nodeless.pool": str(node.pool)}
        for key in node.pods:
            if key in self._pods:
                self._pods[key].target = "" if error else name
                self._pods[key].add(_Step("claim", started, ended, attributes, error))

    @_harmless
    def note_launch(
        self, claim: NodeClaim, started: float, ended: float, instance: Instance | None, error: str = ""
    ) -> None:
        """The cloud was asked for a claim's instance, and gave it or did not."""
        attributes: dict[str, str | int | float | bool] = {
            "nodeless.claim": claim.name,
            "nodeless.pool": str(claim.pool),
        }
        if instance is None:
            for followed in self._bound_for(claim.name):
                followed.add(_Step("launch", started, ended, attributes, error))
            return
        times = self._claims.setdefault(claim.name, _ClaimTimes())
        attributes |= _of_instance(instance, times.types)
        times.types = ()
        times.launch = _Step("launch", started, ended, attributes)

    @_harmless
    def end_all(self) -> None:
        """The process ends: what is known until now is told."""
        for key in tuple(self._pods):
            self._end(key, self._now(), "stopped", "")

    def _pod_seen(self, pod: Pod, snapshot: Snapshot, now: float) -> None:
        followed = self._pods.get(pod.key)
        if followed is not None:
            self._go_on(followed, pod, snapshot, now)
        elif pod.node_name or pod.terminal:
            self._forget(pod.uid)
        else:
            seen = self._pending.setdefault(pod.uid, now)
            if pod.provisionable and pod.uid not in self._left_out:
                self._follow(pod, seen, now)

    def _follow(self, pod: Pod, seen: float, now: float) -> None:
        owner = next((each for each in pod.owners if each.controller), None)
        workload = f"{pod.namespace}/{owner.kind}/{owner.name}" if owner else pod.namespace
        trace = None
        if len(self._pods) < MOST_PODS and self._workloads[workload] < MOST_OF_A_WORKLOAD:
            attributes = {
                "k8s.namespace.name": pod.namespace,
                "k8s.pod.name": pod.name,
                "k8s.pod.uid": pod.uid,
                **({"nodeless.workload": f"{owner.kind}/{owner.name}"} if owner else {}),
            }
            trace = self._traces.begin("pod", seen, attributes)
        if trace is None:
            self._left_out.add(pod.uid)
            return
        self._workloads[workload] += 1
        self._pods[pod.key] = _Followed(trace, workload, now, [_Step("pending", seen, now, {})])

    def _go_on(self, followed: _Followed, pod: Pod, snapshot: Snapshot, now: float) -> None:
        if pod.node_name and not followed.bound_at:
            node = snapshot.nodes.get(pod.node_name)
            claim = snapshot.claim_of(node) if node is not None else None
            followed.bound_at, followed.node_name = now, pod.node_name
            followed.claim = claim.name if claim is not None else ""
        if pod.phase == "Failed":
            self._end(pod.key, now, "failed", "the pod failed")
        elif pod.phase in ("Running", "Succeeded") and not followed.ran_at:
            followed.ran_at = now
            times = self._claims.get(followed.claim)
            # Its node is initialized a moment later, or was long ago.
            if times is None or times.initialized_at or not times.launch:
                self._end(pod.key, now, "running", "")

    def _pod_gone(self, pod: Pod, now: float) -> None:
        self._forget(pod.uid)
        if (followed := self._pods.get(pod.key)) is not None:
            ran = bool(followed.ran_at)
            self._end(pod.key, now, "running" if ran else "deleted", "" if ran else "deleted before it ran")

    def _forget(self, uid: str) -> None:
        self._pending.pop(uid, None)
        self._left_out.discard(uid)

    def _claim_seen(self, claim: NodeClaim, now: float) -> None:
        times = self._claims.get(claim.name)
        if times is None:
            return
        if not times.registered_at and claim.is_true(REGISTERED_CONDITION):
            times.registered_at = now
        if not times.initialized_at and claim.is_true(INITIALIZED_CONDITION):
            times.initialized_at = now
            for key in [key for key, each in self._pods.items() if each.claim == claim.name and each.ran_at]:
                self._end(key, now, "running", "")

    def _claim_gone(self, name: str, now: float) -> None:
        times = self._claims.get(name)
        for followed in self._bound_for(name):
            for step in _claim_steps(times, now, gone=True) if times is not None else ():
                followed.add(step)
            followed.target = ""
        for key in [key for key, each in self._pods.items() if each.claim == name and each.ran_at]:
            self._end(key, now, "running", "")
        self._claims.pop(name, None)

    def _bound_for(self, claim: str) -> Iterator[_Followed]:
        """The pods that are to go to a claim's node and are not there yet."""
        return (each for each in self._pods.values() if each.target == claim and not each.bound_at)

    def _give_up(self, now: float) -> None:
        while self._pods:
            key, followed = next(iter(self._pods.items()))
            if now - followed.since < LONGEST:
                return
            ran = bool(followed.ran_at)
            self._end(key, now, "running" if ran else "waiting", "" if ran else _waits_for(followed))

    def _end(self, key: str, now: float, outcome: str, error: str) -> None:
        followed = self._pods.pop(key)
        self._workloads -= Counter([followed.workload])
        attributes: dict[str, str | int | float | bool] = {
            **followed.found,
            "nodeless.outcome": outcome,
            "nodeless.passes": followed.passes,
        }
        times = self._claims.get(followed.claim if followed.bound_at else followed.target)
        steps = [*followed.steps]
        if times is not None:
            steps += [each for each in _claim_steps(times, now) if each.ended > followed.since]
            attributes |= times.launch.attributes if times.launch is not None else {}
        if followed.bound_at:
            ends = [each.ended for each in steps if each.name != "initialize"]
            began = max((each for each in ends if each <= followed.bound_at), default=followed.since)
            steps.append(_Step("bind", began, followed.bound_at, {"k8s.node.name": followed.node_name}))
            attributes["k8s.node.name"] = followed.node_name
        if followed.ran_at:
            steps.append(_Step("run", followed.bound_at, followed.ran_at, {}))
        for step in steps:
            followed.trace.step(step.name, step.started, step.ended, step.attributes, step.error)
        followed.trace.end(followed.ran_at or now, attributes, error)


def _claim_steps(times: _ClaimTimes, now: float, *, gone: bool = False) -> Iterator[_Step]:
    """What happened to a claim; `gone`: it ended now, before its node was there."""
    if times.launch is None:
        return
    yield times.launch
    if times.registered_at:
        yield _Step("register", times.launch.ended, times.registered_at, {})
    elif gone:
        yield _Step(
            "register", times.launch.ended, now, {}, "the claim was deleted before its node registered"
        )
    if times.initialized_at:
        yield _Step("initialize", times.registered_at, times.initialized_at, {})


def _waits_for(followed: _Followed) -> str:
    """Why a pod's trace ends though it does not run."""
    if followed.bound_at:
        return f"does not run on node {followed.node_name}"
    if followed.target:
        return f"is not on {followed.target} yet"
    return next((each.error for each in reversed(followed.steps) if each.error), "has no node")


def _of_instance(instance: Instance, types: Sequence[InstanceType]) -> Mapping[str, str | float]:
    capacity_type = instance.labels.get(CAPACITY_TYPE, instance.capacity_type)
    prices = [
        offering.price
        for each in types
        if each.name == instance.instance_type
        for offering in each.offerings
        if offering.zone == instance.zone and offering.capacity_type == capacity_type and offering.priced
    ]
    return {
        "host.id": instance.id,
        "host.type": instance.instance_type,
        "cloud.availability_zone": instance.zone,
        "karpenter.sh/capacity-type": capacity_type,
        **({"nodeless.price": min(prices)} if prices else {}),
    }
