"""The controller's process: what starts when, what stops it.

Every replica serves probes, metrics and the webhook. The one that holds the lease also
watches the cluster, plans, and acts; when it loses the lease it exits, and is started
again as a follower.

```
settings -> API server -> probes, metrics, webhook -> leadership -> cloud -> watches -> loops
```
"""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from nodeless import __version__
from nodeless.api.errors import problem_of
from nodeless.cloudprovider import CloudError, CloudProvider
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.cloudprovider.aws.bundled_types import bundled_types
from nodeless.cloudprovider.billing.terms import price_book_warnings
from nodeless.cloudprovider.instrumented import measure_calls
from nodeless.controllers.cache_sync import wait_for_cache_sync
from nodeless.controllers.error_boundary import ErrorBoundary, ProcessMustEnd, kept_running
from nodeless.controllers.server_version import check_server_version, server_version
from nodeless.controllers.tracing.pod_traces import PodTraces
from nodeless.controllers.wiring import build_controllers
from nodeless.kube import (
    ApiClient,
    ApiError,
    ApiUnavailable,
    Reflector,
    TokenBucket,
    watched_config_map,
)
from nodeless.kube.event_recorder import Recorder
from nodeless.kube.leader_election import Leadership, NotLeadingError
from nodeless.manager.aws_settings import aws_settings
from nodeless.manager.decision_files import DecisionFiles
from nodeless.manager.freeze_gc import answer_while_computing, freeze_gc
from nodeless.manager.health import health_application, metrics_application, serve
from nodeless.manager.live_logging import LiveLogging
from nodeless.manager.live_settings import Faults, LiveSettings, read_global_settings
from nodeless.manager.profiling import start_counting_memory
from nodeless.manager.validation_context import ValidationContextWatch
from nodeless.model.instructions import PublishEvent
from nodeless.model.object_names import LEASE_NAME
from nodeless.operator import logs
from nodeless.operator.clock import sync_from_date_header, wall_clock
from nodeless.operator.failpoints import Failpoint, pass_by
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.process_settings import ProcessSettings
from nodeless.operator.settings import SETTINGS_NAME, SettingsError, settings_faults, settings_warnings
from nodeless.operator.timing import TIMING, Timing
from nodeless.operator.tracing import Tracing, start_tracing
from nodeless.webhook import AdmissionServer, Certificates

_CLOUD_RETRY_SECONDS = 5.0
_FLUSH_SECONDS = 3.0


class LeadershipLostError(ProcessMustEnd):
    """Another replica may act now: this process must end."""


class Controller:
    """One replica."""

    def __init__(
        self,
        process: ProcessSettings,
        client: ApiClient,
        failpoint: Failpoint = pass_by,
        timing: Timing = TIMING,
        provider: type[AwsProvider] = AwsProvider,
    ) -> None:
        self._process = process
        self._provider = provider
        self._failpoint = failpoint
        self._timing = timing
        self._client = client
        self._metrics = Metrics()
        client.observe(self._metrics.work.show_request, self._metrics.work.show_throttled)
        client.observe_time(self._set_clock)
        client.limit(TokenBucket(process.client_rate, process.client_burst))
        self._recorder = Recorder(client, process.identity)
        self._leadership = Leadership(client, process.namespace, process.identity, timing)
        #: What readiness waits for: the settings, the webhook, and, for the leader, the cluster's.
        self._waiting = {"the settings"} | ({"the webhook"} if process.webhook_enabled else set())
        self._tracing: Tracing | None = None
        self._traces: PodTraces | None = None
        self._log = logger("controller")

    async def run(self) -> None:
        """Run until cancelled or until leadership is lost. Raises what makes it impossible to go on."""
        process = self._process
        async with contextlib.AsyncExitStack() as stack:
            for application, port, purpose in (
                (health_application(self._unready), process.health_port, "probes"),
                (
                    metrics_application(self._metrics, profiling=process.profiling),
                    process.metrics_port,
                    "metrics",
                ),
            ):
                runner = await serve(application, process.bind_address, port, purpose)
                stack.push_async_callback(runner.cleanup)
            # The last things that happen: what was decided until then is still told.
            stack.push_async_callback(self._send_the_rest)
            stack.push_async_callback(self._tell_the_rest)
            logging = LiveLogging(self._report_invalid_settings)
            await logging.read(self._client, process.namespace, process.logging_name)
            if process.webhook_enabled:
                await check_server_version(self._client, process.oldest_server)
            self._log.info("starting", version=__version__)
            async with asyncio.TaskGroup() as group:
                background = [
                    group.create_task(self._recorder.run(), name="events"),
                    group.create_task(self._follow(process.logging_name, logging), name="logging"),
                ]
                if process.webhook_enabled:
                    # It is asked about settings, too: those that nobody can use are corrected through it.
                    background.append(group.create_task(self._serve_webhook(), name="webhook"))
                started, data = await read_global_settings(self._client, process.namespace, process.sources)
                self._waiting.discard("the settings")
                settings = LiveSettings(started, data, process.sources, self._report_invalid_settings)
                background.append(group.create_task(self._follow(SETTINGS_NAME, settings), name="settings"))
                await self._run_and_release(self._lead(settings))
                for task in background:
                    task.cancel()

    def _set_clock(self, date: str | None, took: float) -> None:
        before = wall_clock()
        if sync_from_date_header(date, took):
            off = before - wall_clock()
            self._log.warning(
                f"the clock was {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} the API server's:"
                " its time is used; hint: check the time synchronisation of the machines"
            )

    async def _tell_the_rest(self) -> None:
        """Write the events that are queued; there is no time left to save requests."""
        self._client.limit(None)
        await self._recorder.flush(_FLUSH_SECONDS)

    async def _send_the_rest(self) -> None:
        if self._traces is not None:
            self._traces.end_all()
        if self._tracing is not None:
            await self._tracing.stop()

    async def _follow(self, name: str, live: LiveSettings | LiveLogging) -> None:
        """Keep what a ConfigMap says current."""
        reflector = Reflector(self._client, watched_config_map(self._process.namespace, name), live.handle)
        await reflector.run()

    def _report_invalid_settings(self, name: str, uid: str, faults: Faults) -> None:
        """Say on a ConfigMap what is wrong with it, and show it in the metrics."""
        self._metrics.show_setting_faults(name, faults)
        for key in sorted(faults):
            self._recorder.publish(
                PublishEvent(
                    "settings",
                    "ConfigMap",
                    name,
                    "Warning",
                    "InvalidSetting",
                    f"{faults[key]}; the last good value stays in force",
                    self._process.namespace,
                    uid,
                )
            )

    def _unready(self) -> str | None:
        return f"waiting for {' and '.join(sorted(self._waiting))}" if self._waiting else None

    async def _run_and_release(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work; however it ends, the lease is released."""
        try:
            await work
        finally:
            await self._leadership.release()

    async def _serve_webhook(self) -> None:
        certificates = Certificates(self._client, self._process.namespace, self._process.service)
        validation_context = ValidationContextWatch(self._client)
        await asyncio.to_thread(bundled_types)  # before the first question needs the table
        freeze_gc()
        server = AdmissionServer(
            self._process.bind_address,
            self._process.webhook_port,
            certificates,
            check_settings=lambda data: settings_faults(data, self._process.sources),
            advise_on_settings=lambda data: [*settings_warnings(data), *price_book_warnings(data)],
            context_source=validation_context.current,
            watcher=self._metrics.work.measure_review,
        )
        async with asyncio.TaskGroup() as group, server:
            group.create_task(validation_context.run(), name="of_cluster")
            self._waiting.discard("the webhook")
            self._log.info("webhook is serving", port=self._process.webhook_port)
            await kept_running("certificates", certificates.keep, self._boundary("loop"))

    async def _lead(self, settings: LiveSettings) -> None:
        leadership = self._leadership if self._process.leader_elect else None
        if leadership is not None:
            await leadership.acquire()
        leading = self._metrics.leading.labels(LEASE_NAME)
        leading.set(1)
        try:
            async with asyncio.TaskGroup() as group:
                if leadership is not None:
                    group.create_task(self._hold(leadership), name="lease")
                group.create_task(self._act(settings, leadership), name="act")
        except* (NotLeadingError, LeadershipLostError):
            raise LeadershipLostError("lost the lease; exiting so that only one replica acts") from None
        finally:
            leading.set(0)

    async def _hold(self, leadership: Leadership) -> None:
        await leadership.hold()
        raise LeadershipLostError

    async def _act(self, settings: LiveSettings, leadership: Leadership | None) -> None:
        by_eks = settings.current.eks_control_plane
        of_cluster = (self._process.region, await self._cluster_dns(), self._client.certificate_authority)
        aws = self._provider(
            aws_settings(settings.current, *of_cluster),
            log=logger("aws"),
            clock=wall_clock,
            on_call=self._metrics.show_call,
            on_batch=self._metrics.show_batch,
            ask_version=None if by_eks else lambda: server_version(self._client),
            assert_allowed=None if leadership is None else leadership.assert_leading,
        )
        settings.listen(lambda current: aws.use(aws_settings(current, *of_cluster)))
        cloud = measure_calls(aws, self._metrics)
        try:
            async with asyncio.TaskGroup() as group:
                # Side by side: pods that wait are told what keeps the cloud from being used.
                check = kept_running("cloud", lambda: self._check_cloud(cloud), self._boundary("loop"))
                group.create_task(check, name="cloud")
                await self._run_loops(settings, cloud, leadership)
        finally:
            await cloud.close()

    async def _cluster_dns(self) -> str:
        """Address of the cluster's DNS service; empty when it cannot be read (nodes then compute it)."""
        try:
            service = await self._client.get("/api/v1/namespaces/kube-system/services/kube-dns")
        except (ApiError, ApiUnavailable) as error:
            self._log.info(f"address of the cluster's DNS not known: {error}")
            return ""
        return str(service.get("spec", {}).get("clusterIP", ""))

    async def _check_cloud(self, cloud: CloudProvider) -> None:
        """Until the cloud answers nothing can be launched: say so once for each cause, and try on."""
        said = ""
        while True:
            try:
                await cloud.start()
                if said:
                    self._log.info("the cloud can be used")
                return
            except CloudError as error:
                if str(error) != said:
                    said = str(error)
                    self._log.error(f"the cloud cannot be used yet: {error}")
            await asyncio.sleep(_CLOUD_RETRY_SECONDS)

    async def _run_loops(
        self, settings: LiveSettings, cloud: CloudProvider, leadership: Leadership | None
    ) -> None:
        process = self._process
        decisions = process.decisions_folder
        self._tracing = start_tracing(process.sources, settings.current.cluster_name, process.identity)
        self._traces = PodTraces(self._tracing) if self._tracing is not None else None
        controllers = build_controllers(
            self._client,
            cloud,
            self._recorder,
            self._metrics,
            settings.current,
            process.namespace,
            report_invalid=self._report_invalid,
            leadership=leadership,
            record=DecisionFiles(Path(decisions), process.decisions_kept).record if decisions else None,
            failpoint=self._failpoint,
            timing=self._timing,
            traces=self._traces,
        )
        settings.listen(controllers.use)
        cluster = controllers.cluster
        async with asyncio.TaskGroup() as group:
            group.create_task(controllers.watch(), name="watches")
            self._waiting.add("the cluster's state")
            await wait_for_cache_sync(cluster, self._recorder)
            freeze_gc()
            self._waiting.discard("the cluster's state")
            self._metrics.cluster.watch(lambda: cluster.snapshot)
            loops = self._boundary("loop")
            for loop in controllers.loops:
                name = type(loop).__name__
                group.create_task(kept_running(name, loop.run, loops), name=name)

    def _boundary(self, unit: str) -> ErrorBoundary:
        return ErrorBoundary(unit, self._metrics, self._recorder)

    def _report_invalid(self, manifest: dict[str, Any], error: Exception) -> None:
        name = manifest["metadata"]["name"]
        event = PublishEvent(
            "watch",
            manifest["kind"],
            name,
            "Warning",
            "Invalid",
            problem_of(error),
            uid=manifest["metadata"].get("uid", ""),
        )
        if self._recorder.publish(event):
            self._log.error(f"{manifest['kind']}/{name} cannot be used: {problem_of(error)}")


def _configure_logs(process: ProcessSettings) -> None:
    try:
        logs.configure(process.log_level, outputs=process.log_output_paths)
    except OSError as error:
        given = process.sources.get("LOG_OUTPUT_PATHS")
        hint = "name stdout, stderr or files that can be written"
        raise SettingsError(
            [f"{given}: cannot write to {error.filename}: {error.strerror}; hint: {hint}"]
        ) from error


async def run_controller(
    process: ProcessSettings,
    failpoint: Failpoint = pass_by,
    timing: Timing = TIMING,
    provider: type[AwsProvider] = AwsProvider,
) -> None:
    """Connect and run one replica; SIGTERM and SIGINT end it in order.

    `failpoint` is passed at every boundary of an instruction (see `nodeless.operator.failpoints`);
    `timing` are the controllers' clocks, periods and deadlines; `provider` makes the client of AWS.

    Raises:
        SettingsError, ApiUnavailable, PortTakenError: It cannot start.
        LeadershipLostError: Another replica may act now.
    """
    _configure_logs(process)
    answer_while_computing()
    if process.profiling:
        start_counting_memory()
    client = await ApiClient.connect()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    work = asyncio.create_task(
        Controller(process, client, failpoint, timing, provider).run(), name="controller"
    )
    asked = asyncio.create_task(stopping.wait(), name="signals")
    try:
        await asyncio.wait({work, asked}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.is_set():
            logger("controller").info("stopping")
            # Once only: a second signal must not interrupt the release of the lease.
            work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
    finally:
        asked.cancel()
        await client.close()
