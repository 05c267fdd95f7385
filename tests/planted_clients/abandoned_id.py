"""Throws away the first member id that it is given, and asks for another."""

from kafka.coordinator.consumer import ConsumerCoordinator
from of_kafka_python import consume, subscribed

reset, thrown_away = ConsumerCoordinator.reset_generation, []


def without_the_first(self, member_id=""):
    if member_id and not thrown_away:
        thrown_away.append(member_id)
        member_id = ""
    reset(self, member_id)


ConsumerCoordinator.reset_generation = without_the_first
consume(subscribed())
