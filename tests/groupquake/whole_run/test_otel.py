"""`groupquake run --otel`: what a collector gets of a real run."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry

from tests.groupquake.whole_run.collector import Collector, Values, values
from tests.groupquake.whole_run.conftest import WholeRun

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

DOCS = Path(__file__).parents[3] / "docs"
KINDS = ("static", "dynamic")


def of_run(whole_run: WholeRun, name: str) -> list[tuple[Any, Values]]:
    """Return our spans of that name, with their attributes."""
    return [(span, own) for span, own, _ in whole_run.collector.spans() if span.name == name]


def points(whole_run: WholeRun, name: str) -> list[tuple[Values, float]]:
    """Return the points of a metric, with their attributes."""
    return [(own, value) for found, own, value in whole_run.collector.points() if found == name]


def test_every_span_and_metric_of_ours_names_the_run(whole_run: WholeRun) -> None:
    tags = {"groupquake.run": whole_run.folder.name, "groupquake.experiment": "small"}
    spans = list(whole_run.collector.spans())
    assert {of["service.name"] for *_, of in spans} == {"groupquake"}
    assert all(of.items() >= tags.items() for *_, of in spans)
    assert all(own.items() >= tags.items() for _, own, _ in spans)
    ours = [(name, own) for name, own, _ in whole_run.collector.points()
            if name.startswith("groupquake.")]  # fmt: skip
    assert all(own.items() >= tags.items() for _, own in ours)
    assert {name for name, _ in ours} == {
        "groupquake.members",
        "groupquake.member.joins",
        "groupquake.member.rebalances",
        "groupquake.faults",
        "groupquake.fault.injected_at",
    }


def test_each_client_that_was_made_joins_in_a_span(whole_run: WholeRun) -> None:
    made = [(line["member"], round(line["at_ms"], 1)) for line in whole_run.history
            if line["event"] == "created" and line["kind"] in KINDS]  # fmt: skip
    joins = of_run(whole_run, "join")
    began = [(own["messaging.client.id"], span.start_time_unix_nano / 1e6) for span, own in joins]
    assert len(began) == len(made)
    for (name, at_ms), (of, began_ms) in zip(sorted(made), sorted(began), strict=True):
        assert name == of
        assert abs(began_ms - at_ms) < 50, "the line is written as the span begins"
    assert any(own["groupquake.faults.open"] == ["member.restart"] for _, own in joins)
    counted = {
        (own["group"], own["kind"]): value
        for own, value in points(whole_run, "groupquake.member.joins")
    }
    about = {line["member"]: (line["group"], line["kind"]) for line in whole_run.history
             if line["kind"] in KINDS}  # fmt: skip
    assert counted == dict(Counter(about[name] for name, _ in made))


def test_each_fault_of_the_journal_is_a_span(whole_run: WholeRun) -> None:
    at: dict[str, dict[str, int]] = {}
    names = {}
    for entry in whole_run.journal:
        if entry.get("fault_id"):
            at.setdefault(entry["fault_id"], {})[entry["event"]] = entry["at_ms"]
            names.setdefault(entry["fault_id"], entry.get("fault"))
    spans = [(span, own) for name in set(names.values()) for span, own in of_run(whole_run, name)]
    assert sorted(
        (span.name, span.start_time_unix_nano // 1_000_000, span.end_time_unix_nano // 1_000_000)
        for span, _ in spans
    ) == sorted((names[one], events["intent"], events["healed"]) for one, events in at.items())
    assert all(own["groupquake.fault.verified"] for _, own in spans)
    injected = {events["injected"] for events in at.values()}
    shown = {value for _, value in points(whole_run, "groupquake.fault.injected_at")}
    assert shown
    assert shown <= injected
    last = dict.fromkeys([], 0.0)
    for own, value in points(whole_run, "groupquake.faults"):
        last[own["target"]] = value
    assert sum(last.values()) == len(at)


def test_the_dashboard_asks_for_what_a_run_exports(whole_run: WholeRun) -> None:
    registry = as_prometheus_has(whole_run.collector)
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
    seen = {metric.name: (metric.unit, kind, points) for metric, kind, points in collector.metric()}
    for name, (unit, kind, points) in seen.items():
        attributes = values(points[0].attributes)
        match kind:
            case "sum":
                meter.create_counter(name, unit).add(1, attributes)
            case "gauge":
                meter.create_gauge(name, unit).set(1, attributes)
            case "histogram":
                meter.create_histogram(name, unit).record(1, attributes)
    return registry
