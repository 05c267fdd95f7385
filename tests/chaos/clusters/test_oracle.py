"""The oracle as a cluster: brokers end, freeze and come back, and what ends with its process."""

import signal
from contextlib import closing

import pytest

from chaos.broker_probe import Question
from chaos.cluster_view import ClusterView
from chaos.clusters.factory import KINDS, Place, make
from chaos.clusters.oracle import OracleCluster
from chaos.clusters.releases import SHUTDOWN_LINES
from chaos.errors import ClusterError
from chaos.waiting import until


@pytest.fixture
def cluster(tmp_path):
    with OracleCluster("r", tmp_path / "brokers", config={"broker.session.timeout.ms": 200}) as one:
        yield one


def answers(info, within_s=20.0):
    try:
        with closing(Question(info.host, info.port)) as question:
            return question.is_answered(within_s)
    except OSError:
        return None


def test_it_is_a_kind_with_a_profile_of_its_own(tmp_path):
    assert OracleCluster.kind in KINDS
    place = Place(OracleCluster.kind, profile="9.9")
    made = make(place, "r", tmp_path, version="4.3.0", brokers=1)
    with pytest.raises(ClusterError, match="the oracle refused serve: ValueError: no profile"):
        made.start()


def test_a_killed_broker_is_gone_without_a_word_and_comes_back(cluster):
    first = cluster.brokers[0]
    assert answers(first)
    cluster.act("kill", 1)
    assert answers(first) is None
    assert not first.group_log.read_text().endswith(SHUTDOWN_LINES["java"] + "\n")
    with pytest.raises(ClusterError, match="broker 1 does not run"):
        cluster.act("stop", 1)
    cluster.act("start", 1)
    assert answers(first)
    in_sync = lambda: ClusterView(cluster.bootstrap).in_sync(first.address) == {1, 2, 3}
    assert until(in_sync, 20)
    assert first.group_log.read_text().count("Starting up.") == 2


def test_a_paused_broker_takes_connections_and_answers_nothing(cluster):
    cluster.act("pause", 2)
    with closing(Question(cluster.brokers[1].host, cluster.brokers[1].port)) as question:
        assert answers(cluster.brokers[0])
        assert question.reply(0.3) is None
        cluster.act("resume", 2)
        assert question.is_answered(20)


def test_all_stop_with_their_last_line_paused_ones_too(tmp_path):
    with OracleCluster("r", tmp_path / "brokers") as cluster:
        cluster.act("pause", 3)
        assert cluster.stop() == ()
    for info in cluster.brokers:
        assert info.group_log.read_text().endswith(SHUTDOWN_LINES["java"] + "\n")
        assert answers(info) is None


def test_the_end_of_its_process_is_an_error(cluster):
    process = cluster._server._process
    process.kill()
    process.wait(20)
    with pytest.raises(ClusterError, match=r"the oracle has ended .* see brokers/oracle.log"):
        cluster.act("kill", 1)
    assert cluster._brokers[2].exit_status == -signal.SIGKILL
    assert {broker for broker, _ in cluster.stop()} == set()


def test_logs_that_are_ended_stay_as_they_are_while_the_brokers_run_on(cluster):
    first = cluster.brokers[0]
    assert answers(first)
    with first.group_log.open("a") as log:
        log.write("a line that is being wri")
    ended = cluster.end_logs()
    assert [broker for broker, _ in ended] == [1, 2, 3]
    before = first.group_log.read_bytes()
    assert (len(before), before[-1:]) == (ended[0].log_bytes, b"\n")
    assert answers(first)
    assert cluster.stop() == ()
    assert first.group_log.read_bytes() == before
    later = first.group_log.with_name("after-group.log").read_text()
    assert later.endswith(SHUTDOWN_LINES["java"] + "\n")
