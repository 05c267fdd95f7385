"""What the runner orders members to do, over the control channel of a whole load."""

import itertools
import signal

import psutil
import pytest

from tests.loadtest.member_steps import end, others, steps_of

pytestmark = pytest.mark.cluster

NUMBERS = itertools.count()


@pytest.fixture
def group():
    return f"o{next(NUMBERS)}"


@pytest.fixture
def load(locust, kafka, group):
    """Two static members and a dynamic one, who have joined."""
    child = locust(
        *("--headless", "--bootstrap", kafka, "--group", group, "--session-timeout", "10s"),
        *("--static-members", "2", "--dynamic-members", "1"),
    )
    child.wait_joined()
    return child


@pytest.fixture
def static(group):
    return f"{group}-static-0"


def test_a_killed_static_member_comes_back_and_nobody_else_notices(load, static):
    before = load.members()
    killed = load.ask("kill", member=static)
    assert (killed["state"], killed["partitions"]) == ("killed", [])
    assert load.ask("start", member=static)["state"] == "starting"
    after = load.wait_joined()
    assert others(after, static) == others(before, static)
    assert after[static]["partitions"] == before[static]["partitions"]
    end(load)
    assert ("killed", before[static]["partitions"]) in steps_of(load, static)


def test_a_killed_dynamic_member_is_missed_only_when_its_session_is_over(load, group):
    dynamic = f"{group}-dynamic-0"
    before = load.members()
    load.ask("kill", member=dynamic)
    killed_ms = load.history()[-1]["at_ms"]
    rest = load.wait_joined(*others(before, dynamic))
    assert {rest[name]["joins"] - before[name]["joins"] for name in others(rest, dynamic)} == {1}
    missed = [
        line["at_ms"]
        for line in load.history()
        if line["event"] == "revoked" and line["at_ms"] > killed_ms
    ]
    assert min(missed) - killed_ms > 6_000  # ten seconds, less one heartbeat and some noise
    refused = load.reply_to("kill", member=dynamic)
    assert refused["error"] == f"'{dynamic}' is killed and has no consumer to kill; start it first"
    end(load)


def test_a_duplicate_fences_the_member_until_both_are_over(load, static):
    before = load.members()
    duplicate = load.ask("duplicate", member=static)
    assert duplicate["client_id"] == f"{static}.duplicate"
    process = psutil.Process(duplicate["pid"])
    assert process.ppid() == load.process.pid
    load.wait_for(lambda: load.members()[static]["state"] == "fenced")
    again = load.reply_to("duplicate", member=static)
    assert again["error"].startswith(f"'{static}' has a duplicate already, process {process.pid};")

    assert load.ask("end-duplicate", member=static)["state"] == "fenced"
    assert not process.is_running()
    load.ask("end-duplicate", member=static)  # it is over already
    load.ask("start", member=static)
    after = load.wait_joined()
    assert others(after, static) == others(before, static)
    assert after[static]["partitions"] == before[static]["partitions"]
    end(load)
    owned = before[static]["partitions"]
    assert steps_of(load, f"{static}.duplicate") == [
        *(("created", None), ("assigned", owned), ("killed", owned)),
    ]
    assert steps_of(load, static)[:6] == [
        *(("created", None), ("assigned", owned), ("fenced", owned)),
        *(("closing", None), ("closed", []), ("created", None)),
    ]


def test_a_dynamic_member_has_no_identity_to_claim(load, group):
    refused = load.reply_to("duplicate", member=f"{group}-dynamic-0")["error"]
    assert "is a dynamic member and has no group.instance.id that another process" in refused
    end(load)


@pytest.mark.parametrize("how", ["quit", signal.SIGTERM, signal.SIGKILL])
def test_a_duplicate_ends_with_the_load(load, static, how):
    process = psutil.Process(load.ask("duplicate", member=static)["pid"])
    duplicate = f"{static}.duplicate"
    load.wait_for(lambda: "assigned" in [event for event, _ in steps_of(load, duplicate)])
    if how == "quit":
        end(load)
    else:
        load.end(how)
    process.wait(timeout=60)
    events = [event for event, _ in steps_of(load, duplicate)]
    assert events == ["created", "assigned", *(["killed"] if how != signal.SIGKILL else [])]


def test_a_member_may_come_back_static_or_dynamic(load, static):
    name = static

    def restart(**identity):
        load.ask("stop", member=name)
        load.ask("start", member=name, **identity)
        row = load.wait_joined()[name]
        return row["kind"], row["instance_id"]

    assert restart(instance_id=None) == ("dynamic", None)
    assert restart() == ("dynamic", None)
    assert restart(instance_id="app-7") == ("static", "app-7")
    assert restart() == ("static", "app-7")
    up = load.reply_to("start", member=name, instance_id="app-8")
    assert up["error"].startswith(f"'{name}' is up as app-7; stop or kill it")
    assert load.ask("start", member=name, instance_id="app-7")["state"] == "joined"
    odd = load.reply_to("start", member=name, instance_id=7)
    assert odd["error"].startswith('start takes "instance_id" as a name')
    end(load)
    created = [
        (line["kind"], line["instance_id"])
        for line in load.history()
        if line["member"] == name and line["event"] == "created"
    ]
    assert created == [
        *(("static", static), ("dynamic", None), ("dynamic", None)),
        *(("static", "app-7"), ("static", "app-7")),
    ]
