"""Sends heartbeats only between polls: none while it processes a record for long."""

from kafka.coordinator.consumer import ConsumerCoordinator
from member import GIVEN, every, stopping
from of_kafka_python import consume, subscribed


async def no_loop(_):
    pass


def between_polls():
    coordinator = consumer._coordinator
    if coordinator.stable() and coordinator.heartbeat.should_heartbeat():
        coordinator._net.run(coordinator._do_heartbeat)
    if not coordinator.need_rejoin() and is_big():
        print("a big record", flush=True)
        stopping.wait(int(GIVEN["SESSION_TIMEOUT_MS"]) / 1000 + 1.5)


ConsumerCoordinator._heartbeat_loop = no_loop
is_big = every(20)
consumer = subscribed()
consume(consumer, before=between_polls)
