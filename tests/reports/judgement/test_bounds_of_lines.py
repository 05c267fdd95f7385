"""Lies about the instants of lines: one line of the recordings, or its request, at another time."""

from typing import NamedTuple

import pytest

from reports.judgement.recording import Recording, Row
from tests.reports.alter import differences, moved


class Bound(NamedTuple):
    """Which line of a template in a group is moved, how far it may be, and beyond what it is wrong.

    Negative where it is moved to an earlier time.
    """

    group: str
    template: str
    nth: int
    inside_ms: float
    outside_ms: float


LETS_GO = Bound("sessions", "stabilized", 0, 12.0, 30.0)
"""JoinGroups wait for this step: none is answered 15 ms before its line."""
BOUNDS = (
    LETS_GO,
    LETS_GO._replace(group="absent"),
    LETS_GO._replace(group="returning"),
    # the end of a phase, 200 ms after its requests show it, or 500 ms before
    Bound("returning", "assignment", 0, 185.0, 225.0),
    Bound("sessions", "assignment", 0, 185.0, 225.0),
    Bound("returning", "stabilized", 1, -450.0, -560.0),
    Bound("failover", "stabilized", 0, -450.0, -560.0),
    # a request that is not alone in leaving such a line: 100 ms, and 40 ms for its arrival
    Bound("sessions", "static_replaced", 0, -100.0, -165.0),
    Bound("leading", "left", 0, -100.0, -165.0),
    # a line that is written after the answer
    Bound("sessions", "static_replaced", 0, 5.0, 40.0),
    Bound("leading", "left", 0, 5.0, 40.0),
)


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize("bound", BOUNDS)
def test_a_line_is_at_the_instant_of_its_step(recording, bound, beyond):
    rows = recording.rows_by_group[bound.group]
    lines = sorted(
        (row for row in rows if row["template"] == bound.template), key=lambda row: row["at_ms"]
    )
    by_ms = bound.outside_ms if beyond else bound.inside_ms
    altered = [moved(row, by_ms) if row is lines[bound.nth] else row for row in rows]
    assert bool(differences(recording.context, bound.group, altered)) == beyond


def first_request(recording: Recording) -> Row:
    """The JoinGroup of a new process, which waits for others."""
    return next(
        row
        for row in recording.rows_by_group["failover"]
        if row["template"] is None
        and (row["api"], row["client_id"]) == ("JOIN_GROUP", "failover-a")
        and '"memberId":""' in row["request"]
        and row["answered_ms"] - row["arrived_ms"] > 1_400.0
    )


@pytest.mark.parametrize("by_ms", [-2_200.0, -2_060.0, -1_980.0, -500.0, 500.0, 1_020.0, 1_060.0])
def test_a_new_id_shows_when_its_request_was_there(recording, by_ms):
    """It came up to 2 s before its line: 1 s is for its turn, 1 s more if a line shows it.

    It seems to have come up to 1,040 ms after it: so late a request may be logged.
    """
    seen = first_request(recording)
    latest_ms = min(seen["answered_ms"], seen["latest_ms"] + by_ms)
    other = moved(seen, by_ms) | {name: seen[name] for name in ("answered_ms", "logged_ms")}
    rows = [
        other | {"latest_ms": latest_ms} if row is seen else row
        for row in recording.rows_by_group["failover"]
    ]
    found = differences(recording.context, "failover", rows)
    assert bool(found) == (not -2_000.0 < by_ms < 1_040.0)
