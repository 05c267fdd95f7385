"""What `groupquake doctor` says of a broker, and that it changes nothing but levels of loggers."""

import json
import os

import pytest
from kafka.admin import KafkaAdminClient

from chaos.clusters.process import ProcessCluster
from groupquake.external import offered
from tests.groupquake.conftest import Command
from tests.secured import Secured

pytestmark = pytest.mark.cluster


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


def test_what_acls_refuse_is_named_with_its_cost(
    groupquake: Command, secured: Secured, tmp_path
) -> None:
    file = tmp_path / "alice.properties"
    lines = (f"{key}={value}\n" for key, value in secured.properties("PLAIN").items())
    file.write_text("".join(lines))
    words = ("doctor", "--bootstrap", secured.at("SASL_SSL"), "--client-properties", file)
    done = groupquake(*words, env={"ALICES_PASSWORD": secured.password})
    assert done.code == 0
    assert "no         DESCRIBE_CONFIGS of cluster: the brokers' settings are assumed" in done.out
    assert "yes        CREATE of topics called groupquake-doctor" in done.out
    refused = groupquake(*words, "--switch-on", env={"ALICES_PASSWORD": secured.password})
    assert (refused.code, "needs ALTER_CONFIGS of the cluster" in refused.err) == (77, True)
    unset = groupquake(*words)
    assert unset.code == 64
    assert "the environment has no variable ALICES_PASSWORD; set it" in unset.err


def test_the_names_that_are_asked_about_have_the_prefix(
    groupquake: Command, secured: Secured
) -> None:
    done = groupquake("doctor", "--bootstrap", secured.bootstrap, "--prefix", "trial-")
    assert "CREATE of topics called trial-groupquake-doctor" in done.out
    assert "READ of groups called trial-groupquake-doctor" in done.out


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
