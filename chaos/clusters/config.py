"""Writes the files that a broker is started with: its properties and its logging."""

from collections.abc import Mapping
from pathlib import Path

from chaos.clusters.ports import HOST

LOG4J2 = Path(__file__).parent / "templates" / "log4j2.yaml"

Properties = Mapping[str, str | int | bool]


def server_properties(
    broker_id: int,
    ports: Mapping[int, tuple[int, int]],
    data: Path,
    overrides: Properties,
) -> str:
    """Return the `server.properties` of one broker.

    `ports` holds (client port, controller port) for every broker id; `overrides` win.
    """
    client, controller = ports[broker_id]
    voters = ",".join(f"{node}@{HOST}:{port}" for node, (_, port) in ports.items())
    replicas = min(3, len(ports))
    properties: dict[str, str | int | bool] = {
        "node.id": broker_id,
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://{HOST}:{client},CONTROLLER://{HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": voters,
        "log.dirs": str(data),
        "auto.create.topics.enable": False,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": 6,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 2,
        # The group records of a run are evidence: nothing may compact them away. The cleaner
        # itself cannot be switched off for ever, but its buffer need not be half of the heap.
        "log.cleaner.min.compaction.lag.ms": 7 * 24 * 3600 * 1000,
        "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
        "num.network.threads": 2,
        "num.io.threads": 4,
    }
    return "".join(
        f"{key}={_escaped(value)}\n" for key, value in {**properties, **overrides}.items()
    )


def _escaped(value: str | int | bool) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\").replace("\n", "\\n")
