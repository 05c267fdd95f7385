"""Faults of groups and topics: their witnesses, alone and through the controller."""

import pytest

from chaos.removal import Removal
from kafka_protocol.errors import Error
from scenarios.faults.base import Finding
from tests.chaos.run import GOOD

MOVE = "{fault: coordinator.move, group: static, at: 0s%s}"
DELETE = "{fault: topic.delete, topic: orders, at: 0s}"
SCALE = "{fault: members.scale, group: static, to: 1, at: 0s, lasts: 150ms}"
GROW = "fault: topic.add-partitions, topic: orders, to: 9"
GHOST = {"static-0": 0, "ghost": 25}


@pytest.fixture
def soon(monkeypatch):
    """Let witnesses give up after a moment."""
    for name in ("MOVE_KNOWN_MS", "TOPIC_KNOWN_MS", "LEAVE_LOGGED_MS"):
        monkeypatch.setattr(f"scenarios.timing.{name}", 200)


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
    refuse = lambda: load.log.request("static-0", "HEARTBEAT", error=Error.NOT_COORDINATOR)
    run.meanwhile(experiment(MOVE % ", to: 1"), lambda: run.entries("injected"), refuse)
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


def test_partitions_are_there_once_every_broker_that_answers_knows_them(fake_cluster, aim, soon):
    growth = aim(GROW)
    assert (growth.one_shot, growth.hit.target, growth.hit.group) == (True, "orders", None)
    growth.inject()
    by = "9 partitions of orders with leaders, by broker 1"
    assert growth.verify() == Finding(True, f"{by}, broker 2, broker 3")
    fake_cluster.mute.add(2)
    assert growth.verify() == Finding(True, f"{by}, broker 3")
    unknown = "not every broker knows 9 partitions of orders with a leader within 200 ms"
    for fake_cluster.behind, fake_cluster.mute in (({3: 5}, set()), ({}, {1, 2, 3})):
        assert growth.verify() == Finding(False, unknown)


def test_the_last_members_stop_and_come_back(run, load, experiment):
    assert run.of(experiment(SCALE)) == GOOD
    assert sorted(load.ordered("stop")) == ["static-1", "static-2", "static-3"]
    assert sorted(load.ordered("start")) == ["static-1", "static-2", "static-3"]
    assert {entry["fault"] for entry in run.entries("intent")} == {"members.scale"}
    assert [entry["verified"] for entry in run.entries("verified")] == [True] * 3


@pytest.fixture
def removal(load, aim, monkeypatch):
    """Makes a removal whose answer and whose trace in the log may differ."""

    def make(logged: dict[str, int] | None, answer: int = 0, error: int = 0, group: str = "static"):
        def remove(_, asked, instances, *, client_id, config):
            assert (asked, list(instances), config) == ("static", list(GHOST), {})
            if logged is not None:
                load.log.request(client_id, "LEAVE_GROUP", group=group, error=error, removed=logged)
            return Removal(answer, tuple(GHOST.items()))

        monkeypatch.setattr("chaos.fault_context.remove_members", remove)
        fault = aim("fault: group.remove-members, group: static, instances: [static-0, ghost]")
        fault.inject()
        return fault

    return make


def test_a_removal_is_in_the_log_with_an_answer_for_each(removal):
    fault = removal(GHOST)
    assert (fault.hit.target, fault.hit.group) == ("static-0, ghost", "static")
    assert fault.hit.details == {"instances": ["static-0", "ghost"]}
    found = fault.verify()
    assert found.holds
    assert found.evidence.startswith("LEAVE_GROUP of groupquake-f1.1 answered NONE (group.log of")
    assert found.evidence.endswith(", static-0: NONE, ghost: UNKNOWN_MEMBER_ID")


NOBODY = "no LEAVE_GROUP of groupquake-f1.1 answered NONE in any group.log within 200 ms"
REFUSED = f"{NOBODY}; one was answered NOT_COORDINATOR (group.log of broker"


@pytest.mark.parametrize(
    ("trace", "evidence"),
    [
        ({"logged": {"static-0": 0}}, ""),
        ({"logged": {**GHOST, "static-1": 0}}, ""),
        ({"logged": GHOST, "group": "mixed"}, ""),
        ({"logged": None}, NOBODY),
        ({"logged": GHOST, "error": Error.NOT_COORDINATOR}, REFUSED),
        ({"logged": None, "answer": 69}, "LEAVE_GROUP was answered GROUP_ID_NOT_FOUND"),
    ],
    ids=["one is missing", "one too many", "another group", "no line", "sent away", "refused"],
)
def test_what_is_not_this_removal_answered_well_is_not_verified(removal, soon, trace, evidence):
    found = removal(**trace).verify()
    assert not found.holds
    assert found.evidence.startswith(evidence)


def test_the_end_of_the_run_ends_the_wait_for_the_line_of_a_removal(removal, stop):
    stop.set()
    found = removal(None).verify()
    assert (found.holds, "as the run was ended" in found.evidence) == (False, True)
