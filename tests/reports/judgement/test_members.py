"""Requests of members, and how a stall changes what the oracle sees of them."""

from dataclasses import replace
from itertools import chain

import pytest

from reference_coordinator.classic.releases import PROFILES
from reference_coordinator.replay import Evidence, Stall, replay
from reports.judgement.logged import HeldUp
from tests.reference_coordinator.replay.conftest import PROFILE, START, wrong
from tests.reference_coordinator.replay.test_outages import commit


def test_a_line_written_late_moves_the_request_and_does_not_lengthen_it():
    (seen,) = (r for r in commit(2_010, 15).requests if r.api == "OFFSET_COMMIT")
    stall = Stall("1", START - 4_000, START + 2_005)
    (moved,) = HeldUp([stall]).widened([seen])
    assert moved.earliest_ms == seen.earliest_ms - 6_005
    assert moved.started_ms == seen.started_ms
    assert HeldUp([]).widened([seen]) == [seen]


@pytest.mark.parametrize(("release", "error"), [("2.8.1", 7), ("3.9-scala", 7), ("4.3", 15)])
@pytest.mark.parametrize("stalled_ms", [1_000, 6_000])
def test_an_answer_at_once_after_a_stall_is_no_write_that_timed_out(release, error, stalled_ms):
    stall = Stall("1", START + 2_005 - stalled_ms, START + 2_005)
    held_up = HeldUp([stall])
    requests = tuple(
        sorted(
            chain.from_iterable(
                held_up.widened([seen]) if seen.api == "OFFSET_COMMIT" else [seen]
                for seen in commit(2_010, error).requests
            ),
            key=lambda seen: seen.at_ms,
        )
    )
    profile = PROFILES[release].with_settings(PROFILE.settings)
    outcome = replay(replace(Evidence("g", requests), stalls=(stall,)), profile)
    assert wrong(outcome) == ["OFFSET_COMMIT:b:2000"]
