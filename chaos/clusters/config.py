"""Writes the properties that a broker is started with."""

from collections.abc import Mapping
from pathlib import PurePath

Properties = Mapping[str, str | int | bool]


def kraft(broker_id: int, voters: Mapping[int, str]) -> Properties:
    """Return who a broker is, where each is a controller too.

    `voters` holds `host:port` of the listener CONTROLLER of every broker, by broker id, as its
    peers reach it.
    """
    return {
        "node.id": broker_id,
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(f"{node}@{at}" for node, at in voters.items()),
    }


def with_zookeeper(broker_id: int, address: str) -> Properties:
    """Return who a broker is, where a ZooKeeper at `address` (`host:port`) keeps the metadata."""
    return {
        "broker.id": broker_id,
        "zookeeper.connect": address,
        # The default of 2.4. It is 18 s from 2.5 on, for the sake of clouds (KIP-537), and a killed
        # broker cannot come back before.
        "zookeeper.session.timeout.ms": 6_000,
    }


def server_properties(
    identity: Properties, brokers: int, network: Properties, data: PurePath, overrides: Properties
) -> str:
    """Return the `server.properties` of one of so many brokers.

    `identity` is what `kraft` or `with_zookeeper` returns. `network` holds the `listeners` and
    whatever more the place needs, such as `advertised.listeners`. `overrides` win over all of it.
    """
    replicas = min(3, brokers)
    properties: dict[str, str | int | bool] = {
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
    return as_properties({**identity, **properties, **network, **overrides})


def as_properties(properties: Properties) -> str:
    """Return the text of a properties file."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(value: str | int | bool) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\").replace("\n", "\\n")
