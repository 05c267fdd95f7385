"""The client history: what clients observe, one JSON object a line, in the order of observation.

Every line has `at_ms` (the time of the client's callback), `member` (the client.id), `group`,
`kind` and `event`. `partitions` are those that the event is about, written `topic-number`:

    created     a new consumer with this `instance_id`, or none; it owns no partitions
    assigned    it owns these partitions too: with a cooperative assignor only new ones (often
                none), with an eager one all, since all were revoked before; one line for each
                assignment; `member_id` is the member's id in the group
    revoked     it gave these partitions up, in a rebalance or at its close
    lost        it no longer owns these partitions, maybe for some time: it was removed, its session
                expired, or it reached no coordinator for a session timeout; it rejoins on its own
    fenced      another consumer uses its instance id (KIP-345), so it stays down; until now it
                considered these partitions its own
    killed      its consumer, or duplicate process, ended as in a crash: no LeaveGroup, sockets
                closed; it owned these partitions to the end
    ended       its client ended by itself or cannot be started, and stays down: nobody asked for
                that. `error` says how; of a process it quotes the last lines of its log, and
                `exit_code` is negative for a signal
    closing     a clean close begins; it revokes all partitions
    closed      the close ended, after `took_ms`; these partitions were not revoked or lost before
    unanswered  a request of the `api` that it sent at `sent_at_ms` has no response, and it waits no
                longer; its member has this `member_id` and `instance_id` (wire scripts)
    processed   the records that it got since such a line: `ranges` of offsets for each partition,
                first and last of each, in the order of processing; a range ends where the next
                offset is not greater by one. Written before each other line of the member, so that
                a commit or the loss of a partition comes after it, and else once a second at most;
                `at_ms` is the time of its last record. `wire` reads no records
    misnumbered of this `partition` a record was read at the next `offset` whose number is not the
                next of its `producer`: `found`, not `expected` (`loadtest.processed`)
    committed   the number of stored `offsets`
    error       an error of Kafka's client; at most one line a second for each member and kind of
                error, `left_out` counts the others since the line before

A member's ownership ends with `fenced`, `killed` or `closed`, whatever the lines before say. A
second process with a member's identity has the name `<member>.duplicate`.

Producers have `created`, `closing`, `closed` and `error` too, and once a second `produced`, with
`records` acknowledged and `errors` since the line before. The load process writes `hub_lag`.

With several Locust processes the lines of all come one after another as they reach the master,
which adds what becomes of each `worker`:

    leased      it runs this member, or this producer, from now on
    worker_lost it is not heard of any more since `last_heard_ms`; it had these `members`
"""

import json
import logging
import time
from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path
from typing import Any, Protocol

from loadtest.errors import LoadtestError
from loadtest.timing import QUIET_MS


class Report(Protocol):
    """Counts one event `name` in Locust's statistics.

    `took_ms` is None for events without a duration, `size` is in bytes, `error` marks a failure.
    """

    def __call__(
        self, name: str, took_ms: float | None, size: int = 0, error: str | None = None
    ) -> None:
        """Count it."""


Seen = Callable[[dict[str, Any]], object]
"""Takes one line of a history, as fields."""


def now_ms() -> float:
    """Return the time now in UTC epoch milliseconds, to a tenth."""
    return round(time.time() * 1000, 1)


class History:
    """Appends to a file; the kernel has every line when `write` returns.

    One unbuffered write for each line keeps lines whole when several processes append.
    Without a path nothing is written. Each line is given to all of `watchers`. Raises LoadtestError
    if the file cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.watchers: list[Seen] = []
        try:
            self._file = path.open("ab", buffering=0) if path else None
        except OSError as error:
            raise LoadtestError(
                f"--history {path}: cannot be written ({error.strerror});"
                " name a file in a folder that exists"
            ) from error

    def write(
        self,
        event: str,
        *,
        member: str | None = None,
        group: str | None = None,
        kind: str | None = None,
        at_ms: float | None = None,
        **fields: Any,
    ) -> None:
        """Append one event, at `at_ms` or now."""
        line = {
            "at_ms": now_ms() if at_ms is None else at_ms,
            "member": member,
            "group": group,
            "kind": kind,
            "event": event,
            **fields,
        }
        if self._file is not None:
            self._append(json.dumps(line, separators=(",", ":")) + "\n")
        self._show(line)

    def add(self, lines: Iterable[str]) -> None:
        """Append lines that another process wrote."""
        lines = tuple(lines)
        self._append("".join(f"{line}\n" for line in lines))
        for line in lines:
            self._show(json.loads(line))

    def _show(self, line: dict[str, Any]) -> None:
        for watcher in self.watchers:
            watcher(line)

    def _append(self, lines: str) -> None:
        """Append lines. Without room the history ends there: members go on, and can be healed."""
        try:
            if self._file is not None:
                self._file.write(lines.encode())
        except OSError as error:
            self.close()
            logging.getLogger(__name__).warning("%s ends: %s", self.path, error.strerror)

    def close(self) -> None:
        """Close the file; later events are dropped."""
        if self._file is not None:
            self._file.close()
            self._file = None


class ErrorLines:
    """Writes a client's errors by `write`: the first of a kind at once, then one a second at most.

    Hundreds of clients report errors for as long as they reach no broker. One line a second still
    shows when that began and ended; it counts those `left_out` since the line before.
    """

    def __init__(self, write: Callable[..., None]) -> None:
        self._write = write
        self._lines: dict[str, tuple[float, int]] = {}
        """When the last line of a kind was written, and how many errors were left out since."""

    def write(self, kind: str, text: str, at_ms: float | None = None) -> None:
        """Write an error of a kind, unless the last line of that is too new."""
        at_ms = now_ms() if at_ms is None else at_ms
        last_ms, left_out = self._lines.get(kind, (-inf, 0))
        if at_ms - last_ms < QUIET_MS:
            self._lines[kind] = last_ms, left_out + 1
            return
        more = {"left_out": left_out} if left_out else {}
        self._write("error", at_ms=at_ms, error=text, **more)
        self._lines[kind] = at_ms, 0
