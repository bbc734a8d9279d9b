"""Pods whose resize in place waits get an event that says what would let them grow: once for each resize.

kube-scheduler does not look at them, and no node is made for them: whether such a pod is worth an eviction is
its owner's to say (a VerticalPodAutoscaler evicts it after a while).
"""

import asyncio
from dataclasses import dataclass, replace

from nodeless.cloudprovider import CloudProvider
from nodeless.cloudprovider.pool_catalogs import pool_catalogs
from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.explain.decisions import Situation
from nodeless.explain.resizes import ResizeAdvice, advise_resize
from nodeless.kube.cluster import Cluster
from nodeless.kube.event_recorder import Recorder
from nodeless.model import events
from nodeless.model.events import Event
from nodeless.model.instructions import PublishEvent
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.solver_policy import policy_of
from nodeless.operator.timing import TIMING, Timing

REASON = "ResizePending"
#: Pods of a workload are resized together.
_SETTLE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _Said:
    """Of which resize of which pod it was said."""

    uid: str
    reason: str
    wanted: tuple[tuple[str, int], ...]


class ResizeLoop:
    """Says so on each pod of which a resize waits, in the order in which they are seen."""

    def __init__(
        self,
        cluster: Cluster,
        cloud: CloudProvider,
        recorder: Recorder,
        metrics: Metrics,
        settings: GlobalSettings,
        timing: Timing = TIMING,
    ) -> None:
        self._cluster = cluster
        self._cloud = cloud
        self._recorder = recorder
        self._settings = settings
        self._timing = timing
        self._boundary = ErrorBoundary("pod's resize", metrics)
        self._waiting: dict[str, None] = {}
        self._seen = asyncio.Event()
        #: By pod key.
        self._said: dict[str, _Said] = {}
        cluster.listen(self._on_event)

    def use(self, settings: GlobalSettings) -> None:
        """Follow other settings from now on."""
        self._settings = settings

    def _on_event(self, event: Event, _before: Snapshot, _after: Snapshot) -> None:
        match event:
            case events.PodSeen(pod) if pod.resize is not None:
                if self._said.get(pod.key) != _what(pod):
                    self._waiting[pod.key] = None
                    self._seen.set()
            case events.PodSeen(pod) if self._said:
                # Once it has grown, another resize is another matter.
                self._said.pop(pod.key, None)
            case events.PodGone(key):
                self._said.pop(key, None)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._seen.wait()
            await asyncio.sleep(_SETTLE_SECONDS)
            await self.reconcile_once()

    async def reconcile_once(self) -> None:
        """Say it of all pods that wait now."""
        self._seen.clear()
        keys, self._waiting = list(self._waiting), {}
        if not keys:
            return
        catalog, problems = await pool_catalogs(self._cloud, self._cluster.snapshot)
        for key in keys:
            snapshot = self._cluster.snapshot
            pod = snapshot.pods.get(key)
            if pod is None or pod.resize is None or self._said.get(key) == _what(pod):
                continue
            if self._boundary.seconds_to_rest(key):
                continue
            with self._boundary.around(key):
                now = self._timing.wall_clock()
                policy = replace(policy_of(self._settings).at(now), pool_problems=problems)
                situation = Situation(snapshot, catalog, policy, now)
                advice = await asyncio.to_thread(advise_resize, situation, pod, existing=False)
                if advice is not None:
                    self._said[key] = _what(pod)
                    self._publish(pod, advice)

    def _publish(self, pod: Pod, advice: ResizeAdvice) -> None:
        message = "; ".join(advice.lines())
        event = PublishEvent("resizes", "Pod", pod.name, "Warning", REASON, message, pod.namespace, pod.uid)
        self._recorder.publish(event)


def _what(pod: Pod) -> _Said:
    resize = pod.resize
    assert resize is not None  # noqa: S101 - only pods whose resize waits are asked about
    return _Said(pod.uid, resize.reason, resize.wanted)
