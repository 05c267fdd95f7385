"""A group member with confluent-kafka (librdkafka) for Python."""

import sys

import verifiable as v
from confluent_kafka import Consumer, KafkaError


def main() -> int:
    """Consume until SIGTERM; return 1 after a fatal error, such as being fenced."""
    v.stop_on_sigterm()
    settings = {
        "bootstrap.servers": v.BOOTSTRAP,
        "broker.address.family": "v4" if v.BOOTSTRAP.startswith("127.") else "any",
        "client.id": v.CLIENT_ID,
        "group.id": v.GROUP,
        "partition.assignment.strategy": v.ASSIGNOR,
        "session.timeout.ms": v.SESSION_TIMEOUT_MS,
        "heartbeat.interval.ms": v.HEARTBEAT_INTERVAL_MS,
        "max.poll.interval.ms": v.MAX_POLL_INTERVAL_MS,
        "topic.metadata.refresh.interval.ms": v.METADATA_MAX_AGE_MS,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "on_commit": _committed,
        **v.security(),
    }
    if v.INSTANCE_ID is not None:
        settings["group.instance.id"] = v.INSTANCE_ID
    consumer, commits = Consumer(settings), v.Commits()

    def gave_up(name: str, found: list) -> None:
        commits.new = 0  # a commit of revoked partitions is an error
        _say(name, found)

    consumer.subscribe(
        v.TOPICS,
        on_assign=lambda mine, found: _say("partitions_assigned", found, member_id=mine.memberid()),
        on_revoke=lambda _, found: gave_up("partitions_revoked", found),
        on_lost=lambda _, found: gave_up("partitions_lost", found),
    )
    v.say("startup_complete")
    while not v.stopping.is_set():
        v.wait_to_poll()
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            commits.new += 1
            v.say("records_consumed", count=1)
        elif message is not None:
            error = message.error()
            if error.code() == KafkaError._FATAL:  # noqa: SLF001 (fatal() is False here)
                v.say("fenced" if "fenced" in error.str() else "error", error=error.str())
                return 1
            v.say("error", error=error.str())
        if commits.new and commits.due():
            consumer.commit(asynchronous=True)
            commits.new = 0
    consumer.close()
    v.say("shutdown_complete")
    return 0


def _say(name: str, found: list, **more: object) -> None:
    v.say(name, partitions=v.partitions((one.topic, one.partition) for one in found), **more)


def _committed(error: KafkaError | None, offsets: list) -> None:
    stored = [(one.topic, one.partition, one.offset) for one in offsets if one.offset >= 0]
    v.say_committed(stored, error and error.str())


if __name__ == "__main__":
    sys.exit(main())
