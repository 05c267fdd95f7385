"""One group member: a librdkafka consumer with its callbacks, start, close and crash.

Blocking calls of librdkafka stop the whole interpreter under gevent, and a greenlet switch inside a
callback delays the rebalance. Callbacks therefore only queue what they are given. `poll_once` never
waits and processes the queue. `run_blocking` runs `close` and `kill` in a thread.
One greenlet (or thread) at a time uses a member.
"""

import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from loadtest.base_member import BaseMember, State, names
from loadtest.client_configs import MemberConfig
from loadtest.client_errors import ClientErrors
from loadtest.errors import LoadtestError
from loadtest.history import History, now_ms
from loadtest.locust_statistics import StatisticRecorder
from loadtest.settings import consumer_settings

RunBlocking = Callable[[Callable[[], Any]], Any]
"""Runs a blocking call in a thread and returns its value; other greenlets go on."""

COMMIT_MS = 5_000.0
"""How long `close` waits for the response to a commit before it ends the consumer unclosed."""

BATCH = 200
"""The most records in one `poll_once`, so that a backlog does not delay other members."""


class _CallbackEvent(NamedTuple):
    what: str
    at_ms: float
    clock_ms: float
    detail: Any


class _Consumer(Consumer):
    """A consumer that supports weak references."""


class Member(BaseMember):
    """A member with librdkafka in this process."""

    def __init__(
        self,
        config: MemberConfig,
        bootstrap: str,
        history: History,
        recorder_for: Callable[[str], StatisticRecorder],
        run_blocking: RunBlocking = lambda call: call(),
    ) -> None:
        super().__init__(config, bootstrap, history, recorder_for)
        self._run_blocking = run_blocking
        self._consumer: _Consumer | None = None
        self._callback_events: deque[_CallbackEvent] = deque()
        self._reset()

    def _identify(self, config: MemberConfig) -> None:
        super()._identify(config)
        self._client_errors = ClientErrors(self._write_event)

    @property
    def is_up(self) -> bool:
        """Whether it has a consumer."""
        return self._consumer is not None

    def _reset(self) -> None:
        """Reset the state of the last consumer; the identity stays."""
        self._callback_events.clear()
        self._partitions.clear()
        self.member_id = None
        self._opened_ms: float | None = None
        self._revoked_at_ms: float | None = None
        self._uncommitted = 0
        self._commit_sent_ms: float | None = None
        self._commit_due_ms = _clock_ms() + self.config.commit_interval_ms
        self._fatal: KafkaError | None = None
        self._polls = True

    def open(self) -> None:
        """Create a consumer with this identity, unless it has one.

        If librdkafka refuses the settings, the state is `failed` and the history says why.
        """
        if self._consumer is not None:
            return
        self._reset()
        self._opened_ms = _clock_ms()
        self._write_event("created", instance_id=self.config.instance_id)
        try:
            self._consumer = _Consumer(
                {
                    **consumer_settings(self.config, self._bootstrap),
                    "on_commit": lambda error, offsets: self._queue_callback(
                        "committed", (error, offsets)
                    ),
                    "error_cb": lambda error: self._queue_callback("error", error),
                }
            )
            self._consumer.subscribe(
                list(self.config.topics),
                on_assign=lambda _, partitions: self._queue_callback("assigned", partitions),
                on_revoke=lambda _, partitions: self._queue_callback("revoked", partitions),
                on_lost=lambda _, partitions: self._queue_callback("lost", partitions),
            )
            self.state = "starting"
        except KafkaException as error:
            self._consumer = None
            self.fail(error.args[0].str())

    def poll_once(self) -> None:
        """Poll without waiting, and process what the callbacks queued."""
        consumer = self._consumer
        if consumer is None or not self._polls:
            return
        began_ms = _clock_ms()
        records = size = 0
        for _ in range(BATCH):
            if (message := consumer.poll(0)) is None:
                break
            if error := message.error():
                self._queue_callback("error", error)
            else:
                records += 1
                size += len(message)
        if records:
            self._uncommitted += records
            self._report("poll", _clock_ms() - began_ms, size)
        self._process_callbacks()
        if self._fatal is not None:
            self._stop_after_fatal(self._fatal)
        else:
            self._commit_when_due(consumer)

    def stop_polling(self) -> None:
        """Poll no more: librdkafka's own threads go on. Raises LoadtestError if it is not up."""
        if self._consumer is None:
            raise LoadtestError(f"{self.config.name!r} is {self.state} and polls nothing")
        self._polls = False

    def resume(self) -> None:
        """Poll again."""
        self._polls = True

    def close(self) -> None:
        """Close the consumer cleanly, if it has one.

        A dynamic member sends LeaveGroup, a static one does not (KIP-345). It takes about 5 s while
        a JoinGroup waits, since LeaveGroup queues behind it. If a commit finds no coordinator, the
        consumer ends as by `kill`.
        """
        self._close_as("stopped")

    def kill(self) -> None:
        """End the consumer as a crash would: no LeaveGroup, no commit, sockets closed.

        It takes some ms, or about a session timeout if a commit to a frozen coordinator has no
        response yet. Raises LoadtestError if there is no consumer, or if a reference to it remains
        and so keeps it running.
        """
        if self._consumer is None:
            raise LoadtestError(
                f"{self.config.name!r} is {self.state} and has no consumer to kill; start it first"
            )
        consumer = weakref.ref(self._consumer)
        self._process_callbacks()
        self._end(list.clear, "killed")
        if consumer() is not None:
            raise LoadtestError(
                f"{self.config.name!r} still runs, since a reference to its consumer remains;"
                " discard this run and report it"
            )

    def _close_as(self, state: State) -> None:
        if self._consumer is None:
            self.state = state
            return
        self._process_callbacks()
        self._write_event("closing")
        self._end(self._leave, state)

    def _end(self, how: Callable[[list[_Consumer]], Any], state: State) -> None:
        """End the consumer by `how` in a thread, and write the event.

        `how` gets the only reference. Dropping it destroys the consumer with librdkafka's flag
        NO_CONSUMER_CLOSE: no LeaveGroup is sent, and its threads and sockets end.
        """
        assert self._consumer is not None, "callers check"
        held, self._consumer = [self._consumer], None
        began_ms = _clock_ms()
        try:
            self._run_blocking(partial(how, held))
        finally:  # also if the greenlet is killed meanwhile
            self._process_callbacks()
            partitions = self._disown()
            self._reset()
            self.state = state
            took_ms = round(_clock_ms() - began_ms, 1)
            self._write_event(
                "closed" if held else "killed", partitions=partitions, took_ms=took_ms
            )

    def _leave(self, held: list[_Consumer]) -> None:
        # A consumer does not close before a coordinator has responded to a pending commit; it may
        # never respond (librdkafka 2.16).
        deadline_ms = _clock_ms() + COMMIT_MS
        while self._is_committing():
            if _clock_ms() > deadline_ms:
                held.clear()
                return
            held[0].poll(0.05)
        held[0].close()

    def _is_committing(self) -> bool:
        answered = any(seen.what == "committed" for seen in self._callback_events)
        return self._commit_sent_ms is not None and not answered

    def _stop_after_fatal(self, error: KafkaError) -> None:
        """Close after a fatal error, and stay down until a command starts the member again."""
        if _is_fencing(error):
            self._write_event("fenced", error=error.str(), partitions=self._disown())
            self._report("fenced", None, error=error.name())
            self._close_as("fenced")
        else:
            self._close_as("failed")
            self.fail(error.str())

    def _queue_callback(self, what: str, detail: Any) -> None:
        # Called from librdkafka's callbacks, sometimes in another thread: append only.
        self._callback_events.append(_CallbackEvent(what, now_ms(), _clock_ms(), detail))

    def _process_callbacks(self) -> None:
        while self._callback_events:
            seen = self._callback_events.popleft()
            match seen.what:
                case "assigned":
                    self._on_assigned(seen)
                case "revoked" | "lost":
                    self._on_taken_away(seen)
                case "committed":
                    self._on_committed(seen)
                case _:
                    self._on_error(seen)

    def _on_assigned(self, seen: _CallbackEvent) -> None:
        # A cooperative assignor reports new partitions only; an eager one revoked all before.
        partitions = _pairs(seen.detail)
        self._partitions |= partitions
        self.joins += 1
        if self._consumer is not None:
            self.state = "joined"
            self.member_id = self._consumer.memberid()
        self._write_event(
            "assigned",
            at_ms=seen.at_ms,
            partitions=names(partitions),
            member_id=self.member_id,
        )
        if self._opened_ms is not None:
            self._report("join", seen.clock_ms - self._opened_ms)
        elif self._revoked_at_ms is not None:
            self._report("rebalance", seen.clock_ms - self._revoked_at_ms)
        self._opened_ms = self._revoked_at_ms = None

    def _on_taken_away(self, seen: _CallbackEvent) -> None:
        partitions = _pairs(seen.detail)
        self._partitions -= partitions
        self._uncommitted = 0  # a commit of revoked partitions is an error
        if self._revoked_at_ms is None:
            self._revoked_at_ms = seen.clock_ms
        if seen.what == "lost" and self.state == "joined":
            self.state = "starting"
            self.member_id = None
        self._write_event(seen.what, at_ms=seen.at_ms, partitions=names(partitions))

    def _commit_when_due(self, consumer: Consumer) -> None:
        clock_ms = _clock_ms()
        if not self._uncommitted or self._commit_sent_ms or clock_ms < self._commit_due_ms:
            return
        self._uncommitted = 0
        self._commit_sent_ms = clock_ms
        self._commit_due_ms = clock_ms + self.config.commit_interval_ms
        try:
            consumer.commit(asynchronous=True)
        except KafkaException as error:
            self._queue_callback("committed", (error.args[0], []))

    def _on_committed(self, seen: _CallbackEvent) -> None:
        error, offsets = seen.detail
        sent_ms, self._commit_sent_ms = self._commit_sent_ms, None
        took_ms = None if sent_ms is None else seen.clock_ms - sent_ms
        self._report("commit", took_ms, error=error.name() if error else None)
        if error:
            self._client_errors.add(error, seen.at_ms, about="commit: ")
        else:
            stored = sum(1 for offset in offsets if offset.offset >= 0)
            self._write_event("committed", at_ms=seen.at_ms, offsets=stored)

    def _on_error(self, seen: _CallbackEvent) -> None:
        if seen.detail.code() == KafkaError._FATAL:  # noqa: SLF001 (a constant)
            self._fatal = seen.detail
        else:
            self._write_error(seen.detail, seen.at_ms)

    def _write_error(self, error: KafkaError, at_ms: float) -> None:
        self._client_errors.add(error, at_ms)
        self._report("error", None, error=error.name())


def _is_fencing(error: KafkaError) -> bool:
    # librdkafka 2.16 wraps FENCED_INSTANCE_ID: the code is _FATAL, the cause only in the text.
    return error.code() == KafkaError.FENCED_INSTANCE_ID or "fenced" in error.str()


def _pairs(partitions: Iterable[TopicPartition]) -> set[tuple[str, int]]:
    return {(partition.topic, partition.partition) for partition in partitions}


def _clock_ms() -> float:
    return time.perf_counter() * 1000
