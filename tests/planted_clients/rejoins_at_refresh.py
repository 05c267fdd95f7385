"""Joins again whenever it gets fresh metadata, though nothing in it changed."""

from kafka.coordinator.consumer import ConsumerCoordinator
from of_kafka_python import consume, subscribed

update = ConsumerCoordinator._handle_metadata_update


def and_rejoin(self, cluster):
    update(self, cluster)
    self.request_rejoin()


ConsumerCoordinator._handle_metadata_update = and_rejoin
consume(subscribed(metadata_max_age_ms=3_000))
