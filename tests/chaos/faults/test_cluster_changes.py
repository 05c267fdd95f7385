"""Faults that change topics, leaders or the size of a group, through the controller."""

import pytest

from kafka_protocol.errors import Error
from tests.chaos.run import GOOD

MOVE = "{fault: coordinator.move, group: static, at: 0s%s}"
DELETE = "{fault: topic.delete, topic: orders, at: 0s}"
SCALE = "{fault: members.scale, group: static, to: 1, at: 0s, lasts: 150ms}"


@pytest.fixture
def soon(monkeypatch):
    """Let witnesses give up after a moment."""
    monkeypatch.setattr("chaos.faults.coordinator_move._KNOWN_WITHIN_MS", 200)
    monkeypatch.setattr("chaos.faults.topic_delete._KNOWN_WITHIN_MS", 200)


def verified(run):
    [entry] = run.entries("verified")
    return entry["verified"], entry["witness"]


def test_a_coordinator_that_moved_has_to_serve_the_group(run, load, experiment, fake_cluster, soon):
    assert run.of(experiment(MOVE % "")) == GOOD
    assert fake_cluster.coordinator("static") == 2
    holds, why = verified(run)
    assert (holds, "or it served nobody within 200 ms" in why) == (False, True)
    [injected] = run.entries("injected")
    assert (injected["moved_from"], injected["moved_to"]) == (1, 2)


def test_a_coordinator_that_serves_the_group_has_moved(run, load, experiment, fake_cluster):
    fake_cluster.coordinates["static"] = 3
    assert run.of(experiment(MOVE % ", to: 1")) == GOOD
    holds, why = verified(run)
    assert holds, why
    assert why.startswith("broker 1 coordinates static by broker 1, broker 2, broker 3, and served")


def test_an_answer_that_sends_the_client_away_is_no_service(run, load, experiment, soon):
    for name in ("static-0", "static-1", "static-2", "static-3"):
        load.silence(name)
    load.log.request("static-0", "HEARTBEAT", error=Error.NOT_COORDINATOR)
    one = experiment(MOVE % ", to: 1")
    began = lambda: run.entries("injected") if run.path.exists() else []
    refuse = lambda: load.log.request("static-0", "HEARTBEAT", error=Error.NOT_COORDINATOR)
    run.meanwhile(one, began, refuse)
    assert verified(run)[0] is False


def test_a_deleted_topic_is_known_by_nobody(run, load, experiment, fake_cluster, soon):
    assert run.of(experiment(DELETE)) == GOOD
    assert verified(run) == (
        True, "no partition of orders is known by broker 1, broker 2, broker 3"
    )  # fmt: skip
    fake_cluster.topics["orders"] = 4
    fake_cluster.behind[2] = 4
    again = type(run)(load, fake_cluster, run.path.with_name("again.jsonl"))
    assert again.of(experiment(DELETE)) == GOOD
    assert verified(again) == (False, "a broker still knows topic orders within 200 ms")


def test_the_last_members_stop_and_come_back(run, load, experiment):
    assert run.of(experiment(SCALE)) == GOOD
    assert sorted(load.ordered("stop")) == ["static-1", "static-2", "static-3"]
    assert sorted(load.ordered("start")) == ["static-1", "static-2", "static-3"]
    assert {entry["fault"] for entry in run.entries("intent")} == {"members.scale"}
    assert [entry["verified"] for entry in run.entries("verified")] == [True] * 3
