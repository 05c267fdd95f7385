"""Commits what it polled before it processes it: a crash in between loses records."""

from member import say_processed, stopping
from of_confluent import commit, key, owned, subscribed

RECORD_S = 0.1
consumer = subscribed()
while not stopping.is_set():
    batch = [one for one in consumer.consume(50, timeout=1) if not one.error()]
    commit(consumer, owned(consumer, {key(one): one.offset() + 1 for one in batch}))
    for message in batch:
        if not stopping.wait(RECORD_S):
            say_processed([(*key(message), message.offset())])
consumer.close()
