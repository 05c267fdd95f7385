import socket
import threading

import pytest

from chaos.errors import ChaosError, LoadGoneError, WorkerGoneError
from chaos.members import Members
from tests.chaos.fakes import TOKEN, FakeLoad, until


@pytest.fixture
def members(load: FakeLoad) -> Members:
    return Members(load.port, TOKEN)


def test_orders_reach_the_load_process(load, members):
    members.order("stop", "static-2")
    assert {row["name"]: row["state"] for row in members.list()}["static-2"] == "stopped"
    members.order("start", "static-2", {"instance_id": "app-2"})
    until(lambda: '"groupInstanceId":"app-2"' in load.log.path.read_text())
    more = ("duplicate", "end-duplicate", "kill", "pause", "stop-polling", "unsubscribe", "resume")
    for order in more:
        members.order(order, "static-2")
    members.quit()
    assert [order[:2] for order in load.orders] == [
        *(("stop", "static-2"), ("members", ""), ("start", "static-2")),
        *((order, "static-2") for order in more),
        ("quit", ""),
    ]


def test_a_refusal_is_reported(load, members):
    load.refused.add("lone")
    with pytest.raises(ChaosError, match="refused 'start lone': no user runs member 'lone' now"):
        members.order("start", "lone")


def test_a_wrong_token_and_a_process_that_has_ended_are_reported(load, members):
    with pytest.raises(LoadGoneError, match="or the token is wrong"):
        Members(load.port, "another").list()
    load.die()
    with pytest.raises(LoadGoneError, match=f"127.0.0.1:{load.port}"):
        members.order("stop", "lone")
    with pytest.raises(LoadGoneError), members.watch(lambda _: None):
        pass


def test_a_process_that_ends_as_it_is_connected_to_is_reported(load, members, monkeypatch):
    connect, made = socket.create_connection, []

    def half_closed(*address):
        made.append(connect(*address))
        made[-1].shutdown(socket.SHUT_WR)
        return made[-1]

    monkeypatch.setattr("chaos.members.socket.create_connection", half_closed)
    with pytest.raises(LoadGoneError):
        members.order("stop", "lone")
    assert made[0].fileno() == -1, "it is closed"


def test_a_load_process_that_hangs_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        members = Members(silent.getsockname()[1], TOKEN, timeout_s=0.05)
        with pytest.raises(ChaosError, match=r"did not answer 'stop lone' within 0.05 s"):
            members.order("stop", "lone")


def test_the_end_of_the_load_process_is_noticed_at_once_and_no_other(load, members):
    ended = threading.Event()
    with members.watch(lambda _: ended.set()):
        pass
    assert not ended.is_set(), "the watching alone has ended"
    with members.watch(lambda _: ended.set()):
        assert not ended.is_set()
        load.die()
        assert ended.wait(5)


def test_a_member_that_is_gone_with_its_worker_is_no_refusal(load, members):
    load.gone.add("lone")
    with pytest.raises(WorkerGoneError, match="worker-1 is gone"):
        members.order("stop", "lone")
    members.order("stop", "static-2")
