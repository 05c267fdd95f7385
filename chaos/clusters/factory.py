"""Every kind of cluster by its name: making one, and ending the rest of a run that died."""

from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from chaos.clusters.commands import end_under_way
from chaos.clusters.docker import DockerCluster
from chaos.clusters.docker_engine import remove_marked
from chaos.clusters.guard import kill_marked
from chaos.clusters.interface import Cluster
from chaos.clusters.local import Settings
from chaos.clusters.oracle import OracleCluster
from chaos.clusters.process import ProcessCluster
from chaos.clusters.volume import remove_all, thaw_all
from chaos.external.cluster import ExternalCluster, Target

OWN = (ProcessCluster.kind, DockerCluster.kind, OracleCluster.kind)
"""The kinds that groupquake starts."""
KINDS = (*OWN, ExternalCluster.kind)


@dataclass(frozen=True, slots=True)
class Place:
    """The kind of a cluster, one of `KINDS`, and the settings of that kind.

    `kafka_home` is an unpacked Kafka for processes, `image` one for containers, `profile` the rules
    that the oracle serves; `ports` are the client ports. `external` is a cluster that exists. None
    is a default.
    """

    kind: str = ProcessCluster.kind
    kafka_home: Path | None = None
    image: str | None = None
    ports: tuple[int, ...] | None = None
    profile: str | None = None
    external: Target | None = None


def make(place: Place, run_id: str, folder: Path, **settings: Unpack[Settings]) -> Cluster:
    """Return a cluster that is not started yet. Raises ClusterError if it cannot be."""
    if place.external is not None:
        return ExternalCluster(place.external, folder)
    settings["ports"] = place.ports
    if place.kind == DockerCluster.kind:
        return DockerCluster(run_id, folder, image=place.image, **settings)
    if place.kind == OracleCluster.kind:
        return OracleCluster(run_id, folder, profile=place.profile, **settings)
    return ProcessCluster(run_id, folder, kafka_home=place.kafka_home, **settings)


def end_left_over(folder: Path, kind: str | None, run_id: str) -> tuple[str, ...]:
    """End what still runs of a run, by its mark; `folder` had its brokers, on a cluster of a kind.

    Returns the names of what was ended: processes, containers, networks, mounts. Of a cluster of
    the user's these are the hooks and log commands that are not over. Raises ClusterError.
    """
    thaw_all(folder)  # first: what waits for a frozen disk does not end
    commands = end_under_way(folder)
    containers = remove_marked(run_id) if kind == DockerCluster.kind else ()
    processes = (*commands, *kill_marked(run_id))
    return (*(f"process {pid}" for pid in processes), *containers, *remove_all(folder))
