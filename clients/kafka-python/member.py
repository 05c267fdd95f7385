"""A group member with kafka-python."""

import sys

import verifiable as v
from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import FencedInstanceIdError, KafkaError

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class Listener(ConsumerRebalanceListener):
    """Prints what the client is given and gives up."""

    def on_partitions_assigned(self, assigned) -> None:
        """Print an assignment."""
        v.say("partitions_assigned", partitions=v.partitions(assigned))

    def on_partitions_revoked(self, revoked) -> None:
        """Print a revocation."""
        v.say("partitions_revoked", partitions=v.partitions(revoked))

    def on_partitions_lost(self, lost) -> None:
        """Print a loss."""
        v.say("partitions_lost", partitions=v.partitions(lost))


def main() -> int:
    """Consume until SIGTERM; return 1 when fenced."""
    v.stop_on_sigterm()
    static = {} if v.INSTANCE_ID is None else {"group_instance_id": v.INSTANCE_ID}
    consumer = KafkaConsumer(
        bootstrap_servers=v.BOOTSTRAP.split(","),
        client_id=v.CLIENT_ID,
        group_id=v.GROUP,
        partition_assignment_strategy=[ASSIGNORS[v.ASSIGNOR]],
        session_timeout_ms=v.SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=v.HEARTBEAT_INTERVAL_MS,
        max_poll_interval_ms=v.MAX_POLL_INTERVAL_MS,
        metadata_max_age_ms=v.METADATA_MAX_AGE_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **static,
        **v.security_of_kafka_python(),
    )
    consumer.subscribe(v.TOPICS, listener=Listener())
    v.say("startup_complete")
    commits = v.Commits()
    while not v.stopping.is_set():
        try:
            v.wait_to_poll()
            commits.add(consumer.poll(timeout_ms=100))
            if ends := commits.take_due(consumer.assignment()):
                _commit(consumer, ends)
        except FencedInstanceIdError as error:
            v.say("error", error=repr(error))
            return 1
        except KafkaError as error:
            v.say("error", error=repr(error))
    consumer.close()
    v.say("shutdown_complete")
    return 0


def _commit(consumer: KafkaConsumer, ends: dict) -> None:
    offsets = [(one.topic, one.partition, offset) for one, offset in ends.items()]
    try:
        consumer.commit({one: OffsetAndMetadata(offset, "", -1) for one, offset in ends.items()})
    except FencedInstanceIdError:
        raise
    except KafkaError as error:
        v.say_committed(offsets, repr(error))
    else:
        v.say_committed(offsets)


if __name__ == "__main__":
    sys.exit(main())
