"""`groupquake oracle replay`: verdicts, exit codes, the counterexample; bad files in one line."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_protocol.errors import Error
from tests.groupquake.conftest import Command
from tests.reference_coordinator.event_files.event_lines import of_scenario
from tests.reference_coordinator.replay.conftest import Scenario, rejoin, stable

WRONG = "HEARTBEAT:a:2800"
FILES = ["counterexample.txt", "counterexample.jsonl", "test_counterexample.py"]

Write = Callable[..., Path]


def long_lie() -> Scenario:
    """Two more generations; b leaves, and the response to a is FENCED_INSTANCE_ID."""
    scenario = stable()
    for generation, at in ((2, 1_300), (3, 1_600)):
        rejoin(scenario, at, generation)
    for at in range(1_700, 2_700, 20):
        for who in "ab":
            scenario.ask("HEARTBEAT", who, at, {"generationId": 3}, {"errorCode": 0})
    scenario.leave("b", 2_710)
    scenario.ask(
        "HEARTBEAT", "a", 2_800, {"generationId": 3}, {"errorCode": Error.FENCED_INSTANCE_ID}
    )
    scenario.ask(
        "HEARTBEAT", "a", 2_900, {"generationId": 3}, {"errorCode": Error.REBALANCE_IN_PROGRESS}
    )
    return scenario


def tangled() -> Scenario:
    """Eight processes of a come at once, and eight of b; one of all is answered wrongly."""
    scenario = stable()
    for number in range(8):
        for who, at in (("a", 2_000 + number), ("b", 2_000.5 + number)):
            came = scenario.join(who, at, 2_900, broker=f"{who}{number}")
            scenario.change(came, memberId=f"{who}-{number}")
    return scenario


SCENARIOS = {"explained": stable, "violation": long_lie, "unknown": tangled}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write scenarios to a file, each as a sequence."""

    def written(*verdicts: str, name: str = "events.jsonl", **header: Any) -> Path:
        lines = []
        for number, verdict in enumerate(verdicts):
            first, *rest = of_scenario(SCENARIOS[verdict]())
            lines += [json.dumps(json.loads(first) | {"sequence": number} | header), *rest]
        file = tmp_path / name
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return file

    return written


def test_explained_evidence_exits_with_0_and_writes_nothing(
    groupquake: Command, write: Write, tmp_path: Path
) -> None:
    done = groupquake("oracle", "replay", write("explained", "explained"))
    assert done.code == 0, done.err
    first, second, total = done.out.splitlines()
    assert "events.jsonl:1: sequence 0, group g, 4.3: explained, 4 of 4 answers to 4" in first
    assert "events.jsonl:7: sequence 1, group g" in second
    as_json = json.loads(groupquake("oracle", "replay", "events.jsonl", "--json").out)
    assert as_json["counterexample"] is None
    assert total == "2 sequences, 8 requests: 2 explained, 0 unknown, 0 violation"
    assert [path.name for path in tmp_path.iterdir()] == ["events.jsonl"]


def test_a_violation_is_reduced_printed_and_written_down(
    groupquake: Command, write: Write, tmp_path: Path
) -> None:
    file = write("explained", "violation", "explained")
    done = groupquake("oracle", "replay", file.name)
    assert done.code == 1, done.err
    lines = done.out.splitlines()
    assert (
        f"violation, 114 of 115 answers to 115 requests explained; {WRONG} at line 121" in lines[1]
    )
    assert lines[-1] == "3 sequences, 123 requests: 2 explained, 0 unknown, 1 violation"
    assert "counterexample: events.jsonl:7, sequence 1, group g, under the rules of 4.3" in lines
    assert "10 requests of 115" in lines
    (marked,) = (line for line in lines if line.startswith(">"))
    assert marked.split()[1:] == [
        *("2800.0", "2801.0", "a", "HEARTBEAT", "v3", "a-0000", "of", "a", "generation", "3"),
        "FENCED_INSTANCE_ID",
    ]
    assert "  rule: answer" in lines
    (beside,) = (line for line in lines if line.startswith("  error="))
    assert beside.split() == ["error=REBALANCE_IN_PROGRESS", "error=FENCED_INSTANCE_ID"]
    assert [line for line in lines if line.startswith("written: ")] == [
        f"written: counterexample/{name}" for name in FILES
    ]
    raw = file.read_text().splitlines()[120]
    assert f"events.jsonl:121: {raw}" in (tmp_path / "counterexample" / FILES[0]).read_text()


def test_the_file_of_a_counterexample_is_a_violation_by_itself_and_as_small_as_can_be(
    groupquake: Command, write: Write, tmp_path: Path
) -> None:
    groupquake("oracle", "replay", write("violation"))
    done = groupquake("oracle", "replay", tmp_path / "counterexample" / FILES[1])
    assert done.code == 1, done.err
    assert "10 requests of 10" in done.out
    assert WRONG in done.out


def run(case: Path) -> subprocess.CompletedProcess[str]:
    """Run a generated test in a process of its own."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", case.name]
    return subprocess.run(words, cwd=case.parent, capture_output=True, text=True, check=False)


def test_the_generated_test_is_red_until_the_answer_is_right(
    groupquake: Command, write: Write, tmp_path: Path
) -> None:
    odd = 'a"""\\u\nb.jsonl'
    groupquake("oracle", "replay", write("violation", name=odd), "--counterexample", "found/here")
    case = tmp_path / "found" / "here" / FILES[2]
    red = run(case)
    assert red.returncode == 1, red.stdout
    assert "1 failed" in red.stdout
    text = case.read_text()
    assert '"errorCode": 82' in text
    case.write_text(text.replace('"errorCode": 82', '"errorCode": 27'))
    green = run(case)
    assert green.returncode == 0, green.stdout


def test_no_counterexample_is_written_over(
    groupquake: Command, write: Write, tmp_path: Path
) -> None:
    """By default another folder is made; one that was asked for is refused, before any work."""
    file = write("violation")
    for _ in range(2):
        groupquake("oracle", "replay", file)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        "counterexample",
        "counterexample-2",
    ]
    case = tmp_path / "counterexample" / FILES[2]
    case.write_text("kept")
    done = groupquake("oracle", "replay", file, "--counterexample", "counterexample")
    assert done.code == 64
    assert f"counterexample/{FILES[0]} exists already; give another" in done.err
    assert case.read_text() == "kept"


def test_a_verdict_does_not_need_room_for_its_counterexample(
    groupquake: Command, write: Write, tmp_path: Path
) -> None:
    (tmp_path / "full").write_text("")
    done = groupquake("oracle", "replay", write("violation"), "--counterexample", "full/folder")
    assert done.code == 1
    assert "1 violation" in done.out
    assert "written" not in done.out
    assert "cannot be written to full" in done.err
    assert "Traceback" not in done.err


def test_what_is_left_when_the_effort_is_over_is_printed(
    groupquake: Command, write: Write, tmp_path: Path
) -> None:
    done = groupquake("oracle", "replay", write("violation"), "--effort", "0")
    assert done.code == 1
    assert "0 s at most (--effort)" in done.err
    assert "115 requests of 115; to leave out more would take too long" in done.out
    assert "the 0 s were over; --effort SECONDS leaves out more" in done.out
    assert (tmp_path / "counterexample" / FILES[1]).read_text().count('"id"') == 115
    done = groupquake("oracle", "replay", write("violation"))
    assert "30 s at most (--effort)" in done.err
    assert "--effort SECONDS" not in done.out


def test_as_json(groupquake: Command, write: Write) -> None:
    done = groupquake("oracle", "replay", write("explained", "violation"), "--json")
    assert done.code == 1, done.err
    document = json.loads(done.out)
    assert {key: document[key] for key in ("requests", "answers", "explained", "unknown")} == {
        "requests": 119,
        "answers": 119,
        "explained": 1,
        "unknown": 0,
    }
    assert document["violation"] == 1
    fine, wrong = document["sequences"]
    assert fine.items() >= {
        "sequence": 0, "line": 1, "group": "g", "profile": "4.3", "verdict": "explained",
        "requests": 4, "answers": 4, "explained": 4, "violations": [],
    }.items()  # fmt: skip
    assert (wrong["line"], wrong["verdict"], wrong["explained"]) == (7, "violation", 114)
    violation = {
        "line": 121, "at_ms": 2801.0, "request": WRONG, "rule": "answer",
        "expected": "error=REBALANCE_IN_PROGRESS", "observed": "error=FENCED_INSTANCE_ID",
        "proven": True, "otherwise": [],
    }  # fmt: skip
    assert wrong["violations"] == [violation]
    shown = document["counterexample"]
    assert (shown["sequence"], shown["violation"], shown["minimal"]) == (1, violation, True)
    assert shown["requests"][-1] == WRONG
    assert shown["lines"][-1] == 121
    assert len(shown["lines"]) == len(shown["requests"]) == 115 - shown["left_out"]
    assert shown["files"] == [f"counterexample/{name}" for name in FILES]


def test_a_search_that_was_given_up_is_unknown_and_a_violation_beats_it(
    groupquake: Command, write: Write, tmp_path: Path
) -> None:
    """Too many orders to try them all, and nothing is proven: a doubt has no counterexample."""
    done = groupquake("oracle", "replay", write("explained", "unknown"))
    assert done.code == 2, done.err
    assert "sequence 1, group g, 4.3: unknown" in done.out
    assert done.out.endswith("1 explained, 1 unknown, 0 violation\n")
    assert [path.name for path in tmp_path.iterdir()] == ["events.jsonl"]
    done = groupquake("oracle", "replay", write("unknown", "violation", "explained"))
    assert done.code == 1, done.err
    assert done.out.endswith("1 explained, 1 unknown, 1 violation\n")
    assert "counterexample: " in done.out


def test_a_profile_stands_in_for_the_header_s(groupquake: Command, write: Write) -> None:
    file = write("explained", kafka="9.9.9")
    for options, problem in (
        ((), f"{file}:1: no profile for the java coordinator of Kafka 9.9.9; choose"),
        (("--profile", "4.9"), "there is no profile '4.9'; choose one of 2.4"),
    ):
        done = groupquake("oracle", "replay", file, *options)
        assert (done.code, done.out) == (64, "")
        assert problem in done.err
    done = groupquake("oracle", "replay", file, "--profile", "3.9.1-scala")
    assert done.code == 0, done.err
    assert "group g, 3.9-scala: explained" in done.out


def test_a_malformed_line(groupquake: Command, write: Write) -> None:
    file = write("explained", "explained")
    lines = file.read_text().splitlines()
    lines[8] = lines[8].replace('"at_ms"', '"at"', 1)
    file.write_text("\n".join(lines))
    done = groupquake("oracle", "replay", file)
    assert (done.code, done.out) == (64, "")
    advice = "`groupquake oracle replay --help` shows the form"
    lacks = "Object missing required field `at_ms`"
    assert done.err == f"groupquake: {file}:9: {lacks}; {advice}\n"


def test_unreadable_files(groupquake: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b'{"format": "\xff"}\n')
    for name, begins, why in (
        ("bad.jsonl", "bad.jsonl:1: not UTF-8", ""),
        ("gone.jsonl", "gone.jsonl: cannot be read (", "No such file"),
        (".", ".: cannot be read (", "not a regular file"),
    ):
        done = groupquake("oracle", "replay", name)
        assert done.code == 64
        assert done.err.startswith(f"groupquake: {begins}")
        assert why in done.err
        assert len(done.err.splitlines()) == 1


def test_standard_input(write: Write, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "groupquake", "oracle", "replay", "-"],
        cwd=tmp_path, input=write("violation").read_text(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"{WRONG} at line 115" in done.stdout
    assert "standard input:1: sequence 0" in done.stdout


def test_a_name_cannot_write_to_the_terminal(groupquake: Command, write: Write) -> None:
    file = write("explained", group="g\n\x1b[31m")
    text = file.read_text().replace('"groupId": "g"', '"groupId": "g\\n\\u001b[31m"')
    file.write_text(text)
    done = groupquake("oracle", "replay", file)
    assert done.code == 0, done.err
    assert "group g\\n\\x1b[31m, 4.3" in done.out


def test_a_counterexample_is_replayed_by_the_rules_that_it_names(
    groupquake: Command, tmp_path: Path
) -> None:
    """Without --profile: what a promise contradicts, and the release explains."""
    recorded = Path(__file__).parents[2] / "recorded" / "defects"
    file = recorded / "replaced_id_stays_pending_sync-4.4.0-java.jsonl"
    first = groupquake("oracle", "replay", file, "--profile", "kip-345")
    own = groupquake("oracle", "replay", tmp_path / "counterexample" / FILES[1], "--json")
    assert (first.code, own.code) == (1, 1)
    document = json.loads(own.out)
    assert document["sequences"][0]["profile"] == "kip-345-4.4"
    shown = document["counterexample"]
    assert (shown["left_out"], shown["broken"]) == (0, ["replaced_id_stays_pending_sync"])
    assert "5 requests of 28" in first.out
    released = groupquake("oracle", "replay", file, "--profile", "4.4")
    assert released.code == 0


def test_an_unknown_profile_in_a_file_is_named(groupquake: Command, write: Write) -> None:
    done = groupquake("oracle", "replay", write("explained", profile="4.9"))
    assert done.code == 64
    assert "events.jsonl:1: there is no profile '4.9': " in done.err
