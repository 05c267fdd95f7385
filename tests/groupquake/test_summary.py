"""The last lines of a run name what is worth opening."""

from pathlib import Path
from typing import Any

from groupquake.summary import summary

VERDICT: dict[str, Any] = {
    "verdict": "fail",
    "expected_verdict": None,
    "experiment": "demo",
    "broken_promises": {},
    "kafka_version": "4.3.0",
    "headline": [],
    "groups": {},
    "findings": [],
    "counterexample": None,
    "client_findings": [],
    "expectations_unmet": [],
    "unknown_because": [],
    "settled_by": [],
    "repeat_command": "groupquake run demo --seed 7",
}


def test_a_counterexample_is_named() -> None:
    files = ["counterexample.txt", "counterexample.jsonl", "test_counterexample.py"]
    counterexample = {"group": "g", "requests": 7, "left_out": 93, "files": files}
    assert (
        "  counterexample: runs/x/counterexample.txt (7 of 100 requests of g),"
        " and as a test: test_counterexample.py"
    ) in summary(VERDICT | {"counterexample": counterexample}, Path("runs/x"))
    assert not any("counterexample" in line for line in summary(VERDICT, Path("runs/x")))


def test_an_expected_verdict_is_reported_as_such() -> None:
    assert "verdict: fail" in summary(VERDICT, Path("x"))
    expected = {"verdict": "fail", "because": "p", "group": "g", "met": True}
    as_expected = summary(VERDICT | {"expected_verdict": expected}, Path("x"))
    assert "verdict: fail, as the experiment expects for Kafka 4.3.0" in as_expected
    other = summary(VERDICT | {"expected_verdict": expected | {"met": False}}, Path("x"))
    assert (
        "verdict: fail, though the experiment expects fail because of p in g for Kafka 4.3.0"
        in other
    )


def test_broken_promises_are_named() -> None:
    lines = summary(VERDICT | {"broken_promises": {"g": ["p", "q"]}}, Path("x"))
    assert "  g: departs from KIP-345: p, q" in lines


def test_a_build_of_the_users_is_named() -> None:
    words = "a build of the user's, 4.4.0-acme in /opt/acme/libs, judged by the rules of 4.4"
    lines = summary(VERDICT | {"rules": words}, Path("x"))
    assert lines[1:3] == ["verdict: fail", f"  {words}"]


def test_the_first_reasons_of_an_unknown_verdict_are_printed() -> None:
    reasons = [f"reason {number}" for number in range(7)]
    settled = [f"way {number}" for number in range(7)]
    unknown = {"verdict": "unknown", "unknown_because": reasons, "settled_by": settled}
    lines = summary(VERDICT | unknown, Path("x"))
    at = lines.index("  unknown because reason 4")
    assert lines[at + 1] == "    to settle it: way 4"
    assert "  unknown because reason 5" not in lines


def test_what_clients_did_is_one_line_a_rule() -> None:
    found = {
        "group": "g", "rule": "r", "client": "c", "log": [{"file": "f", "line": 7}],
        "what": "c leaves",
        "mend": "Stay.", "counts": True,
    }  # fmt: skip
    for more, words in (([], ""), ([found, found], " (and 2 more)")):
        lines = summary(VERDICT | {"client_findings": [found, *more]}, Path("x"))
        at = lines.index(f"  your client: c leaves{words} (r, f:7)")
        assert lines[at + 1] == "    to mend it: Stay."
