"""A group member with groupquake's own client, in a greenlet of the load's process.

It costs a fraction of what a librdkafka consumer does, so that one process holds thousands.
"""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import gevent
from gevent.event import Event

from kafka_protocol.consumer_protocol import TopicPartition
from kafka_protocol.errors import Error, name_of
from loadtest.base_member import BaseMember, State, names
from loadtest.client_configs import MemberConfig
from loadtest.client_errors import ClientErrors
from loadtest.errors import LoadtestError
from loadtest.history import History, now_ms
from loadtest.locust_statistics import StatisticRecorder
from loadtest.security import client_properties
from loadtest.wire.client import GroupClient
from loadtest.wire.connection import WireError
from loadtest.wire.member import FencedError
from scenarios.client_properties import PropertiesError

CLOSE_S = 5.0
"""How long a clean close waits for the answer to LeaveGroup, as other clients do."""
_IDLE_S = 10.0
"""How often Locust's user comes by, which is all that it does: thousands of them add up."""


class WireClientMember(BaseMember):
    """A member whose client is a `GroupClient`; one greenlet at a time uses it.

    `pause` freezes its client alone: the socket stays open, and nothing is sent or acted upon.
    """

    poll_every_s = _IDLE_S

    def __init__(
        self,
        config: MemberConfig,
        bootstrap: str,
        history: History,
        recorder_for: Callable[[str], StatisticRecorder],
    ) -> None:
        super().__init__(config, bootstrap, history, recorder_for)
        self._client: GroupClient | None = None
        self._greenlet: gevent.Greenlet | None = None
        self._goes_on = Event()
        self._polls = True
        self._measured: tuple[str, float] | None = None
        """What is under way, by its name in Locust's statistics, and since when."""

    def _identify(self, config: MemberConfig) -> None:
        super()._identify(config)
        self._errors = ClientErrors(self._write_event)

    @property
    def is_up(self) -> bool:
        """Whether its client runs."""
        return self._client is not None

    @property
    def pid(self) -> int:
        """The id of the process that it shares with others."""
        return os.getpid()

    def open(self) -> None:
        """Start its client, if there is none. Raises LoadtestError for what it cannot use."""
        if self._client is not None:
            return
        try:
            client = GroupClient(
                self.config,
                self._bootstrap,
                client_properties(),
                self,
                gate=self._goes_on.wait,
                application_polls=lambda: self._polls,
            )
        except (OSError, ValueError, PropertiesError) as error:
            raise LoadtestError(f"{self.config.name!r} cannot be started: {error}") from error
        self._go_on()
        self._measured = "join", time.perf_counter()
        self._write_event("created", instance_id=self.config.instance_id)
        self.state, self._client = "starting", client
        self._greenlet = gevent.spawn(self._run, client)

    def poll_once(self) -> None:
        """Do nothing: its greenlet does all."""

    def stop_polling(self) -> None:
        """Let the application poll no more; raises LoadtestError if it is not up."""
        self._require_up("polls nothing")
        self._polls = False

    def pause(self) -> None:
        """Freeze its client; its timers run on, and what they are for comes late."""
        self._require_up("cannot be paused")
        self._goes_on.clear()

    def resume(self) -> None:
        """Let it go on, and let its application poll."""
        self._go_on()

    def close(self) -> None:
        """Close cleanly: a dynamic member leaves its group, a static one does not (KIP-345)."""
        client = self._client
        if client is None:
            self.state = "stopped"
            return
        began_s = time.perf_counter()
        self._write_event("closing")
        try:
            self._stop_greenlet()
            self._go_on()
            if self._client is client:  # else it has ended itself meanwhile
                self._leave(client)
        finally:  # also if the greenlet that closes it is killed
            took_ms = round((time.perf_counter() - began_s) * 1000, 1)
            self._end(client, "closed", "stopped", took_ms=took_ms)
            self.state = "stopped"

    def kill(self) -> None:
        """End the client as a crash would. Raises LoadtestError if there is none."""
        client = self._require_up("has no client to kill")
        try:
            self._stop_greenlet()
        finally:
            self._end(client, "killed", "killed")

    def _require_up(self, problem: str) -> GroupClient:
        if self._client is None:
            raise LoadtestError(
                f"{self.config.name!r} is {self.state} and {problem}; start it first"
            )
        return self._client

    def _go_on(self) -> None:
        self._polls = True
        self._goes_on.set()

    def _run(self, client: GroupClient) -> None:
        try:
            client.run()
        except FencedError as error:
            self._write_event("fenced", error=str(error), partitions=self._disown())
            self._report("fenced", None, error=Error.FENCED_INSTANCE_ID.name)
            self._end(client, "closed", "fenced", took_ms=0.0)
        except Exception as error:  # noqa: BLE001 (else it would look alive for ever)
            self._end(client, "killed", "failed")
            self.fail(f"the client ended: {type(error).__name__}: {error}")

    def _stop_greenlet(self) -> None:
        greenlet, self._greenlet = self._greenlet, None
        if greenlet is not None:
            greenlet.kill()

    def _leave(self, client: GroupClient) -> None:
        if self._partitions:
            self.revoked([TopicPartition(*part) for part in self._partitions])
        try:
            client.leave("the consumer is being closed", CLOSE_S)
        except WireError as error:
            self.error(str(error))

    def _end(self, client: GroupClient, event: str, state: State, **more: Any) -> None:
        """Close its connection and write the event, unless that is done."""
        if self._client is not client:
            return
        self._client = None
        client.disconnect()
        self.state, self.member_id = state, None
        self._write_event(event, partitions=self._disown(), **more)

    # what its client tells

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Take partitions."""
        new = {(part.topic, part.partition) for part in partitions}
        self._partitions |= new
        self.joins += 1
        self.state = "joined"
        self.member_id = self._client.member_id if self._client else None
        self._write_event("assigned", partitions=names(new), member_id=self.member_id)
        if self._measured is not None:
            name, began_s = self._measured
            self._report(name, (time.perf_counter() - began_s) * 1000)
            self._measured = None

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """Give partitions up."""
        self._gave_up("revoked", partitions)

    def lost(self, partitions: Iterable[TopicPartition]) -> None:
        """Be out of the group."""
        self._gave_up("lost", partitions)
        self.state, self.member_id = "starting", None

    def _gave_up(self, event: str, partitions: Iterable[TopicPartition]) -> None:
        gone = {(part.topic, part.partition) for part in partitions}
        self._partitions -= gone
        self._measured = self._measured or ("rebalance", time.perf_counter())
        self._write_event(event, partitions=names(gone))

    def committed(self, offsets: int, took_ms: float, error: int) -> None:
        """Report a commit."""
        self._report("commit", took_ms, error=None if error == Error.NONE else name_of(error))
        if error == Error.NONE:
            self._write_event("committed", offsets=offsets)
        else:
            text = f"commit: {name_of(error)}"
            self._errors.add_text(text, text, now_ms())

    def heartbeat(self, took_ms: float, error: int) -> None:
        """Report a heartbeat; a rebalance of the group is no failure of it."""
        known = (Error.NONE, Error.REBALANCE_IN_PROGRESS)
        self._report("heartbeat", took_ms, error=None if error in known else name_of(error))

    def error(self, text: str) -> None:
        """Report an error of the client."""
        self._errors.add_text(text, text, now_ms())
        self._report("error", None, error=text)
