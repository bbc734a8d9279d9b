"""Traces sent to an OpenTelemetry collector, by the SDK's own environment variables.

Off unless `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` names a collector: until then
nothing of OpenTelemetry is imported. It is the extra `tracing` of the distribution, and in the image.

Spans wait in a bounded queue, and a thread of the SDK sends them. So a collector that is down, slow or that
answers errors holds up nothing: spans are lost, and the log says so once, and once when they arrive again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from nodeless import __version__
from nodeless.operator.config_sources import ConfigSources
from nodeless.operator.logs import logger

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import Span, Tracer

Attributes = Mapping[str, str | int | float | bool]
"""What a span says of itself; names are those of OpenTelemetry's semantic conventions where it has one."""

#: Seconds for what is queued when the process ends, as events have (`manager`).
FLUSH_SECONDS = 3.0
#: Spans that wait to be sent, at most, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise: those of all pods that
#: are followed at a time (`controllers.tracing`), should all of them end in one moment. OpenTelemetry's own
#: 2048 would tear holes into traces.
QUEUE = 8192
#: Longest text of an attribute, unless OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT says otherwise.
LONGEST_VALUE = 512
#: What the field calls the protocol that is spoken here, as OTEL_EXPORTER_OTLP_PROTOCOL may say.
_PROTOCOL = "http/protobuf"
_LIBRARY = "opentelemetry"


class Trace(Protocol):
    """One trace that is being made."""

    def step(self, name: str, started: float, ended: float, attributes: Attributes, error: str = "") -> None:
        """Add a span below the trace's own; times in seconds since the epoch; `error`: why it failed."""
        ...

    def end(self, at: float, attributes: Attributes, error: str = "") -> None:
        """Complete it; nothing may be added afterwards."""
        ...


class Traces(Protocol):
    """Where traces begin."""

    def begin(self, name: str, started: float, attributes: Attributes) -> Trace | None:
        """A new trace; None where the sampler leaves it out."""
        ...


class Tracing:
    """Traces on their way to a collector."""

    def __init__(
        self, provider: TracerProvider, tracer: Tracer, exporter: SpanExporter, reports: _Reports
    ) -> None:
        self._provider, self._tracer = provider, tracer
        self._exporter, self._reports = exporter, reports
        self._log = logger("tracing")

    def begin(self, name: str, started: float, attributes: Attributes) -> Trace | None:
        """A new trace; None where the sampler leaves it out."""
        from opentelemetry.context import Context  # noqa: PLC0415 - see `start_tracing`

        span = self._tracer.start_span(
            name, context=Context(), attributes=dict(attributes), start_time=_nanoseconds(started)
        )
        return _SpanTrace(self._tracer, span) if span.is_recording() else None

    async def stop(self, seconds: float = FLUSH_SECONDS) -> None:
        """Send what is queued, for so long at most; then give it up, and say nothing further of it.

        The thread that sends keeps no process alive, and ends by itself: it tries nothing again.
        """
        done, loop = asyncio.Event(), asyncio.get_running_loop()

        def shut_down() -> None:
            self._provider.shutdown()
            try:
                loop.call_soon_threadsafe(done.set)
            except RuntimeError:  # too late: the loop is closed, and nobody waits
                return

        threading.Thread(target=shut_down, name="end of traces", daemon=True).start()
        try:
            await asyncio.wait_for(done.wait(), seconds)
        except TimeoutError:
            self._reports.end()
            self._exporter.shutdown()
            self._log.warning(f"traces that could not be sent within {seconds:.0f} s are lost")


class _SpanTrace:
    """A trace, by its first span."""

    def __init__(self, tracer: Tracer, root: Span) -> None:
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415 - see `start_tracing`

        self._tracer, self._root = tracer, root
        self._context = set_span_in_context(root)

    def step(self, name: str, started: float, ended: float, attributes: Attributes, error: str = "") -> None:
        span = self._tracer.start_span(
            name, context=self._context, attributes=dict(attributes), start_time=_nanoseconds(started)
        )
        _end(span, max(started, ended), error)

    def end(self, at: float, attributes: Attributes, error: str = "") -> None:
        self._root.set_attributes(dict(attributes))
        _end(self._root, at, error)


def _end(span: Span, at: float, error: str) -> None:
    if error:
        from opentelemetry.trace import StatusCode  # noqa: PLC0415 - see `start_tracing`

        span.set_status(StatusCode.ERROR, error[:LONGEST_VALUE])
    span.end(end_time=_nanoseconds(at))


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def start_tracing(sources: ConfigSources, cluster: str, identity: str) -> Tracing | None:
    """Begin to send traces; None where none are asked for, or where that cannot be done, which is logged.

    Args:
        sources: The process' environment. What it says further of OpenTelemetry (sampler, headers,
            certificates, limits, queue) the SDK reads itself.
        cluster: Name of the cluster, an attribute of all traces.
        identity: Name of the process, likewise.
    """
    endpoint = _endpoint(sources)
    if not endpoint:
        return None
    spoken = _text(sources, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    if spoken not in ("", _PROTOCOL):
        problem = (
            f"{spoken} is not spoken; hint: set OTEL_EXPORTER_OTLP_PROTOCOL={_PROTOCOL} and the collector's"
            " port for it, as a rule 4318"
        )
    else:
        try:
            return _start(sources, endpoint, cluster, identity)
        except ImportError as error:
            problem = f"{error}; hint: pip install 'nodeless-provisioner[tracing]'"
        except Exception as error:  # whatever the SDK makes of its variables, nodes are needed
            problem = f"{error}; hint: check the variables OTEL_*"
    logger("tracing").error(f"no traces: {problem}")
    return None


def _start(sources: ConfigSources, endpoint: str, cluster: str, identity: str) -> Tracing:
    # Here and nowhere at a module's top: who traces nothing loads nothing.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    said = _Said()
    library = logging.getLogger(_LIBRARY)
    library.propagate = False
    library.handlers = [said]
    given = _text(sources, "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")
    provider = TracerProvider(
        resource=_resource(cluster, identity),
        span_limits=SpanLimits(max_span_attribute_length=None if given else LONGEST_VALUE),
        shutdown_on_exit=False,
    )
    queue = None if _text(sources, "OTEL_BSP_MAX_QUEUE_SIZE") else QUEUE
    reports = _Reports(endpoint, said)
    exporter = _with_reports(OTLPSpanExporter(), reports)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=queue))
    log = logger("tracing")
    for message in said.take():
        log.warning(f"traces: {message}")
    log.info("sending traces", endpoint=endpoint)
    return Tracing(provider, provider.get_tracer("nodeless", __version__), exporter, reports)


def _resource(cluster: str, identity: str) -> Resource:
    """What all traces have in common; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before it."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415

    given = OTELResourceDetector().detect().attributes
    ours = {
        "service.name": "nodeless",
        "service.version": __version__,
        "service.instance.id": identity,
        "k8s.cluster.name": cluster,
    }
    return Resource.create({name: value for name, value in ours.items() if name not in given})


def _endpoint(sources: ConfigSources) -> str:
    """Where traces go; empty: nowhere."""
    if _text(sources, "OTEL_SDK_DISABLED").lower() == "true":
        return ""
    if _text(sources, "OTEL_TRACES_EXPORTER").lower() == "none":
        return ""
    return _text(sources, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def _text(sources: ConfigSources, *variables: str) -> str:
    """What the first of these variables says that is set."""
    return next(
        (sources.environment[each].strip() for each in variables if sources.environment.get(each)), ""
    )


class _Said(logging.Handler):
    """What OpenTelemetry's own loggers say: it would be a line for each batch that is not taken."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # The last few say why; of a collector that is down for a week there are thousands.
        self._messages = [*self._messages[-4:], record.getMessage()]

    def take(self) -> list[str]:
        """What was said since."""
        messages, self._messages = self._messages, []
        return messages


class _Reports:
    """Logs once when spans are not taken, and once when they are again."""

    def __init__(self, endpoint: str, said: _Said) -> None:
        self._endpoint, self._said = endpoint, said
        self._failing = self._ended = False
        self._log = logger("tracing")

    def note_failure(self, why: str = "") -> None:
        """Spans were not taken; without `why`, the reason is what OpenTelemetry said last."""
        said = "; ".join(self._said.take()[-1:])
        if self._failing or self._ended:
            return
        self._failing = True
        self._log.error(
            f"traces are lost, {self._endpoint} does not take them: {why or said}; hint: check the collector"
            " and OTEL_EXPORTER_OTLP_ENDPOINT; nothing else depends on it"
        )

    def note_success(self) -> None:
        self._said.take()
        if self._failing and not self._ended:
            self._log.info("traces are taken again", endpoint=self._endpoint)
        self._failing = False

    def end(self) -> None:
        """Say nothing from now on: what is still being sent was given up, and that was said."""
        self._ended = True


def _with_reports(inner: SpanExporter, reports: _Reports) -> SpanExporter:
    """An exporter that reports what becomes of spans, and fails in no other way."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult  # noqa: PLC0415

    class Reporting(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            try:
                result = inner.export(spans)
            except Exception as error:
                reports.note_failure(str(error))
                return SpanExportResult.FAILURE
            if result is SpanExportResult.SUCCESS:
                reports.note_success()
            else:
                reports.note_failure()
            return result

        def shutdown(self) -> None:
            inner.shutdown()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return inner.force_flush(timeout_millis)

    return Reporting()
