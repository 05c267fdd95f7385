"""Commits what it polled before it processes it: a crash in between loses records."""

from member import say_processed, stopping
from of_confluent import commit, ends, key, owned, polled, subscribed

RECORD_S, BATCH = 0.08, 40
"""A whole batch takes 3.2 s: the kill, 4 to 6 s after the first begins, is in the second."""
batch: list = []


def forget() -> None:
    batch.clear()
    ends.clear()


consumer = subscribed(on_revoke=forget)
while not stopping.is_set():
    while len(batch) < BATCH and (message := polled(consumer)) is not None:
        batch.append(message)
        ends[key(message)] = message.offset() + 1
    commit(consumer, owned(consumer, ends))
    if not stopping.wait(RECORD_S * len(batch)):  # a batch is processed as a whole
        say_processed([(*key(message), message.offset()) for message in batch])
    batch.clear()
consumer.close()
