"""Commits the offset of the record that it processed last, not that of the next."""

from of_confluent import commit, consume, owned, subscribed


def last(ends: dict) -> None:
    commit(consumer, {one: end - 1 for one, end in owned(consumer, ends).items()})


consumer = subscribed()
consume(consumer, committed=last)
consumer.close()
