"""Every kind of cluster by its name: making one, and ending the rest of a run that died."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from chaos.clusters.docker import DockerCluster
from chaos.clusters.docker_engine import remove_marked
from chaos.clusters.guard import kill_marked
from chaos.clusters.interface import ClusterError
from chaos.clusters.local import RECORD, Settings
from chaos.clusters.process import ProcessCluster

KINDS = (ProcessCluster.kind, DockerCluster.kind)


@dataclass(frozen=True, slots=True)
class Place:
    """The kind of a cluster, one of `KINDS`, and the settings of that kind.

    `kafka_home` is an unpacked Kafka for processes, `image` one for containers; `ports` are the
    client ports. None is a default.
    """

    kind: str = ProcessCluster.kind
    kafka_home: Path | None = None
    image: str | None = None
    ports: tuple[int, ...] | None = None


def make(
    place: Place, run_id: str, folder: Path, **settings: Unpack[Settings]
) -> ProcessCluster | DockerCluster:
    """Return a cluster that is not started yet. Raises ClusterError if it cannot be."""
    settings["ports"] = place.ports
    if place.kind == DockerCluster.kind:
        return DockerCluster(run_id, folder, image=place.image, **settings)
    return ProcessCluster(run_id, folder, kafka_home=place.kafka_home, **settings)


def end_left_over(folder: Path) -> tuple[str, ...]:
    """End what still runs of the cluster in a folder, by the mark in its record.

    Returns the names of what was ended: processes, containers, networks.
    """
    try:
        record = json.loads((folder / RECORD).read_text())
        kind, run_id = record["cluster"], record["run_id"]
    except FileNotFoundError:
        return ()  # no broker was ever started
    except (ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{folder / RECORD}: damaged; end leftover brokers by hand") from error
    if kind == DockerCluster.kind:
        return remove_marked(run_id)
    return tuple(f"process {pid}" for pid in kill_marked(run_id))
