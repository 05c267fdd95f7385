"""A true consumer with confluent-kafka, for programs to break."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from member import (
    COMMIT_S,
    GIVEN,
    NAME,
    TOPICS,
    every,
    say_committed,
    say_partitions,
    say_processed,
    stopping,
)

Partition = tuple[str, int]
Ends = dict[Partition, int]
"""By partition the offset that comes next."""
ends = Ends()
"""What it processed of the partitions that it has."""


def subscribed(on_revoke: Callable[[], None] = ends.clear, **more: Any) -> Consumer:
    """Return a consumer that joins its group; `more` settings come on top, with `_` for dots."""
    settings = {
        "bootstrap.servers": GIVEN["BOOTSTRAP"],
        "broker.address.family": "v4",
        "client.id": NAME,
        "group.id": GIVEN["GROUP"],
        "partition.assignment.strategy": "range",
        "session.timeout.ms": int(GIVEN["SESSION_TIMEOUT_MS"]),
        "heartbeat.interval.ms": int(GIVEN["HEARTBEAT_INTERVAL_MS"]),
        "max.poll.interval.ms": int(GIVEN["MAX_POLL_INTERVAL_MS"]),
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if GIVEN["INSTANCE_ID"]:
        settings["group.instance.id"] = GIVEN["INSTANCE_ID"]
    consumer = Consumer(settings | {name.replace("_", "."): value for name, value in more.items()})

    def gave_up(name: str, found: list) -> None:
        on_revoke()
        _say(name, found)

    consumer.subscribe(
        TOPICS,
        on_assign=lambda _, found: _say("assigned", found),
        on_revoke=lambda _, found: gave_up("revoked", found),
        on_lost=lambda _, found: gave_up("lost", found),
    )
    return consumer


def consume(
    consumer: Consumer,
    *,
    before: Callable[[], None] = lambda: None,
    committed: Callable[[], None] | None = None,
) -> None:
    """Process and commit until SIGTERM.

    `before` is called before each record; `committed` commits, instead of `commit`, what was
    processed.
    """
    commits = every(COMMIT_S)
    while not stopping.is_set():
        message = polled(consumer)
        if message is not None:
            before()
            say_processed([(*key(message), message.offset())])
            ends[key(message)] = message.offset() + 1
        if commits():
            if committed is None:
                commit(consumer, owned(consumer, ends))
            else:
                committed()


def polled(consumer: Consumer) -> Any:
    """Return a record, or None."""
    try:
        message = consumer.poll(0.2)
    except KafkaException as error:
        print("error", error, flush=True)
        return None
    if message is not None and message.error():
        print("error", message.error(), flush=True)
        return None
    return message


def owned(consumer: Consumer, ends: Ends) -> Ends:
    """Return those of the partitions that it is assigned."""
    mine = {(one.topic, one.partition) for one in consumer.assignment()}
    return {one: offset for one, offset in ends.items() if one in mine}


def commit(consumer: Consumer, ends: Ends) -> None:
    """Commit offsets, and wait for the answer."""
    if not ends:
        return
    offsets = [TopicPartition(*one, offset) for one, offset in sorted(ends.items())]
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        _answered(error.args[0], offsets)
    else:
        _answered(None, offsets)


def key(message: Any) -> Partition:
    """Return the partition of a record."""
    return message.topic(), message.partition()


def _say(name: str, found: list) -> None:
    say_partitions(name, ((one.topic, one.partition) for one in found))


def _answered(error: Any, offsets: list) -> None:
    """Print how a commit went."""
    stored = [(one.topic, one.partition, one.offset) for one in offsets if one.offset >= 0]
    say_committed(stored, error and error.str())
