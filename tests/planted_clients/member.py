"""What the programs share: what they join, how they consume, and the lines that they print.

They run as a user's own programs: by the interpreter that has their library, from this folder.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

GIVEN = {name.removeprefix("GROUPQUAKE_"): value for name, value in os.environ.items()}
NAME, TOPICS = GIVEN.get("CLIENT_ID", ""), GIVEN.get("TOPICS", "").split(",")
COMMIT_S = 1.0
stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())


def say(name: str, **fields: object) -> None:
    """Print a line of VerifiableConsumer."""
    line = {"timestamp": int(time.time() * 1000), "name": name, **fields}
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def say_processed(records: Iterable[tuple[str, int, int]]) -> None:
    """Print what was processed: topics, partitions and offsets, in their order."""
    ranges: list[dict[str, Any]] = []
    for topic, number, offset in records:
        last = ranges[-1] if ranges else {}
        if (last.get("topic"), last.get("partition"), last.get("maxOffset")) == (
            topic, number, offset - 1
        ):  # fmt: skip
            last.update(maxOffset=offset, count=last["count"] + 1)
        else:
            ranges.append({"topic": topic, "partition": number, "count": 1, "minOffset": offset,
                           "maxOffset": offset})  # fmt: skip
    if ranges:
        say("records_consumed", count=sum(one["count"] for one in ranges), partitions=ranges)


def say_partitions(name: str, pairs: Iterable[tuple[str, int]]) -> None:
    """Print that partitions are assigned, revoked or lost."""
    found = [{"topic": topic, "partition": number} for topic, number in sorted(pairs)]
    say(f"partitions_{name}", partitions=found)


def say_committed(offsets: Iterable[tuple[str, int, int]], error: object = None) -> None:
    """Print a commit, and why it failed."""
    found = [{"topic": topic, "partition": number, "offset": at} for topic, number, at in offsets]
    why = {"error": str(error)} if error else {}
    say("offsets_committed", offsets=found, success=not error, **why)


def every(interval_s: float) -> Callable[[], bool]:
    """Return what tells, once in such a time, that it is due."""
    due_s = time.monotonic() + interval_s

    def is_due() -> bool:
        nonlocal due_s
        if time.monotonic() < due_s:
            return False
        due_s = time.monotonic() + interval_s
        return True

    return is_due
