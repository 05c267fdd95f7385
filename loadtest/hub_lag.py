"""Measures how late this process runs its greenlets: lateness that its figures may contain."""

import time
from typing import NoReturn

import gevent

from loadtest.history import History

TICK_S = 0.05
TICKS = 20


def watch(history: History) -> NoReturn:
    """Write `hub_lag` about once a second: the worst lateness of a tick since the last one."""
    while True:
        worst_s = 0.0
        for _ in range(TICKS):
            due_s = time.perf_counter() + TICK_S
            gevent.sleep(TICK_S)
            worst_s = max(worst_s, time.perf_counter() - due_s)
        history.write("hub_lag", max_ms=round(worst_s * 1000, 1))
