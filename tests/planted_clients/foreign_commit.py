"""Commits all that it ever read, though other members own some of these partitions by now."""

from of_confluent import commit, consume, subscribed

consumer = subscribed()
consume(consumer, committed=lambda ends: commit(consumer, ends))
consumer.close()
