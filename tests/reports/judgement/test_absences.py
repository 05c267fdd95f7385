"""Faults on members against brokers: recorded journals, and such as have other times."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from reference_coordinator.replay import ObservedRequest, Stall
from reports.judgement.breaches import Breach
from reports.judgement.disturbances import Disturbances
from reports.judgement.findings import collect
from reports.judgement.logged import Chunk, HeldUp, Requests
from reports.judgement.members import Absent
from reports.judgement.recording import Recording
from reports.judgement.run.disturbance import Absence, Disturbance, Source
from reports.judgement.run.faults import absences, faults_of
from tests.recorded.logs import HISTORIES

GROUP = "static"
Entry = Mapping[str, Any]
ALL = pytest.mark.parametrize("recording", HISTORIES.values(), ids=HISTORIES)
MEMBERS = ("member.restart", "member.duplicate-instance")


def absences_of(journal: Iterable[Entry]) -> tuple[Absence, ...]:
    return absences(faults_of(journal))


def moved(recording: Recording, by_ms: float) -> list[Entry]:
    """Return the journal with all faults on members at other times."""
    journal = recording.run.journal
    ids = {e["fault_id"] for e in journal if e["event"] == "intent" and e["fault"] in MEMBERS}
    shifted = lambda e: {**e, "at_ms": e["at_ms"] + by_ms}
    return [shifted(e) if e.get("fault_id") in ids else e for e in journal]


def contradicted(recording: Recording, journal: Iterable[Entry]) -> list[str]:
    requests = Requests.of(Chunk.of(recording.rows_by_group[GROUP]))
    arrived = list(zip(requests.observed, requests.arrived_ms, strict=True))
    found = Absent(absences_of(journal)).add(arrived)
    return [row["kind"] for row in found]


@ALL
@pytest.mark.parametrize(
    ("by_ms", "kinds"),
    [(0, set()), (-250, set()), (5, set()),
     *((by_ms, {Breach.SENT_WHILE_DOWN}) for by_ms in (-3_000, -2_000, 2_000, 3_000))],
)  # fmt: skip
def test_members_that_are_down_send_nothing(recording, by_ms, kinds):
    """In a journal whose faults are at other times they seem to."""
    journal = moved(recording, by_ms)
    assert absences_of(journal)
    assert {*contradicted(recording, journal)} == kinds


def stray(
    recording: Recording, journal: Sequence[Entry], intent: Entry, after: str, ms: float
) -> ObservedRequest:
    """Return a heartbeat of a fault's client so long after an entry of the fault."""
    (entry,) = (
        e for e in journal if (e.get("fault_id"), e["event"]) == (intent["fault_id"], after)
    )
    args, at_ms = intent["args"], entry["at_ms"] + ms
    client = args.get("duplicate", intent["target"])
    seen = Requests.of(Chunk.of(recording.rows_by_group[GROUP])).observed
    like = next(one for one in seen if one.client_id == client)
    return replace(like, earliest_ms=at_ms, at_ms=at_ms, latest_ms=at_ms, answered_ms=at_ms)


@ALL
@pytest.mark.parametrize(
    ("within_ms", "found"), [(-20, False), (-1, False), (1, True), (20, True), (400, True)]
)
def test_a_request_while_its_member_is_down(recording, within_ms, found):
    """500 ms after it was stopped, and 50 ms before it is started; a duplicate the other way."""
    journal = recording.run.journal
    faults = [e for e in journal if e["event"] == "intent" and e["fault"] in MEMBERS]
    assert faults
    for intent in faults:
        down_ms = intent["args"].get("down_for_ms")
        if down_ms is None:
            ends = [("intent", -50 - within_ms), ("healed", 500 + within_ms)]
        else:
            ends = [("injected", 500 + within_ms), ("injected", down_ms - 50 - within_ms)]
        for after, ms in ends:
            one = stray(recording, journal, intent, after, ms)
            judged = Absent(absences_of(journal))
            assert bool(list(judged.add([(one, one.earliest_ms)]))) == found


def entries(fault: str, *events: tuple[str, float], **args: Any) -> list[Entry]:
    intent = {"fault": fault, "group": "g", "target": "m", "args": args}
    about = {"fault_id": "f1", "healed": True, "verified": True, "witness": ""}
    return [
        {**about, "event": event, "at_ms": at_ms, **(intent if event == "intent" else {})}
        for event, at_ms in events
    ]


INTENT, INJECTED = ("intent", 0.0), ("injected", 100.0)


@pytest.mark.parametrize("fault", ["member.restart", "member.kill"])
def test_a_member_is_down_for_as_long_as_the_fault_says(fault):
    (found,) = absences_of(entries(fault, INTENT, INJECTED, ("healed", 5_200.0), down_for_ms=5_000))
    assert (found.client, found.from_ms, found.until_ms) == ("m", 100.0, 5_050.0)


@pytest.mark.parametrize(
    "journal",
    [
        entries("member.restart", INTENT, down_for_ms=5_000),
        entries("member.kill", INTENT, INJECTED, ("healed", 2_000.0), down_for_ms=5_000),
        entries("member.restart", INTENT, INJECTED, ("healed", 2_000.0)),
        entries("broker.kill", INTENT, INJECTED, down_for_ms=5_000),
    ],
    ids=["not injected", "healed early, as the run ended", "no duration", "a broker"],
)
def test_times_in_which_a_member_may_be_up(journal):
    assert absences_of(journal) == ()


def test_a_duplicate_is_there_during_its_faults_alone():
    times = (("intent", 1_000.0), ("injected", 1_100.0), ("healed", 3_000.0))
    first = entries("member.duplicate-instance", *times, duplicate="m.duplicate")
    second = [{**one, "fault_id": "f2", "at_ms": one["at_ms"] + 5_000} for one in first]
    found = absences_of([*first, *second])
    inf = float("inf")
    times = [(one.from_ms, one.until_ms) for one in found]
    assert times == [(-inf, 950.0), (3_000.0, 5_950.0), (8_000.0, inf)]


KILLED = absences_of(
    entries(
        "member.kill", ("intent", 2_000.0), ("injected", 2_300.0), ("healed", 17_400.0),
        down_for_ms=15_000,
    )
)  # fmt: skip


def read_at(earliest_ms: float) -> tuple[ObservedRequest, float]:
    times = (earliest_ms, earliest_ms + 1, earliest_ms + 2, earliest_ms + 150)
    body = {"errorCode": 0, "members": []}
    seen = ObservedRequest("1:7", "1", "LEAVE_GROUP", 5, "m", "c", *times, {}, body)
    return seen, earliest_ms


@pytest.mark.parametrize(
    ("pause", "read_ms", "found"),
    [
        (None, 2_800.0, False),
        (None, 2_801.0, True),
        (Stall("1", 0.0, 10_000.0), 10_500.0, False),
        (Stall("1", 0.0, 10_000.0), 10_501.0, True),
        (Stall("2", 0.0, 10_000.0), 2_801.0, True),
        (Stall("1", 0.0, 2_000.0), 2_801.0, True),
    ],
)
def test_what_waits_in_the_socket_of_a_broker_that_stands_still(pause, read_ms, found):
    absent = Absent(KILLED, HeldUp([] if pause is None else [pause]).lateness)
    kinds = [row["kind"] for row in absent.add([read_at(read_ms)])]
    assert kinds == [Breach.SENT_WHILE_DOWN] * found


@pytest.mark.parametrize(
    ("broker", "from_ms", "until_ms", "proven"),
    [
        ("", 0.0, 5_000.0, False),
        ("1", 3_000.0, 3_500.0, False),
        ("2", 0.0, 5_000.0, True),
        ("", 0.0, 2_200.0, True),
        ("", 4_100.0, 9_000.0, True),
    ],
)
def test_what_waits_in_a_tap_on_a_busy_machine(broker, from_ms, until_ms, proven):
    """It may have waited from when its member went down until it arrived."""
    breaches = [*Absent(KILLED).add([read_at(4_000.0)])]
    found = collect([], [], [], [{"group": GROUP, **row} for row in breaches])
    busy = Disturbance(broker, from_ms, until_ms, "all waited", Source.PRESSURE)
    assert [one.kind for one in found] == [Breach.SENT_WHILE_DOWN]
    assert [one.proven for one in Disturbances([busy], {}).judged(found)] == [proven]


@pytest.mark.parametrize(
    ("arrives_ms", "connection", "found"),
    [(3_050.0, "c", False), (3_051.0, "c", True), (3_050.0, "d", True)],
)
def test_what_waits_behind_a_request_of_its_connection(arrives_ms, connection, found):
    """The broker answers the one before it at 3,000, and reads it then."""
    absent = Absent(KILLED)
    before = replace(read_at(2_250.0)[0], answered_ms=3_000.0)
    then = replace(read_at(arrives_ms)[0], connection=connection)
    kinds = [row["kind"] for row in absent.add([(before, 2_250.0), (then, arrives_ms)])]
    assert kinds == [Breach.SENT_WHILE_DOWN] * found


@ALL
@pytest.mark.parametrize(
    ("fault", "args", "healed_after_ms", "by_ms"),
    [
        ("net.delay", {"latency_ms": 1_000, "jitter_ms": 200}, 100, 1_700),
        ("net.delay", {"latency_ms": 100}, 1_000, 600),
        ("net.delay", {"latency_ms": 1_000}, -900, 600),
        ("net.delay", {"latency_ms": 1_000}, -1_100, 500),
        ("net.hold", {}, 2_000, 2_500),
        ("net.hold", {}, -100, 500),
        ("net.drop-answers", {}, 2_000, 500),
    ],
)
def test_what_the_tap_holds_of_a_client_that_is_down(
    recording, fault, args, healed_after_ms, by_ms
):
    """A request that the client had sent reaches its broker late, and by no more than that."""
    journal = [*recording.run.journal]
    intent = next(e for e in journal if e["event"] == "intent" and e["fault"] in MEMBERS)
    duplicate = "duplicate" in intent["args"]
    last = "healed" if duplicate else "injected"
    (down,) = (e for e in journal if (e.get("fault_id"), e["event"]) == (intent["fault_id"], last))
    client = intent["args"].get("duplicate", intent["target"])
    rule = {"fault_id": "wire", "group": GROUP, "target": client, "fault": fault, "args": args}
    faults = [
        {**rule, "event": "intent", "at_ms": down["at_ms"] - 60_000},
        {**rule, "event": "healed", "healed": True, "at_ms": down["at_ms"] + healed_after_ms},
    ]
    for after_ms, wrong in ((by_ms - 20, False), (by_ms + 20, True)):
        late = stray(recording, journal, intent, last, after_ms)
        found = list(Absent(absences_of([*journal, *faults])).add([(late, late.earliest_ms)]))
        assert bool(found) == wrong
