"""What one event costs in Locust: `python -m benchmarks.event_cost`.

A heartbeat as a member reports it, through Locust's event to Locust's statistics, beside the same
statistics without the event, in turn; µs of processor time each, medians of the rounds.
"""

import json
import time
from collections.abc import Callable
from statistics import median

from locust import User
from locust.env import Environment

from loadtest.pool import locust_report

ROUNDS = 9
EVENTS = 50_000


def measure() -> dict[str, float]:
    """Return the µs of an event, and of its statistics alone."""
    environment = Environment(user_classes=[User])
    environment.create_local_runner()
    report = locust_report(environment.events, "STATIC")
    statistics = environment.stats
    through = lambda: report("heartbeat", 1.5)
    alone = lambda: statistics.log_request("STATIC", "heartbeat", 1.5, 0)  # type: ignore[arg-type]
    event, bare = [], []
    for _ in range(ROUNDS):
        event.append(_us(through))
        bare.append(_us(alone))
    return {"event_us": median(event), "statistics_us": median(bare),
            "ratio": median(event) / median(bare)}  # fmt: skip


def _us(call: Callable[[], object]) -> float:
    began = time.process_time()
    for _ in range(EVENTS):
        call()
    return (time.process_time() - began) / EVENTS * 1e6


if __name__ == "__main__":
    print(json.dumps(measure()))
