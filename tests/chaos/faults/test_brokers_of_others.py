"""Faults of brokers of an external cluster: hooks break them, and other machines may be gone."""

import errno
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from chaos import broker_probe
from chaos.broker_probe import BrokerProbe
from chaos.clusters import BrokerInfo
from chaos.errors import ChaosError
from chaos.external.cluster import ExternalCluster, Target
from chaos.witness import Witness
from scenarios.external import Hooks
from scenarios.faults import Fault
from scenarios.faults.base import Finding
from tests.chaos.fake_cluster import FakeCluster
from tests.chaos.faults.on_brokers import fault_of
from tests.chaos.tap.certificates import Authority

ELSEWHERE = "kafka-2.example"


def down(folder: Path, host: str, view: FakeCluster, what: str, **hooks: str) -> Fault:
    target = Target("id", "h:1", {2: (host, 9)}, None, {"any": Hooks(**hooks)})
    theirs = ExternalCluster(target, folder)
    return fault_of(f"fault: broker.{what}, down_for: 1s", 2, theirs, view, threading.Event())


def killed(folder: Path, host: str, view: FakeCluster) -> Fault:
    fault = down(folder, host, view, "kill", kill="true", start="true")
    fault.inject()
    return fault


@pytest.fixture
def connecting(monkeypatch: pytest.MonkeyPatch) -> list[OSError]:
    """What the next connections end with; those after them are made."""
    errors: list[OSError] = []
    connect = socket.create_connection

    def create_connection(*to: tuple[str, int]) -> socket.socket:
        if errors:
            raise errors.pop(0)
        return connect(*to)

    monkeypatch.setattr(broker_probe.socket, "create_connection", create_connection)
    return errors


GONE = [
    TimeoutError("timed out"),
    OSError(errno.EHOSTUNREACH, "No route to host"),
    socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
]
"""The machine, the way there, or the name."""
OURS = [
    (ELSEWHERE, OSError(errno.ENETUNREACH, "Network is unreachable")),
    (ELSEWHERE, OSError(errno.EMFILE, "Too many open files")),
    (ELSEWHERE, socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")),
    ("127.0.0.1", TimeoutError("timed out")),
    ("localhost", TimeoutError("timed out")),
]


@pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
def test_a_broker_elsewhere_may_be_gone_and_come_back_late(
    tmp_path: Path, fake_cluster: FakeCluster, connecting: list[OSError], error: OSError
) -> None:
    fault = killed(tmp_path, ELSEWHERE, fake_cluster)
    connecting[:] = [error]
    assert fault.verify() == Finding(True, f"{ELSEWHERE}:9 takes no connections ({error})")
    probe = BrokerProbe(2, fake_cluster.brokers, fake_cluster, Witness({}))
    connecting[:] = 4 * [error]
    assert not probe.answers()
    assert probe.await_back(threading.Event()).holds
    assert connecting == []


@pytest.mark.parametrize(("host", "error"), OURS, ids=str)
def test_what_this_machine_lacks_says_nothing_of_a_broker(
    tmp_path: Path, fake_cluster: FakeCluster, connecting: list[OSError], host: str, error: OSError
) -> None:
    fault = killed(tmp_path, host, fake_cluster)
    for look in (fault.verify, fault._probe.door):
        connecting[:] = [error]
        with pytest.raises(ChaosError, match="cannot be probed"):
            look()


def test_a_stop_that_failed_is_not_followed_by_a_kill(
    tmp_path: Path, fake_cluster: FakeCluster
) -> None:
    """The broker may be healthy, and the experiment asked for a clean stop alone."""
    done = tmp_path / "done"
    hooks = {name: f"echo {name} >>{done}" for name in ("kill", "start")}
    fault = down(tmp_path, ELSEWHERE, fake_cluster, "stop", stop="exit 1", **hooks)
    with pytest.raises(ChaosError, match="the hook stop failed with code 1"):
        fault.inject()
    fault.heal()
    assert done.read_text() == "start\n"


class Listener:
    """Takes connections, over TLS if it has a certificate, and sends an answer to each."""

    def __init__(self, answer: bytes, context: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._answer, self._context = answer, context
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with suppress(OSError), connection:
                self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        if self._context is not None:
            connection = self._context.wrap_socket(connection, server_side=True)
        with connection:
            connection.recv(100)
            connection.sendall(self._answer)
            connection.recv(100)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


ANSWER = b"\0\0\0\x06\0\0\0\x01\0\0"
"""A response with correlation id 1 and no error."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def answered(authority: Authority, fake_cluster: FakeCluster) -> Iterator[Callable[..., bool]]:
    """Tells whether a listener answers a probe that has such security properties."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.ca))
    tls.load_cert_chain(authority.issue("broker"))
    tls.verify_mode = ssl.CERT_REQUIRED
    listening = {
        "mTLS": Listener(ANSWER, tls),
        "plain": Listener(ANSWER),
        "another number": Listener(ANSWER.replace(b"\x01", b"\x02")),
        "alert": Listener(b"\x15\x03\x03\0\x02\x02\x50\0\0"),
    }

    def ask(listener: str, **security: str) -> bool:
        log = fake_cluster.brokers[0].group_log
        properties = {key.replace("_", "."): value for key, value in security.items()}
        info = BrokerInfo(1, listening[listener].port, log, log, "127.0.0.1", properties)
        return BrokerProbe(1, [info], fake_cluster, Witness({})).answers()

    yield ask
    for one in listening.values():
        one.close()


def test_a_broker_is_asked_as_its_listener_speaks(
    answered: Callable[..., bool], authority: Authority
) -> None:
    mine = {"security_protocol": "SSL", "ssl_certificate_location": str(authority.issue("me"))}
    assert answered("mTLS", **mine)
    assert answered("plain")
    assert not answered("mTLS"), "an alert is no answer"
    assert not answered("plain", **mine)
    assert not answered("mTLS", security_protocol="SSL"), "without a certificate"


def test_bytes_that_are_no_response_are_no_answer(answered: Callable[..., bool]) -> None:
    assert not answered("another number")
    assert not answered("alert")
