"""The headline of an incident: what happened, who began it, what would have helped, its price."""

import pytest

from reports.page.wording import lasting
from tests.reports.incident.incident_here import incident_of

ID = "app-f16351f5-996e-42c3-a846-07c023f0f2b"
LINE = (
    "[2026-01-05 10:00:{}] INFO [GroupCoordinator 1]: {}"
    " (kafka.coordinator.group.GroupCoordinator)\n"
)
TO_REBALANCE = (
    "Preparing to rebalance group g in state PreparingRebalance with old generation {}"
    " (__consumer_offsets-7) (reason: {}; client reason: not provided)"
)
RESTARTED = [
    ("00,000", TO_REBALANCE.format(4, f"Removing member {ID}1 on LeaveGroup")),
    ("01,000", "Stabilized group g generation 5 (__consumer_offsets-7) with 1 members"),
    ("01,500", "Assignment received from leader for group g for generation 5"),
    ("20,000", TO_REBALANCE.format(5, f"Adding new member {ID}2 with group instance id None")),
    ("22,000", "Stabilized group g generation 6 (__consumer_offsets-7) with 2 members"),
    ("22,250", "Assignment received from leader for group g for generation 6"),
]


def test_the_headline_says_who_how_long_and_what_static_members_cost() -> None:
    text = "".join(LINE.format(*line) for line in RESTARTED)
    assert incident_of({"log": text.encode()})["headline"] == [
        "2 rebalances of 1 group",
        "the longest took 2.250 s (g)",
        "app of g began most: 2",
        (
            "static members would have spared about 2 of 2, and left partitions without an owner"
            " for 20 s in all"
        ),
    ]


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (26_400, "26 s"),
        (119_000, "119 s"),
        (603_000, "10 min"),
        (86_397_000, "24 h"),
        (1e9, "12 days"),
    ],
)
def test_durations_are_in_units_that_people_take(ms: float, words: str) -> None:
    assert lasting(ms) == words
