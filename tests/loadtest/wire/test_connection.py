"""A connection that another thread closes, or whose peer is no broker. No broker is needed."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from loadtest.wire.connection import Connection, WireError

HEARTBEAT = ("HEARTBEAT", 0, {"groupId": "g", "generationId": 0, "memberId": "m"})


@pytest.fixture
def connection() -> Iterator[Connection]:
    """To a server that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection("127.0.0.1", server.getsockname()[1], "c")
        yield connection
        connection.close()


@pytest.mark.parametrize("use", [lambda c: c.receive(60.0), lambda c: c.send(*HEARTBEAT)])
def test_one_that_is_closed_before_its_socket_is_used_is_gone(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, use: Callable[[Connection], object]
) -> None:
    is_open = connection._open

    def closed_at_once() -> socket.socket:
        wire = is_open()
        connection.close()
        return wire

    monkeypatch.setattr(connection, "_open", closed_at_once)
    with pytest.raises(WireError, match="is gone"):
        use(connection)


def test_one_that_is_closed_wakes_who_waits_for_a_response(connection: Connection) -> None:
    found: list[str] = []

    def wait() -> None:
        try:
            connection.ask(*HEARTBEAT, timeout_s=60.0)
        except WireError as error:
            found.append(str(error))

    waits = threading.Thread(target=wait)
    waits.start()
    while not connection.awaited:
        threading.Event().wait(0.01)
    connection.close()
    waits.join()
    assert len(found) == 1
    assert connection._socket is None


@pytest.mark.parametrize("sent", [struct.pack(">i", -1), struct.pack(">ih", 2, 0), b"HTTP/1.1 400"])
def test_what_is_no_response_ends_it(sent: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection("127.0.0.1", server.getsockname()[1], "c")
        connection.send(*HEARTBEAT)
        peer, _ = server.accept()
        with peer:
            peer.sendall(sent)
            with pytest.raises(WireError, match=" sent "):
                connection.receive(60.0)
        assert connection._socket is None
