"""What is counted in; metrics out: for Prometheus to fetch, or by OpenTelemetry to a collector."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import click
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from groupquake.watch.counting import View

Shown = Callable[[], View]
"""Returns what is counted now; it is called in other threads."""
METRICS = (
    ("groupquake_group_rebalances", "counter", "Rebalances that began, by cause"),
    ("groupquake_member_rebalances", "counter", "Rebalances that a client began"),
    ("groupquake_group_storms", "counter", "Storms of rebalances"),
    ("groupquake_group_generation", "gauge", "The generation that a line named last"),
    ("groupquake_group_last_rebalance_seconds", "gauge", "How long the last rebalance took"),
    ("groupquake_watch_lines", "counter", "Lines read, by status"),
)


def metrics(view: View) -> dict[str, Metric]:
    """Return all metrics with their values, by their names."""
    found = {name: Metric(name, text, kind) for name, kind, text in METRICS}

    def add(name: str, value: float, **labels: str) -> None:
        metric = found[f"groupquake_{name}"]
        metric.add_sample(metric.name + "_total" * (metric.type == "counter"), labels, value)

    for status, count in view.lines.items():
        add("watch_lines", count, status=status)
    for one in view.groups:
        for cause, count in one.causes.items():
            add("group_rebalances", count, group=one.name, cause=cause)
        for client, count in one.clients.items():
            add("member_rebalances", count, group=one.name, client=client)
        add("group_storms", one.storms, group=one.name)
        if one.generation is not None:
            add("group_generation", one.generation, group=one.name)
        if one.last_ms is not None:
            add("group_last_rebalance_seconds", one.last_ms / 1000, group=one.name)
    return found


@dataclass(frozen=True)
class OfView(Collector):
    """Gives Prometheus's own client what is counted when it is asked."""

    shown: Shown

    def collect(self) -> Iterable[Metric]:
        """Return each metric with its values."""
        return metrics(self.shown()).values()


@contextmanager
def served(address: str, shown: Shown) -> Iterator[int]:
    """Serve `/metrics` inside the block, at [HOST:]PORT; yield the port. Raises UsageError."""
    host, _, port = address.rpartition(":")
    registry = CollectorRegistry()
    registry.register(OfView(shown))
    try:
        server, thread = start_http_server(int(port), host.strip("[]") or "127.0.0.1", registry)
    except (OSError, OverflowError, ValueError) as error:
        raise click.UsageError(f"--metrics {address}: {error}; give PORT or HOST:PORT") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def exported(shown: Shown) -> Iterator[None]:
    """Export by OpenTelemetry inside the block, by its variables, as `run --otel` does."""
    from groupquake.load_process import otel_variables, require_otel  # noqa: PLC0415 (it loads slowly)

    require_otel()
    os.environ.update(otel_variables())
    from opentelemetry.metrics import CallbackOptions, Observation  # noqa: PLC0415 (an extra's)
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415

    way = "grpc" if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc" else "http"
    otlp: Any = import_module(f"opentelemetry.exporter.otlp.proto.{way}.metric_exporter")
    provider = MeterProvider([PeriodicExportingMetricReader(otlp.OTLPMetricExporter())])
    meter = provider.get_meter("groupquake")

    def observed(name: str, _: CallbackOptions) -> Iterator[Observation]:
        samples = metrics(shown())[name].samples
        return (Observation(sample.value, sample.labels) for sample in samples)

    for name, kind, text in METRICS:
        create = getattr(meter, f"create_observable_{kind}")
        create(name, [partial(observed, name)], description=text)
    try:
        yield
    finally:
        provider.shutdown()
