"""The settings of librdkafka, of Java's consumer and of programs for a member; variables."""

import os
from pathlib import Path
from shutil import which
from typing import Any

from loadtest.configs import MemberConfig
from loadtest.members.security import client_properties, resolved_file


def servers(bootstrap: str) -> dict[str, str]:
    """Return the librdkafka settings of bootstrap servers; those of the loopback are IPv4."""
    family = "v4" if bootstrap.startswith("127.") else "any"
    return {"bootstrap.servers": bootstrap, "broker.address.family": family}


def consumer_settings(config: MemberConfig, bootstrap: str) -> dict[str, Any]:
    """Return the librdkafka settings of a member, without callbacks."""
    return {
        **client_properties(),
        **servers(bootstrap),
        **_common(config),
        "partition.assignment.strategy": config.assignor,
        "topic.metadata.refresh.interval.ms": config.metadata_max_age_ms,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }


def _common(config: MemberConfig) -> dict[str, Any]:
    """Return what librdkafka and Java call alike."""
    static = {} if config.instance_id is None else {"group.instance.id": config.instance_id}
    return {
        "client.id": config.name,
        "group.id": config.group,
        **static,
        "session.timeout.ms": config.session_timeout_ms,
        "heartbeat.interval.ms": config.heartbeat_interval_ms,
        "max.poll.interval.ms": config.max_poll_interval_ms,
    }


TOKEN_VARIABLE = "GROUPQUAKE_CONTROL_TOKEN"  # noqa: S105 (the variable's name, no secret)
"""The variable in which the load gets the token of its control channel."""
RUN_FOLDER = "GROUPQUAKE_RUN_FOLDER"
"""The variable by which what a run started is known: the folder of the run. A load of one run has
it, and so all that it starts; of a load that may have further runs, a program that is a member."""
PROGRAMS = "programs.json"
"""The file next to the history about members that are programs: the `folder` in which they run, and
the command lines of adapters by name, under `commands`."""


def path_of(program: str, folder: str) -> str:
    """Return the path of a program that runs in `folder`. Raises FileNotFoundError without one."""
    named = str(Path(folder, program)) if "/" in program else program
    if found := which(named, path=os.pathsep.join((folder, os.environ["PATH"]))):
        return found
    raise FileNotFoundError(f"there is no program {program!r}; check path and mode")


_JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


def java_properties(config: MemberConfig, bootstrap: str) -> str:
    """Return a properties file of Kafka's Java client."""
    settings = {
        "bootstrap.servers": bootstrap,
        **_common(config),
        "partition.assignment.strategy": _java_assignor(config),
        "metadata.max.age.ms": config.metadata_max_age_ms,
        "auto.commit.interval.ms": config.commit_interval_ms,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def program_settings(config: MemberConfig, bootstrap: str, properties: str) -> dict[str, str]:
    """Return what a program gets to know (`scenarios.clients.FIELDS`).

    `properties` is the path of its file for Java, or nothing.
    """
    return {
        "bootstrap": bootstrap,
        "group": config.group,
        "client_id": config.name,
        "instance_id": config.instance_id or "",
        "protocol": "classic",
        "topic": config.topics[0],
        "topics": ",".join(config.topics),
        "assignor": config.assignor,
        "session_timeout_ms": str(config.session_timeout_ms),
        "heartbeat_interval_ms": str(config.heartbeat_interval_ms),
        "max_poll_interval_ms": str(config.max_poll_interval_ms),
        "commit_interval_ms": str(config.commit_interval_ms),
        "metadata_max_age_ms": str(config.metadata_max_age_ms),
        "properties": properties,
        "java_assignor": _java_assignor(config),
        "client_properties": str(resolved_file() or ""),
    }


def _java_assignor(config: MemberConfig) -> str:
    return f"org.apache.kafka.clients.consumer.{_JAVA_ASSIGNORS[config.assignor]}"
