"""The server runs in a child: gevent stays out of this process."""

import contextlib
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from loadtest.control import answer, has_token, instance_id_of, member_of
from loadtest.errors import LoadtestError

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


def refuse(_):
    raise LoadtestError("not now")


VERBS = {"members": lambda _: [{"name": "m"}], "stop": member_of, "start": refuse}


def ask(line):
    reply = answer(line, VERBS)
    assert reply.endswith(b"\n")
    assert reply.count(b"\n") == 1
    return json.loads(reply)


def test_only_the_right_token_is_welcome():
    assert has_token(b'{"token": "s3cret"}\n', "s3cret")
    for line in (
        *(b'{"token": "S3cret"}\n', b'{"token": ""}\n', b'{"token": null}\n', b'["token"]\n'),
        *(b'{"id": 1, "do": "quit"}\n', b"GET / HTTP/1.1\r\n", b"\xff\n", b""),
    ):
        assert not has_token(line, "s3cret"), line


def test_a_reply_carries_the_id_and_the_result():
    assert ask(b'{"id": 7, "do": "members"}\n') == {"id": 7, "ok": True, "result": [{"name": "m"}]}


def test_a_verb_gets_the_whole_request():
    assert ask(b'{"id": 1, "do": "stop", "member": "static-3"}')["result"] == "static-3"


def test_a_refusal_is_a_reply():
    no_request = 'a request is an object with "id" and "do"'
    for line, request_id, error in (
        (b'{"id": 1, "do": "start", "member": "m"}', 1, "not now"),
        (b'{"id": 2, "do": "dance"}', 2, "cannot do 'dance'; known: members, start, stop"),
        (b'{"id": 3, "do": "stop"}', 3, 'stop needs the name of a member: "member"'),
        (b'{"id": 4}', None, no_request),
        (b"[1]", None, no_request),
    ):
        assert ask(line) == {"id": request_id, "ok": False, "error": error}
    assert "not a line of JSON" in ask(b"{")["error"]


def test_a_new_identity_is_a_name_or_null():
    for instance_id in ("app-1", None):
        assert instance_id_of({"do": "start", "instance_id": instance_id}) == instance_id
    for invalid in ("", 7, True, ["app-1"]):
        with pytest.raises(LoadtestError, match='start takes "instance_id" as a name, or as null'):
            instance_id_of({"do": "start", "instance_id": invalid})
