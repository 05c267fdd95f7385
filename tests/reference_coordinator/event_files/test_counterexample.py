"""Counterexamples: as little evidence as shows a violation, for people and as a test."""

import subprocess
import sys
from dataclasses import replace as altered
from pathlib import Path
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.releases import (
    NEWEST,
    profile_for,
    profile_named,
    promised_by,
    with_one_broken,
)
from reference_coordinator.event_files.counterexample import Counterexample, counterexample
from reference_coordinator.event_files.reading import EventSequence, read
from reference_coordinator.event_files.writing import CASE, EVENTS, PAGE, Account
from reference_coordinator.replay import Parting, replay
from reference_coordinator.replay.evidence import Evidence
from reference_coordinator.replay.result import Replay
from reports.judgement.recording import Recording
from tests.recorded.logs import RECORDINGS
from tests.reference_coordinator.event_files.event_lines import from_log, of_scenario, one
from tests.reference_coordinator.replay.conftest import Scenario, rejoin, stable

GOLDEN = Path(__file__).parent / "golden" / "counterexample.txt"
DEFECTS = sorted((Path(__file__).parents[2] / "recorded" / "defects").glob("*.jsonl"))
PROMISES_OF_FINDINGS = {
    "changed_subscription_rebalances", "every_return_is_stored", "instance_keeps_its_place",
    "joins_update_timeouts", "replaced_id_stays_pending_sync", "return_is_stored",
    "return_makes_completing_group_rebalance", "sessions_wait_for_clients",
    "sync_timer_spares_statics",
}  # fmt: skip
"""What docs/findings.md names as the promise that is broken; the others break no answer."""


def fenced_without_reason() -> Scenario:
    """b leaves; then a's response is FENCED_INSTANCE_ID, not REBALANCE_IN_PROGRESS."""
    scenario = stable()
    scenario.heartbeats("a", 1_500, 2_500)
    scenario.heartbeats("b", 1_510, 2_510)
    scenario.heartbeat("c", 2_600, error=Error.UNKNOWN_MEMBER_ID)
    scenario.leave("b", 2_700)
    scenario.heartbeat("a", 2_800, error=Error.FENCED_INSTANCE_ID)
    scenario.heartbeat("a", 3_300, error=Error.REBALANCE_IN_PROGRESS)
    return scenario


def reduced(scenario: Scenario) -> tuple[EventSequence, Counterexample]:
    sequence = one(of_scenario(scenario))
    found = counterexample(sequence.evidence, NEWEST.with_settings(sequence.settings))
    assert found is not None
    return sequence, found


@pytest.fixture(scope="module")
def fenced() -> tuple[EventSequence, Counterexample]:
    return reduced(fenced_without_reason())


def kept(found: Counterexample) -> list[str]:
    """Return the requests that are left."""
    return [seen.id for seen in found.evidence.requests]


def account(found: Counterexample, sequence: EventSequence) -> Account:
    places = {request: f"some.jsonl:{line}" for request, line in sequence.places.items()}
    return Account(found, sequence, NEWEST, "some.jsonl:1, sequence 0, group g", places)


def test_explained_evidence_has_no_counterexample() -> None:
    sequence = one(of_scenario(stable()))
    assert counterexample(sequence.evidence, NEWEST.with_settings(sequence.settings)) is None


def test_a_reduced_counterexample_shows_the_same_violation_and_is_minimal(
    fenced: tuple[EventSequence, Counterexample],
) -> None:
    """What comes after the wrong response is left out as well."""
    sequence, found = fenced
    profile = NEWEST.with_settings(sequence.settings)
    shown = found.violation.request, found.violation.observed
    assert shown == ("HEARTBEAT:a:2800", "error=FENCED_INSTANCE_ID")
    before = ["JOIN_GROUP:a:0", "JOIN_GROUP:b:20", "LEAVE_GROUP:b:2700"]
    assert kept(found) == [*before, "HEARTBEAT:a:2800"]
    assert found.left_out == len(sequence.requests) - 4
    assert found.minimal
    for place in range(len(before)):
        fewer = [seen for n, seen in enumerate(found.evidence.requests) if n != place]
        less = replay(altered(found.evidence, requests=tuple(fewer)), profile)
        assert [(v.request, v.expected) for v in less.violations[:1]] != [
            (found.violation.request, found.violation.expected)
        ]


def test_what_brokers_logged_in_addition_is_removed() -> None:
    """A broker was cut off from the others; that explains nothing here."""
    sequence = one(of_scenario(fenced_without_reason()))
    parted = altered(sequence.evidence, partings=(Parting("2", 0.0, 1.0, 2.0, 3.0),))
    found = counterexample(parted, NEWEST.with_settings(sequence.settings))
    assert found is not None
    assert found.evidence.partings == ()


def test_heartbeats_are_kept_if_a_session_would_expire_without_them() -> None:
    """a receives REBALANCE_IN_PROGRESS, though b's heartbeats show that b is alive."""
    scenario = stable()
    for at in (1_500, 3_500, 5_500):
        scenario.heartbeat("a", at)
        scenario.heartbeat("b", at + 10)
    scenario.heartbeat("a", 7_500, 27)
    _, found = reduced(scenario)
    assert found.violation.expected == "error=NONE"
    assert {"HEARTBEAT:b:3510", "HEARTBEAT:b:5510"} <= set(kept(found))


def test_reduction_does_not_replace_the_violation_by_a_session_expiry() -> None:
    """b left, and is answered long after; without its leaving, its session would be over."""
    scenario = stable()
    scenario.leave("b", 1_500)
    for at in range(2_000, 7_000, 1_000):
        scenario.heartbeat("a", at, 27)
    scenario.heartbeat("b", 6_500)
    _, found = reduced(scenario)
    assert found.violation.expected == "error=UNKNOWN_MEMBER_ID"
    assert "LEAVE_GROUP:b:1500" in kept(found)


def test_reducing_is_given_up_after_some_steps() -> None:
    sequence = one(of_scenario(fenced_without_reason()))
    profile = NEWEST.with_settings(sequence.settings)
    found = counterexample(sequence.evidence, profile, steps=20)
    assert found is not None
    assert (found.minimal, found.violation.request) == (False, "HEARTBEAT:a:2800")


def test_a_page_has_what_was_expected_beside_what_was_observed_and_the_raw_lines(
    fenced: tuple[EventSequence, Counterexample],
) -> None:
    sequence, found = fenced
    page = account(found, sequence).files()[PAGE]
    assert page == GOLDEN.read_text(encoding="utf-8")
    for seen in found.evidence.requests:
        assert f"some.jsonl:{sequence.places[seen.id]}: {sequence.text(seen.id)}" in page


def test_responses_expected_under_other_orders_are_listed() -> None:
    """b leaves during a's request: NONE and REBALANCE_IN_PROGRESS are right, nothing else."""
    scenario = stable()
    scenario.heartbeats("a", 1_500, 2_500)
    scenario.leave("b", 2_700, answered=2_900)
    scenario.heartbeat("a", 2_750, 22, answered=2_850)
    sequence, found = reduced(scenario)
    expected = {found.violation.expected, *found.violation.otherwise}
    assert expected == {"error=NONE", "error=REBALANCE_IN_PROGRESS"}
    assert any("  or error=" in line for line in account(found, sequence).shown())


@pytest.mark.parametrize(
    ("code", "result"),
    [(Error.FENCED_INSTANCE_ID, "1 failed"), (Error.REBALANCE_IN_PROGRESS, "1 passed")],
    ids=["as observed", "explained"],
)
def test_the_generated_test_fails_as_the_evidence_does(
    fenced: tuple[EventSequence, Counterexample], tmp_path: Path, code: Error, result: str
) -> None:
    """In a process of its own, and it needs nothing but the oracle."""
    sequence, found = fenced
    case = account(found, sequence).files()[CASE]
    imported = {line.split()[1] for line in case.splitlines() if "import" in line}
    assert {name.partition(".")[0] for name in imported} == {"reference_coordinator"}
    file = tmp_path / "test_counterexample.py"
    assert '"errorCode": 82' in case
    file.write_text(case.replace('"errorCode": 82', f'"errorCode": {code:d}'), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result in done.stdout
    assert ("FENCED_INSTANCE_ID" in done.stdout) == (result == "1 failed")


def test_many_generations_are_kept_where_the_last_is_wrong() -> None:
    """Generations are counted, so none can be left out; what is in them can."""
    scenario = stable()
    for generation, at in enumerate((2_000, 2_500, 3_000), 2):
        rejoin(scenario, at, generation)
    scenario.change("JOIN_GROUP:b:3040", generationId=5)
    _, found = reduced(scenario)
    assert found.violation.expected == "generation=4"
    assert [request for request in kept(found) if "SYNC" not in request] == [
        f"JOIN_GROUP:{who}:{at}"
        for who, at in [("a", 0), ("b", 20)]
        + [(who, at + late) for at in (2_000, 2_500, 3_000) for who, late in (("a", 0), ("b", 40))]
    ]


def lie_in(recording: Recording, after: int) -> tuple[EventSequence, str]:
    """Return a recorded group with a heartbeat that is answered wrongly, and that request."""
    lines = [
        line
        for line in recording.lines
        if line.request is not None and line.request["request"]["groupId"] == "static"
    ]
    sequence = one(from_log(recording, "static", lines))
    place = next(
        n for n, seen in enumerate(sequence.requests) if seen.api == "HEARTBEAT" and n > after
    )
    wrong = sequence.requests[place]
    sequence.requests[place] = altered(
        wrong, response={**wrong.response_fields, "errorCode": Error.ILLEGAL_GENERATION}
    )
    return sequence, wrong.id


@pytest.mark.parametrize("recording", RECORDINGS.values(), ids=RECORDINGS)
def test_a_lie_in_a_recording_is_shown_whatever_the_effort(recording: Recording) -> None:
    sequence, wrong = lie_in(recording, 100)
    for tries in (0, 1, 4):
        asked = iter([False] * tries + [True] * 9)
        found = counterexample(sequence.evidence, recording.profile, is_over=asked.__next__)
        assert found is not None
        assert not found.minimal
        assert found.violation.request == wrong
        assert bool(found.left_out) == (tries > 0), "all that comes after it is left out first"
        alone = replay(found.evidence, recording.profile, first_alone=True)
        assert alone.violations == (found.violation,)


def test_a_lie_in_a_recording_is_reduced_to_a_few_requests() -> None:
    recording = RECORDINGS["kafka-4.3.0"]
    sequence, wrong = lie_in(recording, 40)
    found = counterexample(sequence.evidence, recording.profile)
    assert found is not None
    assert (found.violation.request, found.violation.searched) == (wrong, True)
    assert found.minimal
    assert len(found.evidence.requests) < 20
    alone = replay(found.evidence, recording.profile, first_alone=True)
    assert alone.violations == (found.violation,)


def test_each_finding_with_a_broken_promise_is_recorded() -> None:
    assert {file.stem.partition("-")[0] for file in DEFECTS} == PROMISES_OF_FINDINGS
    page = (Path(__file__).parents[3] / "docs" / "findings.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in PROMISES_OF_FINDINGS)


@pytest.mark.parametrize("file", DEFECTS, ids=lambda file: file.stem)
def test_the_smallest_counterexample_is_explained_by_its_own_promise_and_by_no_other(
    file: Path,
) -> None:
    """Of real brokers. Its file is replayed by its own rules, and a request fewer tells less."""
    (whole,) = read(file.read_text(encoding="utf-8").splitlines(), file.name)
    rules = profile_for(whole.kafka, whole.coordinator)
    assert rules is not None
    promised = promised_by(rules).with_settings(whole.settings)
    found = counterexample(whole.evidence, promised)
    assert found is not None
    assert (found.broken, found.minimal) == ((file.stem.partition("-")[0],), True)
    account = Account(found, whole, promised, file.name, dict.fromkeys(whole.places, file.name))
    files = account.files()
    (smallest,) = read(files[EVENTS].splitlines(), EVENTS)
    own = profile_named(smallest.profile)
    assert own is not None
    intact = own.with_settings(smallest.settings)
    assert intact == promised
    explained_by = lambda rules: not replay(smallest.evidence, rules).violations
    assert not explained_by(intact)
    assert explained_by(rules.with_settings(smallest.settings)), "as the release is"
    broken = with_one_broken(intact)
    assert {name for name in broken if explained_by(broken[name])} == {*found.broken}
    again = counterexample(smallest.evidence, intact)
    assert again is not None
    assert (again.evidence.requests, again.broken) == (found.evidence.requests, found.broken)
    assert f"explained if this promise is broken: {found.broken[0]}\n" in files[PAGE]


def test_once_its_time_is_over_nothing_more_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it say then which promise is broken."""
    (whole,) = read(DEFECTS[0].read_text(encoding="utf-8").splitlines(), "events")
    rules = profile_for(whole.kafka, whole.coordinator)
    assert rules is not None
    replayed: list[Evidence] = []

    def counted(evidence: Evidence, *args: Any, **more: Any) -> Replay:
        replayed.append(evidence)
        return replay(evidence, *args, **more)

    monkeypatch.setattr("reference_coordinator.event_files.counterexample.replay", counted)
    promised = promised_by(rules).with_settings(whole.settings)
    found = counterexample(whole.evidence, promised, is_over=lambda: True)
    assert found is not None
    assert (found.broken, found.minimal, len(replayed)) == ((), False, 1)


def test_the_rules_of_a_release_promise_nothing() -> None:
    assert with_one_broken(NEWEST) == {}
