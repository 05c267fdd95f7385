"""A group member: a name in a group, with one client after the other.

A client is one life of it. It tells its member what it sees, and the member has state, history and
statistics. Locust's user polls a member, and control commands come in between, one call at a time.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

from gevent.lock import RLock

from kafka_protocol.errors import Error
from kafka_protocol.printable import printable
from loadtest.configs import MemberConfig
from loadtest.control import instance_id_of
from loadtest.errors import LoadtestError
from loadtest.history import ErrorLines, History, Report, now_ms
from loadtest.processed import Processed, name_of
from loadtest.timing import POLL_EVERY_S, WIRE_POLL_EVERY_S

_LOG = logging.getLogger(__name__)

State = Literal["starting", "joined", "stopped", "killed", "fenced", "failed", "unknown"]
"""`joined` lasts from the first assignment until the membership is lost, through rebalances.

With a cooperative assignor, the client does not report a lost membership without partitions.
Members in the states after `joined` have no client until they are opened again; `unknown` is one
whose worker does not answer.
"""
COMMANDS = (
    "start", "stop", "kill", "pause", "stop-polling", "unsubscribe", "resume", "duplicate",
    "end-duplicate",
)  # fmt: skip
"""The control commands for one member."""
Row = dict[str, Any]
Partitions = Iterable[tuple[str, int]]


class Client(ABC):
    """One life of a member's client, from its construction on; one greenlet at a time uses it."""

    pid: int
    """The id of its process."""
    closed = False
    """Whether it ended by a clean close."""
    ended_ms: float | None = None
    """When it ended, in UTC epoch milliseconds, if it knows better than who ended it."""

    @abstractmethod
    def poll_once(self) -> None:
        """Poll once, without waiting."""

    @abstractmethod
    def close(self) -> None:
        """Close cleanly: a dynamic member leaves, a static one does not (KIP-345)."""

    @abstractmethod
    def kill(self) -> None:
        """End as a crash would: no LeaveGroup, sockets closed."""

    @abstractmethod
    def pause(self) -> None:
        """Freeze all its threads. Raises LoadtestError if that cannot be."""

    @abstractmethod
    def stop_polling(self) -> None:
        """Let the application poll no more, while the client's own threads go on."""

    @abstractmethod
    def unsubscribe(self) -> None:
        """Be out of the group, and stay up. Raises LoadtestError if that cannot be."""

    @abstractmethod
    def resume(self) -> None:
        """Undo `pause`, `stop_polling` and `unsubscribe`."""


class Member:
    """One member name in one group, and its duplicate.

    `start` makes a client for a member, and raises LoadtestError if it cannot; `report_as` returns
    how events of a kind (`STATIC`, `DYNAMIC`) are counted.
    """

    def __init__(
        self,
        config: MemberConfig,
        start: Callable[["Member"], Client],
        history: History,
        report_as: Callable[[str], Report],
    ) -> None:
        self.state: State = "stopped"
        self.history = history
        self.poll_every_s = WIRE_POLL_EVERY_S if config.client == "wire" else POLL_EVERY_S
        self._start_client = start
        self._report_as = report_as
        self._client: Client | None = None
        self._duplicate: Member | None = None
        self._has_user = False
        self._one_at_a_time = RLock()
        self._member_id: str | None = None
        self._joins = 0
        self._partitions: set[tuple[str, int]] = set()
        self._measured: tuple[str, float] | None = None
        """What is under way, by its name in Locust's statistics, and since when (epoch ms)."""
        self._identify(config)

    def _identify(self, config: MemberConfig) -> None:
        self.config = config
        self.report = self._report_as(config.kind.upper())
        self._append = partial(
            self.history.write, member=config.name, group=config.group, kind=config.kind
        )
        self.processed = Processed(self._append)
        self._errors = ErrorLines(self.write)

    @property
    def name(self) -> str:
        """Its name, which is its client.id."""
        return self.config.name

    def write(self, event: str, **fields: Any) -> None:
        """Append a line to the history, after what it processed until then."""
        self.processed.write()
        self._append(event, **fields)

    def row(self) -> Row:
        """Return its row in the result of the control command `members`.

        `joins` counts assignments since the run began, over all restarts.
        """
        partitions = names(self._partitions)
        return row(self.config, self.state, self._member_id, partitions, joins=self._joins)

    # what its user does

    def open(self) -> None:
        """Start its client for a user, which polls it from now on.

        One that cannot be started has failed: it stays down until a command starts it.
        """
        with self._one_at_a_time:
            self._has_user = True
            try:
                self.start()
            except LoadtestError as error:
                _LOG.warning("%s", printable(str(error)))
                self.fail(str(error))

    def poll_once(self) -> None:
        """Poll once, without waiting."""
        with self._one_at_a_time:
            if self._client is not None:
                self._client.poll_once()
            self.processed.write_due()
            if self._duplicate is not None:
                self._duplicate.processed.write_due()

    def close(self) -> None:
        """Close its client and kill its duplicate; the user ends."""
        with self._one_at_a_time:
            self._has_user = False
            try:
                self._end_duplicate()
            finally:
                self.stop()

    # what commands do

    def carry_out(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry a control command out (`COMMANDS`); return the member's row.

        `duplicate` returns the `client_id` and the `pid` of the duplicate. Raises LoadtestError if
        the member's state does not allow it, or if no user polls it.
        """
        with self._one_at_a_time:
            do = request["do"]
            if do == "end-duplicate":
                self._end_duplicate()
                return self.row()
            if not self._has_user:
                raise LoadtestError(f"no user runs {self.name!r} now; start more users")
            match do:
                case "start":
                    if "instance_id" in request:
                        self.change_identity(instance_id_of(request))
                    self.start()
                case "stop":
                    self.stop()
                case "kill":
                    self.kill()
                case "pause" | "stop-polling" | "unsubscribe":
                    getattr(self._running(), do.replace("-", "_"))()
                case "resume":
                    if self._client is not None:
                        self._client.resume()
                case "duplicate":
                    return self._start_duplicate()
            return self.row()

    def start(self) -> None:
        """Start a client, unless one is up. Raises LoadtestError if it cannot be started."""
        with self._one_at_a_time:
            if self._up() is not None:
                return
            began_ms = now_ms()
            self._client = self._start_client(self)
            self.state, self._measured = "starting", ("join", began_ms)
            self._errors = ErrorLines(self.write)
            self.write("created", at_ms=began_ms, instance_id=self.config.instance_id)

    def stop(self) -> None:
        """Close the client cleanly, if one is up."""
        with self._one_at_a_time:
            if self._up() is not None:
                self.end("stopped")
            self.state = "stopped"

    def kill(self) -> None:
        """End the client as a crash would. Raises LoadtestError if none is up."""
        with self._one_at_a_time:
            self._end(self._running().kill, "killed")

    def change_identity(self, instance_id: str | None) -> None:
        """Set the instance id for the next start; None makes the member dynamic.

        Name and client.id stay. Raises LoadtestError if it is up under another identity.
        """
        if instance_id == self.config.instance_id:
            return
        if self._client is not None:
            raise LoadtestError(
                f"{self.name!r} is up as {self.config.instance_id or 'a dynamic member'};"
                " stop or kill it before you start it with another identity"
            )
        self._identify(self.config.with_instance_id(instance_id))

    def _up(self) -> Client | None:
        """Return its client, unless that turns out to have ended by itself."""
        self.poll_once()
        return self._client

    def _running(self) -> Client:
        if self._client is None:
            raise LoadtestError(f"{self.name!r} is {self.state} and has no client; start it first")
        return self._client

    def _start_duplicate(self) -> dict[str, Any]:
        config = self.config.as_duplicate()
        if self._duplicate is not None:
            raise LoadtestError(
                f"{self.name!r} has a duplicate already, {config.name!r};"
                " end that first (end-duplicate)"
            )
        duplicate = Member(config, self._start_client, self.history, self._report_as)
        duplicate.start()
        self._duplicate = duplicate
        return {"client_id": config.name, "pid": duplicate.pid}

    def _end_duplicate(self) -> None:
        """Kill the duplicate, if there is one, and wait until it is gone."""
        if self._duplicate is not None:
            if self._duplicate.pid is not None:
                self._duplicate.kill()
            self._duplicate = None

    @property
    def pid(self) -> int | None:
        """The id of its client's process, unless that has ended."""
        client = self._up()
        return None if client is None else client.pid

    # how a client ends

    def end(self, state: State) -> None:
        """Close its client cleanly; the member is in this state from then on."""
        client = self._running()
        self.write("closing")
        self._end(client.close, state)

    def _end(self, how: Callable[[], None], state: State) -> None:
        client, began_ms = self._running(), now_ms()
        try:
            how()
        finally:  # also if the greenlet is killed meanwhile
            self.over(client, state, took_ms=round(now_ms() - began_ms, 1))

    def over(self, client: Client, state: State, **more: Any) -> None:
        """Note that a client has ended: it reports this, or what ended it does, but once."""
        if self._client is not client:
            return
        self._client = None
        self.state, self._member_id = state, None
        event = "closed" if client.closed else "killed"
        self.write(event, at_ms=client.ended_ms, partitions=self._disown(), **more)

    def fail(self, why: str, **more: Any) -> None:
        """Take note that its client ended by itself, or could not be started: it stays down."""
        self.state = "failed"
        self.write("ended", error=why, **more)
        self.report("error", None, error=why)

    # what a client sees, at a time in UTC epoch milliseconds or now

    def assigned(
        self, partitions: Partitions, member_id: str | None = None, at_ms: float | None = None
    ) -> None:
        """It owns these partitions too, possibly none."""
        new = set(partitions)
        self._partitions |= new
        self._joins += 1
        if self._client is not None:
            self.state, self._member_id = "joined", member_id
        self.write("assigned", at_ms=at_ms, partitions=names(new), member_id=member_id)
        if self._measured is not None:
            name, began_ms = self._measured
            self.report(name, (now_ms() if at_ms is None else at_ms) - began_ms)
            self._measured = None

    def gave_up(self, event: str, partitions: Partitions, at_ms: float | None = None) -> None:
        """It gave these up in a rebalance (`revoked`), or is out of the group (`lost`)."""
        gone = set(partitions)
        self._partitions -= gone
        self._measured = self._measured or ("rebalance", now_ms() if at_ms is None else at_ms)
        if event == "lost" and self.state == "joined":
            self.state, self._member_id = "starting", None
        self.write(event, at_ms=at_ms, partitions=names(gone))

    def fenced(self, text: str, at_ms: float | None = None) -> None:
        """Another process uses its instance id (KIP-345)."""
        self.state = "fenced"
        self.write("fenced", at_ms=at_ms, error=text, partitions=self._disown())
        self.report("fenced", None, error=Error.FENCED_INSTANCE_ID.name)

    def committed(
        self, offsets: int, took_ms: float | None = None, at_ms: float | None = None
    ) -> None:
        """A commit of so many offsets was stored."""
        self.report("commit", took_ms)
        self.write("committed", at_ms=at_ms, offsets=offsets)

    def not_committed(
        self,
        error: str,
        took_ms: float | None = None,
        at_ms: float | None = None,
        text: str | None = None,
    ) -> None:
        """A commit failed, by an error of this name; `text` says more about it."""
        self.report("commit", took_ms, error=error)
        self._errors.write(f"commit: {error}", f"commit: {text or error}", at_ms)

    def error(self, error: str, at_ms: float | None = None, text: str | None = None) -> None:
        """The client saw an error of this name, and goes on; `text` says more about it."""
        self.report("error", None, error=error)
        self._errors.write(error, text or error, at_ms)

    def _disown(self) -> list[str]:
        """Drop all partitions; return what was owned."""
        partitions = names(self._partitions)
        self._partitions.clear()
        return partitions


def row(
    config: MemberConfig,
    state: State,
    member_id: str | None = None,
    partitions: Iterable[str] = (),
    *,
    joins: int = 0,
) -> Row:
    """Return a member's row; without more than a state, of one that no process runs."""
    return {
        "name": config.name,
        "group": config.group,
        "kind": config.kind,
        "instance_id": config.instance_id,
        "state": state,
        "member_id": member_id,
        "partitions": list(partitions),
        "joins": joins,
    }


def names(partitions: Partitions) -> list[str]:
    """Return partitions as `topic-number`, sorted."""
    return [name_of(partition) for partition in sorted(partitions)]
