"""Altered evidence: a real log changed in one place gives that place as the one root.

Where evidence is missing the verdict is `unknown`; it is never `pass`.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.reports.alter import Log
from tests.reports.conftest import Judge

pytestmark = pytest.mark.spark


def the_root(verdict: dict[str, Any]) -> tuple[str, str, int]:
    """Return kind, file and line of the one root of a failed verdict."""
    assert verdict["verdict"] == "fail"
    roots = [finding for finding in verdict["findings"] if finding["root"]]
    assert len(roots) == 1, roots
    return roots[0]["kind"], roots[0]["log"]["file"], roots[0]["log"]["line"]


def at(log: Log, line: int) -> tuple[str, int]:
    return f"brokers/{log.path.parent.name}/group.log", line


def test_unaltered_evidence_passes(recorded: Path, judge: Judge) -> None:
    verdict = judge(recorded)
    assert verdict["findings"] == []
    assert verdict["unknown_because"] == []
    assert verdict["verdict"] == "pass"
    for name, group in verdict["groups"].items():
        grepped = sum(
            log.read_text().count(f'"request":{{"groupId":"{name}"')
            for log in recorded.glob("brokers/*/group.log")
        )
        assert group["responses_explained"] == group["responses_checked"] == grepped > 100
    assert verdict["groups"]["static"]["rebalances_observed"]["impact"] == 2
    coverage = verdict["coverage"]
    read = sum(len(log.read_text().splitlines()) for log in recorded.glob("brokers/*/group.log"))
    assert coverage["lines_read"] == read
    assert read == coverage["used"] + coverage["irrelevant"] + coverage["rejected"]
    assert coverage["rejected"] == 0


def test_the_same_evidence_gives_the_same_bytes(recorded: Path, judge: Judge) -> None:
    judge(recorded)
    first = {n: (recorded / n).read_bytes() for n in ("verdict.json", "junit.xml", "report.html")}
    judge(recorded)
    assert first == {name: (recorded / name).read_bytes() for name in first}


def test_an_added_rebalance(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    index = log.find('"groupId":"static"', "HEARTBEAT", nth=40)
    real = log.lines[log.find("Preparing to rebalance group static", "old generation 2")]
    tail = real.split(" ", 3)[3]

    def forged(neighbour: str) -> str:
        serial, logged_ms, nanos, _ = neighbour.split(" ", 3)
        return f"{serial} {logged_ms} {nanos} {tail}"

    line = log.insert_after(index, forged)
    log.save()
    assert the_root(judge(recorded)) == ("unexpected_rebalance", *at(log, line))


def test_a_removed_rebalance(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    index = log.find("Preparing to rebalance group static", "old generation 2")
    del log.lines[index]
    log.save()
    kind, file, line = the_root(judge(recorded))
    assert (kind, file) == ("missing_rebalance", at(log, 0)[0])
    assert "Stabilized group static generation 3" in log.lines[line - 1]


def test_a_changed_error_code(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    index = log.find('"requestApiKeyName":"SYNC_GROUP"', '"generationId":2', nth=2)
    line = log.change(index, '"errorCode":0', '"errorCode":25')
    log.save()
    assert the_root(judge(recorded)) == ("wrong_answer", *at(log, line))


def test_a_changed_generation(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    line = log.change(
        log.find("Stabilized group static generation 3"), "generation 3", "generation 7"
    )
    log.save()
    assert the_root(judge(recorded)) == ("wrong_generation", *at(log, line))


def test_a_changed_old_generation(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "dynamic")
    index = log.find("Preparing to rebalance group dynamic", "old generation 2")
    line = log.change(index, "old generation 2", "old generation 9")
    log.save()
    assert the_root(judge(recorded)) == ("wrong_generation", *at(log, line))


def test_a_changed_generation_in_an_answer(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "dynamic")
    index = log.find('"requestApiKeyName":"JOIN_GROUP"', '"generationId":3,')
    line = log.change(index, '"generationId":3,', '"generationId":4,')
    log.save()
    assert the_root(judge(recorded)) == ("wrong_answer", *at(log, line))


@pytest.mark.parametrize("group", ["static", "dynamic"])
def test_a_changed_heartbeat_s_answer(group: str, recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, group)
    index = log.find(f'"groupId":"{group}"', "HEARTBEAT", '"errorCode":0', nth=20)
    line = log.change(index, '"errorCode":0', '"errorCode":27')
    log.save()
    assert the_root(judge(recorded)) == ("wrong_answer", *at(log, line))


def test_a_changed_count_of_members(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    index = log.find("Stabilized group static generation 3 with 3 members")
    line = log.change(index, "with 3 members", "with 4 members")
    log.save()
    assert the_root(judge(recorded)) == ("wrong_members", *at(log, line))


def test_a_rebalance_blamed_on_another_member(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    index = log.find("Preparing to rebalance group static", "removing member static-3")
    line = log.change(index, "removing member static-3", "removing member static-1")
    log.save()
    assert the_root(judge(recorded)) == ("wrong_reason", *at(log, line))


def test_a_removed_line_about_a_member(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    index = log.find("Replacing previously mapped member static-0")
    del log.lines[index]
    log.save()
    kind, file, _ = the_root(judge(recorded))
    assert (kind, file) == ("missing_line", at(log, 0)[0])


def test_an_added_line_about_a_member(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "dynamic")
    index = log.find("[Group dynamic] Member dynamic-dynamic-1")
    line = log.insert_after(index, lambda same: same)
    log.save()
    assert the_root(judge(recorded)) == ("unexpected_line", *at(log, line))


def test_a_request_that_stands_twice(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    log.insert_after(log.find('"groupId":"static"', "HEARTBEAT", nth=30), lambda same: same)
    log.save()
    verdict = judge(recorded)
    assert verdict["verdict"] == "unknown"
    assert verdict["coverage"]["rejected"] == 1


def test_a_whole_log_that_is_gone(recorded: Path, judge: Judge) -> None:
    idle = next(
        log for log in recorded.glob("brokers/*/group.log") if '"groupId"' not in log.read_text()
    )
    idle.unlink()
    verdict = judge(recorded)
    assert verdict["verdict"] == "unknown"
    assert (
        f"evidence is missing: brokers/{idle.parent.name}/group.log" in verdict["unknown_because"]
    )


@pytest.mark.parametrize(
    "said",
    [
        '"requestApiKeyName":"HEARTBEAT"',
        '"requestApiKeyName":"JOIN_GROUP"',
        "Preparing to rebalance",
    ],
)
def test_a_garbled_line(said: str, recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    index = log.find(said, nth=2)
    half = len(log.lines[index]) // 2
    log.lines[index] = log.lines[index][:half] + "\x00\x7f###"
    log.save()
    verdict = judge(recorded)
    assert verdict["verdict"] == "unknown"
    assert verdict["coverage"]["rejected"] == 1
    assert any(f"group.log:{index + 1}: line not" in why for why in verdict["unknown_because"])


def test_a_line_that_is_gone(recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    del log.lines[log.find("Preparing to rebalance group static", "old generation 2")]
    log.save(renumber=False)
    verdict = judge(recorded)
    assert verdict["verdict"] == "unknown"
    assert any("1 lines missing" in why for why in verdict["unknown_because"])


@pytest.mark.parametrize(("half", "why"), [("first", "end is missing"), ("second", "start is")])
def test_half_a_file(half: str, why: str, recorded: Path, judge: Judge) -> None:
    log = Log.of(recorded, "static")
    middle = len(log.lines) // 2
    log.lines = log.lines[:middle] if half == "first" else log.lines[middle:]
    log.save(renumber=False)
    verdict = judge(recorded)
    assert verdict["verdict"] == "unknown"
    assert any(why in reason for reason in verdict["unknown_because"])
