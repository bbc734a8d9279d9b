"""The controllers of a leader, and what connects them: the one place where they are made.

The process runs them all, each in a boundary of its own (`manager.manager`); tests run those that they are
about, on the same wiring.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from nodeless.cloudprovider import CloudProvider
from nodeless.controllers.disruption.controller import DisruptionLoop
from nodeless.controllers.disruption.drift import DriftLoop
from nodeless.controllers.disruption.gang_pauses import PAUSES_NAME
from nodeless.controllers.disruption.gangs import GangLoop
from nodeless.controllers.disruption.request_nodes import RequestNodeLoop
from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.controllers.executor.teardown_guard import GUARD_NAME
from nodeless.controllers.interruption.controller import InterruptionLoop
from nodeless.controllers.interruption.instance_status import InstanceStatusController
from nodeless.controllers.metrics.lifecycle_metrics import LifecycleMetrics
from nodeless.controllers.metrics.offerings import OfferingMetricsLoop
from nodeless.controllers.neighbors import NeighborLoop
from nodeless.controllers.nodeclaim.controller import ClaimLoop
from nodeless.controllers.nodeclaim.garbage_collection import Collector
from nodeless.controllers.nodeclaim.launcher import Launcher
from nodeless.controllers.nodeclaim.measured_capacity import MeasuredCapacity
from nodeless.controllers.nodeclaim.reservations import ReservationLoop
from nodeless.controllers.nodeclaim.tagging import TaggingLoop
from nodeless.controllers.nodeclass.instance_profiles import ProfileLoop
from nodeless.controllers.nodeoverlay.controller import OverlayLoop
from nodeless.controllers.nodepool.controller import PoolLoop
from nodeless.controllers.provisioning.capacity_buffers import Buffers
from nodeless.controllers.provisioning.controller import Provisioning, Record
from nodeless.controllers.provisioning.nominations import PodNominator
from nodeless.controllers.provisioning.provisioning_requests import Requests
from nodeless.controllers.provisioning.resizes import ResizeLoop
from nodeless.controllers.tracing.pod_traces import PodTraces
from nodeless.controllers.unread_objects import UnreadObjects
from nodeless.kube import ApiClient, Watched, watched_kinds
from nodeless.kube.cluster import Cluster
from nodeless.kube.config_maps import KeptData
from nodeless.kube.event_recorder import Recorder
from nodeless.kube.gangs import watched_gang_sizes
from nodeless.kube.kinds import watched_guard
from nodeless.kube.leader_election import Leadership
from nodeless.kube.overlays import watched_overlays
from nodeless.kube.provisioning_requests import watched_placeholders
from nodeless.kube.vertical_autoscaling import watched_vertical_autoscalers
from nodeless.operator.failpoints import Failpoint, pass_by
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.timing import TIMING, Timing


class Loop(Protocol):
    """A controller."""

    async def run(self) -> None:
        """Work until cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Controllers:
    """What a leader consists of; none of it runs yet."""

    client: ApiClient
    #: What the controllers see of the cluster, once its watches run (`watch`).
    cluster: Cluster
    #: What the snapshot is made of, and what becomes of objects that cannot be read.
    kinds: tuple[Watched, ...]
    unread: UnreadObjects
    executor: InstructionExecutor
    nominator: PodNominator
    provisioning: Provisioning
    launcher: Launcher
    claims: ClaimLoop
    pools: PoolLoop
    collector: Collector
    tagging: TaggingLoop
    interruption: InterruptionLoop
    instance_status: InstanceStatusController
    reservations: ReservationLoop
    instance_profiles: ProfileLoop
    offering_metrics: OfferingMetricsLoop
    disruption: DisruptionLoop
    drift: DriftLoop
    gangs: GangLoop
    measured_capacity: MeasuredCapacity
    neighbors: NeighborLoop
    resizes: ResizeLoop
    #: Where NodeOverlays are turned on.
    overlays: OverlayLoop | None = None
    #: Where provisioning requests are turned on.
    request_nodes: RequestNodeLoop | None = None

    @property
    def loops(self) -> tuple[Loop, ...]:
        """All that run once the snapshot is complete."""
        return (
            *((self.overlays,) if self.overlays is not None else ()),
            self.nominator,
            self.provisioning,
            self.claims,
            self.pools,
            self.collector,
            self.tagging,
            self.interruption,
            self.instance_status,
            self.reservations,
            self.instance_profiles,
            self.offering_metrics,
            self.disruption,
            self.drift,
            self.gangs,
            self.measured_capacity,
            self.neighbors,
            self.resizes,
            *((self.request_nodes,) if self.request_nodes is not None else ()),
        )

    def use(self, settings: GlobalSettings) -> None:
        """Follow other settings from now on."""
        self.provisioning.use(settings)
        self.disruption.use(settings)
        self.drift.use(settings)
        self.gangs.use(settings)
        self.resizes.use(settings)

    async def watch(self) -> None:
        """Keep the snapshot current until cancelled."""
        await self.cluster.run(self.client, self.kinds, self.unread)


def build_controllers(
    client: ApiClient,
    cloud: CloudProvider,
    recorder: Recorder,
    metrics: Metrics,
    settings: GlobalSettings,
    namespace: str,
    *,
    report_invalid: Callable[[dict[str, Any], Exception], None],
    leadership: Leadership | None = None,
    record: Record | None = None,
    failpoint: Failpoint = pass_by,
    timing: Timing = TIMING,
    traces: PodTraces | None = None,
) -> Controllers:
    """The controllers of one leader.

    Args:
        client: The API server.
        cloud: Where nodes come from.
        recorder: Takes their events.
        metrics: Takes their measurements.
        settings: The settings at the start; `Controllers.use` takes later ones.
        namespace: Where the process runs: its guard and what it keeps are there.
        report_invalid: Called with every object that cannot be used, and why.
        leadership: Asked before every write whether this replica leads; None: it always does.
        record: Takes every decision of provisioning; None: none is kept.
        failpoint: Passed at every boundary of an instruction.
        timing: Their clocks, periods and deadlines.
        traces: Follows pods; None: nothing is traced.
    """

    def boundary(unit: str) -> ErrorBoundary:
        return ErrorBoundary(unit, metrics, recorder)

    cluster = Cluster(boundary("event of the cluster").record_failure)
    cluster.listen(LifecycleMetrics(metrics).on_event)
    if traces is not None:
        cluster.listen(traces.on_event)
    executor = InstructionExecutor(
        client, cloud, cluster, leadership, recorder, metrics, namespace, failpoint, timing
    )
    nominator = PodNominator(client, cluster, executor.assert_leading, boundary("pod"))
    buffers = Buffers(client, cluster, boundary("capacity buffer"))
    requests = Requests(client, recorder, metrics, boundary("provisioning request"), timing)
    pauses = KeptData(client, namespace, PAUSES_NAME)
    gangs = GangLoop(cluster, executor, recorder, settings, metrics, timing, pauses)
    provisioning = Provisioning(
        cluster,
        cloud,
        executor,
        recorder,
        metrics,
        settings,
        record,
        buffers,
        nominator,
        traces,
        requests,
        prepare=gangs.restore,
    )
    launcher = Launcher(
        executor,
        cloud,
        cluster,
        recorder,
        metrics,
        provisioning.pods_of,
        resource_names=settings.node_name_convention == "resource-name",
        traces=traces,
    )
    return Controllers(
        client=client,
        cluster=cluster,
        unread=UnreadObjects(boundary("object")),
        kinds=(
            *watched_kinds(report_invalid, container_requests=settings.vertical_autoscalers),
            *watched_gang_sizes(),
            *watched_placeholders(settings.capacity_buffers, settings.provisioning_requests),
            *(watched_overlays() if settings.node_overlays else ()),
            *(watched_vertical_autoscalers() if settings.vertical_autoscalers else ()),
            watched_guard(namespace, GUARD_NAME),
        ),
        executor=executor,
        nominator=nominator,
        provisioning=provisioning,
        launcher=launcher,
        claims=ClaimLoop(cluster, executor, launcher, metrics, recorder, nominator, timing),
        pools=PoolLoop(client, cluster, cloud, executor, recorder, metrics, timing),
        collector=Collector(cluster, cloud, executor, metrics, timing),
        tagging=TaggingLoop(cluster, cloud, executor, metrics, timing),
        interruption=InterruptionLoop(cluster, cloud, executor, metrics, timing),
        instance_status=InstanceStatusController(cluster, cloud, executor, metrics),
        reservations=ReservationLoop(cluster, cloud, executor, metrics, timing),
        instance_profiles=ProfileLoop(cluster, cloud, executor),
        offering_metrics=OfferingMetricsLoop(cluster, cloud, metrics.offerings),
        disruption=DisruptionLoop(cluster, cloud, executor, recorder, settings, metrics, timing),
        drift=DriftLoop(cluster, cloud, executor, metrics, settings, timing),
        gangs=gangs,
        measured_capacity=MeasuredCapacity(client, cluster, cloud, namespace),
        neighbors=NeighborLoop(client, cluster, recorder, timing),
        resizes=ResizeLoop(cluster, cloud, recorder, metrics, settings, timing),
        overlays=OverlayLoop(
            client, cluster, cloud, executor.assert_leading, boundary("node overlay"), timing
        )
        if settings.node_overlays
        else None,
        request_nodes=RequestNodeLoop(cluster, executor, metrics, timing)
        if settings.provisioning_requests
        else None,
    )
