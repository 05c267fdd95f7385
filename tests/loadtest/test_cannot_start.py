"""Clients that cannot be started or do not end: errors say so, and their users go on."""

import json
import resource
from contextlib import closing

import psutil
import pytest

from kafka_protocol.printable import printable
from loadtest.configs import MemberConfig, ProducerConfig
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.members.librdkafka import LibrdkafkaClient
from loadtest.members.member import Member
from loadtest.producer import PacedProducer
from tests.loadtest.loads import end, of_one_group


@pytest.fixture
def few_descriptors():
    """Let a process that starts have a low limit, which it may raise."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
def test_a_program_that_is_missing_has_failed_and_is_polled_once_it_is_there(locust, tmp_path):
    program, file = tmp_path / "program", tmp_path / "experiment.yaml"
    client = {"command": [str(program)]}
    member = {"kind": "static", "count": 1, "instance_id": "p-{n}", "client": client}
    file.write_text(of_one_group("programs", [member]))
    (tmp_path / "programs.json").write_text(json.dumps({"folder": str(tmp_path), "commands": {}}))
    load = locust("--headless", "--bootstrap", "127.0.0.1:1", "--experiment", str(file))
    load.wait_for(lambda: [one["state"] for one in load.members().values()] == ["failed"])
    limit, most = psutil.Process(load.process.pid).rlimit(psutil.RLIMIT_NOFILE)
    assert limit == most, "as many connections as the hard limit allows"
    [name] = load.members()
    of_it = lambda: [line for line in load.history() if line["member"] == name]
    [failed] = of_it()
    text = f"{name!r} cannot be started: there is no program '{program}'; check path and mode"
    assert (failed["event"], failed["error"]) == ("ended", text)
    assert text in load.output
    assert text in load.reply_to("start", member=name)["error"]
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    load.ask("start", member=name)
    load.wait_for(lambda: of_it()[-1]["event"] == "ended" and len(of_it()) > 1)
    assert [line["event"] for line in of_it()] == ["ended", "created", "killed", "ended"]
    end(load)


@pytest.fixture
def history(tmp_path):
    with closing(History(tmp_path / "history.jsonl")) as history:
        yield history


def test_a_producer_that_librdkafka_refuses_has_failed(history, monkeypatch, caplog):
    forged = "\x1b[2J\nverdict: pass"
    properties = {"security.protocol": forged}
    monkeypatch.setattr("loadtest.producer.client_properties", lambda: properties)
    config = ProducerConfig("p", "orders", 5.0)
    report = lambda *_, **__: None
    producer = PacedProducer(config, "127.0.0.1:1", history, report, lambda call: call())
    producer.open()
    producer.poll_once()
    producer.close()
    [line] = map(json.loads, history.path.read_text().splitlines())
    assert (line["event"], line["member"]) == ("error", "p")
    assert line["error"].startswith("'p' cannot be started: ")
    assert forged in line["error"]
    assert caplog.messages == [printable(line["error"])]


def librdkafka_member(history, assignor):
    """A member that no broker answers."""
    config = MemberConfig("m", "g", "static", "i", ("t",), assignor, 6000, 500, 60000, 1000)
    start = lambda one: LibrdkafkaClient(one, "127.0.0.1:1", lambda call: call())
    return Member(config, start, history, lambda _: lambda *_, **__: None)


def test_a_member_that_librdkafka_refuses_has_failed(history):
    member = librdkafka_member(history, "nonsense")
    member.open()
    assert member.state == "failed"
    with pytest.raises(LoadtestError, match="'m' cannot be started: "):
        member.carry_out({"do": "start", "member": "m"})
    [line] = map(json.loads, history.path.read_text().splitlines())
    assert line["event"] == "ended"


def test_a_consumer_that_lives_on_is_not_called_killed(history):
    member = librdkafka_member(history, "range")
    member.open()
    user = member._client._consumer
    with pytest.raises(LoadtestError, match="'m' still runs, since a reference"):
        member.kill()
    user.close()
    member.open()
    member.kill()
    assert member.state == "killed"
