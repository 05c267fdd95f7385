"""What the engine has of a run."""

import docker

from chaos.clusters.docker_engine import LABEL


def marked(engine: docker.DockerClient, run_id: str) -> set[str]:
    """Return the names of all containers and networks that carry the mark of a run.

    One that is removed right now is left out.
    """
    own: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={run_id}"}
    containers = engine.containers.list(all=True, filters=own, ignore_removed=True)
    return {str(each.name) for each in (*containers, *engine.networks.list(filters=own))}
