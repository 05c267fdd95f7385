"""Clients that cannot be started: they have failed, and their users go on."""

import json

from kafka_protocol.printable import printable
from loadtest.client_configs import ProducerConfig
from loadtest.history import History
from loadtest.locust_statistics import no_statistics
from loadtest.member_handle import ClientHandle
from loadtest.producer import PacedProducer
from tests.loadtest.experiments import of_one_group
from tests.loadtest.member_steps import end


def test_a_program_that_is_missing_has_failed_and_is_polled_once_it_is_there(locust, tmp_path):
    program, file = tmp_path / "program", tmp_path / "experiment.yaml"
    client = {"command": [str(program)]}
    member = {"kind": "static", "count": 1, "instance_id": "p-{n}", "client": client}
    file.write_text(of_one_group("programs", [member]))
    (tmp_path / "programs.json").write_text(json.dumps({"folder": str(tmp_path), "commands": {}}))
    load = locust("--headless", "--bootstrap", "127.0.0.1:1", "--experiment", str(file))
    load.wait_for(lambda: [one["state"] for one in load.members().values()] == ["failed"])
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


def test_a_producer_that_librdkafka_refuses_has_failed(tmp_path, monkeypatch, caplog):
    forged = "\x1b[2J\nverdict: pass"
    properties = {"security.protocol": forged}
    monkeypatch.setattr("loadtest.producer.client_properties", lambda: properties)
    history = History(tmp_path / "history.jsonl")
    config = ProducerConfig("p", "orders", 5.0)
    handle = ClientHandle("p", PacedProducer(config, "127.0.0.1:1", history, no_statistics))
    handle.open()
    handle.poll_once()
    handle.close()
    history.close()
    [line] = map(json.loads, (tmp_path / "history.jsonl").read_text().splitlines())
    assert (line["event"], line["member"]) == ("error", "p")
    assert line["error"].startswith("'p' cannot be started: ")
    assert forged in line["error"]
    assert caplog.messages == [printable(line["error"])]
