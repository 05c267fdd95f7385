"""Altered evidence: a real log changed in one place gives that place as the one root.

Where evidence is missing the verdict is `unknown`; it is never `pass`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_protocol.request_log import COMPLETED
from reports.judgement.recording import Recording
from selftest.mutants.log_synthesis import SynthesizedLine
from tests.recorded.logs import RECORDINGS
from tests.reports.alter import Copy, Log
from tests.reports.conftest import SPLIT_BYTES, Judge, Unaltered, configured, unpacked
from tests.reports.judged_here import judged_here
from tests.reports.synthesized_logs import write_run

pytestmark = pytest.mark.spark

RECORDED = RECORDINGS["kafka-4.3.0"]


def test_unaltered_evidence_passes(unaltered: Unaltered, recording: Recording) -> None:
    folder, verdict = unaltered(recording)
    assert (verdict["verdict"], verdict["findings"], verdict["unknown_because"]) == ("pass", [], [])
    assert verdict["counterexample"] is None
    logs = [log.read_text() for log in folder.glob("brokers/*/group.log")]
    assert set(verdict["groups"]) == set(recording.groups)
    for name, group in verdict["groups"].items():
        grepped = sum(log.count(f'"request":{{"groupId":"{name}"') for log in logs)
        assert group["responses_explained"] == group["responses_checked"] == grepped > 10
    assert verdict["groups"]["static"]["rebalances_observed"]["impact"] == 2
    coverage = verdict["coverage"]
    assert coverage["lines_read"] == sum(len(log.splitlines()) for log in logs)
    assert coverage["lines_read"] == coverage["used"] + coverage["irrelevant"]
    assert coverage["rejected"] == 0


# What may be altered in a group, in a copy of its own each: all of it costs one judgement. Each
# returns the line where the root must stand.

Alteration = Callable[[Copy], SynthesizedLine]
EXPIRED, RETURNED = "removing member static-3", "Adding new member static-3"
PREPARING = "Preparing to rebalance"


def edited(*parts: str, to: str, nth: int = 0) -> Alteration:
    """Replace the last of the parts in the nth line that has them all."""
    return lambda copy: copy.change(copy.find(*parts, nth=nth), parts[-1], to)


def added_rebalance(copy: Copy) -> SynthesizedLine:
    preparing = copy.lines[copy.find(PREPARING, EXPIRED)]
    return copy.insert_after(copy.find("HEARTBEAT", nth=40), preparing.text)


def removed_rebalance(copy: Copy) -> SynthesizedLine:
    preparing = copy.find(PREPARING, RETURNED, after=copy.find(EXPIRED))
    copy.drop(preparing)
    return copy.lines[copy.find("Stabilized", after=preparing - 1)]


def removed_line(copy: Copy) -> SynthesizedLine:
    replaced = copy.find("Replacing previously mapped member static-0")
    copy.drop(replaced)
    lines = [line for line in copy.lines[:replaced] if COMPLETED not in line.text]
    return lines[-1]


def added_line(copy: Copy) -> SynthesizedLine:
    left = copy.find("] Member dynamic-dynamic-1")
    return copy.insert_after(left, copy.lines[left].text)


OLD = "old generation 2"
GIVEN = ('"SYNC_GROUP"', '"assignments":[]', '"errorCode":0')
OTHER_BEAT = edited("HEARTBEAT", '"errorCode":0', to='"errorCode":27', nth=20)
OTHER_JOIN = edited('"JOIN_GROUP"', '"generationId":3,', to='"generationId":4,')
ALTERATIONS: dict[str, tuple[str, str, Alteration]] = {
    "an_added_rebalance": ("static", "unexpected_rebalance", added_rebalance),
    "a_removed_rebalance": ("static", "missing_rebalance", removed_rebalance),
    "an_error_of_a_sync": ("static", "wrong_answer", edited(*GIVEN, to='"errorCode":25')),
    "a_generation_in_an_answer": ("dynamic", "wrong_answer", OTHER_JOIN),
    "an_error_of_a_heartbeat": ("static", "wrong_answer", OTHER_BEAT),
    "an_error_of_a_heartbeat_of_a_dynamic_member": ("dynamic", "wrong_answer", OTHER_BEAT),
    "a_generation": (
        "static", "wrong_generation", edited("Stabilized", "generation 3 ", to="generation 7 "),
    ),
    "an_old_generation": (
        "dynamic", "wrong_generation", edited(PREPARING, OLD, to="old generation 9"),
    ),
    "a_count_of_members": (
        "static", "wrong_members", edited("Stabilized", "with 3 members", to="with 4 members"),
    ),
    "a_rebalance_blamed_on_another_member": (
        "static", "wrong_reason", edited(PREPARING, EXPIRED, to="removing member static-1"),
    ),
    "a_removed_line_about_a_member": ("static", "missing_line", removed_line),
    "an_added_line_about_a_member": ("dynamic", "unexpected_line", added_line),
}  # fmt: skip


@dataclass(frozen=True)
class Altered:
    """One run folder with all alterations, each in a group that goes by its name."""

    folder: Path
    verdict: dict[str, Any]
    places: dict[str, SynthesizedLine]


@pytest.fixture(scope="module")
def altered(judge: Judge, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Altered:
    """Judge all alterations at once; tasks read 50 KB of the logs each."""
    copies = {n: Copy.of(RECORDED, group, n) for n, (group, *_) in ALTERATIONS.items()}
    places = {name: alter(copies[name]) for name, (*_, alter) in ALTERATIONS.items()}
    whole = [Copy.of(RECORDED, group, group).lines for group in RECORDED.groups]
    folder = tmp_path_factory.mktemp("altered") / "run"
    of_no_group = [line for line in RECORDED.lines if line.template == "fenced"]
    fenced = [SynthesizedLine(one.broker, one.process, one.at_ms, one.text) for one in of_no_group]
    write_run(RECORDED, [*whole, fenced, *(copy.lines for copy in copies.values())], folder)
    with configured(spark, {SPLIT_BYTES: "50000"}):
        return Altered(folder, judge(folder), places)


def test_an_altered_place_is_the_one_root_and_other_groups_have_none(altered: Altered) -> None:
    verdict = altered.verdict
    assert (verdict["verdict"], verdict["unknown_because"]) == ("fail", [])
    assert {finding["group"] for finding in verdict["findings"]} == ALTERATIONS.keys()
    for name, (_, kind, _) in ALTERATIONS.items():
        (root,) = [f for f in verdict["findings"] if f["group"] == name and f["root"]]
        place = altered.places[name]
        assert (root["proven"], root["kind"]) == (True, kind), name
        assert root["log"]["file"] == f"brokers/{place.broker}/group.log"
        lines = (altered.folder / root["log"]["file"]).read_text().splitlines()
        assert lines[root["log"]["line"] - 1].endswith(f" {place.text}"), name


def test_a_failed_run_leaves_its_counterexample(altered: Altered) -> None:
    entry = altered.verdict["counterexample"]
    name = entry["group"]
    assert ALTERATIONS[name][1] == "wrong_answer"
    place = altered.places[name]
    (root,) = (f for f in altered.verdict["findings"] if f["group"] == name and f["root"])
    assert entry["request"] == f"{place.broker}:{root['log']['line']}"
    assert entry["left_out"] > entry["requests"]
    for file in entry["files"]:
        assert (altered.folder / file).exists()
    assert entry["files"][0] in (altered.folder / "report.html").read_text()


def test_lines_that_no_template_matches_are_doubts(recorded: Path) -> None:
    log = Log.of(recorded, "static")
    garbled = [
        log.find(text, nth=2)
        for text in ('"HEARTBEAT"', '"JOIN_GROUP"', "Preparing to rebalance group static")
    ]
    for index in garbled:
        log.lines[index] = log.lines[index][: len(log.lines[index]) // 2] + "\x00\x7f###"
    twice = log.find('"groupId":"static"', '"HEARTBEAT"', nth=30)
    log.lines.insert(twice, log.lines[twice])
    log.save()
    verdict = judged_here(recorded)
    assert verdict["verdict"] == "unknown"
    assert verdict["coverage"]["rejected"] == len(garbled) + 1
    for index in (*(i + (i > twice) for i in garbled), twice + 1):
        place = f"{log.name}:{index + 1}: line not"
        assert any(place in why for why in verdict["unknown_because"])


def test_a_whole_log_that_is_gone(recorded: Path) -> None:
    """Also the log of a coordinator whose partition another broker takes over."""
    for broker in (1, 2, 3):
        log = recorded / f"brokers/{broker}/group.log"
        aside = log.rename(recorded / "aside")
        verdict = judged_here(recorded)
        assert verdict["verdict"] == "unknown"
        missing = f"evidence is missing: brokers/{broker}/group.log: the whole log is missing"
        assert missing in verdict["unknown_because"]
        aside.rename(log)


@pytest.mark.parametrize(
    ("left", "why"),
    [
        (lambda lines, middle: lines[:middle], "end is missing"),
        (lambda lines, middle: lines[middle:], "start is"),
        (lambda lines, middle: [*lines[:middle], *lines[middle + 1 :]], "1 lines missing"),
    ],
    ids=["the second half", "the first half", "one line"],
)
def test_lines_that_are_gone(
    left: Callable[[list[str], int], list[str]], why: str, recorded: Path
) -> None:
    log = Log.of(recorded, "static")
    log.lines = left(log.lines, len(log.lines) // 2)
    log.save()
    verdict = judged_here(recorded)
    assert verdict["verdict"] == "unknown"
    assert any(why in reason for reason in verdict["unknown_because"])


@pytest.mark.parametrize(("removed", "expected"), [(0, "pass"), (3, "unknown")])
def test_offsets_that_were_deleted_without_a_request(
    removed: int, expected: str, tmp_path: Path
) -> None:
    """What members commit afterwards may be lower; the line names no group."""
    folder = unpacked(RECORDINGS["kafka-3.9.1-scala"], tmp_path / "run")
    log = Log.of(folder, "static")
    at = log.find("Stabilized group static ")
    manager = "GroupMetadataManager"
    before = log.lines[at].partition(" INFO ")[0]
    text = f"[{manager} brokerId={log.path.parent.name}] Removed {removed} expired offsets in 1"
    line = f"{before} INFO {text} milliseconds. (kafka.coordinator.group.{manager})"
    log.lines.insert(at + 1, line)
    log.save()
    verdict = judged_here(folder)
    assert verdict["verdict"] == expected, verdict["unknown_because"]
    deleted = "a group or its offsets may have been deleted"
    assert [deleted in why for why in verdict["unknown_because"]] == [True] * (removed > 0)
