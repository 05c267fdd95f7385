"""A cluster with TLS, SASL and ACLs, used as external: through the tap, without its logs."""

import json
import os
import re
import shlex
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chaos.cluster_view import ClusterView
from chaos.clusters import jars
from chaos.clusters.java import find_java
from kafka_protocol.log_line import written_ms
from scenarios import Experiment
from tests.groupquake.conftest import Command, Done
from tests.secured import PREFIX, Secured

pytestmark = pytest.mark.cluster
VARIABLE = "ALICES_PASSWORD"
LISTENERS = {"SCRAM-SHA-512": "SASL_SSL", "mTLS": "SSL"}
"""Of the mechanisms in whole runs. PLAIN and OAUTHBEARER go through the tap in its own tests."""


def options(cluster: Secured, mechanism: str, folder: Path) -> list[str]:
    """Return the options that put a run on a cluster, as alice."""
    file = folder / "alice.properties"
    lines = (f"{key}={value}\n" for key, value in cluster.properties(mechanism).items())
    file.write_text("".join(lines))
    at = cluster.at(LISTENERS[mechanism])
    return [
        *("--cluster", "external", "--bootstrap", at, "--client-properties", str(file)),
        *("--kafka", "4.3.0"),
    ]


class Watcher:
    """Looks for a text in all command lines of the machine."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self.found: set[bytes] = set()
        self.looks = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            for line in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    text = line.read_bytes()
                except OSError:
                    continue
                if self._secret in text:
                    self.found.add(text)
            self.looks += 1
            time.sleep(0.05)

    def close(self) -> None:
        self._over.set()
        self._thread.join()


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def holding(folder: Path, secret: str) -> list[Path]:
    """Return the files that hold a text."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return [file for file in files if secret.encode() in file.read_bytes()]


def run(
    groupquake: Command, secured: Secured, name: object, mechanism: str, folder: Path, *more: str
) -> Done:
    """Run an experiment as alice; her password may stand nowhere."""
    with closing(Watcher(secured.password)) as watcher:
        done: Done = groupquake(
            *("run", name, "--seed", 3, *options(secured, mechanism, folder), *more),
            env={VARIABLE: secured.password},
        )
    assert watcher.looks > (0 if done.code == 77 else 10)
    assert not watcher.found
    assert holding(folder, secured.password) == []
    assert secured.password not in done.out + done.err
    return done


def test_producers_that_are_refused_end_the_run_before_its_first_fault(
    groupquake: Command, secured: Secured, small: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Their right is taken away after it was asked for; members are in, through the tap by mTLS."""
    denial = secured.denied("topic", "WRITE")
    create = ClusterView.create_topics

    def then_deny(self: ClusterView, experiment: Experiment) -> None:
        create(self, experiment)
        denial.__enter__()

    monkeypatch.setattr(ClusterView, "create_topics", then_deny)
    options = ("--no-report", "--set", "steady_state.within=20s")
    try:
        done = run(groupquake, secured, small, "mTLS", tmp_path, *options)
    finally:
        denial.__exit__(None, None, None)
    assert done.code == 77, done.err
    line = done.err.splitlines()[-1]
    assert re.search(
        r"producer-0: (TOPIC|CLUSTER)_AUTHORIZATION_FAILED: .* refusals\); allow WRITE", line
    )
    journal = (tmp_path / "runs" / "latest" / "journal.jsonl").read_text()
    assert '"phase": "impact"' not in journal
    assert '"event": "given_back"' in journal
    history = lines(tmp_path / "runs" / "latest" / "history.jsonl")
    assigned = {line["member"] for line in history if line["event"] == "assigned"}
    assert assigned >= {"clerk-0", "clerk-1"}
    assert not any(name.startswith(PREFIX) for name in secured.names()[0])
    assert os.environ.get(VARIABLE) is None


def test_wire_members_log_in_without_the_tap(
    groupquake: Command, secured: Secured, small: Path, tmp_path: Path
) -> None:
    """The tap would end TLS in their place; the brokers' own logs are the evidence."""
    small.write_text(small.read_text().replace("members: [{", "members: [{client: wire, "))
    setting = f'cluster.logs={{folder: "{secured.brokers[0].group_log.parents[1]}/{{broker}}"}}'
    done = run(
        *(groupquake, secured, small, "SCRAM-SHA-512", tmp_path, "--no-report", "--set", setting)
    )
    assert done.code == 0, done.err
    folder = tmp_path / "runs" / "latest"
    assert not (folder / "tap").exists()
    entries = lines(folder / "journal.jsonl")
    assert [one["verified"] for one in entries if one["event"] == "verified"] == [True] * 3
    assert entries[-2]["event"] == "given_back"
    (group,) = {
        line["group"] for line in lines(folder / "history.jsonl") if line["member"] == "clerk-0"
    }
    joins = [
        line
        for line in (folder / "brokers" / "1" / "group.log").read_text().splitlines()
        if '"requestApiKeyName":"JOIN_GROUP"' in line and f'"groupId":"{group}"' in line
    ]
    assert len(joins) >= 3, "two members joined, and one of them again"
    assert all('"listener":"SASL_SSL"' in line for line in joins)
    assert all('"principal":"User:alice"' in line for line in joins)
    assert all('"requestApiVersion":9' in line for line in joins), "librdkafka sends no 9"


def counted_in_log(secured: Secured, group: str, before_ms: float) -> int:
    """Count the rebalances of a group that the brokers' own logs have, which no run has read."""
    begun = f"Preparing to rebalance group {group} in state"
    return sum(
        begun in line and written_ms(line) < before_ms
        for info in secured.brokers
        for line in info.group_log.read_text().splitlines()
    )


def same_counts_as_in_log(secured: Secured, run_folder: Path) -> dict[str, int]:
    """Return the rebalances by group as judged, which have to be those of the brokers' logs."""
    verdict = json.loads((run_folder / "verdict.json").read_text())
    assert verdict["evidence_level"] == "wire"
    assert not (run_folder / "brokers").exists()
    teardown_ms = next(
        one["began_at_ms"] for one in verdict["phases"] if one["phase"] == "teardown"
    )
    found = {}
    for name, group in verdict["groups"].items():
        assert group["responses_explained"] == group["responses_checked"] > 20
        by_phase = group["rebalances_observed"]
        found[name] = by_phase["total"] - by_phase["teardown"]
        assert found[name] == counted_in_log(secured, name, teardown_ms)
    return found


def allow(commands: str, secured: Secured) -> None:
    """Run the lines for kafka-acls as somebody who may grant rights."""
    tools = ":".join(map(str, jars.tools_class_path("4.3.0")))
    for command in commands.split(" && "):
        program, *words = shlex.split(command)
        assert program == "kafka-acls"
        words[words.index("--bootstrap-server") + 1] = secured.bootstrap
        tool = [str(find_java()), "-cp", tools, "org.apache.kafka.tools.AclCommand", *words]
        assert subprocess.run(tool, check=False, capture_output=True).returncode == 0


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_line_for_kafka_acls_allows_a_run_which_counts_what_the_brokers_log_has(
    groupquake: Command, secured: Secured, small: Path, tmp_path: Path
) -> None:
    theirs = ("--prefix", "theirs-")
    refused = run(groupquake, secured, small, "SCRAM-SHA-512", tmp_path, *theirs)
    assert refused.code == 77
    found = re.search("allow it: (.*); then run again with --prefix theirs-$", refused.err.strip())
    assert found is not None, refused.err
    allow(found[1], secured)
    topics, groups = secured.names()
    done = run(groupquake, secured, small, "SCRAM-SHA-512", tmp_path, *theirs)
    assert done.code in (0, 2), done.out + done.err
    assert secured.names() == (topics | {"__consumer_offsets"}, groups)
    counts = same_counts_as_in_log(secured, (tmp_path / "runs" / "latest").resolve())
    assert counts["theirs-static"] == 1


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["rolling-bounce", "duplicate-instance-id", "batch-removal"])
def test_experiments_of_the_library_count_what_the_brokers_log_has(
    name: str, groupquake: Command, secured: Secured, tmp_path: Path
) -> None:
    done = run(groupquake, secured, name, "SCRAM-SHA-512", tmp_path)
    assert done.code in (0, 2), done.out + done.err  # a busy machine makes it unknown
    same_counts_as_in_log(secured, (tmp_path / "runs" / "latest").resolve())
