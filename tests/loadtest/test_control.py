"""The server runs in a child: gevent stays out of this process."""

import contextlib
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

SERVER = """
import sys
from pathlib import Path
from gevent.event import Event
from loadtest.control import ControlServer

released, ended = Event(), Event()
verbs = {
    "hold": lambda _: released.wait(10),
    "release": lambda _: released.set(),
    "end": lambda _: ended.set(),
}
ControlServer("s3cret", verbs).announcement(Path(sys.argv[1]))()
print("announced", flush=True)
ended.wait()
"""


class Client:
    def __init__(self, port, token="s3cret"):
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.lines = self.connection.makefile("rb")
        self.send({"token": token})

    def send(self, line):
        self.connection.sendall(json.dumps(line).encode() + b"\n")

    def read(self):
        return json.loads(self.lines.readline())

    def ask(self, do):
        self.send({"id": do, "do": do})
        return self.read()

    def close(self):
        self.lines.close()
        self.connection.close()


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    announced = tmp_path_factory.mktemp("control") / "control.json"
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(announced)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
    )
    with server:
        assert server.stdout.readline() == b"announced\n"
        listens_on = json.loads(announced.read_text())["port"]
        yield listens_on
        client = Client(listens_on)
        client.ask("end")
        client.close()
        assert server.wait(timeout=10) == 0


@pytest.fixture
def client(port):
    client = Client(port)
    yield client
    client.close()


def test_a_slow_request_does_not_hold_up_the_next(client):
    client.send({"id": "slow", "do": "hold"})
    assert client.ask("release") == {"id": "release", "ok": True, "result": None}
    assert client.read() == {"id": "slow", "ok": True, "result": True}


def test_a_wrong_token_closes_the_connection(port):
    # a request that the server never read turns the end of the stream into a reset
    with (
        contextlib.closing(Client(port, token="guessed")) as unauthorized,
        contextlib.suppress(ConnectionError),
    ):
        unauthorized.send({"id": 1, "do": "end"})
        assert unauthorized.lines.read() == b""


def test_a_refusal_leaves_the_connection_open(client):
    assert client.ask("dance")["ok"] is False
    assert client.ask("release")["ok"] is True


def test_the_server_survives_a_client_that_disconnects_early(port, client):
    hasty = Client(port)
    hasty.send({"id": 1, "do": "hold"})
    hasty.close()
    assert client.ask("release")["ok"] is True


def test_it_listens_on_the_loopback_alone(port):
    listening = {
        line.split()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
    }
    assert listening == {f"0100007F:{port:04X}"}
