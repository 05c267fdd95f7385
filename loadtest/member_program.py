"""A program: one member in a process of its own, with librdkafka.

`python -m loadtest.member_program` reads an order as one line of JSON from its standard input: the
member's configuration, the bootstrap servers and the history that it appends to. It joins, and
polls until it is killed; SIGTERM closes the member cleanly. Each further line of its input says
whether it polls: `true` or `false`. It prints its control row whenever that changes. It imports
neither gevent nor Locust, so it starts fast, and a signal to it stops this member alone.
"""

import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from loadtest.base_member import POLL_EVERY_S
from loadtest.client_configs import MemberConfig
from loadtest.history import History
from loadtest.locust_statistics import no_statistics
from loadtest.member import Member


def main() -> None:
    """Run the configured member until SIGTERM."""
    closing, polls = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: closing.set())
    order = json.loads(sys.stdin.readline())
    history = History(Path(order["history"]) if order["history"] else None)
    member = Member(_config(order["member"]), order["bootstrap"], history, lambda _: no_statistics)
    polls.set()
    threading.Thread(target=_listen, args=(polls,), daemon=True).start()
    member.open()
    printed: dict[str, Any] | None = None
    while not closing.is_set():
        printed = _print(member, printed)
        if polls.is_set():
            member.poll_once()
        time.sleep(POLL_EVERY_S)
    member.close()
    _print(member, printed)


def _listen(polls: threading.Event) -> None:
    """Take the lines that say whether the member polls."""
    for line in sys.stdin:
        if json.loads(line):
            polls.set()
        else:
            polls.clear()


def _print(member: Member, printed: dict[str, Any] | None) -> dict[str, Any]:
    """Print the member's row, unless it is the one that was printed last; return it."""
    if (row := member.describe()) != printed:
        print(json.dumps(row), flush=True)
    return row


def _config(fields: dict[str, Any]) -> MemberConfig:
    return MemberConfig(**{**fields, "topics": tuple(fields["topics"])})


if __name__ == "__main__":
    main()
