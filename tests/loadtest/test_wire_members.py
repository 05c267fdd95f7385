"""Members with groupquake's own client, in Locust, against a real broker."""

import itertools
import resource
import time

import psutil
import pytest

from tests.loadtest.member_steps import end, others, steps_of

pytestmark = pytest.mark.cluster

NUMBERS = itertools.count()
SESSION_MS = 10_000


@pytest.fixture
def group():
    return f"wire{next(NUMBERS)}"


@pytest.fixture
def load(locust, kafka, group):
    """Two static members and a dynamic one, who have joined."""
    child = locust(
        *("--headless", "--client", "wire", "--bootstrap", kafka, "--group", group),
        *("--session-timeout", f"{SESSION_MS}ms", "--static-members", "2"),
        *("--dynamic-members", "1"),
    )
    child.wait_joined()
    return child


@pytest.fixture
def static(group):
    return f"{group}-static-0"


@pytest.fixture
def dynamic(group):
    return f"{group}-dynamic-0"


@pytest.fixture
def few_descriptors():
    """Let a process that starts have a low limit, which it may raise."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_there_may_be_as_many_connections_as_the_hard_limit_allows(few_descriptors, load):
    limit, most = psutil.Process(load.process.pid).rlimit(psutil.RLIMIT_NOFILE)
    assert limit == most


def requests_of(broker, member, api):
    """Requests of a kind that the broker has answered to a member."""
    log = broker.brokers[0].group_log.read_text().splitlines()
    mark = f'"clientId":"{member}"'
    return [line for line in log if mark in line and f'"requestApiKeyName":"{api}"' in line]


def test_a_killed_static_member_comes_back_and_nobody_else_notices(load, broker, static):
    before = load.members()
    killed = load.ask("kill", member=static)
    assert (killed["state"], killed["partitions"]) == ("killed", [])
    again = load.reply_to("kill", member=static)
    assert again["error"] == f"'{static}' is killed and has no client to kill; start it first"
    load.ask("start", member=static)
    after = load.wait_joined()
    assert others(after, static) == others(before, static)
    owned = before[static]["partitions"]
    assert after[static]["partitions"] == owned
    end(load)
    assert steps_of(load, static) == [
        *(("created", None), ("assigned", owned), ("killed", owned)),
        *(("created", None), ("assigned", owned)),
        *(("closing", None), ("revoked", owned), ("closed", [])),
    ]
    assert requests_of(broker, static, "LEAVE_GROUP") == []


def test_a_dynamic_member_leaves_with_a_reason(load, broker, static, dynamic):
    load.ask("stop", member=dynamic)
    load.wait_joined(static)
    (left,) = requests_of(broker, dynamic, "LEAVE_GROUP")
    assert '"reason":"the consumer is being closed"' in left
    assert '"requestApiVersion":5' in left
    end(load)


def test_a_duplicate_fences_the_member(load, static):
    before = load.members()
    assert load.ask("duplicate", member=static)["client_id"] == f"{static}.duplicate"
    again = load.reply_to("duplicate", member=static)
    assert again["error"].startswith(f"'{static}' has a duplicate already")
    load.wait_for(lambda: load.members()[static]["state"] == "fenced")
    assert load.ask("end-duplicate", member=static)["state"] == "fenced"
    load.ask("start", member=static)
    after = load.wait_joined()
    assert others(after, static) == others(before, static)
    end(load)
    owned = before[static]["partitions"]
    assert steps_of(load, f"{static}.duplicate") == [
        *(("created", None), ("assigned", owned), ("killed", owned)),
    ]
    assert steps_of(load, static)[:5] == [
        *(("created", None), ("assigned", owned), ("fenced", owned)),
        *(("closed", []), ("created", None)),
    ]


def test_a_paused_member_sends_nothing_and_its_session_ends(load, broker, static):
    load.ask("pause", member=static)
    sent = len(requests_of(broker, static, "HEARTBEAT"))
    began = time.monotonic()
    load.wait_for(lambda: len(load.members()[f"{static[:-1]}1"]["partitions"]) > 3)
    assert time.monotonic() - began > SESSION_MS / 1000 / 2
    assert len(requests_of(broker, static, "HEARTBEAT")) <= sent + 1
    load.ask("resume", member=static)
    load.wait_for(lambda: "lost" in [event for event, _ in steps_of(load, static)])
    load.wait_joined()
    end(load)


def test_a_member_that_does_not_poll_joins_no_rebalance(load, broker, static, dynamic):
    load.ask("stop-polling", member=static)
    joined = load.members()[static]["joins"]
    load.ask("stop", member=dynamic)

    def refused():
        """Heartbeats that were answered REBALANCE_IN_PROGRESS."""
        return [
            line for line in requests_of(broker, static, "HEARTBEAT") if '"errorCode":27' in line
        ]

    before = len(refused())
    load.wait_for(lambda: len(refused()) > before + 1)
    assert load.members()[static]["joins"] == joined
    load.ask("resume", member=static)
    load.wait_joined(static)
    end(load)
