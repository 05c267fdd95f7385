"""Which broker coordinated a group, by answers alone."""

import pytest

from reports.judgement.coordinators.wire_epochs import (
    ABSENT,
    LOADS,
    OPEN,
    SERVES,
    THERE,
    Mark,
    WireEpochs,
    marks_of,
    wire_epochs,
)


def mark(broker: str, says: str, at_ms: float, took_ms: float = 2.0) -> Mark:
    """Return a mark of a request that was answered at once."""
    (found,) = marks_of(at_ms, broker, says, at_ms, at_ms + took_ms, at_ms + took_ms)
    return found


def kinds(epochs: WireEpochs) -> list[tuple[str, str]]:
    return [(event.broker, event.kind) for event in epochs.events]


@pytest.mark.parametrize("says", [SERVES, THERE])
def test_a_broker_that_answers_all_the_time_needs_no_epochs(says):
    marks = [mark("1", SERVES, 0.0), mark("1", says, 1_000.0), mark("1", says, 2_000.0)]
    assert wire_epochs(marks).events == ()


def test_a_request_without_an_answer_may_be_the_first_that_a_coordinator_served():
    marks = [mark("1", ABSENT, 1_000.0), mark("1", OPEN, 2_000.0), mark("1", SERVES, 5_000.0)]
    loaded = wire_epochs(marks).events[1]
    assert (loaded.earliest_ms, loaded.latest_ms) == (1_000.0, 5_002.0)
    assert loaded.at_ms < 2_000.0
    assert wire_epochs([mark("1", OPEN, 0.0), mark("1", SERVES, 5_000.0)]).events == ()


@pytest.mark.parametrize("following", [[], [mark("2", SERVES, 3_000.0)]])
def test_a_request_without_an_answer_says_nothing_of_a_broker_by_itself(following):
    marks = [mark("2", SERVES, 1_000.0), *following]
    assert wire_epochs([*marks, mark("1", OPEN, 2_000.0)]) == wire_epochs(marks)


def test_a_load_lies_between_the_answers_that_show_it():
    epochs = wire_epochs([mark("1", ABSENT, 1_000.0), mark("1", SERVES, 5_000.0)])
    assert kinds(epochs) == [("1", "loading"), ("1", "loaded")]
    loaded = epochs.events[1]
    assert (loaded.earliest_ms, loaded.latest_ms) == (1_000.0, 5_002.0)
    assert loaded.at_ms < 5_000.0
    assert not loaded.is_logged


def test_a_failover_is_an_unload_and_a_load():
    marks = [mark("1", SERVES, 1_000.0), mark("2", ABSENT, 2_000.0)]
    marks += [mark("1", ABSENT, 3_000.0), mark("2", SERVES, 6_000.0)]
    epochs = wire_epochs(marks)
    assert kinds(epochs) == [
        ("1", "loading"), ("1", "loaded"), ("1", "unloaded"), ("2", "loading"), ("2", "loaded"),
    ]  # fmt: skip
    assert epochs.events[2].earliest_ms == 1_000.0
    assert epochs.events[2].latest_ms == 3_002.0
    times = (("1", 900.0), ("1", 2_000.0), ("2", 2_000.0), ("2", 7_000.0))
    assert [epochs.incarnation(*at) for at in times] == [0, 1, 0, 2]


def test_a_broker_that_takes_over_unseen_has_loaded_before_its_first_answer():
    epochs = wire_epochs([mark("1", SERVES, 1_000.0), mark("2", SERVES, 9_000.0)])
    loaded = [event for event in epochs.events if event.kind == "loaded"]
    assert [event.broker for event in loaded] == ["1", "2"]
    assert loaded[1].earliest_ms == 1_000.0


@pytest.mark.parametrize(
    ("answers", "restarts", "loads"),
    [
        ([("1", SERVES, 1), ("1", SERVES, 2), ("1", SERVES, 8)], (), []),
        ([("1", SERVES, 1), ("1", SERVES, 2), ("1", SERVES, 8)], (("2", 4e3),), []),
        ([("1", SERVES, 1), ("1", SERVES, 2), ("1", SERVES, 8)], (("1", 4e3),), ["1", "1"]),
        ([("1", SERVES, 1), ("2", SERVES, 2), ("2", SERVES, 3), ("1", SERVES, 4)], (),
         ["1", "2", "1"]),
        ([("1", SERVES, 1), ("2", SERVES, 2), ("1", SERVES, 2.5), ("2", SERVES, 3),
          ("1", ABSENT, 3.5)], (), ["1", "2"]),
    ],
    ids=["goes on", "another was restarted", "restarted", "answers again after another did",
         "goes on from memory beside its successor"],
)  # fmt: skip
def test_which_brokers_load_the_group(answers, restarts, loads):
    marks = [mark(broker, says, at_s * 1_000.0) for broker, says, at_s in answers]
    assert [load.broker for load in wire_epochs(marks, restarts).loads] == loads


def test_a_heartbeat_without_error_may_come_while_the_group_is_loaded():
    """GroupCoordinator.doHeartbeat: `the group is still loading, so respond just blindly`."""
    marks = [mark("1", ABSENT, 1e3), mark("1", THERE, 1_100.0), mark("1", LOADS, 1_200.0)]
    marks += [mark("1", THERE, 1_300.0), mark("1", LOADS, 1_400.0), mark("1", SERVES, 2_000.0)]
    epochs = wire_epochs(marks)
    assert kinds(epochs) == [("1", "loading"), ("1", "loaded")]
    assert epochs.events[1].earliest_ms == 1_400.0


def test_answers_that_overlap_show_no_more_changes_than_they_have_to():
    waits = marks_of(1_000.0, "1", SERVES, 1_000.0, 3_000.0, 4_500.0)
    epochs = wire_epochs([*waits, mark("1", ABSENT, 900.0, 200.0), mark("1", LOADS, 1_150.0)])
    assert kinds(epochs) == [("1", "loading"), ("1", "loaded")]
    assert epochs.events[1].at_ms > 1_100.0
