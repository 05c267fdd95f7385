"""Lies about timers: recorded groups in which nothing happens for a while when a timer is due.

Each timer runs out that much later than it did: to just inside its bound, and beyond.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reference_coordinator.replay import Stall
from reports.judgement.recording import Recording
from reports.judgement.run.machine_log import stood_still
from tests.reports.alter import differences, stretched

SESSION = ("sessions", "session_expired")
SESSION_MS = '"sessionTimeoutMs":2000'
SESSION_OF_A_PENDING_MEMBER = ("pending", "pending_expired")
JOIN_PHASE = ("absent", "absent_dynamic_removed")
PENDING_SYNC = ("silent", "unsynced_removed")
INITIAL_DELAY = ("sessions", "stabilized")
"""Extended once. Its last part is late, so both parts together are."""
LATE_MS = {
    SESSION: 500.0,
    SESSION_OF_A_PENDING_MEMBER: 500.0,
    JOIN_PHASE: 500.0,
    PENDING_SYNC: 500.0,
    INITIAL_DELAY: 1_200.0,
}
"""A second for all parts of an initial delay, and 200 ms for the line that tells of its end."""
WINDOW_MS = 60.0
"""How inexact the start of a timer is: 40 ms for the arrival of its request, and its handling."""
BY_LINE_MS = 30.0
"""The same where its start has a line: 15 ms, and 10 ms for its end."""


def expiry_ms(recording: Recording, about: tuple[str, str]) -> float:
    """Return when the first timer of a kind ran out: just before its lines."""
    group, template = about
    lines = (row for row in recording.rows_by_group[group] if row["template"] == template)
    return min(float(line["at_ms"]) for line in lines) - 2.0


@pytest.mark.parametrize("off_ms", [-400.0, -15.0, WINDOW_MS, 1_500.0])
@pytest.mark.parametrize("about", LATE_MS)
def test_a_timer_runs_out_in_time(recording, about, off_ms):
    group = about[0]
    late_ms = LATE_MS[about] + off_ms
    rows = stretched(recording.rows_by_group[group], expiry_ms(recording, about), late_ms)
    assert bool(differences(recording.context, group, rows)) == (off_ms > 0)


@pytest.mark.parametrize("off_ms", [-15.0, BY_LINE_MS])
def test_a_timer_is_as_late_as_the_line_of_its_start_tells(recording, off_ms):
    late_ms = LATE_MS[PENDING_SYNC] + off_ms
    from_ms = expiry_ms(recording, PENDING_SYNC)
    rows = stretched(recording.rows_by_group["silent"], from_ms, late_ms)
    assert bool(differences(recording.context, "silent", rows)) == (off_ms > 0)


@pytest.mark.parametrize("early_ms", [5, 70, 500])
def test_a_session_does_not_end_early(recording, early_ms):
    """The requests of its member say that it lasts longer than it did."""
    rows = [
        {
            **row,
            "request": row["request"].replace(SESSION_MS, f"{SESSION_MS[:-4]}{2_000 + early_ms}"),
        }
        if row["template"] is None
        else row
        for row in recording.rows_by_group["sessions"]
    ]
    assert bool(differences(recording.context, "sessions", rows)) == (early_ms > WINDOW_MS)


PAUSED_MS = 1_400.0
"""A session that ends so late is in order if its broker stood still for 900 ms of the time."""


def paused(recording: Recording, until: float, lines_at: Sequence[float]) -> tuple[Stall, ...]:
    """Return what is left of a pause in the journal that begins when a session is to end.

    Its end, and the lines that its broker writes all the same, are at parts of PAUSED_MS.
    """
    from_ms = expiry_ms(recording, SESSION)
    broker = recording.rows_by_group["sessions"][0]["broker"]
    times = sorted(line.at_ms for line in recording.lines if line.broker == broker and line.row)
    written = [at_ms + PAUSED_MS * (at_ms >= from_ms) for at_ms in times]
    log = sorted([*written, *(from_ms + PAUSED_MS * place for place in lines_at)])
    pause = Stall(broker, from_ms, from_ms + PAUSED_MS * until)
    return stood_still([pause], [], {broker: log})[0]


@pytest.mark.parametrize(
    ("until", "lines_at", "excused"),
    [
        (1.0, (), True),
        (0.68, (), True),
        (0.6, (), False),
        (1.0, (0.3,), True),
        (1.0, (0.42,), False),
        (1.0, (0.3, 0.94), True),  # the journal says up to 100 ms too late that it goes on
        (1.0, (0.3, 0.88), False),
        (1.0, [place / 20 for place in range(20)], False),
    ],
)
def test_a_pause_excuses_what_its_broker_was_silent_for(recording, until, lines_at, excused):
    from_ms = expiry_ms(recording, SESSION)
    rows = stretched(recording.rows_by_group["sessions"], from_ms, PAUSED_MS)
    judge = replace(recording.context, stalls=paused(recording, until, lines_at))
    assert (differences(judge, "sessions", rows) == []) == excused
