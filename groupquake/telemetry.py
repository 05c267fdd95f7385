"""What `--otel` needs: the packages of the extra `otel`, and variables of OpenTelemetry.

The load exports, by Locust's own support. Its variables (`OTEL_…`) are the user's; what is not set
gets a value that suits a run of a minute.
"""

import os
from collections.abc import Mapping
from importlib.util import find_spec

import click

ATTRIBUTES = "OTEL_RESOURCE_ATTRIBUTES"
DEFAULTS = {
    "OTEL_SERVICE_NAME": "groupquake",
    # gRPC's own threads know nothing of gevent, and would hold up all members
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_METRIC_EXPORT_INTERVAL": "5000",
}


def require() -> None:
    """Raise UsageError if OpenTelemetry's SDK is not installed."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise click.UsageError(
            "--otel needs OpenTelemetry's SDK; install it: pip install '.[otel]' in a checkout of"
            " groupquake"
        )


def variables(run: str | None = None, experiment: str | None = None) -> Mapping[str, str]:
    """Return variables for the environment of the load, beside those that the user has set."""
    unset = {name: value for name, value in DEFAULTS.items() if name not in os.environ}
    if run is None:
        return unset
    tags = [os.environ.get(ATTRIBUTES), f"groupquake.run={run}"]
    tags.append(f"groupquake.experiment={experiment}")
    return {**unset, ATTRIBUTES: ",".join(filter(None, tags))}
