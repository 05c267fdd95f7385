"""Runs on a cluster that exists already: nothing of it changes but what the run made itself."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer
from kafka.admin import KafkaAdminClient

from chaos.clusters.process import ProcessCluster
from groupquake.external_resources import ExternalResources
from reports.judgement.recording import Recording
from tests.chaos.clusters.clients import create_topic
from tests.groupquake.conftest import SMALL, Command, arguments, run_in, state_in

pytestmark = pytest.mark.cluster
SETTINGS = {"group.initial.rebalance.delay.ms": 300}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    """A broker of somebody else's, with a topic and a group that is at work all the time."""
    folder = tmp_path_factory.mktemp("theirs")
    with ProcessCluster("theirs", folder / "brokers", brokers=1, config=SETTINGS) as cluster:
        create_topic(cluster, "their-topic")
        joined, over = threading.Event(), threading.Event()
        thread = threading.Thread(target=consume, args=(cluster.bootstrap, joined, over))
        thread.start()
        try:
            assert joined.wait(60)
            yield cluster
        finally:
            over.set()
            thread.join()


def consume(bootstrap: str, joined: threading.Event, over: threading.Event) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "their-group",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 200,
        }
    )
    consumer.subscribe(["their-topic"], on_assign=lambda *_: joined.set())
    while not over.is_set():
        consumer.poll(0.1)
    consumer.close()


def names(cluster: ProcessCluster) -> tuple[set[str], set[str]]:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        return set(client.list_topics()), {group["group_id"] for group in client.list_groups()}
    finally:
        client.close()


@pytest.fixture(scope="module")
def collected(theirs: ProcessCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on their cluster, whose logs a command of the user's brought."""
    folder, before = tmp_path_factory.mktemp("external"), names(theirs)
    (folder / "small.yaml").write_text(SMALL)
    logs = theirs.brokers[0].group_log.parent.parent
    done = run_in(
        folder,
        *("run", "small.yaml", "--seed", 5, "--cluster", "external"),
        *("--bootstrap", theirs.bootstrap, "--no-report", "--set", "cluster.prefix=trial-"),
        *("--set", f"cluster.logs={{command: 'tail -n 0 -F {logs}/{{broker}}/group.log'}}"),
        env=state_in(folder),
    )
    assert done.code == 0, done.out + done.err
    assert names(theirs) == before
    return (folder / "runs" / "latest").resolve()


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_on_their_cluster_passes(
    groupquake: Command, theirs: ProcessCluster, collected: Path
) -> None:
    done = groupquake("report", collected)
    assert done.code == 0, done.out + done.err
    verdict = json.loads((collected / "verdict.json").read_text())
    assert set(verdict["groups"]) == {"trial-static", "trial-dynamic"}
    assert verdict["groups"]["trial-static"]["rebalances_observed"]["impact"] == 0
    assert verdict["groups"]["trial-dynamic"]["rebalances_observed"]["impact"] in (3, 4)
    for name, group in verdict["groups"].items():
        grepped = theirs.brokers[0].group_log.read_text().count(f'"request":{{"groupId":"{name}"')
        assert group["responses_explained"] == group["responses_checked"] > 20
        assert grepped >= group["responses_checked"]
    (unsure,) = verdict["unsure"]
    assert "4.3.0 or a later patch" in unsure


def test_collected_logs_that_were_cut_afterwards_have_gaps(collected: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(collected, tmp_path / "copy")
    log = folder / "brokers" / "1" / "group.log"
    whole = log.read_bytes().splitlines(keepends=True)
    assert Recording(folder).gaps == []
    for cut in (whole[:-1], whole[1:], whole[:20] + whole[21:]):
        log.write_bytes(b"".join(cut))
        assert Recording(folder).gaps != []


def test_names_that_are_taken_are_refused_and_kept(
    groupquake: Command, small: Path, theirs: ProcessCluster
) -> None:
    create_topic(theirs, "taken-orders")
    logs = theirs.brokers[0].group_log.parent.parent
    done = groupquake(
        *("run", small, "--cluster", "external", "--bootstrap", theirs.bootstrap),
        *("--set", f"cluster.logs={{folder: {logs}}}", "--set", "cluster.prefix=taken-"),
    )
    assert done.code == 64
    assert "topic taken-orders: on the cluster already; choose another cluster.prefix" in done.err
    assert "taken-orders" in names(theirs)[0]


def test_what_a_killed_run_left_is_deleted_by_heal(
    groupquake: Command, small: Path, theirs: ProcessCluster, tmp_path: Path
) -> None:
    before = names(theirs)
    create_topic(theirs, "dead-orders")
    journal = tmp_path / "journal.jsonl"
    borrowed = {
        "at_ms": 1, "event": "borrowed", "bootstrap": theirs.bootstrap, "client_properties": None,
        "offsets_leaders": [1], "topics": ["dead-orders"], "groups": ["dead-group"],
        "prefix": "dead-",
    }  # fmt: skip
    journal.write_text(json.dumps(borrowed) + "\n")
    refused = groupquake("heal", tmp_path)
    assert (refused.code, "dead-orders" in refused.out, "--trust" in refused.err) == (5, True, True)
    assert "dead-orders" in names(theirs)[0]
    unmarked = tmp_path / "unmarked"
    unmarked.mkdir()
    (unmarked / "journal.jsonl").write_text(json.dumps({**borrowed, "prefix": "x"}) + "\n")
    assert "the journal was altered" in groupquake("heal", unmarked, "--trust").err
    assert "dead-orders" in names(theirs)[0]
    done = groupquake("heal", tmp_path, "--trust")
    assert (done.code, "deleted: dead-orders, dead-group" in done.out) == (0, True), done.err
    assert names(theirs) == before
    assert "nothing to heal" in groupquake("heal", tmp_path).out


def test_a_group_is_deleted_whose_members_were_killed_within_a_long_session(
    theirs: ProcessCluster,
) -> None:
    """A dynamic one, and a static one."""
    before = names(theirs)
    create_topic(theirs, "long-orders")
    code = (
        "import os, sys, confluent_kafka as c\n"
        "one = c.Consumer(eval(sys.argv[1]))\n"
        "one.subscribe(['long-orders'], on_assign=lambda *_: os.kill(os.getpid(), 9))\n"
        "while True: one.poll(0.1)\n"
    )
    for words in ({}, {"group.instance.id": "clerk-0"}):
        settings = {"bootstrap.servers": theirs.bootstrap, "group.id": f"long-{len(words)}",
                    "session.timeout.ms": 300_000, **words}  # fmt: skip
        done = subprocess.run([sys.executable, "-c", code, repr(settings)], check=False, timeout=60)
        assert done.returncode == -signal.SIGKILL
    ExternalResources(theirs.bootstrap, ["long-orders"], ["long-0", "long-1"], {}).delete()
    assert names(theirs) == before


def test_options_that_do_not_go_together(groupquake: Command, small: Path) -> None:
    for options, complaint in (
        (("--cluster", "external"), "cluster.bootstrap: missing; write HOST:PORT"),
        (("--set", "cluster.kind=external"), "or give --bootstrap"),
        (("--bootstrap", "a:1"), "only applies to kind: external"),
        (("--prefix", "a-"), "only applies to kind: external"),
        (("--cluster", "external", "--bootstrap", "a"), "'a' is not a server"),
        (("--allow-faults", "x"), "--allow-faults is for --cluster external"),
        (("--set", "cluster.prefix=a-"), "only applies to kind: external"),
    ):
        done = groupquake("run", small, *options)
        assert (done.code, complaint in done.err) == (64, True), done.err
        assert "Traceback" not in done.err


def test_a_cluster_that_does_not_answer(groupquake: Command, small: Path) -> None:
    """The file says that it is external; `test_access` has the command line."""
    small.write_text(small.read_text().replace("cluster:", "cluster:\n  kind: external"))
    done = groupquake(
        *("run", small, "--bootstrap", "127.0.0.1:1"),
        *("--set", "cluster.logs=none", "--no-report"),
    )
    assert done.code == 69
    assert "no answer from 127.0.0.1:1" in done.err


def test_a_broker_that_a_killed_run_paused_is_resumed_by_heal(
    groupquake: Command, small: Path, theirs: ProcessCluster, tmp_path: Path
) -> None:
    """By the hooks of the user, from the journal alone; what the run created goes, too."""
    before, pid = names(theirs), theirs.process_ids[1]
    found = json.loads(groupquake("doctor", "--bootstrap", theirs.bootstrap, "--json").out)
    text = small.read_text()
    pause = "faults: [{fault: broker.pause, target: {brokers: [1]}, at: 1s, down_for: 1m}]\nphases:"
    small.write_text(text[: text.index("faults:")] + pause + text.partition("phases:")[2])
    hooks = f"{{any: {{pause: kill -STOP {pid}, resume: kill -CONT {pid}}}}}"
    words = [
        *("run", small, "--cluster", "external", "--bootstrap", theirs.bootstrap, "--no-report"),
        *("--set", f"cluster.logs={{folder: {theirs.brokers[0].group_log.parent.parent}}}"),
        *("--set", f"cluster.hooks={hooks}"),
    ]
    refused = groupquake(*words)
    assert (refused.code, "give --allow-faults " + found["cluster_id"] in refused.err) == (64, True)
    journal = tmp_path / "runs" / "latest" / "journal.jsonl"
    with subprocess.Popen(
        arguments(*words, "--allow-faults", found["cluster_id"]),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 180
        while not (journal.exists() and '"event": "injected"' in journal.read_text()):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.1)
        process.kill()
    try:
        assert psutil.Process(pid).status() == psutil.STATUS_STOPPED
        healed = groupquake("heal", journal.parent)
        assert healed.code == 0, healed.err
        assert "f1.1: healed: broker 1: the hook resume was run" in healed.out
    finally:
        os.kill(pid, signal.SIGCONT)
    assert names(theirs) == before
    assert "nothing to heal" in groupquake("heal", journal.parent).out
