import json

import pytest

from loadtest.control_protocol import answer, has_token, instance_id_of, member_of
from loadtest.errors import LoadtestError


def refuse(_):
    raise LoadtestError("not now")


VERBS = {"members": lambda _: [{"name": "m"}], "stop": member_of, "start": refuse}


def ask(line):
    reply = answer(line, VERBS)
    assert reply.endswith(b"\n")
    assert reply.count(b"\n") == 1
    return json.loads(reply)


@pytest.mark.parametrize(
    ("line", "welcome"),
    [
        (b'{"token": "s3cret"}\n', True),
        (b'{"token": "S3cret"}\n', False),
        (b'{"token": ""}\n', False),
        (b'{"token": null}\n', False),
        (b'{"id": 1, "do": "quit"}\n', False),
        (b'["token"]\n', False),
        (b"GET / HTTP/1.1\r\n", False),
        (b"\xff\n", False),
        (b"", False),
    ],
)
def test_only_the_right_token_is_welcome(line, welcome):
    assert has_token(line, "s3cret") is welcome


def test_a_reply_carries_the_id_and_the_result():
    assert ask(b'{"id": 7, "do": "members"}\n') == {"id": 7, "ok": True, "result": [{"name": "m"}]}


def test_a_verb_gets_the_whole_request():
    assert ask(b'{"id": 1, "do": "stop", "member": "static-3"}')["result"] == "static-3"


@pytest.mark.parametrize(
    ("line", "request_id", "error"),
    [
        (b'{"id": 1, "do": "start", "member": "m"}', 1, "not now"),
        (b'{"id": 2, "do": "dance"}', 2, "cannot do 'dance'; known: members, start, stop"),
        (b'{"id": 3, "do": "stop"}', 3, 'stop needs the name of a member: "member"'),
        (b'{"id": 4}', None, 'a request is an object with "id" and "do"'),
        (b"[1]", None, 'a request is an object with "id" and "do"'),
    ],
)
def test_a_refusal_is_a_reply(line, request_id, error):
    assert ask(line) == {"id": request_id, "ok": False, "error": error}


@pytest.mark.parametrize("instance_id", ["app-1", None])
def test_a_new_identity_is_a_name_or_null(instance_id):
    assert instance_id_of({"do": "start", "instance_id": instance_id}) == instance_id


@pytest.mark.parametrize("instance_id", ["", 7, True, ["app-1"]])
def test_an_invalid_identity_is_refused(instance_id):
    with pytest.raises(LoadtestError, match='start takes "instance_id" as a name, or as null'):
        instance_id_of({"do": "start", "instance_id": instance_id})


def test_garbage_is_refused_too():
    assert "not a line of JSON" in ask(b"{")["error"]
