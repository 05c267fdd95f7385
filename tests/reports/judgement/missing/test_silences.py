"""Members that lived on, of which the log of a killed broker has nothing for too long."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Stall
from reports.judgement.judging import known_clients
from reports.judgement.logged import REQUEST, Chunk
from reports.judgement.missing.silences import Silences
from reports.judgement.recording import Recording
from scenarios import named
from tests.recorded.logs import HISTORIES, RECORDINGS

AT, ANSWERED, API, BROKER = map(REQUEST.index, ("at_ms", "answered_ms", "api", "broker"))
KILLED_MS, EVERY_MS = 60_000.0, 1_000.0
KILLS = [("1", KILLED_MS, KILLED_MS + 20.0)]


def request(
    at_ms: float,
    broker: str,
    api: str = "HEARTBEAT",
    error: int = 0,
    client: str = "a",
    number: int | None = None,
) -> tuple:
    known = {"at_ms": at_ms, "answered_ms": at_ms, "broker": broker, "api": api,
             "client_id": client, "error_code": error, "line": 7,
             "correlation_id": int(at_ms / EVERY_MS) if number is None else number}  # fmt: skip
    return tuple(known.get(name) for name in REQUEST)


def found(*requests: tuple, client: str = "a", stalls: Sequence[Stall] = ()) -> list[str]:
    silences = Silences(KILLS, {client: EVERY_MS}, stalls)
    for one in requests:
        silences.add([one])
    return [row["what"] for row in silences.rows()]


@pytest.mark.parametrize("broker", ["1", "2"], ids=["restarted", "elsewhere"])
@pytest.mark.parametrize(
    ("silent_ms", "cut"),
    [(0.0, False), (2_500.0, False), (2_501.0, True), (9e3, True)],
)
def test_a_member_that_lived_on_sent_heartbeats_until_the_kill(
    silent_ms: float, broker: str, *, cut: bool
) -> None:
    rows = request(KILLED_MS - silent_ms, "1"), request(KILLED_MS + 4_000, broker)
    what = (
        f"no request for {silent_ms:.0f} ms before the broker was killed, though a was in its group"
    )
    assert found(*rows) == ([what] if cut else [])


@pytest.mark.parametrize(
    ("last", "following"),
    [
        # it waited in a JoinGroup, which a killed broker does not log
        (request(9_000, "1", error=Error.REBALANCE_IN_PROGRESS), request(70_000, "2")),
        (request(9_000, "1", "JOIN_GROUP"), request(70_000, "2")),
        # another process, or one that joined again
        (request(9_000, "1"), request(70_000, "2", "JOIN_GROUP")),
        # the group had gone elsewhere before
        (request(9_000, "1"), request(20_000, "2")),
        (request(9_000, "3"), request(70_000, "2")),
    ],
)
def test_others_may_have_been_silent(last: tuple, following: tuple) -> None:
    assert found(last, following) == []


def test_a_log_that_goes_on_with_others_was_not_cut() -> None:
    others = [request(KILLED_MS - back_ms, "1", client="b") for back_ms in (5_000, 1_000)]
    assert found(request(9_000, "1"), *others, request(70_000, "2")) == []
    cut = found(request(9_000, "1"), others[0], request(70_000, "2"))
    assert [what[:23] for what in cut] == ["no request for 5000 ms "]


@pytest.mark.parametrize(("skipped", "cut"), [(3, False), (4, False), (5, True), (12, True)])
def test_a_member_that_sent_nothing_was_silent_itself(skipped: int, *, cut: bool) -> None:
    before = request(KILLED_MS - 9_000, "1", number=20)
    assert bool(found(before, request(70_000, "2", number=21 + skipped))) == cut


@pytest.mark.parametrize(("silent_ms", "cut"), [(7_500.0, False), (7_501.0, True)])
def test_what_comes_while_a_broker_stands_still_is_in_no_log(
    silent_ms: float, *, cut: bool
) -> None:
    stall = Stall("1", KILLED_MS - 5_500, KILLED_MS - 500)
    rows = [request(KILLED_MS - silent_ms, "1"), request(KILLED_MS + 4_000, "2")]
    assert bool(found(*rows, stalls=[stall])) == cut
    assert found(*rows, stalls=[replace(stall, broker="2")])
    assert found(*rows, stalls=[replace(stall, proven=False)])


def test_of_members_that_number_all_their_connections_together_nothing_is_known() -> None:
    experiment = named("skip-assignment")
    clients = {one.name: one.client for one in experiment.members()}
    known = known_clients(experiment).heartbeat_ms
    assert {clients[name] for name in known} <= {"librdkafka"}
    assert "java" in clients.values()


def test_a_client_whose_interval_is_not_known_is_left_out() -> None:
    assert found(request(9_000, "1"), request(70_000, "2"), client="another") == []


@pytest.mark.parametrize(
    "recording", [*RECORDINGS.values(), *HISTORIES.values()], ids=[*RECORDINGS, *HISTORIES]
)
@pytest.mark.parametrize(
    ("more_ms", "cut"), [(-1_000, False), (-10, False), (10, True), (200, True), (3_000, True)]
)
def test_a_recorded_log_that_is_cut_before_a_kill(
    recording: Recording, more_ms: float, *, cut: bool
) -> None:
    """The kill is made up: of groups with real members only that of one history lost its broker."""
    (group,) = (one for one in recording.run.experiment.workload.groups if one.name == "static")
    rows = Chunk.of(recording.rows_by_group["static"]).requests
    broker = rows[len(rows) * 3 // 4][BROKER]
    mine = [row for row in rows if row[BROKER] == broker]
    last = next(row for row in mine[len(mine) * 3 // 4 :] if row[API] == "HEARTBEAT")
    silent_ms = group.heartbeat_interval_ms + 1_500 + more_ms
    kill = (broker, last[ANSWERED] + silent_ms, last[ANSWERED] + silent_ms)
    members = recording.run.experiment.members()
    silences = Silences([kill], {one.name: group.heartbeat_interval_ms for one in members})
    silences.add(row for row in rows if row is last or not last[AT] <= row[AT] <= kill[1])
    assert bool(list(silences.rows())) == cut
