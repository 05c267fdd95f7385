"""The control channel: a server on the loopback, in a thread with a hub of its own."""

import contextlib
import json
import socket
import threading
from pathlib import Path

import gevent
import pytest
from gevent.event import Event

from loadtest.control import ControlServer, answer, has_token, instance_id_of, member_of
from loadtest.errors import LoadtestError


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
    file, announced = tmp_path_factory.mktemp("control") / "control.json", threading.Event()

    def serve():
        released, ended = Event(), Event()
        verbs = {
            "hold": lambda _: released.wait(10),
            "release": lambda _: released.set(),
            "end": lambda _: ended.set(),
        }
        ControlServer("s3cret", verbs).announcement(file)()
        announced.set()
        ended.wait()

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    assert announced.wait(10)
    port = json.loads(file.read_text())["port"]
    yield port
    with contextlib.closing(Client(port)) as client:
        client.ask("end")
    server.join(10)
    assert not server.is_alive()


@pytest.fixture
def client(port):
    with contextlib.closing(Client(port)) as client:
        yield client


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


def test_a_refusal_and_the_end_of_another_client_leave_the_connection_open(port, client):
    assert client.ask("dance")["ok"] is False
    with contextlib.closing(Client(port)) as hasty:
        hasty.send({"id": 1, "do": "hold"})
    assert client.ask("release")["ok"] is True


def test_it_listens_on_the_loopback_alone(port):
    listening = {
        line.split()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
    }
    assert listening == {f"0100007F:{port:04X}"}


def interrupt(_):
    raise KeyboardInterrupt


def test_ctrl_c_while_it_answers_ends_the_main_greenlet_and_is_not_printed(capsys):
    server = ControlServer("s3cret", {"interrupt": interrupt})
    with contextlib.closing(Client(server.port)) as client:
        client.send({"id": 1, "do": "interrupt"})
        with pytest.raises(KeyboardInterrupt):
            gevent.sleep(10)
    assert capsys.readouterr().err == ""


def test_a_place_that_cannot_be_written_is_an_error_of_ours():
    for place, why in (("/nowhere/port.json", "No such file"), ("/", "Is a directory")):
        with pytest.raises(LoadtestError, match=f"--control-file {place}: cannot .*{why}"):
            ControlServer("s3cret", {}).announcement(Path(place))()


def test_only_the_right_token_is_welcome():
    assert has_token(b'{"token": "s3cret"}\n', "s3cret")
    for line in (
        *(b'{"token": "S3cret"}\n', b'{"token": ""}\n', b'{"token": null}\n', b'["token"]\n'),
        *(b'{"id": 1, "do": "quit"}\n', b"GET / HTTP/1.1\r\n", b"\xff\n", b""),
    ):
        assert not has_token(line, "s3cret"), line


def refuse(_):
    raise LoadtestError("not now")


VERBS = {"members": lambda _: [{"name": "m"}], "stop": member_of, "start": refuse}


def refused(request_id, error):
    return {"id": request_id, "ok": False, "error": error}


def test_each_request_has_a_reply_of_one_line_with_its_id():
    for line, reply in (
        ('{"id": 7, "do": "members"}', {"id": 7, "ok": True, "result": [{"name": "m"}]}),
        ('{"id": 8, "do": "stop", "member": "s-3"}', {"id": 8, "ok": True, "result": "s-3"}),
        ('{"id": 1, "do": "start", "member": "m"}', refused(1, "not now")),
        ('{"id": 2, "do": "dance"}', refused(2, "cannot do 'dance'; known: members, start, stop")),
        ('{"id": 3, "do": "stop"}', refused(3, 'stop needs the name of a member: "member"')),
        ('{"id": 4}', refused(None, 'a request is an object with "id" and "do"')),
        ("[1]", refused(None, 'a request is an object with "id" and "do"')),
    ):
        text = answer(line.encode(), VERBS)
        assert text.endswith(b"\n")
        assert text.count(b"\n") == 1
        assert json.loads(text) == reply
    assert "not a line of JSON" in json.loads(answer(b"{", VERBS))["error"]


def test_a_new_identity_is_a_name_or_null():
    for instance_id in ("app-1", None):
        assert instance_id_of({"do": "start", "instance_id": instance_id}) == instance_id
    for invalid in ("", 7, True, ["app-1"]):
        with pytest.raises(LoadtestError, match='start takes "instance_id" as a name, or as null'):
            instance_id_of({"do": "start", "instance_id": invalid})
