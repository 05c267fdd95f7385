"""The tap of a run: before all brokers of its cluster, its evidence in the run folder."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos import tap
from chaos.clusters import Cluster
from scenarios.client_properties import Properties, uses_tls

FOLDER = "tap"


@contextmanager
def running(
    folder: Path, cluster: Cluster, progress: Callable[[str], None]
) -> Iterator[tap.RunningTap]:
    """Run the tap inside the block. Raises ChaosError if it does not start, or ends early."""
    brokers = {broker.id: broker.address for broker in cluster.brokers}
    tls = _tls(cluster.client_properties)
    settings = tap.TapSettings(brokers, folder.resolve() / FOLDER, broker_tls=tls)
    with tap.running(settings) as running_tap:
        progress(f"the tap listens at {running_tap.bootstrap}")
        yield running_tap


def _tls(properties: Properties) -> tap.BrokerTls | None:
    """Return how the tap speaks TLS to the brokers, with the properties of clients."""
    if not uses_tls(properties):
        return None

    def file(key: str) -> Path | None:
        return Path(properties[key]) if key in properties else None

    certificate = file("ssl.certificate.location")
    return tap.BrokerTls(
        file("ssl.ca.location"),
        certificate,
        file("ssl.key.location") or certificate,
        properties.get("ssl.key.password"),
        check_names=properties.get("ssl.endpoint.identification.algorithm") != "none",
    )
