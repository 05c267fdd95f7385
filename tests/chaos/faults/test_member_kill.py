import socket
import time

import pytest

from chaos.faults.member_kill import MemberKill, is_open
from tests.chaos.fakes import until


@pytest.fixture
def kill(members, evidence) -> MemberKill:
    return MemberKill("static-3", "static", 150, evidence, members)


@pytest.fixture
def sockets():
    """Both ends of a connection on this machine, the client's first."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        broker, _ = listener.accept()
        with client, broker:
            yield client, broker


def name_of(client: socket.socket, numbers: str = "1-4") -> str:
    """What a broker calls a connection."""
    (here, port), (there, other) = client.getpeername(), client.getsockname()
    return f"{here}:{port}-{there}:{other}-{numbers}"


def test_a_kill_is_silence_without_leave_group_and_then_a_join(load, kill, stop):
    kill.inject()
    time.sleep(0.15)
    broken = kill.verify()
    assert broken.holds
    assert "no request of static-3 for " in broken.evidence
    assert broken.evidence.endswith(
        ", no LEAVE_GROUP of it (a static member sends none when closed, either),"
        " no socket of this machine could be matched with its connection"
    )
    assert kill.heal() == "started over the control channel"
    assert kill.verify_healed(stop).holds
    assert [do for do, *_ in load.orders] == ["kill", "start"]


def test_a_member_that_sends_leave_group_was_not_killed(load, kill):
    load.polite.add("static-3")
    kill.inject()
    time.sleep(0.15)
    broken = kill.verify()
    assert not broken.holds
    assert "static-3 said goodbye with LEAVE_GROUP (group.log of broker 1, line" in broken.evidence


def test_a_leave_group_of_an_earlier_process_does_not_count(load, kill):
    load.log.request("static-3", "LEAVE_GROUP")
    time.sleep(0.01)
    kill.inject()
    time.sleep(0.15)
    assert kill.verify().holds


def test_a_member_that_continues_was_not_killed(load, kill):
    load.deaf.add("static-3")
    kill.inject()
    until(lambda: "static-3 sent HEARTBEAT " in kill.verify().evidence)
    assert not kill.verify().holds


def test_a_connection_that_stays_open_disproves_a_kill(load, kill, sockets):
    client, _ = sockets
    until(lambda: load.is_up("static-3"))
    load.deaf.add("static-3")
    load.silence("static-3")
    load.log.request("static-3", "HEARTBEAT", connection=name_of(client))
    kill.inject()
    time.sleep(0.15)
    broken = kill.verify()
    assert not broken.holds
    assert broken.evidence.endswith(f"but connection {name_of(client)} is open")
    name = name_of(client)
    client.close()
    gone = kill.verify()
    assert gone.holds
    assert gone.evidence.endswith(f", no LEAVE_GROUP of it, connection {name} gone")


@pytest.mark.parametrize("numbers", ["7", "1-4"])  # 3.9 and 4.x
def test_a_connection_is_open_while_the_kernel_says_so(sockets, numbers):
    client, broker = sockets
    assert is_open(name_of(client, numbers))
    assert not is_open(name_of(broker, numbers).replace("127.0.0.1", "127.0.0.2"))
    name = name_of(client, numbers)
    client.close()
    until(lambda: not is_open(name))
    assert not is_open("no connection")
