"""Commits what it polled before it processes it: a crash in between loses records."""

from member import say_processed, stopping
from of_confluent import commit, ends, key, owned, polled, subscribed

RECORD_S, BATCH = 0.2, 40
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
    # partitions in turn: a loss shows where records before it were processed
    for message in sorted(batch, key=lambda one: one.offset()):
        if not stopping.wait(RECORD_S):
            say_processed([(*key(message), message.offset())])
    batch.clear()
consumer.close()
