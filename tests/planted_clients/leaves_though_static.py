"""Sends LeaveGroup as it closes, though it is static."""

from kafka.coordinator.consumer import ConsumerCoordinator
from of_kafka_python import consume, subscribed

ConsumerCoordinator.is_dynamic_member = lambda _: True
consume(subscribed())
