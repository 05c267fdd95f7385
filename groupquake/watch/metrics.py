"""What is counted in; metrics out: for Prometheus to fetch, or by OpenTelemetry to a collector."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import click
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from groupquake.watch.counting import View
from groupquake.watch.group_counts import GroupView

Labels = dict[str, str]
Values = Iterator[tuple[Labels, float]]
Shown = Callable[[], View]
"""Returns what is counted now; it is called in other threads."""


class Family(NamedTuple):
    """A metric by the name that OpenTelemetry has for it; Prometheus adds unit and `_total`."""

    name: str
    text: str
    unit: str
    labels: tuple[str, ...]
    values: Callable[[View], Values]
    is_counter: bool = True


def _by(of: Callable[[GroupView], Mapping[str, int]], label: str, view: View) -> Values:
    for group in view.groups:
        yield from (({"group": group.name, label: key}, count) for key, count in of(group).items())


def _once(of: Callable[[GroupView], float | None], view: View) -> Values:
    values = ((group.name, of(group)) for group in view.groups)
    yield from (({"group": name}, value) for name, value in values if value is not None)


FAMILIES = (
    Family("groupquake.group.rebalances", "Rebalances that began", "{rebalance}",
           ("group", "cause"), partial(_by, lambda group: group.causes, "cause")),
    Family("groupquake.member.rebalances", "Rebalances that a client began", "{rebalance}",
           ("group", "client"), partial(_by, lambda group: group.clients, "client")),
    Family("groupquake.group.storms", "Storms of rebalances", "{storm}",
           ("group",), partial(_once, lambda group: group.storms)),
    Family("groupquake.group.generation", "The generation that a line named last", "{generation}",
           ("group",), partial(_once, lambda group: group.generation), is_counter=False),
    Family("groupquake.group.last_rebalance", "How long the last rebalance took", "s",
           ("group",), partial(_once, lambda group: group.last_ms and group.last_ms / 1000),
           is_counter=False),
    Family("groupquake.watch.lines", "Lines read", "{line}", ("status",),
           lambda view: (({"status": key}, count) for key, count in view.lines.items())),
)  # fmt: skip


class OfView(Collector):
    """Gives Prometheus's own client what is counted when it is asked."""

    def __init__(self, shown: Shown) -> None:
        """Take what returns it."""
        self._shown = shown

    def collect(self) -> Iterable[Metric]:
        """Yield each metric with its values."""
        view = self._shown()
        for family in FAMILIES:
            of = CounterMetricFamily if family.is_counter else GaugeMetricFamily
            name = family.name.replace(".", "_") + "_seconds" * (family.unit == "s")
            metric = of(name, family.text, labels=family.labels)
            for labels, value in family.values(view):
                metric.add_metric([labels[name] for name in family.labels], value)
            yield metric


@contextmanager
def served(address: str, shown: Shown) -> Iterator[int]:
    """Serve `/metrics` inside the block, at HOST:PORT; yield the port. Raises UsageError."""
    host, _, port = address.rpartition(":")
    registry = CollectorRegistry()
    registry.register(OfView(shown))
    try:
        server, thread = start_http_server(int(port), host.strip("[]"), registry)
    except OSError as error:
        raise click.UsageError(f"--metrics {address}: {error.strerror or error}") from error
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

    def observed(family: Family, _: CallbackOptions) -> Iterator[Observation]:
        yield from (Observation(value, labels) for labels, value in family.values(shown()))

    for family in FAMILIES:
        of = meter.create_observable_counter if family.is_counter else meter.create_observable_gauge
        of(family.name, [partial(observed, family)], family.unit, family.text)
    try:
        yield
    finally:
        provider.shutdown()
