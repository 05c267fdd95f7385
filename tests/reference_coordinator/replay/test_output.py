"""What a hypothesis yields: rows of the expected timeline, and counts."""

from reference_coordinator.classic.effects import AssignmentReceived, Reason, Transition
from reference_coordinator.classic.state import State
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.result import Output

CAUSE = Candidate(90, 100, 110, None)


def begun() -> Output:
    output = Output()
    prepare = Transition(State.EMPTY, State.PREPARING_REBALANCE, 0, Reason.NEW_MEMBER, "a")
    output.follow(prepare, CAUSE, 100, 3)
    return output


def test_a_rebalance_is_one_row_from_its_begin_to_its_assignment() -> None:
    output = begun()
    joined = Transition(State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, 1, members=2)
    output.follow(joined, CAUSE, 200, 3)
    output.assigned(AssignmentReceived("a", 1, 2, 1), 300)
    output.close("open", 400)
    (row,) = output.rows
    assert (row.incarnation, row.reason, row.member_id) == (3, "new_member", "a")
    assert (row.earliest_ms, row.started_ms, row.latest_ms) == (90, 100, 110)
    assert (row.joined_ms, row.generation, row.members) == (200, 1, 2)
    assert (row.leader, row.assigned_members, row.static_members) == ("a", 2, 1)
    assert (row.ended_as, row.ended_ms) == ("assigned", 300)
    assert len(output.transitions) == 2


def test_a_rebalance_supersedes_one_under_way() -> None:
    output = begun()
    again = Transition(State.COMPLETING_REBALANCE, State.PREPARING_REBALANCE, 1, Reason.LEAVE)
    output.follow(again, CAUSE, 150, 3)
    assert [(row.ended_as, row.ended_ms) for row in output.rows] == [("superseded", 150)]


def test_a_join_phase_may_end_empty() -> None:
    output = begun()
    output.follow(Transition(State.PREPARING_REBALANCE, State.EMPTY, 1), CAUSE, 200, 3)
    output.close("open", 400)
    assert [(row.ended_as, row.members) for row in output.rows] == [("empty", 0)]


def test_a_row_that_has_not_ended_is_closed_as_the_caller_says() -> None:
    output = begun()
    output.close("unsure", 400)
    output.close("unsure", 500)
    assert [(row.ended_as, row.ended_ms) for row in output.rows] == [("unsure", 400)]


def test_a_transition_outside_a_rebalance_makes_no_row() -> None:
    output = Output()
    output.follow(Transition(State.STABLE, State.EMPTY, 1), CAUSE, 200, 3)
    output.assigned(AssignmentReceived("a", 1, 2, 1), 300)
    output.close("open", 400)
    assert output.rows == []


def test_counts_are_by_kind_and_a_fork_has_its_own() -> None:
    output = begun()
    output.bind("member_id")
    forked = output.fork()
    forked.bind("member_id", 2)
    forked.explain("1")
    forked.close("open", 1)
    assert (output.bound, forked.bound) == ({"member_id": 1}, {"member_id": 3})
    assert (output.checked, output.rows) == ([], [])
