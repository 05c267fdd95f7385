"""Reading of event files; a malformed line is an error with its number."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reference_coordinator.event_files.reading import EventFileError, read
from reference_coordinator.replay import replay
from tests.reference_coordinator.event_files.event_lines import end, header, of_scenario, one
from tests.reference_coordinator.replay.conftest import PROFILE, stable

Change = Callable[[list[dict[str, Any]]], object]
FIRST = 1
"""The first request's place in a file: a JoinGroup v5 of `a`, which leads."""
SYNC = 3


@pytest.fixture
def lines() -> list[str]:
    return of_scenario(stable())


def refusal(lines: list[str]) -> str:
    """Return what is said of a file that is not of the form."""
    with pytest.raises(EventFileError) as raised:
        list(read(lines, "some.jsonl"))
    return str(raised.value)


def test_a_sequence_is_read_as_it_was_written_down(lines: list[str]) -> None:
    sequence = one(lines)
    assert (sequence.group, sequence.kafka, sequence.coordinator) == ("g", "4.3.0", "java")
    assert sequence.settings.initial_rebalance_delay_ms == 500
    assert [seen.client_id for seen in sequence.requests] == ["a", "b", "b", "a"]
    first = sequence.requests[0]
    times_ms = first.earliest_ms, first.at_ms, first.latest_ms, first.answered_ms
    assert times_ms == (0, 0, 1001, 1001)
    assert sequence.places[first.id] == 2
    assert sequence.text(first.id) == lines[1]
    assert replay(sequence.evidence, PROFILE).violations == ()


def test_a_file_may_hold_several_sequences(lines: list[str]) -> None:
    again = [json.dumps(json.loads(lines[0]) | {"sequence": 1}), *lines[1:]]
    first, second = read([*lines, *again], "some.jsonl")
    assert (first.number, first.line) == (0, 1)
    assert (second.number, second.line) == (1, len(lines) + 1)
    assert second.places[second.requests[0].id] == len(lines) + 2


def test_a_request_may_have_no_answer(lines: list[str]) -> None:
    line = json.loads(lines[SYNC])
    del line["response"], line["answered_at_ms"]
    lines[SYNC] = json.dumps(line)
    seen = one(lines).requests[SYNC - 1]
    assert seen.response is None
    assert seen.answered_ms == float("inf")


def altered(lines: list[str], change: Change) -> list[str]:
    """Change a file's lines as the objects that they hold."""
    parsed = [json.loads(line) for line in lines]
    change(parsed)
    return [json.dumps(line) for line in parsed]


def drop(*keys: str) -> Change:
    """Take a key out of the first request's line; `a.b` is inside of `a`."""
    *path, last = keys

    def dropped(lines: list[dict[str, Any]]) -> None:
        place: Any = lines[FIRST]
        for key in path:
            place = place[key]
        del place[last]

    return dropped


def put(value: Any, *keys: Any, at: int = FIRST) -> Change:
    """Write another value into a line."""
    *path, last = keys

    def written(lines: list[dict[str, Any]]) -> None:
        place: Any = lines[at]
        for key in path:
            place = place[key]
        place[last] = value

    return written


METADATA = ("request", "protocols", 0, "metadata")


def logged(**changes: Any) -> dict[str, Any]:
    complete = {"broker": "1", "earliest_ms": 0, "latest_ms": 9, "serial": 1}
    return {key: value for key, value in (complete | changes).items() if value is not None}


HINT = {"at_ms": 1, "kind": "left", "subject": "a", "generation": -1, "broker": ""}


LOGGED_TIMES = {
    "hints": HINT,
    "servings": {"at_ms": 1, "broker": "1", "kind": "loaded", "earliest_ms": 1, "latest_ms": 1},
    "stalls": {"broker": "1", "from_ms": 1, "until_ms": 2},
    "partings": {"broker": "1", "earliest_ms": 1, "from_ms": 1, "healed_ms": 2, "until_ms": 3},
}
"""What brokers logged: each of its times is a number from 0 on."""


@pytest.mark.parametrize(
    ("change", "number", "words"),
    [
        (put("groupquake-events/2", "format", at=0), 1, "format is 'groupquake-events/2'"),
        (put("rust", "coordinator", at=0), 1, "coordinator is 'rust'; it is one of java, scala"),
        (put(["a"], "config", at=0), 1, "Expected `object`, got `array` - at `$.config`"),
        (put({"group.max.size": "many"}, "config", at=0), 1, "config: "),
        (put({"group.max.size": -1}, "config", at=0), 1, "config: a setting of a group"),
        (put(True, "sequence", at=0), 1, "Expected `int`, got `bool` - at `$.sequence`"),
        (drop("at_ms"), 2, "required field `at_ms`"),
        (drop("client_host"), 2, "required field `client_host`"),
        (drop("connection"), 2, "required field `connection`"),
        (drop("request"), 2, "required field `request`"),
        (put("12", "at_ms"), 2, "Expected `float`, got `str` - at `$.at_ms`"),
        (put(-0.5, "at_ms"), 2, "Expected `float` >= 0.0 - at `$.at_ms`"),
        (put(10**400, "at_ms"), 2, "Number out of range - at `$.at_ms`"),
        (put(5_000, "at_ms"), 2, "answered at 1001 ms, before it was sent at 5000 ms"),
        (put(7.0, "at_ms", at=SYNC), 4, "sent at 7 ms, before the request above it"),
        (put(2_000, "api_version"), 2, "Expected `int` <= 999 - at `$.api_version`"),
        (put(-1, "api_version"), 2, "Expected `int` >= 0 - at `$.api_version`"),
        (put(5.0, "api_version"), 2, "Expected `int`, got `float` - at `$.api_version`"),
        (put("SHARE_GROUP", "api"), 2, "the api 'SHARE_GROUP' is none of JOIN_GROUP"),
        (drop("answered_at_ms"), 2, "response stands there, but no answered_at_ms"),
        (drop("response"), 2, "answered_at_ms stands there, but no response"),
        (put(None, "response"), 2, "Expected `object`, got `null` - at `$.response`"),
        (put("JOIN_GROUP:a:0", "id", at=SYNC), 4, "id 'JOIN_GROUP:a:0' stands at line 2 already"),
        (put("other", "request", "groupId"), 2, "the request is about 'other'; this is group 'g'"),
        (drop("request", "memberId"), 2, "request of JOIN_GROUP: Object missing"),
        (drop("request", "groupInstanceId"), 2, "missing required field `groupInstanceId`"),
        (put("3000", "request", "sessionTimeoutMs"), 2, "got `str` - at `$.sessionTimeoutMs`"),
        (put(2**63, "request", "sessionTimeoutMs"), 2, "at `$.sessionTimeoutMs`"),
        (put(7, "request", "protocols", 0), 2, "got `int` - at `$.protocols[0]`"),
        (put("?", *METADATA), 2, "base64 - at `$.protocols[0].metadata`"),
        (put("(x bytes)", *METADATA), 2, "Expected base64 - at "),
        (drop("response", "generationId"), 2, "response of JOIN_GROUP: Object missing"),
        (put("0", "response", "errorCode"), 2, "Expected `int`, got `str` - at `$.errorCode`"),
        (drop("response", "members", 1, "memberId"), 2, "`memberId` - at `$.members[1]`"),
        (put(False, "end", at=-1), 6, "end is not true"),
        (put(1_000, "at_ms", at=-1), 6, "the end at 1000 ms is before the last that happened"),
        # what brokers logged
        (put([], "logged", at=0), 1, "at `$.logged`"),
        (put({"hints": 5}, "logged", at=0), 1, "Expected `array`, got `int` - at `$.logged.hints`"),
        (put({"stalls": [5]}, "logged", at=0), 1,
         "Expected `object`, got `int` - at `$.logged.stalls[0]`"),
        (put({"servings": [{"at_ms": 1}]}, "logged", at=0), 1, "field `broker`"),
        (put({"hints": [HINT | {"kind": "gone"}]}, "logged", at=0), 1,
         "Invalid enum value 'gone' - at `$.logged.hints[0].kind`"),
        (put(5, "outages", at=0), 1, "got `int` - at `$.outages`"),
        (put([[1, 2, 3]], "outages", at=0), 1, "Expected `array` of length 2"),
        (put([[1, "2"]], "outages", at=0), 1, "Expected `float`, got `str` - at `$.outages[0][1]`"),
        (put([[5, 1]], "outages", at=0), 1, "outages: one from 5 ms ends before, at 1 ms"),
        (put(5, "logged"), 2, "Expected `object`, got `int` - at `$.logged`"),
        (put(logged(broker=None), "logged"), 2, "required field `broker`"),
        (put(logged(serial="1"), "logged"), 2, "got `str` - at `$.logged.serial`"),
        (put(logged(earliest_ms=1), "logged"), 2, "at_ms is not from logged.earliest_ms"),
        (put(logged(taken_ms=-1), "logged"), 2, ">= 0.0 - at `$.logged.taken_ms`"),
        *(
            (put({kind: [whole | {time: value}]}, "logged", at=0), 1,
             f"{what} - at `$.logged.{kind}[0].{time}`")
            for kind, whole in LOGGED_TIMES.items() for time in whole if time.endswith("_ms")
            for value, what in ((-1, ">= 0.0"), (2e15, "<= 1000000000000000.0"))
        ),
        (put(-1, "at_ms", at=-1), 6, "Expected `float` >= 0.0 - at `$.at_ms`"),
    ],
)  # fmt: skip
def test_a_malformed_line_is_an_error(
    change: Change, number: int, words: str, lines: list[str]
) -> None:
    said = refusal(altered(lines, change))
    assert said.startswith(f"some.jsonl:{number}: ")
    assert words in said


@pytest.mark.parametrize(
    "change",
    [
        put("4.3", "kafkas", at=0),
        put({"hints": [HINT], "more": 1}, "logged", at=0),
        put([[1, 2]], "outages", at=0),
        put(logged(), "logged"),
    ],
    ids=["other keys of a header", "hints and other keys", "outages", "a request's place"],
)  # fmt: skip
def test_what_may_stand_there(change: Change, lines: list[str]) -> None:
    assert replay(one(altered(lines, change)).evidence, PROFILE).violations == ()


def test_a_line_may_say_only_how_many_bytes_there_were(lines: list[str]) -> None:
    first = one(altered(lines, put("(39 bytes)", *METADATA))).requests[0]
    assert first.request["protocols"][0]["metadata"] == "(39 bytes)"


def test_a_field_is_needed_in_its_versions_alone(lines: list[str]) -> None:
    """The instance id came with JoinGroup v5, the rebalance timeout with v1."""
    join = json.loads(lines[FIRST])
    del join["request"]["groupInstanceId"], join["request"]["rebalanceTimeoutMs"]
    for member in join["response"]["members"]:
        del member["groupInstanceId"]
    lines[FIRST] = json.dumps(join | {"api_version": 0})
    assert one(lines).requests[0].api_version == 0
    lines[FIRST] = json.dumps(join | {"api_version": 1})
    assert "missing required field `rebalanceTimeoutMs`" in refusal(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"at_ms": 1,', "no JSON"),
        ("", "no JSON"),
        ("[1, 2]", "Expected `object`, got `array`"),
        ('{"at_ms": NaN}', "no JSON: "),
        ("[" * 100_000, "Expected `object`"),
        ('{"id": "\\ud800"}', "no JSON: "),
    ],
)
def test_text_that_is_not_json_is_an_error(text: str, words: str, lines: list[str]) -> None:
    lines[2] = text
    assert refusal(lines).startswith("some.jsonl:3: ")
    assert words in refusal(lines)


def test_the_example_of_the_documentation_is_of_the_form() -> None:
    page = Path(__file__).parents[3] / "docs" / "event-files.md"
    example = page.read_text(encoding="utf-8").split("```")[1].strip()
    assert len(one(example.splitlines()).requests) == 1


def test_a_number_may_be_too_large_for_anything(lines: list[str]) -> None:
    lines[0] = header(config={"group.max.size": 7}).replace("7", "1e999")
    assert "some.jsonl:1: Number out of range - at `$.config" in refusal(lines)


@pytest.mark.parametrize("place", [FIRST, -1])
def test_a_line_before_the_header_is_an_error(place: int, lines: list[str]) -> None:
    what = "a request" if place == FIRST else "an end"
    assert f"some.jsonl:1: {what} before a header" in refusal([lines[place]])
    assert f"some.jsonl:7: {what} before a header" in refusal([*lines, lines[place]])


def test_a_sequence_without_its_end_is_an_error(lines: list[str]) -> None:
    cut = lines[:-1]
    assert "some.jsonl:5: the file ends, and the sequence that begins at line 1" in refusal(cut)
    assert "some.jsonl:6: a header, and the sequence that begins at line 1" in refusal(
        [*cut, *lines]
    )


def test_an_empty_file_is_an_error() -> None:
    assert refusal([]) == "some.jsonl:1: the file is empty"


def test_an_empty_sequence_is_explained() -> None:
    assert replay(one([header(), end(10)]).evidence, PROFILE).violations == ()
