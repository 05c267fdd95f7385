"""No bug: what all the others would be. It is named by nothing."""

from of_kafka_python import consume, subscribed

consume(subscribed())
