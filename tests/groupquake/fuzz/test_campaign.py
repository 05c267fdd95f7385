"""What a campaign writes of an unexplained sequence: it, and few requests that show it."""

import json
import lzma
from collections import Counter
from pathlib import Path

from groupquake.fuzz.campaign import Outcome, Played, write
from groupquake.fuzz.judge import Judged, Verdict, judge, parsed
from kafka_protocol.errors import Error
from loadtest.wire import EventLog, Exchange
from reference_coordinator.classic.releases import NEWEST, profile_for

(TRACE,) = (Path(__file__).parents[2] / "recorded" / "traces").glob("*fuzz-7-0.6.jsonl.xz")
TEXT = lzma.decompress(TRACE.read_bytes()).decode()


def altered() -> str:
    """The sequence with an error that nothing is a reason for in its last good answer."""
    lines = [json.loads(line) for line in TEXT.splitlines()]
    good = [line for line in lines if line.get("response", {}).get("errorCode") == 0]
    good[-1]["response"]["errorCode"] = int(Error.COORDINATOR_LOAD_IN_PROGRESS)
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_an_unexplained_sequence_is_reduced(tmp_path: Path) -> None:
    sequence = parsed(TEXT)
    profile = profile_for(sequence.kafka, sequence.coordinator)
    assert profile is not None
    assert judge(TEXT, profile).verdict is Verdict.EXPLAINED
    judged = judge(altered(), profile)
    assert judged.verdict is Verdict.UNEXPLAINED
    page = write(altered(), judged.verdict, profile, tmp_path, reduce=True)
    assert "COORDINATOR_LOAD_IN_PROGRESS" in page.read_text()
    small = parsed((page.parent / "counterexample.jsonl").read_text())
    assert 0 < len(small.requests) < len(sequence.requests)
    assert (tmp_path / f"unexplained-{sequence.number}.jsonl").read_text() == altered()


def test_a_sequence_that_is_not_reduced_is_written_as_it_is(tmp_path: Path) -> None:
    file = write(TEXT, Verdict.UNKNOWN, NEWEST, tmp_path, reduce=False)
    assert file.read_text() == TEXT
    assert list(tmp_path.iterdir()) == [file]


def test_an_outcome_counts_sequences_and_requests() -> None:
    outcome = Outcome()
    log = EventLog()
    for response in ({"errorCode": 0}, None, None):
        log.add(Exchange("c.1", "c", "HEARTBEAT", 4, {}, 1, response=response))
    outcome.add("text", Played(0, "g", log, lost=1, bulky=False))
    assert (outcome.requests, outcome.unanswered, outcome.lost) == (3, 2, 1)
    of = {verdict: Judged(verdict, Counter(), Counter(), 0.1) for verdict in Verdict}
    for verdict in (Verdict.EXPLAINED, Verdict.UNKNOWN, Verdict.UNEXPLAINED):
        outcome.judged.append(of[verdict])
        assert outcome.worst is verdict
    assert outcome.counts == "1 explained, 1 unexplained, 1 unknown"
