"""The settings of librdkafka and of Java's consumer for a member."""

from pathlib import Path
from typing import Any

from loadtest.client_configs import MemberConfig


def consumer_settings(config: MemberConfig, bootstrap: str) -> dict[str, Any]:
    """Return the librdkafka settings of a member, without callbacks."""
    settings = {
        "bootstrap.servers": bootstrap,
        "broker.address.family": "v4",
        "client.id": config.name,
        "group.id": config.group,
        "partition.assignment.strategy": config.assignor,
        "session.timeout.ms": config.session_timeout_ms,
        "heartbeat.interval.ms": config.heartbeat_interval_ms,
        "max.poll.interval.ms": config.max_poll_interval_ms,
        "topic.metadata.refresh.interval.ms": config.metadata_max_age_ms,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if config.instance_id is not None:
        settings["group.instance.id"] = config.instance_id
    return settings


JAVA_COMMAND = "java.json"
"""The file next to the history with the first part of the command line, as JSON."""
_JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


def java_properties(config: MemberConfig) -> str:
    """Return a properties file of the settings without an option of the VerifiableConsumer."""
    settings = {
        "client.id": config.name,
        "heartbeat.interval.ms": config.heartbeat_interval_ms,
        "max.poll.interval.ms": config.max_poll_interval_ms,
        "metadata.max.age.ms": config.metadata_max_age_ms,
        "auto.commit.interval.ms": config.commit_interval_ms,
    }
    if config.instance_id is not None:
        settings["group.instance.id"] = config.instance_id
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def java_options(config: MemberConfig, bootstrap: str, properties: Path) -> list[str]:
    """Return the options of the VerifiableConsumer, the same in all releases from 2.8 on."""
    assignor = f"org.apache.kafka.clients.consumer.{_JAVA_ASSIGNORS[config.assignor]}"
    return [
        "--bootstrap-server", bootstrap,
        "--topic", config.topics[0],
        "--group-id", config.group,
        "--session-timeout", str(config.session_timeout_ms),
        "--assignment-strategy", assignor,
        "--enable-autocommit",
        "--consumer.config", str(properties),
    ]  # fmt: skip
