"""The speed of foresight on one core, in processor time: one course of each of three experiments.

A rolling bounce of 10,000 static members in 50 groups, and of 1,000 dynamic members in one; and a
day of 100,000 static members in 500 groups that are deployed twice. No broker is started.
"""

import time
from typing import Any, NamedTuple

import click

from chaos.plan import make_plan
from groupquake.simulate.chance import Chance
from groupquake.simulate.course import Course
from reference_coordinator.classic.releases import NEWEST
from scenarios import Experiment

Json = dict[str, Any]


class Case(NamedTuple):
    """Groups of so many members of a kind, restarted in waves, each time of `at`."""

    groups: int
    size: int
    kind: str
    at_once: int
    at: tuple[str, ...] = ("1s",)
    lasts: str = "15m"

    @property
    def rebalances(self) -> int:
        """How many are due: its formation, two for each wave of dynamic members, and its end."""
        waves = len(self.at) * -(-self.size // self.at_once)
        return self.groups * (1 if self.kind == "static" else 2 + 2 * waves)


CASES = {
    "10,000 static in 50 groups": Case(50, 200, "static", 10),
    "1,000 dynamic in one group": Case(1, 1_000, "dynamic", 50),
    "100,000 static in 500 groups, a day": Case(500, 200, "static", 10, ("8h", "20h"), "24h"),
}


def measure() -> Json:
    """Return the processor time of each case in s."""
    return {name: _seconds(case) for name, case in CASES.items()}


def _seconds(case: Case) -> float:
    experiment = Experiment.model_validate(_document(case))
    began = time.process_time()
    course = Course(experiment, make_plan(experiment, 1), NEWEST, Chance("1"))
    counted = sum(tally.rebalances.total() for tally in course.run().values())
    took = time.process_time() - began
    if counted != case.rebalances or course.not_foreseen:
        raise click.ClickException(f"{counted} rebalances, {case.rebalances} are due")
    return took


def _document(case: Case) -> Json:
    names = [f"shop-{number}" for number in range(case.groups)]
    static = case.kind == "static"
    return {
        "name": "foresight",
        "cluster": {"brokers": 3},
        "workload": {
            "topics": [{"name": "orders", "partitions": case.size, "replication_factor": 3}],
            "groups": [
                {
                    "name": name, "topics": ["orders"], "session_timeout": "45s",
                    "heartbeat_interval": "3s", "max_poll_interval": "5m",
                    "members": [{"kind": case.kind, "count": case.size}
                                | ({"instance_id": f"{name}-{{n}}"} if static else {})],
                }
                for name in names
            ],
        },
        "faults": [
            {"fault": "group.bounce", "at": at, "every": "20s", "target": "all", "group": name,
             "down_for": "6s", "at_once": case.at_once}
            for at in case.at for name in names
        ],
        "steady_state": {"within": "5m"},
        "phases": {"impact": case.lasts, "recovery": "5s"},
    }  # fmt: skip
