"""Altered evidence: a real log changed in one place gives that place as the one root.

Where evidence is missing the verdict is `unknown`; it is never `pass`.
"""

from collections.abc import Callable, Iterator
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
from tests.reports.conftest import COORDINATORS, Judge, unpacked
from tests.reports.judged_here import judged_here
from tests.reports.synthesized_logs import write_run

pytestmark = pytest.mark.spark

RECORDED = RECORDINGS["kafka-4.3.0"]
Unaltered = tuple[Path, dict[str, Any], Recording]
SPLIT = "spark.sql.files.maxPartitionBytes"
FILES = ("verdict.json", "junit.xml", "report.html")


@pytest.fixture(scope="module", params=COORDINATORS)
def unaltered(
    request: pytest.FixtureRequest, judge: Judge, tmp_path_factory: pytest.TempPathFactory
) -> Unaltered:
    recording = RECORDINGS[request.param]
    folder = unpacked(recording, tmp_path_factory.mktemp("unaltered") / "run")
    return folder, judge(folder), recording


def test_unaltered_evidence_passes(unaltered: Unaltered) -> None:
    folder, verdict, recording = unaltered
    assert verdict["findings"] == []
    assert verdict["unknown_because"] == []
    assert verdict["verdict"] == "pass"
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


@pytest.mark.parametrize("unaltered", ["kafka-4.3.0"], indirect=True)
def test_the_same_evidence_gives_the_same_bytes(unaltered: Unaltered, judge: Judge) -> None:
    folder, *_ = unaltered
    first = {name: (folder / name).read_bytes() for name in FILES}
    judge(folder)
    assert first == {name: (folder / name).read_bytes() for name in FILES}


# What may be altered in a group, in a copy of its own each: all of it costs one judgement. Each
# returns the line where the root must stand.

Alteration = Callable[[Copy], SynthesizedLine]
EXPIRED, RETURNED = "removing member static-3", "Adding new member static-3"


def unexpected_rebalance(copy: Copy) -> SynthesizedLine:
    preparing = copy.lines[copy.find("Preparing to rebalance", EXPIRED)]
    return copy.insert_after(copy.find("HEARTBEAT", nth=40), preparing.text)


def missing_rebalance(copy: Copy) -> SynthesizedLine:
    preparing = copy.find("Preparing to rebalance", RETURNED, after=copy.find(EXPIRED))
    copy.drop(preparing)
    return copy.lines[copy.find("Stabilized", after=preparing - 1)]


def wrong_answer_of_a_sync(copy: Copy) -> SynthesizedLine:
    follower = copy.find('"SYNC_GROUP"', '"assignments":[]', '"errorCode":0')
    return copy.change(follower, '"errorCode":0', '"errorCode":25')


def wrong_answer_of_a_join(copy: Copy) -> SynthesizedLine:
    join = copy.find('"JOIN_GROUP"', '"generationId":3,')
    return copy.change(join, '"generationId":3,', '"generationId":4,')


def wrong_answer_of_a_heartbeat(copy: Copy) -> SynthesizedLine:
    heartbeat = copy.find("HEARTBEAT", '"errorCode":0', nth=20)
    return copy.change(heartbeat, '"errorCode":0', '"errorCode":27')


def wrong_generation(copy: Copy) -> SynthesizedLine:
    return copy.change(copy.find("Stabilized", "generation 3 "), "generation 3 ", "generation 7 ")


def wrong_generation_before(copy: Copy) -> SynthesizedLine:
    preparing = copy.find("Preparing to rebalance", "old generation 2")
    return copy.change(preparing, "old generation 2", "old generation 9")


def wrong_members(copy: Copy) -> SynthesizedLine:
    return copy.change(
        copy.find("Stabilized", "with 3 members"), "with 3 members", "with 4 members"
    )


def wrong_reason(copy: Copy) -> SynthesizedLine:
    preparing = copy.find("Preparing to rebalance", EXPIRED)
    return copy.change(preparing, EXPIRED, "removing member static-1")


def missing_line(copy: Copy) -> SynthesizedLine:
    replaced = copy.find("Replacing previously mapped member static-0")
    copy.drop(replaced)
    lines = [line for line in copy.lines[:replaced] if COMPLETED not in line.text]
    return lines[-1]


def unexpected_line(copy: Copy) -> SynthesizedLine:
    left = copy.find("] Member dynamic-dynamic-1")
    return copy.insert_after(left, copy.lines[left].text)


ALTERATIONS: dict[str, tuple[str, Alteration]] = {
    "an_added_rebalance": ("static", unexpected_rebalance),
    "a_removed_rebalance": ("static", missing_rebalance),
    "a_changed_error_of_a_sync": ("static", wrong_answer_of_a_sync),
    "a_changed_generation_in_an_answer": ("dynamic", wrong_answer_of_a_join),
    "a_changed_error_of_a_heartbeat": ("static", wrong_answer_of_a_heartbeat),
    "a_changed_error_of_a_heartbeat_of_a_dynamic_member": ("dynamic", wrong_answer_of_a_heartbeat),
    "a_changed_generation": ("static", wrong_generation),
    "a_changed_old_generation": ("dynamic", wrong_generation_before),
    "a_changed_count_of_members": ("static", wrong_members),
    "a_rebalance_blamed_on_another_member": ("static", wrong_reason),
    "a_removed_line_about_a_member": ("static", missing_line),
    "an_added_line_about_a_member": ("dynamic", unexpected_line),
}


@dataclass(frozen=True)
class Altered:
    """One run folder with all alterations, each in a group that goes by its name."""

    folder: Path
    verdict: dict[str, Any]
    places: dict[str, SynthesizedLine]


@pytest.fixture(scope="module")
def altered(
    judge: Judge,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Altered]:
    """Judge all alterations at once; tasks read 50 KB of the logs each."""
    copies = {n: Copy.of(RECORDED, group, n) for n, (group, _) in ALTERATIONS.items()}
    places = {name: alter(copies[name]) for name, (_, alter) in ALTERATIONS.items()}
    whole = [Copy.of(RECORDED, group, group).lines for group in RECORDED.groups]
    folder = tmp_path_factory.mktemp("altered") / "run"
    fenced = [  # they name no group
        SynthesizedLine(line.broker, line.process, line.at_ms, line.text)
        for line in RECORDED.lines
        if line.template == "fenced"
    ]
    write_run(RECORDED, [*whole, fenced, *(copy.lines for copy in copies.values())], folder)
    as_it_was = spark.conf.get(SPLIT)
    spark.conf.set(SPLIT, "50000")
    try:
        yield Altered(folder, judge(folder), places)
    finally:
        spark.conf.set(SPLIT, as_it_was)


def test_unaltered_groups_have_no_finding(altered: Altered) -> None:
    found = {finding["group"] for finding in altered.verdict["findings"]}
    assert found <= ALTERATIONS.keys()
    assert altered.verdict["unknown_because"] == []


def test_an_altered_place_is_the_one_root(altered: Altered) -> None:
    assert altered.verdict["verdict"] == "fail"
    for name, (_, alteration) in ALTERATIONS.items():
        (root,) = [f for f in altered.verdict["findings"] if f["group"] == name and f["root"]]
        place = altered.places[name]
        assert root["proven"], name
        assert alteration.__name__.startswith(root["kind"]), name
        assert root["log"]["file"] == f"brokers/{place.broker}/group.log"
        lines = (altered.folder / root["log"]["file"]).read_text().splitlines()
        assert lines[root["log"]["line"] - 1].endswith(f" {place.text}"), name


def test_a_failed_run_leaves_its_counterexample(altered: Altered) -> None:
    entry = altered.verdict["counterexample"]
    (name,) = (n for n in ALTERATIONS if n == entry["group"])
    assert "wrong_answer" in ALTERATIONS[name][1].__name__
    place = altered.places[name]
    (root,) = (f for f in altered.verdict["findings"] if f["group"] == name and f["root"])
    assert entry["request"] == f"{place.broker}:{root['log']['line']}"
    assert entry["left_out"] > entry["requests"]
    for file in entry["files"]:
        assert (altered.folder / file).exists()
    assert entry["files"][0] in (altered.folder / "report.html").read_text()


def test_lines_that_no_template_matches_are_doubts(recorded: Path, judge: Judge) -> None:
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
    verdict = judge(recorded)
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


def test_a_line_that_is_gone(recorded: Path) -> None:
    log = Log.of(recorded, "static")
    del log.lines[log.find("Preparing to rebalance group static", "old generation 2")]
    log.save()
    verdict = judged_here(recorded)
    assert verdict["verdict"] == "unknown"
    assert any("1 lines missing" in why for why in verdict["unknown_because"])


@pytest.mark.parametrize(("half", "why"), [("first", "end is missing"), ("second", "start is")])
def test_half_a_file(half: str, why: str, recorded: Path) -> None:
    log = Log.of(recorded, "static")
    middle = len(log.lines) // 2
    log.lines = log.lines[:middle] if half == "first" else log.lines[middle:]
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
