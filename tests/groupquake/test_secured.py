"""A cluster with TLS, SASL and ACLs, used as external: through the tap, without its logs."""

import json
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kafka_protocol.log_line import written_ms
from tests.groupquake.conftest import Command, Done
from tests.secured import Secured

pytestmark = pytest.mark.cluster
VARIABLE = "ALICES_PASSWORD"
LISTENERS = {
    "SCRAM-SHA-512": "SASL_SSL",
    "PLAIN": "SASL_SSL",
    "mTLS": "SSL",
    "OAUTHBEARER": "OAUTH",
}


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
    assert watcher.looks > 10
    assert not watcher.found
    assert holding(folder, secured.password) == []
    assert secured.password not in done.out + done.err
    return done


def verdict_of(folder: Path) -> dict[str, Any]:
    run_folder = (folder / "runs" / "latest").resolve()
    verdict: dict[str, Any] = json.loads((run_folder / "verdict.json").read_text())
    return verdict


@pytest.mark.parametrize("mechanism", ["mTLS", "OAUTHBEARER"])
def test_a_mechanism_through_the_tap(
    mechanism: str, groupquake: Command, secured: Secured, small: Path, tmp_path: Path
) -> None:
    """PLAIN goes there in `test_access`, SCRAM in a run that is judged."""
    done = run(groupquake, secured, small, mechanism, tmp_path, "--no-report")
    assert done.code == 0, done.err
    journal = (tmp_path / "runs" / "latest" / "journal.jsonl").read_text()
    verified = [json.loads(line) for line in journal.splitlines()]
    outcome = [entry["verified"] for entry in verified if entry["event"] == "verified"]
    assert outcome == [True] * 3
    assert verified[-2]["event"] == "given_back"


def test_wire_members_log_in_without_the_tap(
    groupquake: Command, secured: Secured, small: Path, tmp_path: Path
) -> None:
    """The tap would end TLS in their place; the brokers' own logs are the evidence."""
    mechanism = "SCRAM-SHA-512"
    small.write_text(small.read_text().replace("members: [{", "members: [{client: wire, "))
    logs = secured.brokers[0].group_log
    before = len(logs.read_text().splitlines())
    folder = f"{logs.parents[1]}/{{broker}}"
    setting = f'cluster.logs={{folder: "{folder}"}}'
    done = run(groupquake, secured, small, mechanism, tmp_path, "--no-report", "--set", setting)
    assert done.code == 0, done.err
    assert not (tmp_path / "runs" / "latest" / "tap").exists()
    journal = (tmp_path / "runs" / "latest" / "journal.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in journal]
    assert [one["verified"] for one in entries if one["event"] == "verified"] == [True] * 3
    joins = [
        line
        for line in logs.read_text().splitlines()[before:]
        if '"requestApiKeyName":"JOIN_GROUP"' in line and "-static" in line
    ]
    assert len(joins) >= 3, "two members joined, and one of them again"
    listener = LISTENERS[mechanism]
    assert all(f'"listener":"{listener}"' in line for line in joins)
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


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_judged_run_counts_what_the_brokers_log_has(
    groupquake: Command, secured: Secured, small: Path, tmp_path: Path
) -> None:
    done = run(groupquake, secured, small, "SCRAM-SHA-512", tmp_path)
    assert done.code in (0, 2), done.out + done.err
    counts = same_counts_as_in_log(secured, (tmp_path / "runs" / "latest").resolve())
    assert next(counts[name] for name in counts if name.endswith("-static")) == 1


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
