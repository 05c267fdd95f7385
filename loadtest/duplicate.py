"""A program: a second process that uses a member's group.instance.id.

The broker fences the process that used the id before (KIP-345). `python -m loadtest.duplicate`
reads the member's configuration as JSON from its standard input, joins, and polls until it is
killed. It prints its control row whenever that changes, and appends to the same history. It imports
neither gevent nor Locust, so it starts fast.
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
    """Run the configured member until this process is killed."""
    order = json.load(sys.stdin)
    history = History(Path(order["history"]) if order["history"] else None)
    member = Member(_config(order["member"]), order["bootstrap"], history, lambda _: no_statistics)
    member.open()
    printed: dict[str, Any] | None = None
    while True:
        if (row := member.describe()) != printed:
            print(json.dumps(row), flush=True)
            printed = row
        member.poll_once()
        time.sleep(POLL_INTERVAL_S)


def _config(fields: dict[str, Any]) -> MemberConfig:
    return MemberConfig(**{**fields, "topics": tuple(fields["topics"])})


if __name__ == "__main__":
    main()
