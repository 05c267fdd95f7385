"""What librdkafka is told about a member, in its own words."""

from typing import Any

from loadtest.roster import MemberConfig


def consumer_settings(config: MemberConfig, bootstrap: str) -> dict[str, Any]:
    """Return a member's configuration, without callbacks."""
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
