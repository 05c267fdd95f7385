"""Members of each kind of client in a whole load on a real broker, which act as the runner orders.

The clients are those that come with groupquake itself; their tests share one load for each.
"""

import time

import psutil
import pytest

from scenarios.clients import IN_LOAD
from tests.loadtest.conftest import Locust
from tests.loadtest.loads import end, of_one_group, others, requests_of, steps_of

pytestmark = pytest.mark.cluster

SESSION_MS = {"librdkafka": 3_000, "wire": 3_000, "librdkafka-process": 6_000}
"""By client; in one, a new process starts and joins. librdkafka polls within no shorter time."""


@pytest.fixture(scope="module", params=SESSION_MS)
def load(request, kafka, tmp_path_factory):
    """Two static members and a dynamic one of a client, who have joined."""
    client, folder = request.param, tmp_path_factory.mktemp("members")
    own, file = {"client": client}, folder / "experiment.yaml"
    members = [
        {**own, "kind": "static", "count": 2, "instance_id": f"{client}-static-{{n}}"},
        {**own, "kind": "dynamic", "count": 1},
    ]
    session_ms = SESSION_MS[client]
    times = {
        "session_timeout": f"{session_ms}ms",
        "max_poll_interval": f"{session_ms}ms",
        "heartbeat_interval": "300ms",
    }
    file.write_text(of_one_group(client, members, **times))
    child = Locust(folder, "--headless", "--bootstrap", kafka, "--experiment", str(file))
    child.client, child.session_ms = client, session_ms
    child.wait_joined()
    yield child
    end(child)
    child.close()
    for name in ("static-0", "static-1", "dynamic-0"):
        assert [event for event, _ in steps_of(child, f"{client}-{name}")][-1] == "closed"


@pytest.fixture(autouse=True)
def joined(load):
    load.wait_joined()
    return load


@pytest.fixture
def static(load):
    return f"{load.client}-static-0"


@pytest.fixture
def dynamic(load):
    return f"{load.client}-dynamic-0"


def test_a_killed_static_member_comes_back_and_nobody_else_notices(load, broker, static):
    before, past = load.members(), len(steps_of(load, static))
    killed = load.ask("kill", member=static)
    assert (killed["state"], killed["partitions"], killed["member_id"]) == ("killed", [], None)
    assert load.ask("start", member=static)["state"] == "starting"
    after = load.wait_joined()
    assert others(after, static) == others(before, static)
    owned = before[static]["partitions"]
    assert after[static]["partitions"] == owned
    assert after[static]["joins"] == before[static]["joins"] + 1
    assert after[static]["member_id"] not in (None, before[static]["member_id"])
    assert steps_of(load, static)[past:] == [
        ("killed", owned), ("created", None), ("assigned", owned)
    ]  # fmt: skip
    assert requests_of(broker, static, "LEAVE_GROUP") == []


def test_a_killed_dynamic_member_is_missed_only_when_its_session_is_over(load, dynamic):
    load.ask("kill", member=dynamic)
    killed_ms = load.history()[-1]["at_ms"]
    load.wait_joined(*others(load.members(), dynamic))
    missed = [
        line["at_ms"]
        for line in load.history()
        if line["event"] == "revoked" and line["at_ms"] > killed_ms
    ]
    assert min(missed) - killed_ms > load.session_ms / 2  # less one heartbeat and some noise
    load.ask("start", member=dynamic)


def test_a_dynamic_member_that_closes_leaves_its_group(load, broker, static, dynamic):
    before = len(requests_of(broker, dynamic, "LEAVE_GROUP"))
    assert load.ask("stop", member=dynamic)["state"] == "stopped"
    load.wait_joined(*others(load.members(), dynamic))
    left = requests_of(broker, dynamic, "LEAVE_GROUP")
    assert len(left) == before + 1
    if load.client == "wire":
        assert '"reason":"the consumer is being closed"' in left[-1]
        assert '"requestApiVersion":5' in left[-1]
    load.ask("start", member=dynamic)


def test_a_duplicate_fences_the_member_until_both_are_over(load, static):
    before, past = load.members(), len(steps_of(load, static))
    duplicate = load.ask("duplicate", member=static)
    assert duplicate["client_id"] == f"{static}.duplicate"
    shared = load.client == "wire"
    assert (duplicate["pid"] == load.process.pid) is shared
    load.wait_for(lambda: load.members()[static]["state"] == "fenced")
    assert load.ask("end-duplicate", member=static)["state"] == "fenced"
    assert psutil.pid_exists(duplicate["pid"]) is shared
    load.ask("end-duplicate", member=static)  # it is over already
    load.ask("start", member=static)
    after = load.wait_joined()
    assert others(after, static) == others(before, static)
    owned = before[static]["partitions"]
    assert after[static]["partitions"] == owned
    assert steps_of(load, f"{static}.duplicate") == [
        *(("created", None), ("assigned", owned), ("killed", owned)),
    ]
    fenced, *ends, created, assigned = steps_of(load, static)[past:]
    assert (fenced, created, assigned) == (
        ("fenced", owned), ("created", None), ("assigned", owned)
    )  # fmt: skip
    assert ends[-1] in (("closed", []), ("killed", []))


def test_a_paused_member_sends_nothing_and_its_session_ends(load, broker, static):
    if load.client == "librdkafka":
        refused = load.reply_to("pause", member=static)["error"]
        assert "shares the process of the load, which cannot be frozen for one member" in refused
        return
    load.ask("pause", member=static)
    sent, began_s = len(requests_of(broker, static, "HEARTBEAT")), time.monotonic()
    other = f"{static[:-1]}1"
    load.wait_for(lambda: len(load.members()[other]["partitions"]) > 3)
    assert time.monotonic() - began_s > load.session_ms / 1000 / 2
    assert len(requests_of(broker, static, "HEARTBEAT")) <= sent + 1
    load.ask("resume", member=static)
    load.wait_for(lambda: "lost" in [event for event, _ in steps_of(load, static)])


def test_a_member_that_does_not_poll_leaves_until_it_polls_again(load, broker, static, dynamic):
    joins, left = load.members()[dynamic]["joins"], len(requests_of(broker, dynamic, "LEAVE_GROUP"))
    load.ask("stop-polling", member=dynamic)
    load.wait_for(lambda: len(requests_of(broker, dynamic, "LEAVE_GROUP")) > left)
    rest = lambda: others(load.members(), dynamic).values()
    load.wait_for(lambda: sum(len(row["partitions"]) for row in rest()) == 8)
    assert load.members()[dynamic]["joins"] == joins
    load.ask("resume", member=dynamic)
    load.wait_for(lambda: load.members()[dynamic]["joins"] > joins)


def test_members_unsubscribe_and_subscribe_again(load, broker, static, dynamic):
    """librdkafka leaves if it is static, too (`rd_kafka_cgrp_leave_maybe`); Kafka's own stays."""
    if load.client not in IN_LOAD:
        assert "is a program" in load.reply_to("unsubscribe", member=static)["error"]
        return
    for member, leaves in ((dynamic, True), (static, load.client == "librdkafka")):
        joins, left = load.members()[member]["joins"], requests_of(broker, member, "LEAVE_GROUP")
        load.ask("unsubscribe", member=member)
        load.wait_for(lambda it=member: not load.members()[it]["partitions"])
        load.ask("resume", member=member)
        load.wait_for(lambda it=member, was=joins: load.members()[it]["joins"] > was)
        assert len(requests_of(broker, member, "LEAVE_GROUP")) == len(left) + leaves


def test_a_member_that_is_frozen_or_slow_can_be_stopped(load, dynamic):
    for do in ("stop-polling", "pause")[: 1 if load.client == "librdkafka" else 2]:
        load.ask(do, member=dynamic)
        assert load.ask("stop", member=dynamic)["state"] == "stopped"
        load.ask("start", member=dynamic)
        load.wait_joined()


def test_a_member_may_come_back_static_or_dynamic(load, static):
    def restart(**identity):
        load.ask("stop", member=static)
        load.ask("start", member=static, **identity)
        row = load.wait_joined()[static]
        return row["kind"], row["instance_id"]

    assert restart(instance_id=None) == ("dynamic", None)
    assert restart() == ("dynamic", None)
    assert restart(instance_id="app-7") == ("static", "app-7")
    assert load.ask("start", member=static, instance_id="app-7")["state"] == "joined"
    created = [
        (line["kind"], line["instance_id"])
        for line in load.history()
        if line["member"] == static and line["event"] == "created"
    ]
    assert created[-3:] == [("dynamic", None), ("dynamic", None), ("static", "app-7")]
