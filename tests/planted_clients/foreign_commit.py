"""Commits all that it ever read, though other members own some of these partitions by now."""

from of_confluent import commit, consume, ends, subscribed

consumer = subscribed(on_revoke=lambda: None)
consume(consumer, committed=lambda: commit(consumer, ends))
consumer.close()
