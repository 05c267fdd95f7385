"""The live state of a load without an experiment: what its own clients see, and no more.

Brokers' logs are not known, nor are faults. So it has `plain`, `groups` with members and owners,
`members`, and `seen`, the latest events of clients about rebalances.
"""

import time
from collections import defaultdict
from typing import Any

from loadtest.load import Load
from loadtest.page.events import Live
from loadtest.page.patches import difference
from loadtest.timing import PLAIN_EVERY_S

Json = dict[str, Any]


class Plain:
    """Makes the state again when somebody asks for it, at most so often."""

    def __init__(self) -> None:
        self._live = Live()
        self._load: Load | None = None
        self._due_s = 0.0

    def of(self, load: Load) -> Live:
        """Return the live state of a load."""
        if load is not self._load:
            self._load, self._live, self._due_s = load, Live(), 0.0
        if time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + PLAIN_EVERY_S
            if patch := difference(self._live.state, _state(load)):
                self._live.take(patch)
        return self._live


def _state(load: Load) -> Json:
    rows = load.clients.members()
    groups: dict[str, Json] = defaultdict(lambda: {"members": 0, "planned": 0, "owners": {}})
    for row in rows:
        group = groups[row["group"]]
        group["planned"] += 1
        group["members"] += row["state"] == "joined"
        if row["partitions"]:
            group["owners"][row["name"]] = list(row["partitions"])
    return {
        "plain": True,
        "groups": dict(groups),
        "members": {
            row["name"]: {
                **{key: row[key] for key in ("group", "kind")},
                "in": row["state"] == "joined",
            }
            for row in rows
        },
        "seen": load.seen(),
    }
