"""A client of librdkafka in the process of the load.

Blocking calls of librdkafka stop the whole interpreter under gevent, and a greenlet switch inside a
callback delays the rebalance. Callbacks therefore only queue what they are given. `poll_once` never
waits and processes the queue. `run_blocking` runs `close` and `kill` in a thread.
"""

import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from loadtest.errors import LoadtestError
from loadtest.history import now_ms
from loadtest.members.member import Client, Member
from loadtest.members.settings import consumer_settings
from loadtest.timing import COMMIT_ANSWER_S
from scenarios.client_properties import PropertiesError

RunBlocking = Callable[[Callable[[], Any]], Any]
"""Runs a blocking call in a thread and returns its value; other greenlets go on."""

BATCH = 200
"""The most records in one `poll_once`, so that a backlog does not delay other members."""


class _Callback(NamedTuple):
    what: str
    at_ms: float
    detail: Any


class _Consumer(Consumer):
    """A consumer that supports weak references."""


class LibrdkafkaClient(Client):
    """A consumer; raises LoadtestError if librdkafka refuses its settings."""

    def __init__(self, member: Member, bootstrap: str, run_blocking: RunBlocking) -> None:
        self.pid = os.getpid()
        self._member = member
        self._run_blocking = run_blocking
        self._callbacks: deque[_Callback] = deque()
        self._uncommitted = 0
        self._commit_sent_ms: float | None = None
        self._commit_due_ms = now_ms() + member.config.commit_interval_ms
        self._fatal: KafkaError | None = None
        self._polls = self._subscribes = True
        try:
            self._consumer: _Consumer | None = _Consumer(
                {
                    **consumer_settings(member.config, bootstrap),
                    "on_commit": lambda error, offsets: self._queue("committed", (error, offsets)),
                    "error_cb": lambda error: self._queue("error", error),
                }
            )
            self._subscribe(self._consumer)
        except (KafkaException, PropertiesError) as error:
            why = error.args[0].str() if isinstance(error, KafkaException) else error
            raise LoadtestError(f"{member.name!r} cannot be started: {why}") from error

    def _subscribe(self, consumer: Consumer) -> None:
        consumer.subscribe(
            list(self._member.config.topics),
            on_assign=lambda _, partitions: self._queue("assigned", partitions),
            on_revoke=lambda _, partitions: self._queue("revoked", partitions),
            on_lost=lambda _, partitions: self._queue("lost", partitions),
        )

    def poll_once(self) -> None:
        """Poll without waiting, and process what the callbacks queued."""
        consumer = self._consumer
        if consumer is None or not self._polls:
            return
        began_ms = at_ms = now_ms()
        records = size = 0
        processed = self._member.processed.record
        for _ in range(BATCH):
            message: Any = consumer.poll(0)
            if self._callbacks:  # before the record that came after them
                self._process_callbacks()
                at_ms = now_ms()
            if message is None:
                break
            if error := message.error():
                self._queue("error", error)
            else:
                records += 1
                self._uncommitted += 1
                size += len(message)
                partition = message.topic(), message.partition()
                processed(partition, message.offset(), message.value(), at_ms)
        if records:
            self._member.report("poll", now_ms() - began_ms, size)
        self._process_callbacks()
        if self._fatal is None:
            self._commit_when_due(consumer)
        elif _is_fencing(self._fatal):
            self._member.fenced(self._fatal.str())
            self._member.end("fenced")
        else:
            self._member.end("failed")
            self._member.fail(self._fatal.str())

    def stop_polling(self) -> None:
        """Poll no more: librdkafka's own threads go on."""
        self._polls = False

    def unsubscribe(self) -> None:
        """Unsubscribe: librdkafka sends LeaveGroup, for a static member too."""
        if self._consumer is not None:
            self._consumer.unsubscribe()
            self._subscribes = False

    def resume(self) -> None:
        """Poll, or subscribe, again."""
        self._polls = True
        if self._consumer is not None and not self._subscribes:
            self._subscribe(self._consumer)
            self._subscribes = True

    def pause(self) -> None:
        """Raise LoadtestError: its threads are those of the load."""
        raise LoadtestError(
            f"{self._member.name!r} shares the process of the load, which cannot be frozen for one"
            " member; give it client: librdkafka-process"
        )

    def close(self) -> None:
        """Close the consumer cleanly: a dynamic member sends LeaveGroup, a static one does not.

        It takes about 5 s while a JoinGroup waits, since LeaveGroup queues behind it. If a commit
        finds no coordinator, the consumer ends as by `kill`.
        """
        self._end(self._leave)

    def kill(self) -> None:
        """End the consumer as a crash would: no LeaveGroup, no commit, sockets closed.

        It takes some ms, or about a session timeout if a commit to a frozen coordinator has no
        response yet. Raises LoadtestError if a reference to it remains and so keeps it running.
        """
        assert self._consumer is not None, "a client ends once"
        consumer = weakref.ref(self._consumer)
        self._end(list.clear)
        if consumer() is not None:
            raise LoadtestError(
                f"{self._member.name!r} still runs, since a reference to its consumer remains;"
                " discard this run and report it"
            )

    def _end(self, how: Callable[[list[_Consumer]], Any]) -> None:
        """End the consumer by `how` in a thread.

        `how` gets the only reference. Dropping it destroys the consumer with librdkafka's flag
        NO_CONSUMER_CLOSE: no LeaveGroup is sent, and its threads and sockets end.
        """
        assert self._consumer is not None, "a client ends once"
        self._process_callbacks()
        held, self._consumer = [self._consumer], None
        try:
            self._run_blocking(partial(how, held))
        finally:  # also if the greenlet is killed meanwhile
            self.closed = bool(held)
            self._process_callbacks()

    def _leave(self, held: list[_Consumer]) -> None:
        deadline_s = time.monotonic() + COMMIT_ANSWER_S
        while self._is_committing():
            if time.monotonic() > deadline_s:
                held.clear()
                return
            held[0].poll(0.05)
        held[0].close()

    def _is_committing(self) -> bool:
        answered = any(seen.what == "committed" for seen in self._callbacks)
        return self._commit_sent_ms is not None and not answered

    def _queue(self, what: str, detail: Any) -> None:
        # Called from librdkafka's callbacks, sometimes in another thread: append only.
        self._callbacks.append(_Callback(what, now_ms(), detail))

    def _process_callbacks(self) -> None:
        while self._callbacks:
            seen = self._callbacks.popleft()
            match seen.what:
                case "assigned":
                    # a cooperative assignor reports new partitions only, an eager one revoked all
                    member_id = self._consumer.memberid() if self._consumer is not None else None
                    self._member.assigned(_pairs(seen.detail), member_id, seen.at_ms)
                case "revoked" | "lost" as event:
                    self._uncommitted = 0  # a commit of revoked partitions is an error
                    self._member.gave_up(event, _pairs(seen.detail), seen.at_ms)
                case "committed":
                    self._on_committed(seen)
                case _ if seen.detail.code() == KafkaError._FATAL:  # noqa: SLF001 (a constant)
                    self._fatal = seen.detail
                case _:
                    self._member.error(seen.detail.name(), seen.at_ms, seen.detail.str())

    def _commit_when_due(self, consumer: Consumer) -> None:
        if not self._uncommitted or self._commit_sent_ms or now_ms() < self._commit_due_ms:
            return
        self._uncommitted = 0
        self._commit_sent_ms = now_ms()
        self._commit_due_ms = self._commit_sent_ms + self._member.config.commit_interval_ms
        try:
            consumer.commit(asynchronous=True)
        except KafkaException as error:
            self._queue("committed", (error.args[0], []))

    def _on_committed(self, seen: _Callback) -> None:
        error, offsets = seen.detail
        sent_ms, self._commit_sent_ms = self._commit_sent_ms, None
        took_ms = None if sent_ms is None else seen.at_ms - sent_ms
        if error:
            self._member.not_committed(error.name(), took_ms, seen.at_ms, error.str())
        else:
            stored = sum(1 for offset in offsets if offset.offset >= 0)
            self._member.committed(stored, took_ms, seen.at_ms)


def _is_fencing(error: KafkaError) -> bool:
    # librdkafka 2.16 wraps FENCED_INSTANCE_ID: the code is _FATAL, the cause only in the text.
    return error.code() == KafkaError.FENCED_INSTANCE_ID or "fenced" in error.str()


def _pairs(partitions: Iterable[TopicPartition]) -> set[tuple[str, int]]:
    return {(partition.topic, partition.partition) for partition in partitions}
