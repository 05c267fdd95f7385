"""Of orders that all explain every answer, the coordinator's own lines decide."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Hint, HintKind, Replay, Tolerance
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.clock import Clock
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.hints import Hints, Key
from reference_coordinator.replay.line_instants import LinesMay, keep_to_lines
from tests.reference_coordinator.replay.conftest import (
    IDS,
    PROFILE,
    START,
    Scenario,
    listed,
    stable,
)

REFUSED = Error.REBALANCE_IN_PROGRESS
METADATA = {1: "bQ==", 2: "Yg==", 3: "Yw=="}
"""What `b` subscribes to in each generation, where it subscribes anew."""


def line(at: float, kind: HintKind, subject: str = "", generation: int = -1) -> Hint:
    return Hint(START + at, kind, subject, generation)


def ends(scenario: Scenario) -> list[str]:
    outcome: Replay = scenario.replay()
    assert not outcome.violations
    return [row.ended_as for row in outcome.rows]


def refused_sync(scenario: Scenario, came: float, before: float = 5.0) -> None:
    """The leader's SyncGroup of generation 2 is refused, as the next one begins.

    It would be refused before and after that. Whether there is a line that it was received tells.
    """
    scenario.sync(
        "a", came, 562, generation=2, gives="ab", error=REFUSED, before=before, latest=562
    )


def forming(*assigned: Hint, came: float) -> Scenario:
    """Three members join one after the other within 50 ms; two generations end unassigned or not.

    The third member's JoinGroup, at 544, overlaps with the leader's SyncGroup of generation 2.
    """
    scenario = Scenario(hints=list(assigned))
    scenario.join("a", 0, 501, members="a")
    scenario.sync("a", 505, 508, gives="a")
    scenario.join("b", 510, 521, generation=2)
    scenario.heartbeat("a", 514, REFUSED)
    scenario.join("a", 520, 521, generation=2, known=IDS["a"], members="ab")
    refused_sync(scenario, came)
    scenario.join("c", 544, 575, generation=3)
    scenario.join("a", 570, 575, generation=3, known=IDS["a"], members="abc")
    scenario.join("b", 572, 575, generation=3, known=IDS["b"])
    for who in "abc":
        scenario.sync(who, 580, 584, generation=3, gives="abc" if who == "a" else "")
    for who, at, generation in (("a", 0, 0), ("b", 510, 1), ("c", 544, 2)):
        scenario.hints.append(line(at, HintKind.JOINED, IDS[who]))
        scenario.hints.append(line(at, HintKind.PREPARING, generation=generation))
    for generation, at in ((1, 500), (2, 520), (3, 573)):
        scenario.hints.append(line(at, HintKind.JOIN_PHASE_ENDED, generation=generation))
    scenario.hints.append(line(581, HintKind.ASSIGNED, IDS["a"], 3))
    return scenario


@pytest.mark.parametrize("leader", ["a", ""])
@pytest.mark.parametrize("came", [546.0, 552.0, 560.0])
def test_a_leader_s_line_is_that_of_its_own_generation(leader: str, came: float) -> None:
    """Seen on 3.9.1 at a load of 20: generation 1 was assigned 31 ms before this SyncGroup."""
    of_1 = line(506, HintKind.ASSIGNED, IDS.get(leader, ""), 1)
    assert ends(forming(of_1, came=came)) == ["assigned", "superseded", "assigned"]


@pytest.mark.parametrize("leader", ["a", ""])
@pytest.mark.parametrize("at", [530.0, 540.0])
def test_an_assignment_with_a_line_was_received(leader: str, at: float) -> None:
    """The answer is the same, as the next member comes before the assignment is stored."""
    lines = [
        line(when, HintKind.ASSIGNED, IDS.get(leader, ""), generation)
        for when, generation in ((506, 1), (at, 2))
    ]
    for came in (at, 546.0, 552.0):
        assert ends(forming(*lines, came=came)) == ["assigned", "assigned", "assigned"]


def test_an_answer_that_only_a_step_without_a_line_explains_is_explained() -> None:
    scenario = forming(line(506, HintKind.ASSIGNED, IDS["a"], 1), came=560.0)
    scenario.hints = [one for one in scenario.hints if one.generation != 2]
    assert ends(scenario) == ["assigned", "superseded", "assigned"]


def resubscribed(*assigned: float, rejoined: float, logged_late: float, ended: float) -> Scenario:
    """Two members; `b` joins again with other metadata, which begins generations 2 and 3.

    The leader's SyncGroup of generation 2, at 546, overlaps with the second time, which seems to
    be at `rejoined`; its line is at 544. `assigned` is when generation 2 was, by its line, and
    `ended` when the line was printed that the next join phase has.
    """
    scenario = Scenario()

    def join(who: str, at: float, answered: float, generation: int, before: float = 5.0) -> None:
        known = IDS[who] if generation > 1 else ""
        join = scenario.join(who, at, answered, generation=generation, known=known, before=before)
        metadata = {"a": METADATA[1], "b": METADATA[generation]}
        if who == "a":
            named = [
                {"memberId": IDS[one], "groupInstanceId": one, "metadata": metadata[one]}
                for one in "ab"
            ]
            scenario.change(join, members=named)
        protocols = [{"name": "range", "metadata": metadata[who]}]
        scenario.alter_last(request={**scenario.requests[-1].request, "protocols": protocols})

    join("a", -500, 501, 1)
    join("b", -480, 501, 1)
    scenario.sync("b", 503, 508)
    scenario.sync("a", 505, 508, gives="ab")
    join("b", 510, 521, 2)
    scenario.heartbeat("a", 514, REFUSED)
    join("a", 520, 521, 2)
    refused_sync(scenario, 546)
    join("b", rejoined, 575, 3, before=logged_late)
    join("a", 570, 575, 3)
    for who in "ab":
        scenario.sync(who, 580, 584, generation=3, gives="ab" if who == "a" else "")
    for at, generation in ((-500, 0), (510, 1), (544, 2)):
        scenario.hints.append(line(at, HintKind.PREPARING, "", generation))
    for at, generation in ((500, 1), (520, 2), (ended, 3)):
        scenario.hints.append(line(at, HintKind.JOIN_PHASE_ENDED, "", generation))
    for at, generation in ((506, 1), *((at, 2) for at in assigned), (581, 3)):
        scenario.hints.append(line(at, HintKind.ASSIGNED, IDS["a"], generation))
    return scenario


@pytest.mark.parametrize("ended", [573.0, 643.0], ids=["in time", "printed late"])
class TestRejoin:
    @pytest.mark.parametrize(("rejoined", "logged_late"), [(546.0, 10.0), (566.0, 27.0)])
    def test_a_line_that_strays_lets_no_other_be_missing(
        self, rejoined: float, logged_late: float, ended: float
    ) -> None:
        """A machine that prints a line late may still not have received an assignment silently."""
        scenario = resubscribed(rejoined=rejoined, logged_late=logged_late, ended=ended)
        assert ends(scenario) == ["assigned", "superseded", "assigned"]

    @pytest.mark.parametrize("rejoined", [525.0, 536.0, 546.0, 566.0])
    def test_one_that_begins_a_rebalance_comes_at_its_line(
        self, rejoined: float, ended: float
    ) -> None:
        """So an assignment that was received before has been, whatever requests' times say."""
        late_ms = max(10.0, rejoined - 539.0)
        for at in (530.0, 540.0, 543.0):
            scenario = resubscribed(at, rejoined=rejoined, logged_late=late_ms, ended=ended)
            for begun in (510, 544):
                scenario.hints.append(line(begun, HintKind.REJOINED, IDS["b"]))
            assert ends(scenario) == ["assigned", "assigned", "assigned"], at


def earliest(keys: list[Key], *lines: Hint, lines_may: LinesMay = LinesMay.BIND) -> float:
    """Return from when on, after START, a step at 10 may have happened; 20 is its latest."""
    conditions = Conditions(PROFILE, Tolerance(), hints=Hints.of(lines))
    clock = Clock(START, START + 10, START + 20)
    cause = Candidate(START, START + 10, START + 20, None)
    return keep_to_lines(clock, keys, cause, START + 20, conditions, lines_may) - START


@pytest.mark.parametrize("kind", [HintKind.PREPARING, HintKind.JOIN_PHASE_ENDED, HintKind.ASSIGNED])
@pytest.mark.parametrize(
    ("at", "generation", "bind", "stray", "lack"),
    [
        (5, 1, "never", "never", "any"),  # of another generation
        (500, 2, "never", "any", "any"),
        (5, 2, "line", "line", "line"),
    ],
)
def test_a_step_without_a_line_is_taken_only_where_nothing_else_explains_the_answers(
    kind: HintKind, at: float, generation: int, bind: str, stray: str, lack: str
) -> None:
    """The comparison then tells that the line is missing."""
    from_ms = {"never": float("inf"), "any": float("-inf"), "line": -10}
    for lines_may, shown in ((LinesMay.BIND, bind), (LinesMay.STRAY, stray), (LinesMay.LACK, lack)):
        one = line(at, kind, generation=generation)
        assert earliest([(kind, 2)], one, lines_may=lines_may) == from_ms[shown]
    assert earliest([(kind, 2)]) == float("-inf"), "a coordinator that writes no such lines"


@pytest.mark.parametrize(("apart_ms", "from_ms"), [(57, -5), (590, -5), (620, float("inf"))])
def test_a_step_may_stand_still_between_two_of_its_lines(apart_ms: float, from_ms: float) -> None:
    """Seen on 4.3.0: SyncGroups were answered 57 ms after one line and 35 ms before the other."""
    lines = (
        line(10, HintKind.PENDING_JOINED, "b"),
        line(10 + apart_ms, HintKind.PREPARING, generation=1),
    )
    assert earliest([(HintKind.PENDING_JOINED, "b"), (HintKind.PREPARING, 1)], *lines) == from_ms


@pytest.mark.parametrize("first", ["a", "b"])
def test_the_line_of_a_rebalance_names_who_rejoined_first(first: str) -> None:
    """Seen on 4.3.0 at a load of 9: each of two that rejoin may begin it, and both were in time."""
    scenario = stable()
    anew = [{"name": "range", "metadata": METADATA[2]}]
    for who, at in (("a", 1_605.0), ("b", 1_604.0)):
        scenario.join(who, at, 1_650, generation=2, known=IDS[who], before=40, latest=1_640)
        scenario.alter_last(request={**scenario.requests[-1].request, "protocols": anew})
    members = [{**member, "metadata": METADATA[2]} for member in listed("a", "b")]
    scenario.change("JOIN_GROUP:a:1605", members=members)
    other = {"a": 1_604.0, "b": 1_605.0}[first]
    for kind, about in ((HintKind.PREPARING, ""), (HintKind.REJOINED, IDS[first])):
        scenario.hints.append(line(other + 2, kind, about, 1))
    scenario.hints.append(line(1_649, HintKind.JOIN_PHASE_ENDED, "", 2))
    outcome = scenario.replay()
    assert not outcome.violations
    assert outcome.rows[-1].member_id == IDS[first]
