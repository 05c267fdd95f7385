"""A worker goes on with records that wait for it, though their partition was revoked."""

import queue
import threading

from member import COMMIT_S, every, say_processed, stopping
from of_confluent import commit, ends, key, owned, polled, subscribed

RECORD_S = 0.1  # fewer than are produced: what it is given for a while is still waiting later
waiting: queue.Queue = queue.Queue()
revoked: list = []


def work() -> None:
    while not stopping.wait(RECORD_S):
        message, revoked_before = waiting.get()
        say_processed([(*key(message), message.offset())])
        if revoked_before == len(revoked):
            ends[key(message)] = message.offset() + 1


def revoke() -> None:
    revoked.append(None)
    ends.clear()


threading.Thread(target=work, daemon=True).start()
consumer, commits = subscribed(on_revoke=revoke), every(COMMIT_S)
while not stopping.is_set():
    if (found := polled(consumer)) is not None:
        waiting.put((found, len(revoked)))
    if commits():
        commit(consumer, owned(consumer, dict(ends)))
consumer.close()
