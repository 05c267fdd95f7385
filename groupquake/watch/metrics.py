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
METRICS = {
    "groupquake.group.rebalances": ("counter", "Rebalances that began, by cause"),
    "groupquake.member.rebalances": ("counter", "Rebalances that a client began"),
    "groupquake.group.storms": ("counter", "Storms of rebalances"),
    "groupquake.group.generation": ("gauge", "The generation that a line named last"),
    "groupquake.group.last_rebalance.seconds": ("gauge", "How long the last rebalance took"),
    "groupquake.watch.lines": ("counter", "Lines read, by status"),
}
"""The kind and the text of each metric, by the name that OpenTelemetry has for it."""


def values(view: View) -> Iterator[tuple[str, dict[str, str], float]]:
    """Yield the names of metrics, each with labels and the value for these."""
    for status, count in view.lines.items():
        yield "groupquake.watch.lines", {"status": status}, count
    for one in view.groups:
        group = {"group": one.name}
        for cause, count in one.causes.items():
            yield "groupquake.group.rebalances", {**group, "cause": cause}, count
        for client, count in one.clients.items():
            yield "groupquake.member.rebalances", {**group, "client": client}, count
        yield "groupquake.group.storms", group, one.storms
        if one.generation is not None:
            yield "groupquake.group.generation", group, one.generation
        if one.last_ms is not None:
            yield "groupquake.group.last_rebalance.seconds", group, one.last_ms / 1000


@dataclass(frozen=True)
class OfView(Collector):
    """Gives Prometheus's own client what is counted when it is asked."""

    shown: Shown

    def collect(self) -> Iterable[Metric]:
        """Yield each metric with its values."""
        counted = [*values(self.shown())]
        for name, (kind, text) in METRICS.items():
            metric = Metric(name.replace(".", "_"), text, kind)
            for of, labels, value in counted:
                if of == name:
                    metric.add_sample(metric.name + "_total" * (kind == "counter"), labels, value)
            yield metric


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
        return (Observation(value, labels) for of, labels, value in values(shown()) if of == name)

    for name, (kind, text) in METRICS.items():
        create = getattr(meter, f"create_observable_{kind}")
        create(name, [partial(observed, name)], description=text)
    try:
        yield
    finally:
        provider.shutdown()
