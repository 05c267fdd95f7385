"""A true consumer with kafka-python, for programs to break."""

from collections.abc import Callable

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError
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

ends: dict = {}
"""By partition the offset that comes next, of the partitions that it has."""


class Says(ConsumerRebalanceListener):
    """Prints what it is given and gives up."""

    def on_partitions_assigned(self, assigned):
        say_partitions("assigned", assigned)

    def on_partitions_revoked(self, revoked):
        ends.clear()
        say_partitions("revoked", revoked)

    def on_partitions_lost(self, lost):
        ends.clear()
        say_partitions("lost", lost)


def subscribed(**more) -> KafkaConsumer:
    """Return a consumer that joins its group; `more` settings come on top."""
    if GIVEN["INSTANCE_ID"]:
        more = {"group_instance_id": GIVEN["INSTANCE_ID"], **more}
    consumer = KafkaConsumer(
        bootstrap_servers=GIVEN["BOOTSTRAP"].split(","),
        client_id=NAME,
        group_id=GIVEN["GROUP"],
        partition_assignment_strategy=[RangePartitionAssignor],
        session_timeout_ms=int(GIVEN["SESSION_TIMEOUT_MS"]),
        heartbeat_interval_ms=int(GIVEN["HEARTBEAT_INTERVAL_MS"]),
        max_poll_interval_ms=int(GIVEN["MAX_POLL_INTERVAL_MS"]),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **more,
    )
    consumer.subscribe(TOPICS, listener=Says())
    return consumer


def consume(consumer: KafkaConsumer, before: Callable[[], None] = lambda: None) -> None:
    """Process and commit until SIGTERM, then close; `before` is called before each poll."""
    commits = every(COMMIT_S)
    while not stopping.is_set():
        try:
            before()
            for partition, records in consumer.poll(timeout_ms=200).items():
                say_processed((*partition, record.offset) for record in records)
                ends[partition] = records[-1].offset + 1
            if commits():
                commit(consumer, {one: ends[one] for one in consumer.assignment() & ends.keys()})
        except KafkaError as error:
            print("error", repr(error), flush=True)
    consumer.close()


def commit(consumer: KafkaConsumer, mine: dict) -> None:
    """Commit, and print how it went."""
    if not mine:
        return
    offsets = [(*one, offset) for one, offset in mine.items()]
    try:
        consumer.commit({one: OffsetAndMetadata(offset, "", -1) for one, offset in mine.items()})
    except KafkaError as error:
        say_committed(offsets, repr(error))
    else:
        say_committed(offsets)
