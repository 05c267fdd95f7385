"""Joins with the member id that the coordinator does not know any more, at once and again."""

from kafka.coordinator.consumer import ConsumerCoordinator
from of_kafka_python import consume, subscribed

reset, tried = ConsumerCoordinator.reset_generation, []


def keeping_it(self, member_id=""):
    if not member_id and len(tried) < 40:
        tried.append(member_id)
        member_id = self._generation.member_id
    reset(self, member_id)


ConsumerCoordinator.reset_generation = keeping_it
consume(subscribed())
