"""A program: a second process that claims a member's group.instance.id, as a stray copy does.

The broker fences whoever had the id before (KIP-345). `python -m loadtest.duplicate` reads who to
be as JSON from its standard input, joins, and polls until it is ended. It prints its row, as the
control channel's `members` has it, whenever it changes, and appends to the same history. Neither
gevent nor Locust is imported, so it is there in a moment.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from loadtest.client_configs import MemberConfig
from loadtest.history import History
from loadtest.locust_statistics import no_statistics
from loadtest.member import POLL_INTERVAL_S, Member


def main() -> NoReturn:
    """Be the member that the order describes, until this process is killed."""
    order = json.load(sys.stdin)
    history = History(Path(order["history"]) if order["history"] else None)
    member = Member(_config(order["member"]), order["bootstrap"], history, lambda _: no_statistics)
    member.open()
    told: dict[str, Any] | None = None
    while True:
        if (row := member.describe()) != told:
            print(json.dumps(row), flush=True)
            told = row
        member.poll_once()
        time.sleep(POLL_INTERVAL_S)


def _config(fields: dict[str, Any]) -> MemberConfig:
    return MemberConfig(**{**fields, "topics": tuple(fields["topics"])})


if __name__ == "__main__":
    main()
