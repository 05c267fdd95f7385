"""Members without Locust, against a real broker: the life cycle of a consumer, and its history."""

import itertools
import json
import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from chaos.removal import Removal, remove_members
from loadtest.configs import MemberConfig
from loadtest.history import History
from loadtest.members.librdkafka import LibrdkafkaClient
from loadtest.members.member import Member
from loadtest.timing import POLL_EVERY_S
from tests.loadtest.loads import requests_of

pytestmark = pytest.mark.cluster

NUMBERS = itertools.count()
EIGHT = [f"orders-{number}" for number in range(8)]


def wait_for(condition, within_s=60):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(POLL_EVERY_S)


class Group:
    """Members of one group of its own, given turns by the test."""

    def __init__(self, broker, folder):
        self.name = f"m{next(NUMBERS)}"
        self._broker = broker
        self._file = folder / "history.jsonl"
        self._history = History(self._file)
        self._members = []

    def member(self, kind="dynamic", assignor="range", commit_interval_ms=1_000):
        number = len(self._members)
        instance_id = f"{self.name}-id-{number}" if kind == "static" else None
        config = MemberConfig(
            *(f"{self.name}-{number}", self.name, kind, instance_id, ("orders",), assignor),
            session_timeout_ms=6_000,
            heartbeat_interval_ms=200,
            max_poll_interval_ms=60_000,
            commit_interval_ms=commit_interval_ms,
        )
        bootstrap, report = self._broker.bootstrap, lambda *_, **__: None
        start = lambda one: LibrdkafkaClient(one, bootstrap, lambda call: call())
        member = Member(config, start, self._history, lambda _: report)
        self._members.append(member)
        return member

    def turns_until(self, condition):
        def met():
            for member in self._members:
                member.poll_once()
            return condition()

        wait_for(met)

    def turns_until_shared(self, *members):
        """Until these are the whole group, and share its partitions: each has some."""

        def shared():
            held = [member.row()["partitions"] for member in members]
            joined = all(member.state == "joined" for member in members)
            return joined and all(held) and sorted(itertools.chain(*held)) == EIGHT

        self.turns_until(shared)

    def events(self, member=None):
        lines = [json.loads(line) for line in self._file.read_text().splitlines()]
        return [line for line in lines if member is None or line["member"] == member.config.name]

    def steps(self, member):
        """What happened to a member, with the partitions concerned."""
        return [
            (line["event"], line.get("partitions"))
            for line in self.events(member)
            if line["event"] not in ("processed", "misnumbered", "committed", "error")
        ]

    def broker_has(self, member):
        """Whether the coordinator counts it as a member."""
        admin = AdminClient({"bootstrap.servers": self._broker.bootstrap})
        described = admin.describe_consumer_groups([self.name])[self.name].result()
        return member.config.name in {each.client_id for each in described.members}

    def requests(self, member, api):
        return requests_of(self._broker, member.config.name, api)

    def close(self):
        for member in self._members:
            member.close()
        self._history.close()


@pytest.fixture
def group(broker, tmp_path):
    group = Group(broker, tmp_path)
    yield group
    group.close()


def threads_and_connections(port):
    """What this process has of librdkafka: threads, and connections to the broker."""
    connections = psutil.Process().net_connections("tcp4")
    to_broker = [each for each in connections if each.raddr and each.raddr.port == port]
    return len(list(Path("/proc/self/task").iterdir())), len(to_broker)


@pytest.mark.parametrize(
    ("kind", "moment"),
    [("dynamic", "joined"), ("static", "joining"), ("dynamic", "given an assignment")],
)
def test_a_killed_member_is_gone_at_once_and_leaves_no_group(group, broker, kind, moment):
    port = broker.brokers[0].port
    before = threads_and_connections(port)
    member = group.member(kind)
    member.open()
    if moment == "joined":
        group.turns_until_shared(member)
    elif moment == "joining":  # the first JoinGroup waits for group.initial.rebalance.delay.ms
        group.turns_until(lambda: group.broker_has(member))
    else:  # without a poll, so that the assignment is not processed yet
        wait_for(lambda: group.requests(member, "SYNC_GROUP"))
    assert threads_and_connections(port) > before
    held = member.row()["partitions"]

    member.kill()

    assert threads_and_connections(port) == before
    assert group.broker_has(member)
    assert group.requests(member, "LEAVE_GROUP") == []
    row = member.row()
    assert (row["state"], row["partitions"], row["member_id"]) == ("killed", [], None)
    assert group.steps(member)[-1] == ("killed", held)


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_the_history_has_the_owners_of_partitions(group, assignor):
    first, second = group.member("dynamic", assignor), group.member("dynamic", assignor)
    first.open()
    group.turns_until_shared(first)
    second.open()
    group.turns_until_shared(first, second)
    kept = first.row()["partitions"]
    moved = second.row()["partitions"]
    second.close()
    group.turns_until_shared(first)
    first.close()

    steps = [step for step in group.steps(first) if step[1] != []]
    if assignor == "cooperative-sticky":
        changes = [("revoked", moved), ("assigned", moved)]
    else:
        changes = [
            *(("revoked", EIGHT), ("assigned", kept)),
            *(("revoked", kept), ("assigned", EIGHT)),
        ]
    assert steps == [
        *(("created", None), ("assigned", EIGHT), *changes),
        *(("closing", None), ("revoked", EIGHT)),
    ]
    assert group.steps(first)[-1] == ("closed", [])
    assert [step for step in group.steps(second) if step[1] != []] == [
        *(("created", None), ("assigned", moved), ("closing", None), ("revoked", moved)),
    ]
    times = [line["at_ms"] for line in group.events(first)]
    assert times == sorted(times)


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_removed_static_member_loses_its_partitions_and_joins_again(group, kafka, assignor):
    removed, other = group.member("static", assignor), group.member("static", assignor)
    for member in (removed, other):
        member.open()
    group.turns_until_shared(removed, other)
    before = removed.row()
    instance_id = before["instance_id"]
    assert remove_members(kafka, group.name, [instance_id]) == Removal(0, ((instance_id, 0),))

    group.turns_until(lambda: removed.state == "starting")
    lost = removed.row()
    assert (lost["partitions"], lost["member_id"]) == ([], None)
    group.turns_until_shared(removed, other)
    after = removed.row()
    assert after["member_id"] not in (before["member_id"], None)
    assert after["joins"] == before["joins"] + sum(
        step[0] == "assigned" for step in group.steps(removed)[2:]
    )
    assert ("lost", before["partitions"]) in group.steps(removed)


def test_a_close_that_no_coordinator_answers_comes_to_an_end(group, broker):
    member = group.member("dynamic", commit_interval_ms=600_000)
    member.open()
    group.turns_until_shared(member)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("orders", b"one to commit")
    producer.flush()
    producer.close()
    group.turns_until(lambda: member._client._uncommitted)
    node = broker.brokers[0].id
    broker.act("pause", node)
    try:
        member._client._commit_due_ms = 0.0
        member.poll_once()
        began_s = time.monotonic()
        member.close()
        took_s = time.monotonic() - began_s
    finally:
        broker.act("resume", node)
    assert took_s < 20
    assert member.state == "stopped"
    events = [event for event, _ in group.steps(member) if event != "lost"]
    assert events[-2:] == ["closing", "killed"]
