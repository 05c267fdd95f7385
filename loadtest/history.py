"""The client history: what members saw, one JSON object a line, as it happened.

Every line has `at_ms` (when Kafka's client told us), `member` (the client.id), `group`, `kind` and
`event`. The lines of one member stand in the order in which things happened to it. `partitions`
are those that the event is about, written `topic-number`:

    created     a fresh consumer of this `instance_id`, or of none; it owns nothing yet
    assigned    it owns these from now on, beside what it has: under a cooperative assignor only
                what is new (often nothing), under an eager one all, as all was revoked before;
                one line for each assignment that the group gave it, as `member_id`
    revoked     it gave these up: in a rebalance, or while it closed
    lost        they are no longer its own, and others may have had them for a while: the member
                was removed or expired, or heard no coordinator for a session; it joins again alone
    fenced      another consumer has its instance id (KIP-345), so it stays down; it owned these
                until now as far as it knew, the other one since it joined
    killed      its consumer, or duplicate process, is gone as in a crash: no LeaveGroup, sockets
                closed; it owned these to the end
    closing     a clean close begins, which revokes what it has
    closed      it is over, after `took_ms`; these were neither revoked nor lost before, mostly none
    committed   so many `offsets` were stored
    error       Kafka's client complained; at most one line a second for each kind of error and
                member, `left_out` counts those since the line before (`client_errors.py`)

A member's ownership ends with `fenced`, `killed` or `closed` whatever was told before. Whoever
claims a member's identity from a second process is called `<member>.duplicate`.

Producers have `created`, `closing`, `closed` and `error` as well, and once a second `produced`:
`records` acknowledged and `errors` counted since the last. The process itself has `hub_lag`.
"""

import json
import time
from pathlib import Path
from typing import Any

from loadtest.errors import LoadtestError


def now_ms() -> float:
    """Return the time now in UTC epoch milliseconds, to a tenth."""
    return round(time.time() * 1000, 1)


class History:
    """Appends to a file; every line is with the kernel before `write` returns.

    One unbuffered write a line keeps lines whole even if several processes append to one file.
    Without a path nothing is written. Raises LoadtestError if the file cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
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
        """Append one event; it happened now, unless `at_ms` tells when."""
        if self._file is None:
            return
        line = {
            "at_ms": now_ms() if at_ms is None else at_ms,
            "member": member,
            "group": group,
            "kind": kind,
            "event": event,
            **fields,
        }
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Close the file; later events are dropped."""
        if self._file is not None:
            self._file.close()
            self._file = None
