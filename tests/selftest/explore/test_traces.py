"""`explore --traces` and `--play`: traces have the form of ITF, and real brokers play them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from groupquake.fuzz.coverage import flips
from reference_coordinator.classic.events import TimerFired
from reference_coordinator.classic.releases import PROFILES
from reference_coordinator.classic.step import step
from selftest.explore.coverage import recorded_pairs
from selftest.explore.play import can_be_played
from selftest.explore.scene import Stepped
from selftest.explore.scopes import scopes
from selftest.explore.trace import VARS, Trace
from tests.groupquake.conftest import Command

FORMS = {"#bigint": str, "#tup": list, "#set": list, "#map": list}
"""What ADR 015 of Apalache has beside strings, lists and records; Quint has no plain numbers."""
LOST = "id_stays: a live process's id is replaced by a failover"
SPARED = "static_stays: removed by the sync timer"
SPARES = "sync_timer_spares_statics=true: Stable -> PreparingRebalance by sync timer"
FAILED = "id_stays: a live process's id is replaced by a write that failed"


def problems(value: Any) -> list[str]:
    """Say what of an expression is none of ITF."""
    if isinstance(value, str | bool):
        return []
    if isinstance(value, list):
        return [wrong for each in value for wrong in problems(each)]
    if not isinstance(value, dict):
        return [f"{value!r}"]
    marks = [key for key in value if key.startswith("#")]
    if not marks:
        return [wrong for each in value.values() for wrong in problems(each)]
    (mark,), (inner,) = marks, value.values()
    if not isinstance(inner, FORMS.get(mark, ())):
        return [f"{mark}: {inner!r}"]
    if mark == "#bigint":
        return [] if re.fullmatch("-?[0-9]+", inner) else [inner]
    if mark == "#map" and not all(isinstance(pair, list) and len(pair) == 2 for pair in inner):
        return [f"{mark}: {inner!r}"]
    return problems(inner)


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    """Return all that breaks within three actions of a Stable group, by what breaks."""
    found: dict[str, Trace] = {}
    for scope in scopes(PROFILES["4.3"], 2, 1):
        for what, course in scope.explore(3).broken.items():
            found.setdefault(what, scope.with_heartbeats(course))
    return found


def test_traces_have_the_form_of_itf(traces: dict[str, Trace]) -> None:
    assert {LOST, SPARED, FAILED} <= traces.keys()
    for what, trace in traces.items():
        document = json.loads(json.dumps(trace.itf(what)))
        assert document.keys() == {"#meta", "vars", "states"}
        assert document["#meta"]["description"] == what
        assert document["vars"] == [*VARS]
        assert len(document["states"]) == len(trace.steps) + 1
        for index, state in enumerate(document["states"]):
            assert state.keys() == {"#meta", *VARS}
            assert state["#meta"] == {"index": index}
            assert [wrong for name in VARS for wrong in problems(state[name])] == []
        assert what in [each for state in document["states"] for each in state["breaks"]]


def test_what_is_no_itf_is_seen() -> None:
    wrong = [None, 1, 1.5, {"#bigint": 1}, {"#bigint": "a"}, {"#set": {}}, {"#map": [["k"]]},
             {"#other": []}, {"x": [None]}]  # fmt: skip
    assert all(problems(value) for value in wrong)
    assert not problems({"#map": [["k", {"#set": [True, {"#bigint": "-1"}]}]]})


def test_the_last_heartbeats_show_what_broke(traces: dict[str, Trace]) -> None:
    """A broken invariant is seen on the wire only if somebody asks afterwards."""
    last = lambda what: [
        answer["error"] for s in traces[what].itf(what)["states"][-3:] for answer in s["answers"]
    ]
    assert last(SPARED)[-2:] == ["UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID"]
    assert "FENCED_INSTANCE_ID" in last(LOST)


def test_a_course_in_which_a_write_fails_cannot_be_played(traces: dict[str, Trace]) -> None:
    playable = [what for what, trace in traces.items() if can_be_played(trace.steps)]
    assert {LOST, SPARED} <= {*playable} < {*playable, FAILED}


def test_traces_are_written_of_each_break_and_of_each_pair_that_is_not_recorded(
    command: Command, tmp_path: Path
) -> None:
    done = command("explore", "--profile", "4.3", "--depth", "2", "--traces", "itf", "--json")
    (result,) = json.loads(done.out)
    files = sorted((tmp_path / "itf").glob("4.3-*.itf.json"))
    written = {json.loads(file.read_text())["#meta"]["description"] for file in files}
    assert result["not_recorded"]
    assert written == {each["what"] for each in result["breaks"]} | {*result["not_recorded"]}
    assert len(files) == len(written) < result["pairs"]


def test_a_pair_is_a_step_that_another_value_of_the_rule_changes() -> None:
    """Each step of a course but its last leaves the pair out: the course is the shortest."""
    profile, seen = PROFILES["4.3"], set[str]()
    for scope in scopes(profile, 2, 1):
        for pair, course in scope.explore(2, pairs=seen).pairs.items():
            rule, value = pair.partition(":")[0].split("=")
            [other] = [other for *named, other in flips(profile, but=()) if named == [rule, value]]
            steps = Trace.of(scope.start, course).steps
            last = len(Trace.of(scope.start, course[:-1]).steps)
            differ = [
                step(each.before.group, each.event, other) != (each.after.group, each.effects)
                and pair.endswith(f": {each.before.group.state} -> {each.after.group.state} by "
                                  + named_cause(each))
                for each in steps
            ]  # fmt: skip
            assert any(differ[last:])
            assert not any(differ[:last])
    assert {pair.partition("=")[0] for pair in seen} >= {"every_return_is_stored"}


def named_cause(each: Stepped) -> str:
    if isinstance(each.event, TimerFired):
        return each.cause.removeprefix("the ")
    return type(each.event).__name__.removesuffix("Received")


def test_the_track_record_has_what_its_defects_show() -> None:
    assert SPARES in recorded_pairs(PROFILES["4.3"])
    assert SPARES not in recorded_pairs(PROFILES["kip-345"]), "nor explains it"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--play", "no_such"), "nothing that is found there, and can be played, begins 'no_such'"),
        (("--play", "session_served", "--kafka", "new"), "'new' is no release of Kafka"),
    ],
)
def test_what_cannot_be_played_is_one_line(
    command: Command, more: tuple[str, ...], says: str
) -> None:
    done = command("explore", "--profile", "4.3", "--depth", "2", *more)
    assert done.code == 64
    assert says in done.err
    assert "Traceback" not in done.err


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.parametrize("what", [SPARED, LOST], ids=["a timer", "a failover"])
def test_a_real_broker_does_what_a_trace_has(command: Command, tmp_path: Path, what: str) -> None:
    """The defects `absent-member` and `crash-before-sync`, as the explorer found them."""
    more = ("--play", what, "--kafka", "4.3.0")
    done = command("explore", "--profile", "4.3", "--depth", "3", *more)
    assert done.code == 0, done.out + done.err
    assert f"{what}, by the rules of 4.3" in done.out
    assert (tmp_path / "played-4.3.0" / "events.jsonl").exists()
