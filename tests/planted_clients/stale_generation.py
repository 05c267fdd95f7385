"""Commits under the first generation that it was in, for ever."""

from kafka.coordinator.consumer import ConsumerCoordinator
from of_kafka_python import consume, subscribed

current, first = ConsumerCoordinator.generation_if_stable, []


def remembered(self):
    if (found := current(self)) is not None:
        first.append(found)
    return found and first[0]


ConsumerCoordinator.generation_if_stable = remembered
consume(subscribed())
