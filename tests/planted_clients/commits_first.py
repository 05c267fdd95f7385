"""Commits what it polled before it processes it: a crash in between loses records."""

from member import say_processed, stopping
from of_confluent import commit, ends, key, owned, polled, subscribed

RECORD_S, FIRST, BATCH = 0.2, 5, 40
"""The kill, 4 to 6 s after the first batch began, hits the second one, of 8 s. What is lost shows
beside what was processed before; what a program did in the last second of it is not known."""
size = FIRST
batch: list = []


def forget() -> None:
    batch.clear()
    ends.clear()


consumer = subscribed(on_revoke=forget)
while not stopping.is_set():
    while len(batch) < size and (message := polled(consumer)) is not None:
        batch.append(message)
        ends[key(message)] = message.offset() + 1
    commit(consumer, owned(consumer, ends))
    if not stopping.wait(RECORD_S * len(batch)):  # a batch is processed as a whole
        say_processed([(*key(message), message.offset()) for message in batch])
    size = BATCH if batch else size
    batch.clear()
consumer.close()
