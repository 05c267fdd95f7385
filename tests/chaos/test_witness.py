import threading
import time
from pathlib import Path

import pytest

from chaos.tail import Tail
from chaos.witness import LineTimes, Witness
from kafka_protocol.errors import Error
from tests.chaos.fakes import BrokerLog, nanos, request_text

T = 1795261540000


@pytest.fixture
def witness(log: BrokerLog) -> Witness:
    return Witness({2: log.path})


def test_the_latest_request_has_its_place(log, witness):
    log.request("static-3", "HEARTBEAT", T)
    line = log.request("static-3", "OFFSET_COMMIT", T + 500, error=None)
    log.request("static-1", "HEARTBEAT", T + 900)
    witness.poll()
    last = witness.latest("static-3")
    assert (last.api, last.completed_ms, last.error_code) == ("OFFSET_COMMIT", T + 500, None)
    assert last.place == f"group.log of broker 2, line {line}"
    assert witness.latest("static-3", T + 501) is None
    assert witness.latest("static-3", T + 500)
    assert witness.latest("static-2") is None
    assert witness.latest("static-2", 0) is None


def test_threads_that_wait_for_a_reading_share_the_next(log, witness, monkeypatch):
    """A wave has hundreds of threads, and each polls twenty times a second."""
    goes_on, readings = threading.Event(), []

    def appended(_):
        readings.append(goes_on.wait(60))
        return iter(())

    monkeypatch.setattr(Tail, "appended", appended)
    threads = [threading.Thread(target=witness.poll) for _ in range(100)]
    for thread in threads:
        thread.start()
    goes_on.set()
    for thread in threads:
        thread.join(60)
    assert 1 < len(readings) < 10
    witness.poll()
    assert len(readings) > 2, "one that comes later reads for itself"


def test_the_answer_of_a_pending_request_does_not_show_that_a_client_is_alive(log, witness):
    log.request("static-3", "HEARTBEAT", T)
    # The member was stopped at T + 10 while its JoinGroup, 2 s old, was waiting for the others.
    log.request("static-3", "JOIN_GROUP", T + 1000, total_ms=1995.5, member_id="static-3-old")
    witness.poll()
    assert witness.latest("static-3", T + 10) is None
    assert witness.latest("static-3", T + 10, "JOIN_GROUP", Error.NONE) is None
    joined = witness.latest("static-3", T - 1000, "JOIN_GROUP", Error.NONE)
    assert joined.member_id == "static-3-old"


def test_a_join_or_sync_counts_only_without_an_error(log, witness):
    log.request("a", "JOIN_GROUP", T + 1, error=Error.MEMBER_ID_REQUIRED, member_id="a-1")
    log.request("a", "SYNC_GROUP", T + 3, error=Error.REBALANCE_IN_PROGRESS)
    witness.poll()
    assert witness.latest("a", T, "JOIN_GROUP", Error.NONE) is None
    assert witness.latest("a", T, "SYNC_GROUP", Error.NONE) is None
    lines = [
        log.request("a", "JOIN_GROUP", T + 4, member_id="a-1"),
        log.request("a", "SYNC_GROUP", T + 5),
    ]
    witness.poll()
    apis = ("JOIN_GROUP", "SYNC_GROUP")
    assert [witness.latest("a", T, api, Error.NONE).line for api in apis] == lines
    assert witness.latest("a", T + 6, "SYNC_GROUP", Error.NONE) is None


def test_a_growing_file_is_read_once_and_by_whole_lines(log, witness, monkeypatch):
    witness.poll()  # not there yet
    log.request("a", "HEARTBEAT", T)
    witness.poll()
    assert witness.latest("a").line == 1
    text = f"2 {T + 7} {nanos(T + 7)} {request_text('a', 'HEARTBEAT')}\n"
    with log.path.open("a") as file:
        for part in (text[:40], text[40:-1]):
            file.write(part)
            file.flush()
            witness.poll()
            assert witness.latest("a").completed_ms == T
        file.write("\n")
    witness.poll()
    assert witness.latest("a").completed_ms == T + 7
    assert witness.latest("a").line == 2

    read = []
    monkeypatch.setattr("chaos.witness._request", lambda *given: read.append(given))
    witness.poll()
    assert read == []


def test_a_line_may_be_longer_than_what_is_read_at_once(log, witness, monkeypatch):
    monkeypatch.setattr("chaos.tail._CHUNK", 64)
    for number in range(3):
        log.request("a", "HEARTBEAT", T + number)
    witness.poll()
    assert (witness.latest("a").completed_ms, witness.latest("a").line) == (T + 2, 3)


def test_the_half_line_of_a_killed_broker_hides_no_later_one(log, witness):
    text = f"1 {T} {nanos(T)} {request_text('a', 'HEARTBEAT')}"
    log.path.write_text(text[:-60] + text + "\n" + "Completed request: no\n\xff\xfe\n")
    log.request("a", "HEARTBEAT", T + 9)
    witness.poll()
    assert witness.latest("a").completed_ms == T + 9


def test_lines_may_stand_in_swapped_order(log, witness):
    log.request("a", "SYNC_GROUP", T + 20)
    log.request("a", "HEARTBEAT", T + 10)
    witness.poll()
    assert witness.latest("a").api == "SYNC_GROUP"


def test_a_static_leader_that_restarts_still_leads(log, witness):
    log.request("static-0", "JOIN_GROUP", T, member_id="static-0-x")
    log.request("static-1", "JOIN_GROUP", T, member_id="static-1-y")
    witness.poll()
    assert witness.leader("static") is None
    log.leader("static-1-y", at_ms=T + 5)
    log.request("static-1", "JOIN_GROUP", T + 3000, member_id="static-1-new")
    witness.poll()
    assert witness.leader("static") == "static-1"
    assert witness.leader("other") is None


def test_a_member_that_leads_and_assigns_nothing_leads(log, witness):
    """A standby that took a leader's place, or a static leader that is back (KIP-814)."""
    log.request("static-0", "JOIN_GROUP", T, member_id="static-0-x", leads=1)
    log.request("static-1", "JOIN_GROUP", T + 1, member_id="static-1-y")
    log.request("static-1", "JOIN_GROUP", T + 9, member_id="static-1-y", leads=1)
    log.request("static-1", "SYNC_GROUP", T + 10)
    refused = {"error": Error.MEMBER_ID_REQUIRED, "member_id": "static-2-z", "leads": -1}
    log.request("static-2", "JOIN_GROUP", T + 11, **refused)
    witness.poll()
    assert witness.leader("static") == "static-1"


def test_a_later_generation_has_its_own_leader_and_an_empty_group_none(log, witness):
    log.request("d-0", "JOIN_GROUP", T, group="d", member_id="d-0-x")
    log.request("d-1", "JOIN_GROUP", T, group="d", member_id="d-1-y")
    log.leader("d-1-y", "d", generation=2, at_ms=T + 20)
    log.leader("d-0-x", "d", generation=1, at_ms=T + 10)
    witness.poll()
    assert witness.leader("d") == "d-1"
    log.empty("d", generation=3, at_ms=T + 30)
    witness.poll()
    assert witness.leader("d") is None


def test_a_group_may_move_to_another_broker(tmp_path: Path):
    one, two = BrokerLog(tmp_path / "1.log"), BrokerLog(tmp_path / "2.log")
    witness = Witness({1: one.path, 2: two.path})
    two.request("b", "JOIN_GROUP", T, member_id="b-1")
    two.leader("b-1", generation=4, at_ms=T + 500)
    one.request("a", "JOIN_GROUP", T - 900, member_id="a-1")
    one.leader("a-1", generation=3, at_ms=T - 800)
    one.request("a", "HEARTBEAT", T + 900)
    two.request("a", "HEARTBEAT", T + 600)
    witness.poll()
    assert witness.leader("static") == "b"
    assert witness.latest("a").broker == 1


def test_a_fenced_answer_is_found_whatever_was_asked(log, witness):
    log.request("a", "HEARTBEAT", T, error=Error.FENCED_INSTANCE_ID, instance_id="one")
    witness.poll()
    assert witness.fenced_since("a", T).api == "HEARTBEAT"
    assert witness.fenced_since("a", T + 1) is None
    log.request("a", "OFFSET_COMMIT", T + 5, error=Error.FENCED_INSTANCE_ID, instance_id="one")
    witness.poll()
    fenced = witness.fenced_since("a", T + 1)
    assert (fenced.api, fenced.instance_id) == ("OFFSET_COMMIT", "one")
    # an answer that was held back counts from when it was given
    log.request("b", "JOIN_GROUP", T + 50, error=Error.FENCED_INSTANCE_ID, total_ms=2000)
    witness.poll()
    assert witness.fenced_since("b", T).api == "JOIN_GROUP"


def test_a_commit_without_partitions_has_no_answer_and_one_that_went_well_has(log, witness):
    for number, error in enumerate((None, 0)):
        log.request("a", "OFFSET_COMMIT", T + number, error=error)
        witness.poll()
        assert witness.latest("a").error_code == error


def test_a_leave_group_has_the_members_that_it_removes(log, witness):
    log.request("a", "LEAVE_GROUP", T, error=0, removed={"static-0": 0, "ghost": 25})
    log.request("b", "LEAVE_GROUP", T, error=Error.UNKNOWN_MEMBER_ID)
    witness.poll()
    assert witness.latest("a", T, "LEAVE_GROUP").removed == (("static-0", 0), ("ghost", 25))
    assert witness.latest("b", T, "LEAVE_GROUP").removed == ()


@pytest.fixture
def far_from_utc(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


SCALA = (
    "2026-11-21 11:45:41,000 group-metadata-manager-0 INFO [GroupCoordinator 2]: Group static with"
    " generation 2 is now empty (__consumer_offsets-1) (kafka.coordinator.group.GroupCoordinator)\n"
)
JAVA = (
    "2026-11-21 11:45:41,000 group-coordinator-event-processor-0 INFO [GroupCoordinator id=2"
    " topic=__consumer_offsets partition=1] Group static with generation 2 is now empty."
    " (org.apache.kafka.coordinator.group.GroupMetadataManager)\n"
)


@pytest.mark.parametrize("empty", [SCALA, JAVA], ids=["scala", "java"])
@pytest.mark.usefixtures("far_from_utc")
def test_the_logs_of_older_releases_tell_the_same(log, witness, empty):
    join = request_text("a", "JOIN_GROUP", member_id="a-1", total_ms=100, leads=1)
    led = request_text("a", "SYNC_GROUP", member_id="a-1")
    log.path.write_text(f"2026-11-21 11:45:40,250 {join}\n2026-11-21 11:45:40,500 {led}\n")
    witness.poll()
    last = witness.latest("a")
    assert (last.completed_ms, last.line) == (T + 500, 2)
    joined = witness.latest("a", T, "JOIN_GROUP", Error.NONE)
    assert (joined.completed_ms, joined.arrived_ms, joined.line) == (T + 250, T + 151, 1)
    assert witness.leader("static") == "a"
    with log.path.open("a") as file:
        file.write(empty)
    witness.poll()
    assert witness.leader("static") is None


def test_a_client_cannot_write_the_time(log, witness):
    log.path.write_text(f"1 x {T} 2026-11-21 11:45:40,250 {request_text('a', 'HEARTBEAT')}\n")
    witness.poll()
    assert witness.latest("a") is None


def test_a_clock_that_is_set_off_moves_no_request(log, witness):
    with log.path.open("a") as file:
        for number, (at_ms, off_ms) in enumerate([(0, 0), (1_000, 3_000), (2_000, -3_000)], 1):
            beat = request_text("a", "HEARTBEAT")
            file.write(f"{number} {T + at_ms + off_ms} {nanos(T + at_ms)} {beat}\n")
            file.flush()
            witness.poll()
            assert witness.latest("a").completed_ms == T + at_ms


def line(number: int, at_ms: int, off_ms: int = 0, booted_ms: int = 5_000) -> str:
    return f"{number} {T + at_ms + off_ms} {(at_ms + booted_ms) * 1_000_000} main INFO x (y)"


def test_a_wall_clock_that_jumps_there_and_back_moves_no_line() -> None:
    for by_ms in (3_000, -3_000, 500, -500):
        times = LineTimes()
        seen = [times.at_ms(line(n, 100 * n, by_ms * (20 <= n < 90))) for n in range(1, 100)]
        assert seen == [T + 100 * n for n in range(1, 100)]


def test_another_process_has_another_zero_even_if_its_first_line_is_lost() -> None:
    times = LineTimes()
    for n in range(1, 200):
        times.at_ms(line(n, 100 * n))
    assert times.at_ms(line(2, 30_000, booted_ms=77)) == T + 30_000
    assert times.at_ms(line(1, 40_000, booted_ms=900)) == T + 40_000
    assert times.at_ms(line(2, 40_050, 3_000, booted_ms=900)) == T + 40_050


def test_swapped_lines_keep_their_times() -> None:
    times = LineTimes()
    order = [*range(1, 40), 41, 42, 40, *range(43, 60)]
    seen = [times.at_ms(line(n, 100 * n, -3_000 * (n >= 30))) for n in order]
    assert seen == [T + 100 * n for n in order]


def test_a_thread_that_was_suspended_between_its_clocks_sets_no_other_zero() -> None:
    times = LineTimes()
    late = f"1 {T} {(5_000 + 300) * 1_000_000} main INFO x (y)"
    assert times.at_ms(late) == T
    assert times.at_ms(line(2, 100)) == T + 100
    assert times.at_ms(line(3, 200, 3_000)) == T + 200


def test_a_line_without_a_monotonic_time_is_of_the_time_that_it_shows() -> None:
    times = LineTimes()
    assert times.at_ms("2026-09-21 14:13:20,250 main INFO x (y)") == 1_790_000_000_250
    with pytest.raises(ValueError, match="no line of a group"):
        times.at_ms("half a line")
