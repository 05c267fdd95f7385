"""Writes a counterexample: as text, as an event file, and as a test.

The test fails as long as nothing explains the evidence, and needs nothing but this package.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from kafka_protocol.printable import printable
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.event_files.counterexample import Counterexample
from reference_coordinator.event_files.reading import FORMAT, EventSequence
from reference_coordinator.event_files.request_table import request_text, table
from reference_coordinator.replay.evidence import (
    LAST_MS,
    EpochEvent,
    Evidence,
    Hint,
    ObservedRequest,
    Parting,
    Stall,
)

WIDTH = 60
"""Of the column of what was expected."""

PAGE, EVENTS, CASE = "counterexample.txt", "counterexample.jsonl", "test_counterexample.py"
TEST = '''"""{title}

Fails as long as no order of these requests explains the last answer.
"""

from reference_coordinator.classic.releases import profile_named
from reference_coordinator.replay import replay
from reference_coordinator.event_files.reading import read

PROFILE = {profile!r}
EVENTS = [
{events}
]


def test_the_answers_are_explained() -> None:
    (sequence,) = read(EVENTS, "EVENTS")
    profile = profile_named(PROFILE)
    assert profile is not None
    outcome = replay(sequence.evidence, profile.with_settings(sequence.settings))
    assert outcome.violations == ()
'''


@dataclass(frozen=True)
class Account:
    """A counterexample found in a sequence under the rules of a profile, in words.

    `source` says where the sequence is from, `places` where each request stands, by its id; times
    are shown in ms after `began_ms`.
    """

    found: Counterexample
    sequence: EventSequence
    profile: Profile
    source: str
    places: Mapping[str, str]
    began_ms: float = 0.0

    def files(self) -> Mapping[str, str]:
        """Write it in all forms, by file names."""
        events = self._events()
        cited = "\n".join(f"    {text!r}," for text in events)
        title = f"{self.source}: {self.found.violation.request} is unexplained."
        return {
            PAGE: "".join(f"{printable(line)}\n" for line in (*self.shown(), "", *self._raw())),
            EVENTS: "".join(f"{text}\n" for text in events),
            CASE: TEST.format(title=_quoted(title), profile=self.profile.name, events=cited),
        }

    def shown(self) -> list[str]:
        """Return lines: the requests that are left, and what was expected beside the observed."""
        requests = self.found.evidence.requests
        kept = f"{len(requests)} requests of {len(requests) + self.found.left_out}"
        return [
            f"counterexample: {self.source}, under the rules of {self.profile.name}",
            kept if self.found.minimal else f"{kept}; to leave out more would take too long",
            "",
            *table(requests, self.found.violation.request, self.began_ms),
            "",
            *self._expected_and_observed(),
        ]

    def _expected_and_observed(self) -> Iterator[str]:
        """Yield what the oracle expects, in any order of events, beside what was observed."""
        violation, requests = self.found.violation, self.found.evidence.requests
        wrong = next((seen for seen in requests if seen.id == violation.request), None)
        about = (
            f", {wrong.api} of {wrong.client_id}, {request_text(wrong)}"
            if wrong is not None
            else ""
        )
        no_order = "no order of events explains" if violation.searched else "no order was found for"
        yield f"{no_order} what was answered to {violation.request}{about}"
        yield f"  rule: {violation.rule.replace('_', ' ')}"
        yield f"  {'expected':{WIDTH}} observed"
        yield f"  {violation.expected:{WIDTH}} {violation.observed}"
        for other in violation.otherwise:
            yield f"  or {other}"
        if broken := self.found.broken:
            yield f"explained if this promise is broken: {', or '.join(broken)}"

    def _raw(self) -> Iterator[str]:
        for seen in self.found.evidence.requests:
            yield f"{self.places[seen.id]}: {self.sequence.text(seen.id)}"

    def _events(self) -> list[str]:
        """Take the lines that are left out of the sequence, with its header and its end."""
        header = json.loads(self.sequence.texts[0])
        if "logged" in header:
            header |= _broker_evidence(self.found.evidence)
        header |= {"profile": self.profile.name, "broken": self.found.broken}
        left = (self.sequence.text(seen.id) for seen in self.found.evidence.requests)
        return [_text(header), *left, self.sequence.texts[-1]]


def event_lines(header: Mapping[str, Any], evidence: Evidence) -> Iterator[str]:
    """Write evidence from brokers as a sequence of an event file; `header` is what begins it."""
    header_fields = {"format": FORMAT, **header, "group": evidence.group, "sequence": 0}
    yield _text(header_fields | _broker_evidence(evidence))
    last_ms = 0.0
    for seen in evidence.requests:
        answered_ms = seen.at_ms if seen.response is None else seen.answered_ms
        last_ms = max(last_ms, seen.at_ms, answered_ms)
        yield _text(_line(seen))
    yield _text({"at_ms": last_ms, "end": True})


_SENT = ("at_ms", "id", "connection", "api", "api_version", "client_id", "client_host")
_WHERE = ("broker", "earliest_ms", "latest_ms", "serial")


def _line(seen: ObservedRequest) -> dict[str, Any]:
    """Return a request's line, with what brokers logged that stands with it."""
    line = {key: getattr(seen, key) for key in _SENT}
    logged = {key: getattr(seen, key) for key in _WHERE}
    if seen.taken_ms > seen.earliest_ms:
        logged["taken_ms"] = seen.taken_ms
    logged["latest_ms"] = min(seen.latest_ms, LAST_MS)
    line |= {"logged": logged, "request": seen.request}
    if seen.response is not None:
        line |= {"answered_at_ms": seen.answered_ms, "response": seen.response}
    return line


def _broker_evidence(evidence: Evidence) -> dict[str, Any]:
    """Return the header's fields of what brokers logged in addition to requests."""
    logged = {
        "hints": list(map(_finite, evidence.hints)),
        "servings": list(map(_finite, evidence.epoch_events)),
        "stalls": list(map(_finite, evidence.stalls)),
    }
    seldom: dict[str, Any] = {
        "loading": list(map(_finite, evidence.loading)),
        "reconnects_ms": min(evidence.reconnects_ms, LAST_MS),
        "partings": list(map(_finite, evidence.partings)),
    }
    return {
        "outages": [[each.from_ms, min(each.until_ms, LAST_MS)] for each in evidence.outages],
        "logged": logged | {key: value for key, value in seldom.items() if value},
    }


def _finite(one: Hint | EpochEvent | Stall | Parting) -> dict[str, Any]:
    """Write down what is known; `proven` stands only with what is not."""
    known = {key: value for key, value in asdict(one).items() if value is not None}
    if known.get("proven"):
        del known["proven"]
    return {key: LAST_MS if value == inf else value for key, value in known.items()}


def _text(line: Mapping[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def _quoted(text: str) -> str:
    """Write a text so that it can stand in a string of Python, whatever a file is called."""
    return ascii(text)[1:-1].replace('"', '\\"')
