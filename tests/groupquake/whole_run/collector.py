"""A collector of OpenTelemetry, for what a run exports."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

Values = dict[str, Any]


class Collector(ThreadingHTTPServer):
    """Takes what exporters send by OTLP over HTTP."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Exported)
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []

    @contextmanager
    def serving(self) -> Iterator[dict[str, str]]:
        """Serve inside the block, which gets the variables that lead an exporter here."""
        thread = threading.Thread(target=self.serve_forever)
        thread.start()
        try:
            yield {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server_port}"}
        finally:
            self.shutdown()
            thread.join()
            self.server_close()

    def spans(self) -> Iterator[tuple[Any, Values, Values]]:
        """Yield each span with its attributes, and those of its resource."""
        for sent in self.traces:
            for of in sent.resource_spans:
                for scope in of.scope_spans:
                    for span in scope.spans:
                        yield span, values(span.attributes), values(of.resource.attributes)

    def metric(self) -> Iterator[tuple[Any, str, Any]]:
        """Yield each metric, its kind, and its points."""
        for sent in self.metrics:
            for of in sent.resource_metrics:
                for scope in of.scope_metrics:
                    for metric in scope.metrics:
                        kind = metric.WhichOneof("data")
                        yield metric, kind, getattr(metric, kind).data_points

    def points(self) -> Iterator[tuple[str, Values, float]]:
        """Yield each point of a sum or gauge as its metric's name, attributes and value."""
        for metric, kind, points in self.metric():
            for point in points if kind in ("sum", "gauge") else ():
                yield metric.name, values(point.attributes), point.as_int or point.as_double


class _Exported(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.path:
            case "/v1/traces":
                self.server.traces.append(ExportTraceServiceRequest.FromString(body))
            case "/v1/metrics":
                self.server.metrics.append(ExportMetricsServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def values(attributes: Any) -> Values:
    """Return attributes as plain values."""

    def value(of: Any) -> Any:
        kind = of.WhichOneof("value")
        if kind == "array_value":
            return [value(one) for one in of.array_value.values]
        return getattr(of, kind)

    return {one.key: value(one.value) for one in attributes}
