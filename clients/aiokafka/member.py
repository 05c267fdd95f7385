"""A group member with aiokafka."""

import asyncio
import signal
import sys

import verifiable as v
from aiokafka import AIOKafkaConsumer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import KafkaError

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class Listener(ConsumerRebalanceListener):
    """Prints what the client is given and gives up."""

    async def on_partitions_assigned(self, assigned) -> None:
        """Print an assignment."""
        v.say("partitions_assigned", partitions=v.partitions(assigned))

    async def on_partitions_revoked(self, revoked) -> None:
        """Print a revocation."""
        v.say("partitions_revoked", partitions=v.partitions(revoked))


async def main() -> int:
    """Consume until SIGTERM; return 1 when the library gives up."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=v.BOOTSTRAP,
        client_id=v.CLIENT_ID,
        group_id=v.GROUP,
        group_instance_id=v.INSTANCE_ID,
        partition_assignment_strategy=[ASSIGNORS[v.ASSIGNOR]],
        session_timeout_ms=v.SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=v.HEARTBEAT_INTERVAL_MS,
        max_poll_interval_ms=v.MAX_POLL_INTERVAL_MS,
        rebalance_timeout_ms=v.MAX_POLL_INTERVAL_MS,
        metadata_max_age_ms=v.METADATA_MAX_AGE_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **v.security_of_aiokafka(),
    )
    consumer.subscribe(v.TOPICS, listener=Listener())
    await consumer.start()
    v.say("startup_complete")
    commits = v.Commits()
    while not stopping.is_set():
        try:
            commits.add(await consumer.getmany(timeout_ms=100))
            if ends := commits.take_due(consumer.assignment()):
                await _commit(consumer, ends)
        except KafkaError as error:
            v.say("error", error=repr(error))
            if "Fenced" in type(error).__name__:
                return 1
    await consumer.stop()
    v.say("shutdown_complete")
    return 0


async def _commit(consumer: AIOKafkaConsumer, ends: dict) -> None:
    offsets = [(one.topic, one.partition, offset) for one, offset in ends.items()]
    try:
        await consumer.commit(ends)
    except KafkaError as error:
        v.say_committed(offsets, repr(error))
    else:
        v.say_committed(offsets)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
