"""`groupquake oracle`: the reference coordinator by itself, without brokers."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from groupquake import folders
from groupquake.console import Console
from groupquake.exits import Exit
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import (
    KIP_345,
    PROFILE_NAMES,
    profile_for,
    profile_named,
    promised_by,
)
from reference_coordinator.event_files.counterexample import counterexample
from reference_coordinator.event_files.reading import EventFileError, EventSequence, read
from reference_coordinator.event_files.request_table import plain
from reference_coordinator.event_files.writing import CASE, EVENTS, PAGE, Account
from reference_coordinator.replay import Replay, Violation
from reference_coordinator.replay import replay as replay_evidence
from reports.judgement.collector import collector_paused

EXITS = {"violation": Exit.FAIL, "unknown": Exit.UNKNOWN, "explained": Exit.PASS}
"""What a sequence's verdict ends the command with, the worst first."""
PROGRESS_S = 2.0
NAMES = ", ".join(PROFILE_NAMES)
FOLDER = "counterexample"


class UnknownRulesError(Exception):
    """A header's release is none that the oracle knows."""


@dataclass(frozen=True)
class Judged:
    """A sequence, and what the oracle makes of it under some rules."""

    sequence: EventSequence
    profile: Profile
    outcome: Replay

    @property
    def verdict(self) -> str:
        """One proven violation is enough; without it, one that is not proven is a doubt."""
        if self.outcome.proven:
            return "violation"
        return "unknown" if self.outcome.violations else "explained"

    def as_dict(self) -> dict[str, Any]:
        """Return what is told of it as JSON."""
        sequence, outcome = self.sequence, self.outcome
        return {
            "sequence": sequence.number,
            "line": sequence.line,
            "group": sequence.group,
            "profile": self.profile.name,
            "verdict": self.verdict,
            "requests": len(sequence.requests),
            "answers": sum(seen.response is not None for seen in sequence.requests),
            "explained": sum(checked.explained for checked in outcome.checked),
            "violations": [self.told(violation) for violation in outcome.violations],
            "bound": dict(outcome.bound),
        }

    def told(self, violation: Violation) -> dict[str, Any]:
        """Return what is told of a violation as JSON, with its line in the file."""
        told = {"line": self.sequence.places[violation.request], **asdict(violation)}
        del told["until_ms"]
        return {("proven" if key == "searched" else key): value for key, value in told.items()}


@click.group()
def oracle() -> None:
    """Ask the reference coordinator."""


@oracle.command(
    epilog=f"Exit codes: 0 all explained; {Exit.FAIL:d} a violation; {Exit.UNKNOWN:d} nothing is "
    f"proven, but a search was given up; {Exit.USAGE:d} bad usage or file.",
)
@click.argument("file")
@click.option(
    "--profile",
    metavar="P",
    help="Whose rules: a release such as 4.3.0 or 3.9.1-scala, or kip-345, what the proposal"
    " promises of the release. [the file's]",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option(
    "--counterexample",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the first violation is written to, as a page, an event file and a test."
    f" [./{FOLDER}, or one with a number where that is there already]",
)
def replay(file: str, profile: str | None, folder: Path | None, *, as_json: bool) -> Exit:
    """Explain every answer in an event file (`-` is standard input), or tell what nothing explains.

    An event file holds sequences in JSON lines, each of one group: a header, a line a request in
    the order they were sent, and an end. Bodies are as Kafka's request log prints them.

    \b
    {"format": "groupquake-events/1", "kafka": "4.3.0", "coordinator": "java",
     "config": {"group.initial.rebalance.delay.ms": 300}, "group": "g", "sequence": 0}
    {"at_ms": 12.5, "id": "e1", "connection": "m1", "api": "HEARTBEAT", "api_version": 4,
     "client_id": "c1", "client_host": "/127.0.0.1", "request": {…},
     "answered_at_ms": 14.1, "response": {…}}
    {"at_ms": 9000, "end": true}
    """  # noqa: D301 (click's mark: leave these lines as they are)
    rules = None if profile is None else profile_named(profile)
    if profile is not None and rules is None:
        raise click.UsageError(f"no profile is called {profile!r}; there are {NAMES}")
    _check_free(folder)
    name = "standard input" if file == "-" else plain(file)
    console = Console()
    try:
        with click.open_file(file, "rb") as lines:
            told, first = _judge_all(read(_decoded(lines, name), name), rules, name, console)
    except EventFileError as error:
        Console.complain(f"{error}; `groupquake oracle replay --help` shows the form")
        return Exit.USAGE
    except UnknownRulesError as error:
        Console.complain(str(error))
        return Exit.USAGE
    except OSError as error:
        Console.complain(f"{name}: cannot be read ({error.strerror}); give the path of a file")
        return Exit.USAGE
    shown = None if first is None else _Shown.of(first, name, folder, console)
    if as_json:
        document = {"file": name, **_totals(told), "sequences": told,
                    "counterexample": None if shown is None else shown.as_dict()}  # fmt: skip
        Console.result(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        for one in told:
            Console.result(_line(name, one))
        if shown is not None:
            Console.result(shown.as_text())
        Console.result(_summary(told))
    verdicts = {one["verdict"] for one in told}
    return next((code for verdict, code in EXITS.items() if verdict in verdicts), Exit.PASS)


def _check_free(folder: Path | None) -> None:
    """Refuse a folder that holds another counterexample."""
    for name in (PAGE, EVENTS, CASE):
        if folder is not None and (folder / name).exists():
            raise click.UsageError(
                f"{folder / name} is there already; give another --counterexample DIR"
            )


def _decoded(lines: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise EventFileError(f"{name}:{number}: no UTF-8: {error.reason}") from error


def _judge_all(
    sequences: Iterable[EventSequence], rules: Profile | None, name: str, console: Console
) -> tuple[list[dict[str, Any]], Judged | None]:
    """Replay all sequences; return what is told of each, and the first with a violation."""
    told, first, shown_s = [], None, time.monotonic()
    for sequence in sequences:
        judged = _judge(sequence, rules, name)
        told.append(judged.as_dict())
        if first is None and judged.verdict == "violation":
            first = judged
        if time.monotonic() - shown_s > PROGRESS_S:
            console.progress(_summary(told))
            shown_s = time.monotonic()
    return told, first


def _judge(sequence: EventSequence, rules: Profile | None, name: str) -> Judged:
    """Replay a sequence, under the rules of the release that its header names if none are given.

    What the proposal promises is promised of that release, if there is one.
    """
    own = profile_for(sequence.kafka, sequence.coordinator)
    if rules is KIP_345 and own is not None:
        rules = promised_by(own)
    rules = rules or own
    if rules is None:
        raise UnknownRulesError(
            f"{name}:{sequence.line}: no profile for the {sequence.coordinator} coordinator of"
            f" Kafka {plain(sequence.kafka)}; choose one with --profile: {NAMES}"
        )
    profile = rules.with_settings(sequence.settings)
    with collector_paused():
        return Judged(sequence, profile, replay_evidence(sequence.evidence, profile))


def _totals(told: list[dict[str, Any]]) -> dict[str, int]:
    verdicts = Counter(one["verdict"] for one in told)
    requests = {key: sum(one[key] for one in told) for key in ("requests", "answers")}
    return {**requests, **{verdict: verdicts[verdict] for verdict in reversed(EXITS)}}


def _summary(told: list[dict[str, Any]]) -> str:
    totals = _totals(told)
    verdicts = ", ".join(f"{totals[verdict]} {verdict}" for verdict in reversed(EXITS))
    sequences = "1 sequence" if len(told) == 1 else f"{len(told)} sequences"
    return f"{sequences}, {totals['requests']} requests: {verdicts}"


def _line(name: str, one: Mapping[str, Any]) -> str:
    """Tell of a sequence in a line."""
    told = (
        f"{name}:{one['line']}: sequence {one['sequence']}, group {plain(one['group'])},"
        f" {one['profile']}: {one['verdict']}, {one['explained']} of {one['answers']} answers to"
        f" {one['requests']} requests explained"
    )
    if not one["violations"]:
        return told
    first = one["violations"][0]
    rule = first["rule"].replace("_", " ")
    return f"{told}; {plain(first['request'])} at line {first['line']}: {rule}"


@dataclass(frozen=True)
class _Shown:
    """A violation reduced to what shows it, and where that was written to, if it could be."""

    judged: Judged
    account: Account
    files: list[str]

    @classmethod
    def of(
        cls, judged: Judged, name: str, folder: Path | None, console: Console
    ) -> "_Shown | None":
        """Leave out what the violation does not need, and write the rest down."""
        sequence = judged.sequence
        console.progress(f"leaving out what sequence {sequence.number} does not need for it")
        with collector_paused():
            found = counterexample(sequence.evidence, judged.profile)
        if found is None:
            return None
        source = f"{name}:{sequence.line}, sequence {sequence.number}, group {sequence.group}"
        places = {request: f"{name}:{line}" for request, line in sequence.places.items()}
        account = Account(found, sequence, judged.profile, source, places)
        try:
            files = _written(account.files(), folder)
        except OSError as error:
            Console.complain(
                f"the counterexample cannot be written to {error.filename} ({error.strerror});"
                " give another folder with --counterexample"
            )
            files = []
        return cls(judged, account, files)

    def as_text(self) -> str:
        """Return it for people."""
        written = "".join(f"written: {file}\n" for file in self.files)
        return f"\n{self.account.shown()}\n{written}"

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        found, sequence = self.account.found, self.judged.sequence
        return {
            "sequence": sequence.number,
            "requests": [seen.id for seen in found.evidence.requests],
            "lines": [sequence.places[seen.id] for seen in found.evidence.requests],
            "left_out": found.left_out,
            "minimal": found.minimal,
            "violation": self.judged.told(found.violation),
            "files": self.files,
        }


def _written(contents: Mapping[str, str], folder: Path | None) -> list[str]:
    """Write files into a folder, by default a new one here; return their paths."""
    if folder is None:
        folder = folders.unused(Path(), FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        with (folder / name).open("x", encoding="utf-8") as file:
            file.write(content)
    return [str(folder / name) for name in contents]
