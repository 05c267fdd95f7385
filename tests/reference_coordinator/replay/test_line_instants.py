"""Of orders that all explain every answer, the coordinator's own lines decide."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Hint, HintKind, Replay, Tolerance
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.clock import Clock
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.hints import Hints
from reference_coordinator.replay.line_instants import LinesMay, keep_to_lines
from tests.reference_coordinator.replay.conftest import IDS, PROFILE, START, Scenario

REFUSED = Error.REBALANCE_IN_PROGRESS
NEWCOMERS = {"b": (510, 1), "c": (544, 2)}
"""When the members come that each end a generation, and which one."""


def line(at: float, kind: HintKind, subject: str = "", generation: int = -1) -> Hint:
    return Hint(START + at, kind, subject, generation)


def forming(*assigned: Hint, came: float, answered: float, logged_late: float = 5.0) -> Scenario:
    """Three members join one after the other within 50 ms; two generations end unassigned or not.

    The leader's SyncGroup of generation 2, at `came`, is refused, as it would be before and after
    the third member's JoinGroup. Whether there is a line that it was received tells which.
    """
    scenario = Scenario(hints=list(assigned))
    scenario.join("a", 0, 501, members="a")
    scenario.hints.append(line(0, HintKind.JOINED, IDS["a"]))
    scenario.hints.append(line(0, HintKind.PREPARING, generation=0))
    scenario.hints.append(line(500, HintKind.JOIN_PHASE_ENDED, generation=1))
    scenario.sync("a", 505, 508, gives="a")
    for who, (at, generation) in NEWCOMERS.items():
        scenario.hints.append(line(at, HintKind.JOINED, IDS[who]))
        scenario.hints.append(line(at, HintKind.PREPARING, generation=generation))
    scenario.join("b", 510, 521, generation=2)
    scenario.heartbeat("a", 514, REFUSED)
    scenario.join("a", 520, 521, generation=2, known=IDS["a"], members="ab")
    scenario.hints.append(line(520, HintKind.JOIN_PHASE_ENDED, generation=2))
    late = scenario.sync("a", came, answered, generation=2, gives="ab")
    scenario.change(late, errorCode=REFUSED, assignment="")
    scenario.alter_last(earliest_ms=START + came - logged_late)
    scenario.join("c", 544, 575, generation=3)
    scenario.join("a", 570, 575, generation=3, known=IDS["a"], members="abc")
    scenario.join("b", 572, 575, generation=3, known=IDS["b"])
    scenario.hints.append(line(573, HintKind.JOIN_PHASE_ENDED, generation=3))
    for who in "abc":
        scenario.sync(who, 580, 584, generation=3, gives="abc" if who == "a" else "")
    scenario.hints.append(line(581, HintKind.ASSIGNED, IDS["a"], 3))
    return scenario


def ends(outcome: Replay) -> list[str]:
    assert not outcome.violations
    return [row.ended_as for row in outcome.rows]


@pytest.mark.parametrize("leader", ["a", ""])
@pytest.mark.parametrize("came", [546.0, 552.0, 560.0])
def test_a_leader_s_line_is_that_of_its_own_generation(leader: str, came: float) -> None:
    """Seen on 3.9.1 at a load of 20: generation 1 was assigned 31 ms before this SyncGroup."""
    of_1 = line(506, HintKind.ASSIGNED, IDS.get(leader, ""), 1)
    scenario = forming(of_1, came=came, answered=562.0)
    assert ends(scenario.replay()) == ["assigned", "superseded", "assigned"]


@pytest.mark.parametrize("leader", ["a", ""])
@pytest.mark.parametrize("at", [530.0, 540.0])
def test_an_assignment_with_a_line_was_received(leader: str, at: float) -> None:
    """The answer is the same, as the next member comes before the assignment is stored."""
    of_1 = line(506, HintKind.ASSIGNED, IDS.get(leader, ""), 1)
    of_2 = line(at, HintKind.ASSIGNED, IDS.get(leader, ""), 2)
    for came in (at, 546.0, 552.0):
        scenario = forming(of_1, of_2, came=came, answered=562.0)
        assert ends(scenario.replay()) == ["assigned", "assigned", "assigned"]


METADATA = {1: "bQ==", 2: "Yg==", 3: "Yw=="}
"""What `b` subscribes to in each generation."""


def resubscribed(
    *assigned: float, came: float, rejoined: float, logged_late: float = 10.0, ended: float = 573.0
) -> Scenario:
    """Two members; `b` joins again with other metadata, which begins generations 2 and 3.

    The leader's SyncGroup of generation 2, at `came`, overlaps with the second time, which seems to
    be at `rejoined`; its line is at 544. `assigned` is when generation 2 was, by its line, and
    `ended` when the line was printed that the next join phase has.
    """
    scenario = Scenario()
    mark = lambda at, *what: scenario.hints.append(line(at, *what))

    def join(who: str, at: float, answered: float, generation: int, *, early: float = 5.0) -> None:
        metadata = {"a": METADATA[1], "b": METADATA[generation]}
        named = [{"memberId": IDS[one], "groupInstanceId": one, "metadata": metadata[one]}
                 for one in "ab" if who == "a"]  # fmt: skip
        known = IDS[who] if generation > 1 else ""
        join = scenario.join(who, at, answered, generation=generation, known=known)
        scenario.change(join, members=named)
        protocols = [{"name": "range", "metadata": metadata[who]}]
        request = {**scenario.requests[-1].request, "protocols": protocols}
        scenario.alter_last(request=request, earliest_ms=START + at - early)

    join("a", -500, 501, 1)
    join("b", -480, 501, 1)
    mark(-500, HintKind.PREPARING, "", 0)
    mark(500, HintKind.JOIN_PHASE_ENDED, "", 1)
    scenario.sync("b", 503, 508)
    scenario.sync("a", 505, 508, gives="ab")
    mark(506, HintKind.ASSIGNED, IDS["a"], 1)
    join("b", 510, 521, 2)
    mark(510, HintKind.PREPARING, "", 1)
    scenario.heartbeat("a", 514, REFUSED)
    join("a", 520, 521, 2)
    mark(520, HintKind.JOIN_PHASE_ENDED, "", 2)
    late = scenario.sync("a", came, 562, generation=2, gives="ab")
    scenario.change(late, errorCode=REFUSED, assignment="")
    scenario.alter_last(latest_ms=START + 562.0)
    for at in assigned:
        mark(at, HintKind.ASSIGNED, IDS["a"], 2)
    join("b", rejoined, 575, 3, early=logged_late)
    mark(544, HintKind.PREPARING, "", 2)
    join("a", 570, 575, 3)
    mark(ended, HintKind.JOIN_PHASE_ENDED, "", 3)
    for who in "ab":
        scenario.sync(who, 580, 584, generation=3, gives="ab" if who == "a" else "")
    mark(581, HintKind.ASSIGNED, IDS["a"], 3)
    return scenario


@pytest.mark.parametrize("ended", [573.0, 643.0], ids=["in time", "printed late"])
@pytest.mark.parametrize(("rejoined", "logged_late"), [(546.0, 10.0), (566.0, 27.0)])
def test_a_line_that_strays_lets_no_other_be_missing(
    rejoined: float, logged_late: float, ended: float
) -> None:
    """A machine that prints one line late may still not have received an assignment in silence."""
    times = {"rejoined": rejoined, "logged_late": logged_late, "ended": ended}
    assert ends(resubscribed(came=546.0, **times).replay()) == [
        "assigned",
        "superseded",
        "assigned",
    ]


@pytest.mark.parametrize("ended", [573.0, 643.0], ids=["in time", "printed late"])
@pytest.mark.parametrize("rejoined", [525.0, 536.0, 546.0, 566.0])
@pytest.mark.parametrize("at", [530.0, 540.0, 543.0])
def test_a_rejoin_that_begins_a_rebalance_comes_at_its_line(
    at: float, rejoined: float, ended: float
) -> None:
    """So an assignment that was received before has been, whatever the times of requests say."""
    late_ms = max(10.0, rejoined - 539.0)
    scenario = resubscribed(at, came=546.0, rejoined=rejoined, logged_late=late_ms, ended=ended)
    for begun in (510, 544):
        scenario.hints.append(line(begun, HintKind.REJOINED, IDS["b"]))
    assert ends(scenario.replay()) == ["assigned", "assigned", "assigned"]


@pytest.mark.parametrize("kind", [HintKind.PREPARING, HintKind.JOIN_PHASE_ENDED, HintKind.ASSIGNED])
def test_a_step_without_a_line_is_taken_only_where_nothing_else_explains_the_answers(
    kind: HintKind,
) -> None:
    """The comparison then tells that the line is missing."""
    cause = Candidate(START, START + 10, START + 20, None)
    keys = [(kind, 2)]

    def earliest_ms(*lines: Hint, lines_may: LinesMay = LinesMay.BIND) -> float:
        conditions = Conditions(PROFILE, Tolerance(), hints=Hints.of(lines))
        clock = Clock(START, START + 10, START + 20)
        return keep_to_lines(clock, keys, cause, START + 20, conditions, lines_may)

    of_another = line(5, kind, generation=1)
    assert earliest_ms(of_another) == float("inf")
    assert earliest_ms(of_another, lines_may=LinesMay.STRAY) == float("inf")
    assert earliest_ms(of_another, lines_may=LinesMay.LACK) == float("-inf")
    elsewhere = line(500, kind, generation=2)
    assert earliest_ms(elsewhere) == float("inf")
    assert earliest_ms(elsewhere, lines_may=LinesMay.STRAY) == float("-inf")
    assert earliest_ms(line(5, kind, generation=2)) == START - 10
    assert earliest_ms() == float("-inf"), "a coordinator that writes no such lines"


def test_an_answer_that_only_a_step_without_a_line_explains_is_explained() -> None:
    scenario = forming(came=560.0, answered=562.0)
    scenario.hints = [one for one in scenario.hints if one.generation != 2 or one.subject]
    scenario.hints.append(line(506, HintKind.ASSIGNED, IDS["a"], 1))
    assert ends(scenario.replay()) == ["assigned", "superseded", "assigned"]


@pytest.mark.parametrize(("apart_ms", "explains"), [(57, True), (590, True), (620, False)])
def test_a_step_may_stand_still_between_two_of_its_lines(apart_ms: float, explains: bool) -> None:
    """Seen on 4.3.0: SyncGroups were answered 57 ms after one line and 35 ms before the other."""
    keys = [(HintKind.PENDING_JOINED, "b"), (HintKind.PREPARING, 1)]
    lines = (
        line(10, HintKind.PENDING_JOINED, "b"),
        line(10 + apart_ms, HintKind.PREPARING, generation=1),
    )
    conditions = Conditions(PROFILE, Tolerance(), hints=Hints.of(lines))
    cause = Candidate(START, START + 10, START + 20, None)
    clock = Clock(START, START + 10, START + 20)
    found = keep_to_lines(clock, keys, cause, START + 20, conditions, LinesMay.BIND)
    assert found == (START - 5 if explains else float("inf"))
