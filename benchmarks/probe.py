"""What a Locust process of a benchmark measures of itself: a second locustfile beside the load's.

`locust -f loadtest/locustfile.py,benchmarks/probe.py`, with a folder in GROUPQUAKE_PROBE. Every
process that has users writes `<folder>/<pid>.json` once a second: its resident bytes before it had
any, how many members have joined, and since SIGUSR1 its heartbeats, counted by their time in tenths
of a ms, and the longest delay of its hub in each second.
"""

# Locust's events have no types.
# mypy: disable-error-code="untyped-decorator, no-untyped-call"

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import gevent
import psutil
from locust import events
from locust.env import Environment
from locust.runners import MasterRunner

from benchmarks import PROBE_FOLDER

_CHECK_S = 0.05
_CHECKS = 20
_bare = 0
_joined = 0
_beats: Counter[int] = Counter()
_gaps_ms: list[float] = []


@events.init.add_listener
def on_init(environment: Environment, **_: object) -> None:
    """Measure, in a process that has users."""
    if isinstance(environment.runner, MasterRunner):
        return
    global _bare  # noqa: PLW0603 (one a process)
    _bare = psutil.Process().memory_info().rss
    events.request.add_listener(_on_request)
    gevent.signal_handler(signal.SIGUSR1, _begin)
    gevent.spawn(_watch)


def _begin() -> None:
    _beats.clear()
    _gaps_ms.clear()


def _on_request(name: str, response_time: float | None, **_: Any) -> None:
    global _joined  # noqa: PLW0603 (one a process)
    if name == "heartbeat":
        _beats[round(10 * (response_time or 0))] += 1
    elif name == "join":
        _joined += 1


def _watch() -> NoReturn:
    path = Path(os.environ[PROBE_FOLDER]) / f"{os.getpid()}.json"
    draft = path.with_suffix(".new")
    while True:
        longest_s = 0.0
        for _ in range(_CHECKS):
            due_s = time.perf_counter() + _CHECK_S
            gevent.sleep(_CHECK_S)
            longest_s = max(longest_s, time.perf_counter() - due_s)
        _gaps_ms.append(round(longest_s * 1000, 1))
        seen = {"bare": _bare, "joined": _joined, "beats": _beats, "gaps_ms": _gaps_ms}
        draft.write_text(json.dumps(seen))
        draft.replace(path)
