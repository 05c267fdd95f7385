"""The counterexample of a failed run: as few requests as show its first wrong response.

It is a text for people, an event file and a pytest case.
"""

from collections.abc import Sequence
from typing import Any

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.event_files.counterexample import counterexample
from reference_coordinator.event_files.reading import EventFileError, read
from reference_coordinator.event_files.writing import CASE, EVENTS, PAGE, Account, event_lines
from reference_coordinator.replay import Evidence
from reports.judgement.collector import collector_paused
from reports.judgement.explained.course import Arrow, course_of
from reports.judgement.explained.sentences import answer_in_words, plain
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.rows import Row
from reports.judgement.run.run_folder import RunFolder

FILES = (PAGE, EVENTS, CASE)


def group_of(verdict: Row, violations: Sequence[Row]) -> str | None:
    """Return the group of the first response that is proven wrong.

    None where no response is: the verdict may rest on lines alone, or on an unmet expectation.
    """
    proven = {f["group"] for f in verdict["findings"] if f["root"] and f["proven"]}
    wrong = [row for row in violations if row["searched"] and row["group"] in proven]
    return min(wrong, key=lambda row: row["at_ms"])["group"] if wrong else None


def reduced(
    run: RunFolder, evidence: Evidence, profile: Profile, places: LogPlaces
) -> tuple[dict[str, Any], dict[str, str], list[Arrow]] | None:
    """Reduce a group's evidence to its first violation.

    Returns the entry of `verdict.json`, the texts of `FILES`, and its course. None if the evidence
    is explained, or if a request has the form of a release that event files do not support.
    """
    environment = run.environment
    header = {
        "kafka": environment["kafka_version"],
        "coordinator": environment["coordinator"],
        "config": environment["broker_config"],
    }
    try:
        (sequence,) = read(event_lines(header, evidence), evidence.group)
    except EventFileError:
        return None
    with collector_paused():
        found = counterexample(sequence.evidence, profile)
    if found is None:
        return None
    line = lambda id_: int(id_.rpartition(":")[2])
    account = Account(
        found,
        sequence,
        profile,
        source=f"{run.name}, group {evidence.group}",
        places={s.id: places.written(s.broker, line(s.id)) for s in evidence.requests},
        began_ms=found.evidence.requests[0].at_ms,
    )
    entry = {
        "group": evidence.group,
        "request": found.violation.request,
        "requests": len(found.evidence.requests),
        "left_out": found.left_out,
        "minimal": found.minimal,
        "broken": list(found.broken),
        "files": list(FILES),
    }
    wrong = found.violation
    words = answer_in_words(wrong.expected, wrong.observed)
    due = plain(words[0] if words else wrong.expected)
    return entry, dict(account.files()), course_of(found.evidence.requests, wrong.request, due)
