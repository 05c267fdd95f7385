"""`groupquake run --otel`: what a collector gets of a real run."""

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry

from tests.groupquake.conftest import SMALL, run_in

pytestmark = pytest.mark.cluster

DOCS = Path(__file__).parents[2] / "docs"


class Collector(ThreadingHTTPServer):
    """Takes what exporters send by OTLP over HTTP."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Exported)
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []

    def instruments(self) -> dict[str, tuple[str, str, dict[str, Any]]]:
        """Return unit, kind and one point's attributes of each metric."""
        found = {}
        for sent in self.metrics:
            for of in sent.resource_metrics:
                for scope in of.scope_metrics:
                    for metric in scope.metrics:
                        kind = metric.WhichOneof("data")
                        point = getattr(metric, kind).data_points[0]
                        found[metric.name] = (metric.unit, kind, values(point.attributes))
        return found

    @property
    def variables(self):
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server_port}"}

    def spans(self):
        """Yield each span with its attributes, and those of its resource."""
        for sent in self.traces:
            for of in sent.resource_spans:
                for scope in of.scope_spans:
                    for span in scope.spans:
                        yield span, values(span.attributes), values(of.resource.attributes)

    def points(self):
        """Yield each point of a metric as its name, attributes and value."""
        for sent in self.metrics:
            for of in sent.resource_metrics:
                for scope in of.scope_metrics:
                    for metric in scope.metrics:
                        for point in (*metric.sum.data_points, *metric.gauge.data_points):
                            value = point.as_int or point.as_double
                            yield metric.name, values(point.attributes), value


class _Exported(BaseHTTPRequestHandler):
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


def values(attributes):
    def value(of):
        kind = of.WhichOneof("value")
        if kind == "array_value":
            return [value(one) for one in of.array_value.values]
        return getattr(of, kind)

    return {one.key: value(one.value) for one in attributes}


@dataclass(frozen=True)
class Exported:
    """What a collector got of a run, and the run's own evidence."""

    run: str
    history: list[dict[str, Any]]
    journal: list[dict[str, Any]]
    collector: Collector

    def of_run(self, name: str) -> list[tuple[Any, dict[str, Any]]]:
        """Return our spans of that name, with their attributes."""
        return [(span, own) for span, own, _ in self.collector.spans() if span.name == name]

    def points(self, name: str) -> list[tuple[dict[str, Any], float]]:
        """Return the points of a metric, with their attributes."""
        return [(own, value) for found, own, value in self.collector.points() if found == name]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("otel")
    (folder / "small.yaml").write_text(SMALL)
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        words = ("run", "small.yaml", "--otel", "--no-report")
        done = run_in(folder, *words, env=collector.variables)
        collector.shutdown()
        thread.join()
    assert done.code == 0, done.err
    run = (folder / "runs" / "latest").resolve()
    return Exported(run.name, lines(run / "history.jsonl"), lines(run / "journal.jsonl"), collector)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_span_and_metric_of_ours_names_the_run(exported: Exported) -> None:
    tags = {"groupquake.run": exported.run, "groupquake.experiment": "small"}
    spans = list(exported.collector.spans())
    assert {of["service.name"] for *_, of in spans} == {"groupquake"}
    assert all(of.items() >= tags.items() for *_, of in spans)
    assert all(own.items() >= tags.items() for _, own, _ in spans)
    ours = [(name, own) for name, own, _ in exported.collector.points()
            if name.startswith("groupquake.")]  # fmt: skip
    assert all(own.items() >= tags.items() for _, own in ours)
    assert {name for name, _ in ours} == {
        "groupquake.members",
        "groupquake.member.joins",
        "groupquake.member.rebalances",
        "groupquake.faults",
        "groupquake.fault.injected_at",
    }


def test_each_client_that_was_made_joins_in_a_span(exported: Exported) -> None:
    made = [(line["member"], round(line["at_ms"], 1)) for line in exported.history
            if line["event"] == "created" and line["kind"] in KINDS]  # fmt: skip
    joins = exported.of_run("join")
    began = [(own["messaging.client.id"], span.start_time_unix_nano / 1e6) for span, own in joins]
    assert len(began) == len(made)
    for (name, at_ms), (of, began_ms) in zip(sorted(made), sorted(began), strict=True):
        assert name == of
        assert abs(began_ms - at_ms) < 50, "the line is written as the span begins"
    assert any(own["groupquake.faults.open"] == ["member.restart"] for _, own in joins)
    counted = {own["kind"]: value for own, value in exported.points("groupquake.member.joins")}
    kinds = {line["member"]: line["kind"] for line in exported.history}
    assert counted == dict(Counter(kinds[name] for name, _ in made))


def test_each_fault_of_the_journal_is_a_span(exported: Exported) -> None:
    at: dict[str, dict[str, int]] = {}
    names = {}
    for entry in exported.journal:
        if entry.get("fault_id"):
            at.setdefault(entry["fault_id"], {})[entry["event"]] = entry["at_ms"]
            names.setdefault(entry["fault_id"], entry.get("fault"))
    spans = [(span, own) for name in set(names.values()) for span, own in exported.of_run(name)]
    assert sorted(
        (span.name, span.start_time_unix_nano // 1_000_000, span.end_time_unix_nano // 1_000_000)
        for span, _ in spans
    ) == sorted((names[one], events["intent"], events["healed"]) for one, events in at.items())
    assert all(own["groupquake.fault.verified"] for _, own in spans)
    injected = {events["injected"] for events in at.values()}
    shown = {value for _, value in exported.points("groupquake.fault.injected_at")}
    assert shown
    assert shown <= injected
    last = dict.fromkeys([], 0.0)
    for own, value in exported.points("groupquake.faults"):
        last[own["target"]] = value
    assert sum(last.values()) == len(at)


def test_the_dashboard_asks_for_what_a_run_exports(exported: Exported) -> None:
    registry = as_prometheus_has(exported.collector)
    labels: dict[str, set[str]] = {}
    for family in registry.collect():
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    board = json.loads((DOCS / "grafana" / "groupquake.json").read_text())
    asked = list(expressions(board))
    assert len(asked) > 8
    for expression in asked:
        for name, matched in re.findall(r"((?:groupquake|locust)_\w+)(?:\{(.*?)\})?", expression):
            if name in labels:
                assert set(re.findall(r"(\w+)[=!]", matched)) <= labels[name] | {"error_type"}
            else:  # a label that a function names
                assert name == "groupquake_run", f"{expression}: no {name} is exported"
    assert any("injected_at" in one["expr"] for one in board["annotations"]["list"])


def expressions(board: Any) -> Iterator[str]:
    """Yield every query of a dashboard."""
    if isinstance(board, dict):
        yield from (text for name in ("expr", "query") if isinstance(text := board.get(name), str))
        board = list(board.values())
    if isinstance(board, list):
        for one in board:
            yield from expressions(one)


def as_prometheus_has(collector: Collector) -> CollectorRegistry:
    """Return the metrics by the names that OpenTelemetry's own exporter gives them."""
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(registry=registry)
    meter = MeterProvider([reader]).get_meter("as exported")
    for name, (unit, kind, attributes) in collector.instruments().items():
        match kind:
            case "sum":
                meter.create_counter(name, unit).add(1, attributes)
            case "gauge":
                meter.create_gauge(name, unit).set(1, attributes)
            case "histogram":
                meter.create_histogram(name, unit).record(1, attributes)
    return registry


KINDS = ("static", "dynamic")
