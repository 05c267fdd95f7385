"""The Docker engine: reaching it, and removing what a run left in it, found by the run's label."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from requests.exceptions import RequestException

from chaos.errors import ClusterError
from chaos.timing import ENGINE_S

LABEL = "groupquake.run"
"""Every container and network of a run carries it; its value is the run's id."""


@contextmanager
def engine() -> Iterator[docker.DockerClient]:
    """Connect to the engine of DOCKER_HOST, else to the local one; errors become ClusterErrors."""
    where = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    try:
        _knock(where)
        client = docker.from_env(timeout=ENGINE_S)
    except (DockerException, RequestException, OSError) as error:
        raise ClusterError(
            f"no Docker engine answers at {where} ({getattr(error, 'strerror', None) or error});"
            " start it, or use --cluster process"
        ) from error
    try:
        with engine_errors():
            yield client
    finally:
        client.close()


def _knock(where: str) -> None:
    """Raise OSError if no engine listens: the error of the SDK is long, and it leaks a socket."""
    if where.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(where.removeprefix("unix://"))


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn errors of the engine, or its loss, into a ClusterError."""
    try:
        yield
    except (DockerException, RequestException) as error:
        reason = getattr(error, "explanation", None) or error
        raise ClusterError(f"the Docker engine refuses: {reason}") from error


def remove_marked(run_id: str) -> tuple[str, ...]:
    """Remove every container, then every network of a run; return their names.

    `groupquake heal` and the guard may do the same at the same time.
    """
    own: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={run_id}"}
    removed: list[str] = []
    with engine() as client:
        for container in client.containers.list(all=True, filters=own, ignore_removed=True):
            with suppress(NotFound):
                _remove(container)
                removed.append(str(container.name))
        for network in client.networks.list(filters=own):
            with suppress(NotFound):
                network.remove()
                removed.append(str(network.name))
    return tuple(removed)


def _remove(container: Container) -> None:
    try:
        container.remove(force=True, v=True)
    except APIError as error:
        if error.status_code != HTTPStatus.CONFLICT:
            raise
        container.wait(condition="removed")  # being removed already
