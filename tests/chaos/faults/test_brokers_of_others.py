"""Faults of brokers of an external cluster: hooks break them, and other machines may be gone."""

import errno
import socket
import ssl
import threading
from collections.abc import Iterator
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
from tests.chaos.fake_cluster import FakeCluster
from tests.chaos.faults.on_brokers import fault_of
from tests.chaos.tap.certificates import Authority

ELSEWHERE = "kafka-2.example"


def down(folder: Path, host: str, view: FakeCluster, what: str, **hooks: str) -> Fault:
    target = Target("id", "h:1", {2: (host, 9)}, None, {"any": Hooks(**hooks)})
    theirs = ExternalCluster(target, folder)
    return fault_of(f"fault: broker.{what}, down_for: 1s", 2, theirs, view, threading.Event())


@pytest.fixture
def connecting(monkeypatch: pytest.MonkeyPatch) -> list[OSError]:
    """What connections end with, the next one first; the last one again and again."""
    errors: list[OSError] = []

    def create_connection(*_: object) -> socket.socket:
        raise errors[0] if len(errors) == 1 else errors.pop(0)

    monkeypatch.setattr(broker_probe.socket, "create_connection", create_connection)
    return errors


GONE = [
    TimeoutError("timed out"),
    OSError(errno.EHOSTUNREACH, "No route to host"),
    socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
]


@pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
def test_a_machine_or_name_that_is_gone_takes_no_connections(
    tmp_path: Path, fake_cluster: FakeCluster, connecting: list[OSError], error: OSError
) -> None:
    fault = down(tmp_path, ELSEWHERE, fake_cluster, "kill", kill="true", start="true")
    fault.inject()
    connecting.append(error)
    found = fault.verify()
    assert found.holds
    assert found.evidence == f"{ELSEWHERE}:9 takes no connections ({error})"


@pytest.mark.parametrize(
    ("host", "error"),
    [
        (ELSEWHERE, OSError(errno.ENETUNREACH, "Network is unreachable")),
        (ELSEWHERE, OSError(errno.EMFILE, "Too many open files")),
        (ELSEWHERE, socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")),
        ("127.0.0.1", TimeoutError("timed out")),
        ("localhost", TimeoutError("timed out")),
    ],
)
def test_what_this_machine_lacks_says_nothing_of_a_broker(
    tmp_path: Path, fake_cluster: FakeCluster, connecting: list[OSError], host: str, error: OSError
) -> None:
    fault = down(tmp_path, host, fake_cluster, "kill", kill="true", start="true")
    fault.inject()
    connecting.append(error)
    with pytest.raises(ChaosError, match="cannot be probed"):
        fault.verify()
    with pytest.raises(ChaosError, match="cannot be probed"):
        fault._probe.door()


@pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
def test_a_broker_whose_name_comes_back_late_is_awaited(
    fake_cluster: FakeCluster, stop: threading.Event, monkeypatch: pytest.MonkeyPatch,
    error: OSError,
) -> None:  # fmt: skip
    true, refused = socket.create_connection, [error, error, error]

    def create_connection(*of: tuple[str, int]) -> socket.socket:
        if refused:
            raise refused.pop()
        return true(*of)

    monkeypatch.setattr(broker_probe.socket, "create_connection", create_connection)
    back = BrokerProbe(2, fake_cluster.brokers, fake_cluster, Witness({})).await_back(stop)
    assert back.holds
    assert refused == []


def test_an_address_that_cannot_be_reached_does_not_answer(
    fake_cluster: FakeCluster, connecting: list[OSError]
) -> None:
    for error in GONE:
        connecting[:] = [error]
        assert not BrokerProbe(2, fake_cluster.brokers, fake_cluster, Witness({})).answers()


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

    def __init__(self, answer: bytes, context: ssl.SSLContext | None) -> None:
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
                if self._context is None:
                    self._serve(connection)
                    continue
                with self._context.wrap_socket(connection, server_side=True) as secure:
                    self._serve(secure)

    def _serve(self, connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(self._answer)
        connection.recv(100)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def context(authority: Authority) -> ssl.SSLContext:
    """Of a broker that asks for a certificate (mTLS)."""
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.ca))
    made.load_cert_chain(authority.issue("broker"))
    made.verify_mode = ssl.CERT_REQUIRED
    return made


ANSWER = b"\0\0\0\x06\0\0\0\x01\0\0"
"""A response with correlation id 1 and no error."""


@pytest.fixture
def listening(context: ssl.SSLContext) -> Iterator[dict[str, Listener]]:
    found = {
        "tls": Listener(ANSWER, context),
        "plain": Listener(ANSWER, None),
        "another": Listener(b"\0\0\0\x06\0\0\0\x02\0\0", None),
        "alert": Listener(b"\x15\x03\x03\0\x02\x02\x50\0\0", None),
    }
    yield found
    for one in found.values():
        one.close()


def probe(listener: Listener, view: FakeCluster, **security: str) -> BrokerProbe:
    log = view.brokers[0].group_log
    properties = {key.replace("_", "."): value for key, value in security.items()}
    info = BrokerInfo(1, listener.port, log, log, "127.0.0.1", properties)
    return BrokerProbe(1, [info], view, Witness({}))


def test_a_broker_is_asked_as_its_listener_speaks(
    listening: dict[str, Listener], fake_cluster: FakeCluster, authority: Authority
) -> None:
    tls = {"security_protocol": "SSL", "ssl_certificate_location": str(authority.issue("me"))}
    assert probe(listening["tls"], fake_cluster, **tls).answers()
    assert probe(listening["plain"], fake_cluster).answers()
    assert not probe(listening["tls"], fake_cluster).answers(), "an alert is no answer"
    assert not probe(listening["plain"], fake_cluster, **tls).answers()
    assert not probe(listening["tls"], fake_cluster, security_protocol="SSL").answers(), "mTLS"


def test_bytes_that_are_no_response_are_no_answer(
    listening: dict[str, Listener], fake_cluster: FakeCluster
) -> None:
    assert not probe(listening["another"], fake_cluster).answers()
    assert not probe(listening["alert"], fake_cluster).answers()
