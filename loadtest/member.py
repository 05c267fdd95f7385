"""One group member: a librdkafka consumer, what it sees, and how it comes and goes.

Kafka's calls block the whole interpreter under gevent, and switching greenlets inside a callback
delays the rebalance. So callbacks only put down what they saw; `turn` never waits and deals with
what was put down; `close` is handed to `off_hub`, which runs it where it may block. A member must
be used by one greenlet (or thread) at a time.
"""

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from loadtest.history import History, now_ms
from loadtest.reporting import Report
from loadtest.roster import MemberConfig

State = Literal["starting", "joined", "stopped", "fenced", "failed"]
"""`joined` from the first assignment until the membership is lost: also while the group rebalances.

`fenced` and `failed` members have no consumer any more and stay down until they are opened again.
"""

OffHub = Callable[[Callable[[], Any]], Any]
"""Runs a blocking call to its end and returns its value, without holding up anybody else."""

BATCH = 200
"""Records taken in one `turn`, so that a backlog does not keep other members waiting."""


class _Seen(NamedTuple):
    what: str
    at_ms: float
    clock_ms: float
    detail: Any


class Member:
    """One identity in one group; `open` and `close` may alternate for as long as a run lasts."""

    def __init__(
        self,
        config: MemberConfig,
        bootstrap: str,
        history: History,
        report: Report,
        off_hub: OffHub = lambda call: call(),
    ) -> None:
        self.config = config
        self.state: State = "stopped"
        self.member_id: str | None = None
        self.joins = 0
        self._partitions: set[str] = set()
        self._bootstrap = bootstrap
        self._tell = partial(
            history.write, member=config.name, group=config.group, kind=config.kind
        )
        self._report = report
        self._off_hub = off_hub
        self._consumer: Consumer | None = None
        self._seen: deque[_Seen] = deque()
        self._forget()

    def _forget(self) -> None:
        """Drop what belongs to one consumer and not to the identity."""
        self._seen.clear()
        self._partitions.clear()
        self.member_id = None
        self._opened_ms: float | None = None
        self._broken_ms: float | None = None
        self._uncommitted = 0
        self._commit_sent_ms: float | None = None
        self._commit_due_ms = _clock_ms() + self.config.commit_interval_ms
        self._fatal: KafkaError | None = None

    def describe(self) -> dict[str, Any]:
        """Return the row that the control channel's `members` gives for this member.

        `joins` counts the assignments received since the run began, over all restarts.
        """
        return {
            "name": self.config.name,
            "group": self.config.group,
            "kind": self.config.kind,
            "instance_id": self.config.instance_id,
            "state": self.state,
            "member_id": self.member_id,
            "partitions": sorted(self._partitions),
            "joins": self.joins,
        }

    def open(self) -> None:
        """Create a fresh consumer with the same identity; nothing happens if there is one.

        What Kafka's client refuses makes the state `failed` and a line of the history.
        """
        if self._consumer is not None:
            return
        self._forget()
        self._opened_ms = _clock_ms()
        self._tell("created", instance_id=self.config.instance_id)
        try:
            self._consumer = Consumer(self._settings())
            self._consumer.subscribe(
                list(self.config.topics),
                on_assign=lambda _, partitions: self._note("assigned", partitions),
                on_revoke=lambda _, partitions: self._note("revoked", partitions),
                on_lost=lambda _, partitions: self._note("lost", partitions),
            )
            self.state = "starting"
        except KafkaException as error:
            self.state = "failed"
            self._complain(error.args[0], now_ms())

    def turn(self) -> None:
        """Take what there is, without waiting, and deal with what the callbacks saw."""
        consumer = self._consumer
        if consumer is None:
            return
        began_ms = _clock_ms()
        records = size = 0
        while records < BATCH and (message := consumer.poll(0)) is not None:
            if error := message.error():
                self._note("error", error)
            else:
                records += 1
                size += len(message)
        if records:
            self._uncommitted += records
            self._report("poll", _clock_ms() - began_ms, size)
        self._settle()
        if self._fatal is not None:
            self._give_up(self._fatal)
        else:
            self._commit_when_due(consumer)

    def close(self) -> None:
        """Close the consumer cleanly, if there is one.

        A dynamic member sends LeaveGroup, a static one nothing (KIP-345). Blocks in `off_hub`,
        for about 5 s if a JoinGroup is pending, since LeaveGroup queues behind it.
        """
        try:
            self._shut()
        finally:
            self.state = "stopped"

    def _shut(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is None:
            return
        self._tell("closing")
        began_ms = _clock_ms()
        try:
            self._off_hub(consumer.close)
        finally:  # being killed does not undo that it was closed
            self._settle()
            self._forget()
            took_ms = round(_clock_ms() - began_ms, 1)
            self._tell("closed", took_ms=took_ms)

    def _give_up(self, error: KafkaError) -> None:
        """Stay down after a fatal error: whoever runs the experiment decides what comes next."""
        fenced = _is_fencing(error)
        name = "fenced" if fenced else "error"
        self._tell(name, error=error.str())
        self._report(name, None, error=error.name())
        try:
            self._shut()
        finally:
            self.state = "fenced" if fenced else "failed"

    def _settings(self) -> dict[str, Any]:
        config = self.config
        settings = {
            "bootstrap.servers": self._bootstrap,
            "broker.address.family": "v4",
            "client.id": config.name,
            "group.id": config.group,
            "partition.assignment.strategy": config.assignor,
            "session.timeout.ms": config.session_timeout_ms,
            "heartbeat.interval.ms": config.heartbeat_interval_ms,
            "max.poll.interval.ms": config.max_poll_interval_ms,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "on_commit": lambda error, offsets: self._note("committed", (error, offsets)),
            "error_cb": lambda error: self._note("error", error),
        }
        if config.instance_id is not None:
            settings["group.instance.id"] = config.instance_id
        return settings

    def _note(self, what: str, detail: Any) -> None:
        # Called from Kafka's callbacks, at times in another thread: append and nothing else.
        self._seen.append(_Seen(what, now_ms(), _clock_ms(), detail))

    def _settle(self) -> None:
        while self._seen:
            seen = self._seen.popleft()
            match seen.what:
                case "assigned":
                    self._on_assigned(seen)
                case "revoked" | "lost":
                    self._on_taken_away(seen)
                case "committed":
                    self._on_committed(seen)
                case _:
                    self._on_error(seen)

    def _on_assigned(self, seen: _Seen) -> None:
        # A cooperative assignor hands over what is new only; an eager one took all away before.
        partitions = _names(seen.detail)
        self._partitions.update(partitions)
        self.joins += 1
        if self._consumer is not None:
            self.state = "joined"
            self.member_id = self._consumer.memberid()
        self._tell(
            "assigned",
            at_ms=seen.at_ms,
            partitions=partitions,
            member_id=self.member_id,
        )
        if self._opened_ms is not None:
            self._report("join", seen.clock_ms - self._opened_ms)
        elif self._broken_ms is not None:
            self._report("rebalance", seen.clock_ms - self._broken_ms)
        self._opened_ms = self._broken_ms = None

    def _on_taken_away(self, seen: _Seen) -> None:
        partitions = _names(seen.detail)
        self._partitions.difference_update(partitions)
        self._uncommitted = 0  # to commit what was taken away is an error
        if self._broken_ms is None:
            self._broken_ms = seen.clock_ms
        if seen.what == "lost" and self.state == "joined":
            self.state = "starting"
        self._tell(seen.what, at_ms=seen.at_ms, partitions=partitions)

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
            self._note("committed", (error.args[0], []))

    def _on_committed(self, seen: _Seen) -> None:
        error, offsets = seen.detail
        sent_ms, self._commit_sent_ms = self._commit_sent_ms, None
        took_ms = None if sent_ms is None else seen.clock_ms - sent_ms
        self._report("commit", took_ms, error=error.name() if error else None)
        if error:
            self._tell("error", at_ms=seen.at_ms, error=f"commit: {error}")
        else:
            stored = sum(1 for offset in offsets if offset.offset >= 0)
            self._tell("committed", at_ms=seen.at_ms, offsets=stored)

    def _on_error(self, seen: _Seen) -> None:
        error = seen.detail
        if error.code() == KafkaError._FATAL:  # noqa: SLF001 (a constant)
            self._fatal = error
        else:
            self._complain(error, seen.at_ms)

    def _complain(self, error: KafkaError, at_ms: float) -> None:
        self._tell("error", at_ms=at_ms, error=error.str())
        self._report("error", None, error=error.name())


def _is_fencing(error: KafkaError) -> bool:
    # librdkafka 2.16 wraps the broker's FENCED_INSTANCE_ID: the code is _FATAL, the cause is prose.
    return error.code() == KafkaError.FENCED_INSTANCE_ID or "fenced" in error.str()


def _names(partitions: list[TopicPartition]) -> list[str]:
    ordered = sorted((partition.topic, partition.partition) for partition in partitions)
    return [f"{topic}-{number}" for topic, number in ordered]


def _clock_ms() -> float:
    return time.perf_counter() * 1000
