"""Joins again when another process has its instance id and fences it."""

from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import FencedInstanceIdError, UnknownMemberIdError
from of_kafka_python import consume, subscribed

handle = ConsumerCoordinator._handle_heartbeat_response


def as_if_unknown(self, response, sent):
    try:
        handle(self, response, sent)
    except FencedInstanceIdError:
        self.reset_generation()
        raise UnknownMemberIdError from None


ConsumerCoordinator._handle_heartbeat_response = as_if_unknown
consume(subscribed())
