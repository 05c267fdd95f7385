"""The lines of each small input of `tests/recorded/incidents`: what its kind is read as."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from reports.incident.lines.form import Form, recognised
from reports.incident.lines.reader import Line, Read, Reader, SplitSummary

INCIDENTS = Path(__file__).parents[3] / "recorded" / "incidents"
AT_MS = 1_767_607_200_000.0
"""2026-01-05 10:00:00 in UTC."""
REBALANCE = [(0.0, "preparing"), (3_000.0, "stabilized"), (3_010.0, "assignment")]


def read(name: str) -> tuple[Form, list[Read], SplitSummary]:
    texts = (INCIDENTS / name).read_bytes().decode("utf-8", "replace").rstrip("\n\0").split("\n")
    form = recognised(texts)
    reader = Reader(form, ZoneInfo("UTC"))
    return form, [reader.read(text) for text in texts], reader.summary()


def lines_of(name: str) -> list[Line]:
    return [line for one in read(name)[1] for line in one.lines]


@pytest.mark.parametrize("name", [
    "01", "02", "03", "05", "09", "17", "17-console-csv", "23", "40", "45", "47", "padded-level",
    "thread-before-message", "utf16",
])  # fmt: skip
def test_a_rebalance_of_three_seconds_in_any_form(name: str) -> None:
    lines = lines_of(f"{name}.log")
    assert [(line.at_ms - AT_MS, line.template) for line in lines] == REBALANCE
    assert {(line.broker, line.group) for line in lines} == {("1", "g1")}
    preparing, stabilized, _ = lines
    assert (preparing.fields["reason"], preparing.fields["generation"]) == ("new_member", "4")
    assert stabilized.fields["generation"] == "5"
    assert stabilized.text == (
        "[GroupCoordinator 1]: Stabilized group g1 generation 5 (__consumer_offsets-49)"
        " with 2 members"
    )


def test_times_to_the_second_are_said() -> None:
    form, reads, _ = read("strimzi-kafka4.log")
    assert form.sentence() == "Strimzi's pattern (Kafka 4), times to the second"
    found = [(line.at_ms - AT_MS, line.template) for one in reads for line in one.lines]
    assert found == [(0.0, "preparing"), (3_000.0, "stabilized"), (3_000.0, "assignment")]


def test_time_and_logger_in_fields_of_json() -> None:
    form, _, _ = read("json-layout.log")
    assert form.name == "JSON (Elastic Common Schema)"
    found = [(line.at_ms - AT_MS, line.template) for line in lines_of("json-layout.log")]
    assert found == REBALANCE[:2]


def test_two_files_of_one_container_have_one_source() -> None:
    both = [*lines_of("01-two-a.log"), *lines_of("01-two-b.log")]
    assert {line.source for line in both} == {"kafka-1"}


def test_a_clock_that_goes_back_behind_a_prefix() -> None:
    assert read("41.log")[2].back_ms == 3_603_010.0


def test_refused_lines_say_why() -> None:
    _, [no_time], _ = read("20.log")
    assert (no_time.status, no_time.lines) == ("rejected", [])
    assert "without a time" in no_time.why
    _, [other], seen = read("29.log")
    assert (other.status, seen.others) == ("rejected", {"g848": "consumer"})
    assert "g848" in other.why
    _, reads, seen = read("40-client.log")
    assert ({one.status for one in reads}, seen.client) == ({"irrelevant"}, 2)


def test_a_fenced_line_without_a_prefix_is_used() -> None:
    _, reads, _ = read("fenced-tail.log")
    assert [one.status for one in reads] == ["used", "used"]
    assert [line.template for one in reads for line in one.lines] == ["group_loaded", "fenced"]
