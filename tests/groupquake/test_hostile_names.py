"""Names and errors that others chose print as text: they command no terminal and begin no line."""

import gzip
import io
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.removal import Removal
from groupquake.commands import compare, doctor, group, incident
from groupquake.commands.doctor import Diagnosis, Item
from groupquake.console import Console
from groupquake.nightly import command as nightly
from groupquake.nightly import page as nights
from groupquake.summary import summary
from groupquake.trial import page as trial
from reports.incident import page as incident_page
from reports.page import junit
from tests.groupquake.conftest import Command
from tests.groupquake.nightly.test_page import run as run_of_night
from tests.groupquake.test_summary import VERDICT
from tests.groupquake.test_trial import finding
from tests.reports.incident.incident_here import incident_of, recorded

NAME = "clerks"
FORGED = "\x1b[2J\x1b]0;t\x07\r\nverdict: pass\x9b1A\u2028verdict: pass\u202e"
HOSTILE = st.lists(
    st.sampled_from([FORGED, "\n", "\r", "\x85verdict: pass", "\u2066", "\ud800", "\x00", "\t"])
    | st.text(st.characters(), min_size=1, max_size=4),
    min_size=1,
).map("".join)


def verdict(name: str) -> dict[str, Any]:
    place = {"file": f"brokers/{name}/group.log", "line": 7}
    return VERDICT | {
        "experiment": "x",
        "headline": [f"{name}: 1 x {name}; 0 rebalances"],
        "groups": {name: {"responses_explained": 1, "responses_checked": 2}},
        "broken_promises": {name: [name]},
        "findings": [
            {"number": 1, "kind": name, "group": name, "log": place, "root": True, "at_ms": 0.0,
             "proven": True, "expected": name, "observed": name, "page": name,
             "says": {"done": name, "due": name, "observed": name}}
        ],
        "counterexample": {"group": name, "requests": 1, "left_out": 1, "files": [name, name]},
        "clients": {"verdict": "unknown", "counts": True, "says": [name], "alone": False},
        "client_findings": [
            {"rule": name, "client": name, "log": [place], "what": name, "unsure": name,
             "mend": name, "counts": True, "group": name}
        ],
        "expectations_unmet": [
            {"expected": 1, "what": name, "group": name, "phase": "impact", "observed": 2,
             "page": name, "says": {"done": name, "due": name, "observed": name}}
        ],
        "faults": [{"name": name, "target": name, "verified": False, "witness": name}],
        "unsure": [name],
        "unknown_because": [name],
        "settled_by": [name],
        "repeat_command": f"groupquake run {name}",
    }  # fmt: skip


def night(name: str) -> dict[str, Any]:
    failed = run_of_night("fail", experiment=name, platform=name, why=name, command=name)
    return {"suite": "mine", "verdict": "fail", "why": name, "runs": [failed]}


def tried(name: str) -> dict[str, Any]:
    found = finding(name, 1.0, name) | {"what": name, "client": name, "known": None, "unsure": name}
    cell = {"experiment": "kill", "broker": "fail", "client": "fail", "rebalances": 1,
            "unowned_partition_s": 1.0, "records_twice": None,
            "why": [name], "doubts": [name], "rules": [name], "findings": [found]}  # fmt: skip
    client = {"about": name, "software": name, "load": [1.0, 2.0], "why_not": name,
              "rules": {name: "broken"}, "cells": [cell]}  # fmt: skip
    rule = {"mend": name, "demands": name, "source": name}
    return {
        "experiments": ["kill"], "tried": ["mine"], "clients": {"mine": client},
        "rules": {name: rule}, "kafka": name, "at": name, "seed": 1, "groupquake": name,
        "machine": name,
    }  # fmt: skip


def side_by_side(name: str) -> Iterable[str]:
    run = {"run": name, "experiment": name, "kafka_version": name, "coordinator": name, "seed": 1}
    row = {"group": name, "measure": name, name: 1.0}
    return compare._lines([name], {"runs": [run | {"verdict": "fail"}], "measures": [row]})


def diagnosis(name: str) -> Iterable[str]:
    items = (Item(name, "no", name, name),)
    return doctor._lines(Diagnosis(name, {1: name}, {1: "4.3"}, None, name, {}, {}, items))


PRINTED: dict[str, Callable[[str], Iterable[str]]] = {
    "run": lambda name: summary(verdict(name), name),
    "compare": side_by_side,
    "doctor": diagnosis,
    "nightly": lambda name: nightly._summary(night(name), Path(name)),
    "remove-members": lambda name: group._lines(name, Removal(0, ((name, 0),)), dry_run=False),
    "trial": lambda name: trial.lines(tried(name)),
}


def printed(lines: Iterable[str]) -> list[str]:
    """Return what comes out of the console as a result, an error or progress, by LF."""
    lines, out = list(lines), io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        Console.result(*lines)
        Console.error(*lines)
        Console().progress(*lines)
    return out.getvalue().split("\n")


def check(found: list[str], harmless: list[str]) -> None:
    assert [line for line in found if not line.isprintable()] == []
    assert not [line for line in found if line.startswith("verdict: pass")]
    assert len(found) == len(harmless)


@pytest.mark.parametrize("command", PRINTED)
@given(name=HOSTILE)
def test_a_name_begins_no_line_of_a_result(command: str, name: str) -> None:
    check(printed(PRINTED[command](name)), printed(PRINTED[command](NAME)))


@given(name=HOSTILE)
def test_a_name_begins_no_line_of_junit(name: str) -> None:
    for render, given_name in ((junit.render, verdict), (nights.junit_xml, night)):
        found, harmless = (render(given_name(one)).split("\n") for one in (name, NAME))
        check(found, harmless)


HARMLESS = trial.markdown(tried(NAME))


@given(name=HOSTILE)
def test_a_name_begins_no_line_of_markdown(name: str) -> None:
    check(trial.markdown(tried(name)).split("\n"), HARMLESS.split("\n"))


def test_a_name_is_text_in_markdown() -> None:
    marks = "|<`*_[]\\"
    escaped = "".join(f"\\{mark}" for mark in marks)
    assert trial.markdown(tried(marks)) == HARMLESS.replace(NAME, escaped)


def test_a_name_in_brokers_logs_is_text_in_what_is_printed_of_them() -> None:
    name = "\x1b[2J\x1b]0;t\x07verdict: pass\x9b1A\x85\u2028\u202e"
    packed = recorded("4.3.0-java").items()
    logs = {file.removesuffix(".gz"): gzip.decompress(content) for file, content in packed}
    hostile = {file: text.replace(b"removal", name.encode()) for file, text in logs.items()}
    found, harmless = incident_of(hostile), incident_of(logs)
    assert name in found["groups"]
    check(printed(incident.summary(found, "x")), printed(incident.summary(harmless, "x")))
    drawn = incident_page.render(found, found["longest"])
    assert all(line.isprintable() for line in drawn.split("\n"))


ARGUMENT = f"{FORGED}\udcff"
"""No argument has U+0000, and only such surrogates: for bytes that are not UTF-8."""
WORDS = [
    (ARGUMENT,),
    ("run", ARGUMENT),
    ("run", f"{ARGUMENT}.yaml"),
    ("run", "demo", f"--{ARGUMENT}"),
    ("run", "demo", "--ports", ARGUMENT),
    ("run", "demo", "--seed", ARGUMENT),
    ("run", "demo", "--cluster", ARGUMENT),
    ("run", "demo", "--set", ARGUMENT),
    ("run", "demo", "--set", f"cluster.{ARGUMENT}=1"),
    ("run", "demo", "--kafka", ARGUMENT),
    ("validate", ARGUMENT),
    ("nightly", ARGUMENT),
    ("trial", "--client", ARGUMENT),
    ("trial", "--client", "java", "--experiments", ARGUMENT),
    ("report", ARGUMENT),
    ("report", f"{ARGUMENT}.log"),
    ("report", "x.log", "--time-zone", ARGUMENT),
    ("heal", ARGUMENT),
    ("doctor", "--bootstrap", ARGUMENT),
    ("group", "remove-members", "g", "--all", "--bootstrap", ARGUMENT),
    ("group", "remove-members", "g", "--all", "--bootstrap", "x:1", "--timeout", ARGUMENT),
    ("oracle", "replay", ARGUMENT),
    ("oracle", "replay", "x", "--profile", ARGUMENT),
]


def check_refusal(groupquake: Command, *words: object) -> None:
    done = groupquake(*words)
    assert done.code == 64, done.err
    lines = [line for line in done.err.split("\n") if line]
    assert all(line.isprintable() for line in lines), done.err
    begun = ("Usage: ", "Try '", "Error: ", "groupquake: ", "[")
    assert all(line.startswith(begun) for line in lines), done.err


def test_an_argument_is_repeated_as_text(groupquake: Command) -> None:
    for words in WORDS:
        check_refusal(groupquake, *words)


def test_a_file_is_cited_as_text(groupquake: Command, small: Path) -> None:
    forged = r'"\e[2J\r\nverdict: pass\x9b1A\L\u202e"'
    text, file = small.read_text(), small.with_name(f"a{FORGED}.yaml")
    for place in ("cuont: 2, instance", "count: {}, instance", "{}: 2, instance"):
        changed = text.replace("count: 2, instance", place.format(forged))
        file.write_text(changed.replace("name: small", f"name: {forged}"))
        check_refusal(groupquake, "validate", file)
