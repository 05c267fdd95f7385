"""`groupquake oracle`: replays event files with the reference coordinator, and serves it."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import click

from groupquake import folders
from groupquake.commands.options import json_option
from groupquake.commands.serve import serve
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.timing import REDUCTION_S, REPLAY_SHOWN_S
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import KIP_345, PROFILE_NAMES, promised_by
from reference_coordinator.event_files.counterexample import counterexample
from reference_coordinator.event_files.reading import EventFileError, EventSequence, read
from reference_coordinator.event_files.writing import CASE, EVENTS, PAGE, Account
from reference_coordinator.replay import Replay, Violation
from reference_coordinator.replay import replay as replay_evidence
from reports import EvidenceError
from reports.judgement.collector import collector_paused
from scenarios.regular_files import open_regular

EXITS = {"violation": Exit.FAIL, "unknown": Exit.UNKNOWN, "explained": Exit.PASS}
"""Exit codes of the verdicts, the worst first."""
UNLIMITED = 10**12
"""Steps of a reduction that only time ends."""
LONGEST_LINE = 64 << 20
NAMES = ", ".join(PROFILE_NAMES)
FOLDER = "counterexample"


@dataclass(frozen=True)
class Judged:
    """A sequence, and its replay under a profile."""

    sequence: EventSequence
    profile: Profile
    outcome: Replay

    @property
    def verdict(self) -> str:
        """`violation` if one is proven, `unknown` if only unproven ones exist, else `explained`."""
        if self.outcome.proven:
            return "violation"
        return "unknown" if self.outcome.violations else "explained"

    def as_dict(self) -> dict[str, Any]:
        """Return the sequence's JSON object."""
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
            "violations": [_violation(sequence, violation) for violation in outcome.violations],
            "bound": dict(outcome.bound),
        }


def _violation(sequence: EventSequence, violation: Violation) -> dict[str, Any]:
    """Return a violation's JSON object, with its line in the file."""
    found = {"line": sequence.places[violation.request], **asdict(violation)}
    del found["until_ms"]
    return {("proven" if key == "searched" else key): value for key, value in found.items()}


@click.group()
def oracle() -> None:
    """Replay event files with the reference coordinator, or serve it to clients."""


oracle.add_command(serve)


@oracle.command(
    epilog=f"Exit codes: 0 all explained; {Exit.FAIL:d} a violation; {Exit.UNKNOWN:d} no "
    f"proven violation, but a search reached its limit; {Exit.USAGE:d} bad usage or file.",
)
@click.argument("file")
@click.option(
    "--profile", metavar="P",
    help="The rules: a release such as 4.3.0 or 3.9.1-scala, or kip-345, the release as KIP-345"
    " promises it. [the file's profile, or its release]",
)  # fmt: skip
@json_option
@click.option(
    "--counterexample", "folder", metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the first violation, as a text, an event file and a test."
    f" [./{FOLDER}, with a number if that exists]",
)  # fmt: skip
@click.option(
    "--effort", "effort_s", metavar="SECONDS", type=click.IntRange(0, 86_400),
    default=REDUCTION_S, show_default=True,
    help="How long to reduce the first violation at most. What is left then is printed.",
)  # fmt: skip
def replay(file: str, profile: str | None, folder: Path | None, effort_s: int) -> Exit:
    """Explain every response in an event file (`-` is standard input), or print the violations.

    An event file has sequences in JSON lines, each of one group: a header, a line for each request
    in the order of sending, and an end. Bodies have the form of Kafka's request log.

    \b
    {"format": "groupquake-events/1", "kafka": "4.3.0", "coordinator": "java",
     "config": {"group.initial.rebalance.delay.ms": 300}, "group": "g", "sequence": 0}
    {"at_ms": 12.5, "id": "e1", "connection": "m1", "api": "HEARTBEAT", "api_version": 4,
     "client_id": "c1", "client_host": "/127.0.0.1", "request": {…},
     "answered_at_ms": 14.1, "response": {…}}
    {"at_ms": 9000, "end": true}
    """  # noqa: D301 (click's mark: leave these lines as they are)
    rules = None if profile is None else CLASSIC.profile_named(profile)
    if profile is not None and rules is None:
        raise click.UsageError(f"there is no profile {profile!r}; choose one of {NAMES}")
    _check_free(folder)
    name = "standard input" if file == "-" else file
    console = Console()
    try:
        stream = click.open_file("-", "rb") if file == "-" else open_regular(Path(file))
        with stream as lines:
            results, first = _judge_all(read(_decoded(lines, name), name), rules, name, console)
    except EventFileError as error:
        advice = "`groupquake oracle replay --help` shows the form"
        raise EvidenceError(f"{error}; {advice}") from error
    except OSError as error:
        raise EvidenceError(
            f"{name}: cannot be read ({error.strerror}); give the path of a file"
        ) from error
    account = None if first is None else _reduced(first, name, console, effort_s)
    files = [] if account is None else _written(account, folder)
    more = [] if account is None else _counterexample_lines(account, files, effort_s)
    shown = None if account is None else _as_dict(account, files, effort_s)
    document = {"file": name, **_totals(results), "sequences": results, "counterexample": shown}
    console.answer(document, *(_line(name, one) for one in results), *more, _summary(results))
    verdicts = {one["verdict"] for one in results}
    return next((code for verdict, code in EXITS.items() if verdict in verdicts), Exit.PASS)


def _check_free(folder: Path | None) -> None:
    """Refuse a folder with another counterexample."""
    for name in (PAGE, EVENTS, CASE):
        if folder is not None and (folder / name).exists():
            raise click.UsageError(
                f"{folder / name} exists already; give another --counterexample DIR"
            )


def _decoded(lines: IO[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: lines.readline(LONGEST_LINE + 1), b""), 1):
        if len(line) > LONGEST_LINE:
            raise EventFileError(f"{name}:{number}: longer than {LONGEST_LINE >> 20} MiB")
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise EventFileError(f"{name}:{number}: not UTF-8: {error.reason}") from error


def _judge_all(
    sequences: Iterable[EventSequence], rules: Profile | None, name: str, console: Console
) -> tuple[list[dict[str, Any]], Judged | None]:
    """Replay all sequences; return the JSON object of each, and the first with a violation."""
    results, first, shown_s = [], None, time.monotonic()
    for sequence in sequences:
        judged = _judge(sequence, rules, name)
        results.append(judged.as_dict())
        if first is None and judged.verdict == "violation":
            first = judged
        if time.monotonic() - shown_s > REPLAY_SHOWN_S:
            console.progress(_summary(results))
            shown_s = time.monotonic()
    return results, first


def _judge(sequence: EventSequence, rules: Profile | None, name: str) -> Judged:
    """Replay a sequence under `rules`, by default those of the profile or release in its header.

    The rules of KIP-345 are applied to that release, if the oracle knows it.
    """
    if (
        rules is None
        and (named := sequence.profile)
        and not (rules := CLASSIC.profile_named(named))
    ):
        raise EvidenceError(f"{name}:{sequence.line}: there is no profile {named!r}: {NAMES}")
    own = CLASSIC.profile_for(sequence.kafka, sequence.coordinator)
    if rules is KIP_345 and own is not None:
        rules = promised_by(own)
    rules = rules or own
    if rules is None:
        raise EvidenceError(
            f"{name}:{sequence.line}: no profile for the {sequence.coordinator} coordinator of"
            f" Kafka {sequence.kafka}; choose one with --profile: {NAMES}"
        )
    profile = rules.with_settings(sequence.settings)
    with collector_paused():
        return Judged(sequence, profile, replay_evidence(sequence.evidence, profile))


def _totals(results: list[dict[str, Any]]) -> dict[str, int]:
    verdicts = Counter(one["verdict"] for one in results)
    requests = {key: sum(one[key] for one in results) for key in ("requests", "answers")}
    return {**requests, **{verdict: verdicts[verdict] for verdict in reversed(EXITS)}}


def _summary(results: list[dict[str, Any]]) -> str:
    totals = _totals(results)
    verdicts = ", ".join(f"{totals[verdict]} {verdict}" for verdict in reversed(EXITS))
    sequences = "1 sequence" if len(results) == 1 else f"{len(results)} sequences"
    return f"{sequences}, {totals['requests']} requests: {verdicts}"


def _line(name: str, one: Mapping[str, Any]) -> str:
    """Return a line about a sequence."""
    text = (
        f"{name}:{one['line']}: sequence {one['sequence']}, group {one['group']},"
        f" {one['profile']}: {one['verdict']}, {one['explained']} of {one['answers']} answers to"
        f" {one['requests']} requests explained"
    )
    if not one["violations"]:
        return text
    first = one["violations"][0]
    rule = first["rule"].replace("_", " ")
    return f"{text}; {first['request']} at line {first['line']}: {rule}"


def _reduced(judged: Judged, name: str, console: Console, effort_s: float) -> Account | None:
    """Reduce a sequence to what its first violation needs."""
    sequence = judged.sequence
    console.progress(
        f"reducing sequence {sequence.number} to its counterexample, {effort_s:g} s at most"
        " (--effort)"
    )
    end_s = time.monotonic() + effort_s
    is_over = lambda: time.monotonic() >= end_s
    with collector_paused():
        found = counterexample(sequence.evidence, judged.profile, UNLIMITED, is_over=is_over)
    if found is None:
        return None
    source = f"{name}:{sequence.line}, sequence {sequence.number}, group {sequence.group}"
    places = {request: f"{name}:{line}" for request, line in sequence.places.items()}
    return Account(found, sequence, judged.profile, source, places)


def _counterexample_lines(account: Account, files: Sequence[str], effort_s: float) -> list[str]:
    over = f"the {effort_s:g} s were over; --effort SECONDS leaves out more"
    more = [] if account.found.minimal else [over]
    return ["", *account.shown(), *more, "", *(f"written: {file}" for file in files), ""]


def _as_dict(account: Account, files: Sequence[str], effort_s: float) -> dict[str, Any]:
    """Return a counterexample's JSON object."""
    found, sequence = account.found, account.sequence
    return {
        "sequence": sequence.number,
        "requests": [seen.id for seen in found.evidence.requests],
        "lines": [sequence.places[seen.id] for seen in found.evidence.requests],
        "left_out": found.left_out,
        "minimal": found.minimal,
        "broken": list(found.broken),
        "effort_s": effort_s,
        "violation": _violation(sequence, found.violation),
        "files": files,
    }


def _written(account: Account, folder: Path | None) -> list[str]:
    """Write a counterexample into a folder, by default a new one; return the paths of its files.

    The verdict does not need them: an error is printed.
    """
    try:
        if folder is None:
            folder = folders.unused(Path(), FOLDER)
        folder.mkdir(parents=True, exist_ok=True)
        contents = account.files()
        for name, content in contents.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(content)
    except OSError as error:
        Console.error(
            f"the counterexample cannot be written to {error.filename} ({error.strerror});"
            " give another folder with --counterexample"
        )
        return []
    return [str(folder / name) for name in contents]
