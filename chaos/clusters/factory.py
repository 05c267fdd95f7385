"""Every kind of cluster by its name: making one, and ending what a dead run left of one."""

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
    """Where a cluster is to live: one of `KINDS`, and what only that kind can be told.

    `kafka_home` is an unpacked Kafka for processes, `image` one for containers; `ports` are the
    client ports. What is None is chosen.
    """

    kind: str = ProcessCluster.kind
    kafka_home: Path | None = None
    image: str | None = None
    ports: tuple[int, ...] | None = None


def make(
    place: Place, run_id: str, folder: Path, **settings: Unpack[Settings]
) -> ProcessCluster | DockerCluster:
    """Return a cluster that is still to be started. Raises ClusterError if it cannot be."""
    settings["ports"] = place.ports
    if place.kind == DockerCluster.kind:
        return DockerCluster(run_id, folder, image=place.image, **settings)
    return ProcessCluster(run_id, folder, kafka_home=place.kafka_home, **settings)


def end_left_over(folder: Path) -> tuple[str, ...]:
    """End what still runs of the cluster in a folder, by the mark it wrote down.

    Returns the names of what was ended: processes, containers, networks.
    """
    try:
        record = json.loads((folder / RECORD).read_text())
        kind, run_id = record["cluster"], record["run_id"]
    except FileNotFoundError:
        return ()  # it never came to start a broker
    except (ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{folder / RECORD}: damaged, so what is left is not known") from error
    if kind == DockerCluster.kind:
        return remove_marked(run_id)
    return tuple(f"process {pid}" for pid in kill_marked(run_id))
