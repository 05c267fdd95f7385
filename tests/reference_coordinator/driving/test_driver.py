"""The driver keeps timers, writes and the stored record as a broker does."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import HeartbeatResponse, JoinResponse, Response
from reference_coordinator.classic.events import Loaded, LoadStarted, TimerKind
from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.classic.state import EMPTY, STABLE, Group
from reference_coordinator.driving.client import ENDED, IN, JOINED, OUT, Client
from reference_coordinator.driving.driver import Agenda
from reference_coordinator.driving.simulation import Exchange, Process, Simulation

SESSION_MS = 10_000


class Members(Simulation):
    """Members that send heartbeats until they fall silent; writes take 5 ms."""

    def __init__(self, *names: str) -> None:
        super().__init__(Group("g"), NEWEST)
        self.heard: list[tuple[float, str, int]] = []
        self.silent = False
        self.fails = False
        self.processes = [Process(Client(name, name, SESSION_MS)) for name in names]
        for process in self.processes:
            self._ask(process, 1.0)

    def _ask(self, process: Process, after_ms: float) -> None:
        act = lambda: self.receive(self.send(process, process.client.next_api))
        self.agenda.after(after_ms, act)

    def answered(self, exchange: Exchange, response: Response) -> None:
        self.heard.append((self.now_ms, exchange.api, int(response.error)))
        client = exchange.process.client = exchange.process.client.hearing(response)
        if not self.silent and client.next_api:
            self._ask(exchange.process, 3_000.0 if client.phase is IN else 1.0)

    def write_ms(self) -> float:
        return 5.0

    def outcome(self, write: object) -> tuple[Error, bool]:
        return (Error.NOT_COORDINATOR, False) if self.fails else super().outcome(write)


def test_what_is_due_at_one_time_happens_in_turn_and_nothing_before_its_time() -> None:
    agenda, seen = Agenda(100.0), list[tuple[float, str]]()
    note = lambda name: lambda: seen.append((agenda.now_ms, name))
    agenda.at(120.0, note("b"))
    agenda.after(20.0, note("c"))
    agenda.at(90.0, note("a"))  # that has passed
    agenda.at(121.0, note("not yet"))
    agenda.run(121.0)
    assert seen == [(100.0, "a"), (120.0, "b"), (120.0, "c")]
    assert agenda.now_ms == 121.0


def test_members_form_a_group_and_keep_it_and_it_ends_when_they_fall_silent() -> None:
    group = Members("a", "b")
    group.agenda.run(60_000)
    assert group.group.state is STABLE
    assert {(process.client.phase, process.client.generation) for process in group.processes} == {
        (IN, 1)
    }
    group.silent = True
    group.agenda.run(100_000)
    assert group.group.state is EMPTY
    assert group.timers == {}


def test_a_record_is_stored_when_its_write_ends_and_the_answer_waits_for_it() -> None:
    group = Members("a")
    group.agenda.run(3_003)
    (write,) = group.writes
    assert group.stored_record is not write.record
    (joined_ms,) = {at for at, api, _ in group.heard if api == "JOIN_GROUP"}
    group.agenda.run(4_000)
    assert (group.writes, group.stored_record) == ([], write.record)
    assert (write.began_ms, joined_ms) == (joined_ms + 1, 3_001.0)
    assert group.heard[-1] == (write.began_ms + 5, "SYNC_GROUP", 0)


def test_a_write_that_fails_is_not_stored() -> None:
    group = Members("a")
    group.agenda.run(3_001)
    group.fails = True
    group.agenda.run(3_500)
    assert group.stored_record is None or not group.stored_record.members
    assert Error.NOT_COORDINATOR in {error for *_, error in group.heard}


def test_a_broker_that_loads_the_group_has_what_was_stored_and_new_sessions() -> None:
    group = Members("a")
    group.agenda.run(9_000)
    group.silent = True
    group.take(LoadStarted(9_000.0))
    assert group.timers == {}
    group.take(Loaded(9_100.0, group.stored_record))
    assert set(group.group.members) == {group.processes[0].client.member_id}
    (session,) = group.timers
    assert (session.kind, group.timers[session]) == (TimerKind.SESSION, 9_100 + SESSION_MS)


@pytest.mark.parametrize(
    ("response", "phase", "member_id", "generation"),
    [
        (JoinResponse(0, "a-1", 3), JOINED, "a-1", 3),
        (JoinResponse(Error.MEMBER_ID_REQUIRED, "a-2"), OUT, "a-2", 2),
        (HeartbeatResponse(0), IN, "a-1", 2),
        (HeartbeatResponse(Error.REBALANCE_IN_PROGRESS), OUT, "a-1", 2),
        (HeartbeatResponse(Error.ILLEGAL_GENERATION), OUT, "a-1", -1),
        (HeartbeatResponse(Error.UNKNOWN_MEMBER_ID), OUT, "", -1),
        (HeartbeatResponse(Error.FENCED_INSTANCE_ID), ENDED, "a-1", 2),
    ],
)
def test_a_client_reacts_as_kafkas_consumers_do(response, phase, member_id, generation) -> None:
    client = Client("a", "a", phase=IN, member_id="a-1", generation=2, request="r")
    heard = client.hearing(response)
    assert (heard.phase, heard.member_id, heard.generation, heard.request) == (
        phase, member_id, generation, "",
    )  # fmt: skip
