"""What `groupquake doctor` says of a broker, and that it changes nothing but levels of loggers."""

import json
import os
from dataclasses import replace
from unittest.mock import Mock

import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from chaos.clusters.process import ProcessCluster
from groupquake.access import Right
from groupquake.commands.doctor import Diagnosis, Item, _item, _lines, _logging
from groupquake.external import offered
from kafka_protocol.request_log import LOGGER
from tests.groupquake.conftest import Command
from tests.secured import Secured

CLUSTER = pytest.mark.cluster


@CLUSTER
def test_whoever_may_do_all_sees_all(groupquake: Command, secured: Secured) -> None:
    found = json.loads(groupquake("doctor", "--bootstrap", secured.bootstrap, "--json").out)
    assert found["releases"] == {"1": "4.3"}
    assert (found["coordinator"], found["evidence"], found["can_run"]) == ("java", "requests", True)
    assert found["settings"]["group.initial.rebalance.delay.ms"] == "1000"
    client = KafkaAdminClient(bootstrap_servers=secured.bootstrap)
    assert "groupquake-doctor" not in client.list_topics()
    found = offered(client, [1])
    assert (found.words, found.is_certain) == ("4.3.0 or a later patch", True)
    client.close()


@CLUSTER
def test_loggers_are_switched_off_and_on(groupquake: Command, secured: Secured) -> None:
    def switched(option: str) -> tuple[str, str]:
        answer = groupquake("doctor", "--bootstrap", secured.bootstrap, option, "--json")
        found = json.loads(answer.out)
        return found["loggers"]["1"]["kafka.request.logger"], found["evidence"]

    try:
        assert switched("--switch-off") == ("WARN", "wire")
    finally:  # other tests read what this broker logs
        on = switched("--switch-on")
    assert on == ("DEBUG", "requests")


@CLUSTER
def test_what_acls_refuse_is_named_with_its_cost(
    groupquake: Command, secured: Secured, tmp_path
) -> None:
    file = tmp_path / "alice.properties"
    lines = (f"{key}={value}\n" for key, value in secured.properties("PLAIN").items())
    file.write_text("".join(lines))
    words = ("doctor", "--bootstrap", secured.at("SASL_SSL"), "--client-properties", file)
    done = groupquake(*words, env={"ALICES_PASSWORD": secured.password})
    assert done.code == 0
    first, *others = done.out.splitlines()
    assert first.startswith("a run is possible")
    place = others.index("without DESCRIBE_CONFIGS of cluster")
    assert others[place + 1].startswith("  costs: the brokers' settings are assumed")
    assert others[place + 2].endswith("--operation DescribeConfigs --cluster")
    assert "yes        CREATE of topics called groupquake-doctor" in done.out
    refused = groupquake(*words, "--switch-on", env={"ALICES_PASSWORD": secured.password})
    assert (refused.code, "needs ALTER_CONFIGS of the cluster" in refused.err) == (77, True)
    unset = groupquake(*words)
    assert unset.code == 64
    assert "the environment has no variable ALICES_PASSWORD; set it" in unset.err


@CLUSTER
def test_the_names_that_are_asked_about_have_the_prefix(
    groupquake: Command, secured: Secured
) -> None:
    done = groupquake("doctor", "--bootstrap", secured.bootstrap, "--prefix", "trial-")
    assert "CREATE of topics called trial-groupquake-doctor" in done.out
    assert "READ of groups called trial-groupquake-doctor" in done.out


@CLUSTER
def test_a_cluster_without_groups_gets_no_topic_for_their_offsets(
    groupquake: Command, tmp_path
) -> None:
    with ProcessCluster(f"new-{os.getpid()}", tmp_path / "brokers", brokers=1) as cluster:
        done = groupquake("doctor", "--bootstrap", cluster.bootstrap)
        client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        assert client.list_topics() == []
        assert "yes        DESCRIBE of groups called groupquake-doctor" in done.out
        assert "yes        DELETE of groups called groupquake-doctor" in done.out
        client.close()


def _diagnosis(*items: Item, level: str = "WARN") -> Diagnosis:
    return Diagnosis("id", {1: "a:1"}, {1: "4.3"}, "java", None, {}, {1: {LOGGER: level}}, items)


def test_what_is_not_known_is_not_called_impossible() -> None:
    """Brokers that do not answer a question about a right may allow it: a run asks, too."""
    silent = Mock(**{"_manager.run.side_effect": KafkaError})
    item = _item(
        silent, "p-", Right("DELETE", "topic", "p-x"), "no run is possible", is_needed=True
    )
    assert (item.state, "no run" in item.costs) == ("not known", False)
    assert item.get.endswith("--operation Delete --topic p- --resource-pattern-type prefixed")
    found = _diagnosis(item)
    assert not found.refused
    assert (
        _lines(found)[0] == "a run is possible, judged by what passes through the tap (level wire)"
    )


def test_the_first_line_says_what_is_refused_and_what_evidence_there_is() -> None:
    refused = Item("CREATE of topics called x…", "no", "no run is possible", "kafka-acls …", True)
    found = _diagnosis(refused, replace(refused, is_needed=False, what="ALTER"))
    assert found.refused
    assert _lines(found)[0] == "no run is possible: not allowed: CREATE of topics called x…"
    assert _lines(_diagnosis(level="DEBUG"))[0].startswith("a run is possible; for all evidence")


def test_brokers_with_the_same_logger_are_one_line() -> None:
    levels = {n: {LOGGER: "DEBUG" if n == 3 else "WARN"} for n in (1, 2, 3)}
    found = [(one.what, one.state) for one in _logging(levels, "java") if LOGGER in one.what]
    assert found == [
        (f"{LOGGER} of brokers 1, 2 at DEBUG", "no"),
        (f"{LOGGER} of broker 3 at DEBUG", "yes"),
    ]
