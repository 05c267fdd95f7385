"""A group member with confluent-kafka (librdkafka) for Python."""

import os
import signal
import sys
import time

import verifiable as v
from confluent_kafka import Consumer, KafkaError, KafkaException

COMMIT_ANSWER_S = 5.0
"""How long a close waits for the response to a commit: a consumer does not close before there is
one, and there may never be one (librdkafka 2.16)."""


class Commits(v.Commits):
    """Commits of which one at a time waits for its response."""

    waits = False

    def send_due(self, consumer: Consumer) -> None:
        """Commit what came since the last commit, if that is due."""
        if not self.new or self.waits or not self.due():
            return
        v.consumed.say()
        self.new, self.waits = 0, True
        try:
            consumer.commit(asynchronous=True)
        except KafkaException as error:
            self.answered(error.args[0], [])

    def answered(self, error: KafkaError | None, offsets: list) -> None:
        """Print a response."""
        self.waits = False
        stored = [(one.topic, one.partition, one.offset) for one in offsets if one.offset >= 0]
        v.say_committed(stored, error and error.str())


def main() -> int:
    """Consume until SIGTERM; return 1 after a fatal error, such as being fenced."""
    v.stop_on_sigterm()
    commits = Commits()
    consumer = subscribed(commits)
    v.say("startup_complete")
    while not v.stopping.is_set():
        v.wait_to_poll()
        message = consumer.poll(0.1)
        error = None if message is None else message.error()
        if message is not None and error is None:
            commits.new += 1
            v.consumed.add(message.topic(), message.partition(), message.offset())
        v.consumed.say_due()
        if error is not None:
            is_fatal = error.code() == KafkaError._FATAL  # noqa: SLF001 (fatal() is False here)
            v.say("fenced" if is_fatal and "fenced" in error.str() else "error", error=error.str())
            if is_fatal:
                return 1
        commits.send_due(consumer)
    v.consumed.say()
    close(consumer, commits)
    v.say("shutdown_complete")
    return 0


def close(consumer: Consumer, commits: Commits) -> None:
    """Close cleanly, or end this process as a crash does where no coordinator answers a commit."""
    until_s = time.monotonic() + COMMIT_ANSWER_S
    while commits.waits and time.monotonic() < until_s:
        consumer.poll(0.05)
    if commits.waits:
        v.say("error", error=f"no response to a commit within {COMMIT_ANSWER_S:g} s")
        os.kill(os.getpid(), signal.SIGKILL)
    consumer.close()


def subscribed(commits: Commits) -> Consumer:
    """Return a consumer that joins its group."""
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
        "on_commit": commits.answered,
        **v.security(),
    }
    if v.INSTANCE_ID is not None:
        settings["group.instance.id"] = v.INSTANCE_ID
    consumer = Consumer(settings)

    def gave_up(name: str, found: list) -> None:
        commits.new = 0  # a commit of revoked partitions is an error
        _say(name, found)

    consumer.subscribe(
        v.TOPICS,
        on_assign=lambda mine, found: _say("partitions_assigned", found, member_id=mine.memberid()),
        on_revoke=lambda _, found: gave_up("partitions_revoked", found),
        on_lost=lambda _, found: gave_up("partitions_lost", found),
    )
    return consumer


def _say(name: str, found: list, **more: object) -> None:
    v.say(name, partitions=v.partitions((one.topic, one.partition) for one in found), **more)


if __name__ == "__main__":
    sys.exit(main())
