"""`groupquake group` against a real broker that knows its users and lets not everyone do all."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient

from chaos import kafka_client, removal
from kafka_protocol.errors import Error
from tests.groupquake.conftest import Command, Done
from tests.secured import Secured

WAIT_S = 90.0
NOWHERE = "127.0.0.1:1"
TOPIC = "topic-of-groups"

Remove = Callable[..., Done]


@pytest.fixture(scope="module")
def cluster(secured: Secured) -> Iterator[Secured]:
    """The secured broker with a topic of four partitions; a client without a name may do all."""
    admin = AdminClient({"bootstrap.servers": secured.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 4, 1)])[TOPIC].result(WAIT_S)
    yield secured
    admin.delete_topics([TOPIC])[TOPIC].result(WAIT_S)


class Members:
    """Static members of one group, real consumers that this thread polls."""

    def __init__(self, cluster: Secured, group: str, names: Sequence[str]) -> None:
        self.log = cluster.brokers[0].group_log
        self.group = group
        self._bootstrap = cluster.bootstrap
        common = {"bootstrap.servers": cluster.bootstrap, "group.id": group}
        self.consumers = [Consumer({**common, "group.instance.id": name}) for name in names]
        for consumer in self.consumers:
            consumer.subscribe([TOPIC])
        self.poll_until(lambda: all(consumer.assignment() for consumer in self.consumers))

    def poll_until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < deadline
            for consumer in self.consumers:
                consumer.poll(0.02)

    def rebalances(self) -> list[str]:
        begun = f"Preparing to rebalance group {self.group} "
        return [line for line in self.log.read_text().splitlines() if begun in line]

    def close(self) -> None:
        """Drop them as a crash would: who closes in a rebalance waits for the others' polls."""
        self.consumers.clear()
        removal.remove_everybody(self._bootstrap, self.group, {})
        delete(self._bootstrap, self.group)


def delete(bootstrap: str, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_consumer_groups([group])[group].result(WAIT_S)


@pytest.fixture
def members(cluster: Secured, request: pytest.FixtureRequest) -> Iterator[Members]:
    """Three static members, `a`, `b` and `c`, of a group named after the test."""
    with closing(Members(cluster, request.node.name, "abc")) as joined:
        yield joined


@pytest.fixture
def remove(groupquake: Command, cluster: Secured) -> Remove:
    """Calls the command as somebody who may do all."""
    return partial(groupquake, "group", "remove-members", "--bootstrap", cluster.bootstrap)


def as_dict(done: Done) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(done.out)
    return shown


@pytest.mark.cluster
def test_some_are_removed_and_the_rest_rebalances_at_once(
    members: Members, remove: Remove, cluster: Secured
) -> None:
    before = len(members.rebalances())
    dry = remove(members.group, "--instances", "ghost,b", "--dry-run", "--json")
    assert dry.code == 1
    shown = as_dict(dry)
    assert shown["dry_run"]
    assert [member["error"] for member in shown["members"]] == ["UNKNOWN_MEMBER_ID", None]
    assert not any(member["removed"] for member in shown["members"])
    assert len(members.rebalances()) == before
    done = remove(members.group, "--instances", "a,ghost")
    assert done.code == 1, done.err
    assert done.out.splitlines() == [
        "member a: removed",
        "member ghost: not a member of the group (UNKNOWN_MEMBER_ID)",
        f"group {members.group}: 1 of 2 removed",
    ]
    caused = members.rebalances()[before:]
    assert len(caused) == 1
    assert "(reason: explicit `LeaveGroup` request" in caused[0]
    # who still runs and was removed joins again, as the help says
    members.poll_until(lambda: "a" in removal.static_members(cluster.bootstrap, members.group))


@pytest.mark.cluster
def test_all_members_are_removed_only_with_the_option_all(members: Members, remove: Remove) -> None:
    assert remove(members.group).code == 64
    before = len(members.rebalances())
    dry = remove(members.group, "--all", "--dry-run")
    assert dry.code == 0
    assert dry.out.splitlines() == [
        *(f"member {name}: would be removed" for name in "abc"),
        f"group {members.group}: 3 of 3 would be removed",
    ]
    assert len(members.rebalances()) == before
    done = remove(members.group, "--all", "--json")
    assert done.code == 0, done.err
    assert as_dict(done) == {
        "group": members.group,
        "dry_run": False,
        "error": None,
        "members": [{"instance_id": name, "removed": True, "error": None} for name in "abc"],
    }
    named = f'"groupId":"{members.group}"'

    def leaves() -> list[str]:
        lines = members.log.read_text().splitlines()
        return [line for line in lines if "LEAVE_GROUP" in line and named in line]

    members.poll_until(lambda: bool(leaves()))  # a request's line follows its response
    assert len(leaves()) == 1
    assert len(members.rebalances()) > before


@pytest.mark.cluster
def test_a_group_that_does_not_exist(remove: Remove) -> None:
    for selected in (["--all"], ["--instances", "a"], ["--all", "--dry-run"]):
        done = remove("no-such-group", *selected)
        assert (done.code, done.out) == (1, "")
        assert done.err == (
            "groupquake: group no-such-group: there is no classic group with that name"
            " (GROUP_ID_NOT_FOUND)\n"
        )


@pytest.mark.cluster
def test_a_group_id_that_none_can_have(remove: Remove) -> None:
    done = remove("", "--instances", "a", "--json")
    assert done.code == 1
    assert as_dict(done)["error"] == "INVALID_GROUP_ID"


@pytest.mark.cluster
def test_a_group_without_static_members(cluster: Secured, remove: Remove) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "dynamic-alone"}
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([TOPIC])
        while not consumer.assignment():
            consumer.poll(0.1)
        done = remove("dynamic-alone", "--all")
    assert done.code == 0, done.err
    assert done.out == "group dynamic-alone: it has no static members\n"
    delete(cluster.bootstrap, "dynamic-alone")


@pytest.mark.cluster
def test_a_client_without_authorization(
    cluster: Secured, groupquake: Command, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    properties = cluster.properties("PLAIN")
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    words = ("group", "remove-members", "guarded", "--bootstrap", cluster.at("SASL_SSL"))
    for selected in (["--all"], ["--instances", "a"]):
        password = {"ALICES_PASSWORD": cluster.password}
        done = groupquake(*words, "--config", file, *selected, env=password)
        assert done.code == 1
        assert "GROUP_AUTHORIZATION_FAILED" in done.err
        assert "ACL" in done.err
        assert "Traceback" not in done.err


@pytest.mark.cluster
def test_brokers_too_old_for_it(
    members: Members, cluster: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client asks no more than what Kafka 2.3 understands; the tuples came with 2.4."""
    before = len(members.rebalances())
    with monkeypatch.context() as old:  # the end of the members asks for more
        client = partial(KafkaAdminClient, api_version=(2, 3))
        old.setattr(kafka_client, "KafkaAdminClient", client)
        answer = removal.remove_members(cluster.bootstrap, members.group, ["a"], client_id="old")
        with pytest.raises(removal.GroupError, match="UNSUPPORTED_VERSION"):
            removal.static_members(cluster.bootstrap, members.group)
    assert answer == removal.Removal(Error.UNSUPPORTED_VERSION, ())
    assert len(members.rebalances()) == before


BAD_USAGE: tuple[tuple[list[str], str], ...] = (
    ([], "give either --instances A,B,… or --all"),
    (["--all", "--instances", "a"], "give either --instances A,B,… or --all"),
    (["--instances", "a,,b"], "'a,,b' is not a list of instance ids"),
    (["--instances", ""], "'' is not a list of instance ids"),
    (["--all", "--bootstrap", "here"], "'here' is not a server; write HOST:PORT"),
    (["--all", "--bootstrap", "a:1,b:99999"], "'b:99999' is not a server"),
    (["--all", "--config", "missing"], "'missing' does not exist"),
    (["--all", "--timeout", "30"], "30 has no unit; write 30s"),
)


def test_bad_usage(groupquake: Command) -> None:
    for words, error_line in BAD_USAGE:
        done = groupquake("group", "remove-members", "any", "--bootstrap", NOWHERE, *words)
        assert done.code == 64
        assert error_line in done.err
        assert done.out == ""


def test_a_bad_line_in_the_file(groupquake: Command, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("\nsecurity.protocoll=SSL\n")
    options = ("--bootstrap", NOWHERE, "--config", file)
    done = groupquake("group", "remove-members", "any", "--all", *options)
    assert done.code == 64
    assert f"{file}:2: " in done.err
    assert "did you mean 'security.protocol'?" in done.err
