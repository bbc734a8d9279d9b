"""An OpenTelemetry collector's OTLP/HTTP receiver: it keeps the spans that it is sent, or misbehaves."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Span:
    """A span as it was received; times in seconds."""

    def __init__(self, received, resource):
        self.name = received.name
        self.trace, self.id, self.parent = received.trace_id, received.span_id, received.parent_span_id
        self.started, self.ended = received.start_time_unix_nano / 1e9, received.end_time_unix_nano / 1e9
        self.attributes = _attributes(received.attributes)
        self.error = received.status.message if received.status.code == 2 else ""
        self.resource = resource


class Receiver:
    """Takes traces on a port of this machine.

    Attributes:
        status: What it answers; others than 200 keep nothing.
        spans: What it took.
        asked: Requests that came.
    """

    def __init__(self):
        self.status, self.spans, self.asked = 200, [], 0
        self._answer = threading.Event()
        self._answer.set()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                owner.asked += 1
                owner._answer.wait(60)
                if owner.status == 200:
                    owner._take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
                answer = ExportTraceServiceResponse().SerializeToString()
                try:
                    self.send_response(owner.status)
                    self.send_header("Content-Type", "application/x-protobuf")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:  # whoever asked is gone
                    return

            def log_message(self, *_arguments):
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def hang(self):
        """Answer nothing from now on."""
        self._answer.clear()

    def go_on(self):
        """Answer again, also those who wait."""
        self._answer.set()

    def _take(self, body):
        for part in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _attributes(part.resource.attributes)
            self.spans += [Span(span, resource) for scope in part.scope_spans for span in scope.spans]

    def traces(self):
        """Complete traces: the first span, and the others by name in the order in which they began."""
        roots = [span for span in self.spans if not span.parent]
        return [(root, self.steps_until(root, float("inf"))) for root in roots]

    def steps_until(self, root, time):
        """The last steps of a trace, by name, that had begun then: those of the pass that led to its node.

        Until its node is there, later passes place a pod again.
        """
        steps = [span for span in self.spans if span.parent == root.id and span.trace == root.trace]
        return {
            step.name: step for step in sorted(steps, key=lambda step: step.started) if step.started <= time
        }

    def close(self):
        self._answer.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _attributes(received):
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in received}
