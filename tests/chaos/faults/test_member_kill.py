import socket
import time
from contextlib import contextmanager
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from chaos.faults.member_kill import MemberKill, is_open
from tests.chaos.fakes import until


@pytest.fixture
def kill(members, evidence) -> MemberKill:
    return MemberKill("static-3", "static", 150, evidence, members)


@contextmanager
def connected(listens: str, connects: str):
    """Both ends of a connection on this machine, the client's first."""
    v6 = lambda host: socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.create_server((listens, 0), family=v6(listens)) as listener,
        socket.socket(v6(connects)) as client,
    ):
        client.connect((connects, listener.getsockname()[1]))
        broker, _ = listener.accept()
        with broker:
            yield client, broker


@pytest.fixture
def sockets():
    with connected("127.0.0.1", "127.0.0.1") as both:
        yield both


def name_of(client: socket.socket, numbers: str = "1-4") -> str:
    """What a broker calls a connection."""
    (here, port), (there, other) = client.getpeername()[:2], client.getsockname()[:2]
    return f"{as_java(here)}:{port}-{as_java(there)}:{other}-{numbers}"


def as_java(host: str) -> str:
    """An address as Java writes it: mapped ones as IPv4, others without `::`."""
    if ":" not in host:
        return host
    address = IPv6Address(host)
    words = (f"{int(word, 16):x}" for word in address.exploded.split(":"))
    return str(address.ipv4_mapped or ":".join(words))


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


@pytest.mark.parametrize(
    ("listens", "connects", "named"),
    [
        ("127.0.0.1", "::ffff:127.0.0.1", "127.0.0.1:"),  # as Java connects
        ("::1", "::1", "0:0:0:0:0:0:0:1:"),
    ],
)
def test_a_socket_of_ip_version_6_is_found(listens, connects, named):
    if not Path("/proc/net/tcp6").exists():
        pytest.skip("this machine has no IPv6")
    with connected(listens, connects) as (client, _):
        name = name_of(client)
        assert name.startswith(named)
        assert is_open(name)
        client.close()
        until(lambda: not is_open(name))
