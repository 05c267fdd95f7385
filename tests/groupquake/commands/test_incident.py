"""Incidents from the logs that Kafka's own logging files make brokers write."""

import bz2
import gzip
import json
import lzma
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from groupquake.commands.incident import are_logs
from tests.groupquake.conftest import Command
from tests.recorded import stock_logs as stock
from tests.reports.incident.incident_here import RECORDED, incident_of, recorded

PHRASES = {
    "preparing": "Preparing to rebalance group",
    "stabilized": "Stabilized group",
    "assignment": "Assignment received from leader",
    "empty": "is now empty",
    "session_expired": "Member .* has failed, removing it from the group",
    "left": "Member (MemberMetadata|[^ ]+ has left).*through explicit `LeaveGroup`",
    "static_added": "Static member .* Created a new member id",
    "static_replaced": "Replacing previously mapped member",
    "fenced": "is fenced by",
    "loaded": "Finished loading (of )?(metadata|offsets).* __consumer_offsets-",
    "unloaded": "Finished unloading .*__consumer_offsets-",
}
"""What `grep -E` finds of each template, whichever release wrote it."""
REASONS = {
    "new_member": "Preparing.*reason: Adding new member",
    "session_expired": "Preparing.*on heartbeat expiration",
    "leave": "Preparing.*(on LeaveGroup|explicit `LeaveGroup` request)",
    "pending_sync": "Preparing.*on pending sync request expiration",
}


def grepped(files: Iterable[Path], pattern: str) -> int:
    """Count lines by programs that know nothing of ours."""
    cat = subprocess.Popen(["zcat", "-f", *files], stdout=subprocess.PIPE)
    grep = ["grep", "-c", "-a", "-E", pattern]
    done = subprocess.run(grep, stdin=cat.stdout, capture_output=True, text=True, check=False)
    assert cat.stdout is not None
    cat.stdout.close()
    assert cat.wait() == 0
    return int(done.stdout)


def require_what_grep_counts(incident: dict[str, Any], files: list[Path]) -> None:
    counts = {name: grepped(files, pattern) for name, pattern in PHRASES.items()}
    assert {name: incident["lines"].get(name, 0) for name in PHRASES} == counts
    assert all(count for name, count in counts.items() if name != "unloaded"), counts
    by_reason = {name: grepped(files, pattern) for name, pattern in REASONS.items()}
    assert {name: incident["rebalances_by_reason"].get(name, 0) for name in REASONS} == by_reason
    assert incident["rebalances"] == counts["preparing"]
    account = incident["coverage"]
    assert account["lines_read"] == grepped(files, "")
    assert account["lines_read"] == sum(
        account[status] for status in ("used", "irrelevant", "rejected")
    )
    assert account["rejected"] == 0, incident["rejected"]


def in_files(name: str, folder: Path) -> list[Path]:
    """Write a recorded log as its broker's machine had it."""
    folder.mkdir()
    for file, content in recorded(name).items():
        (folder / file).write_bytes(content)
    return sorted(folder.iterdir())


@pytest.fixture
def small_splits(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in which files have several splits."""
    name = "spark.sql.files.maxPartitionBytes"
    largest = spark.conf.get(name)
    spark.conf.set(name, "8192")
    yield spark
    spark.conf.set(name, largest)


EXAMPLES = RECORDED.parent / "incidents"
NAMES = sorted(folder.name for folder in RECORDED.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_those_of_grep(name: str, tmp_path: Path) -> None:
    files = in_files(name, tmp_path / "logs")
    assert any(file.suffix == ".gz" for file in files)
    assert len(files) > 5
    require_what_grep_counts(incident_of(recorded(name)), files)


@pytest.mark.spark
@pytest.mark.usefixtures("small_splits")
@pytest.mark.parametrize("name", [*NAMES, "examples"])
def test_both_engines_find_the_same(name: str, tmp_path: Path, groupquake: Command) -> None:
    if name in NAMES:
        files = in_files(name, tmp_path / "logs")
        doubled = tmp_path / "logs" / "again.log"
        doubled.write_bytes(b"".join(f"kafka-1  | {line}".encode() for line in _lines(files[-1])))
        Random(name).shuffle(files)
    else:
        files = [EXAMPLES / f"{name}.log" for name in ("01-two-a", "01-two-b", "06", "14", "36")]
    kinds = {"small": [], "spark": ["--master", "local[*]"]}
    done = {
        kind: groupquake("report", *files, *words, "--output", tmp_path / kind)
        for kind, words in kinds.items()
    }
    assert [one.code for one in done.values()] == [2, 2], done
    assert "starting Spark" in done["spark"].err
    assert "starting Spark" not in done["small"].err
    small, spark = (stored(tmp_path / kind) for kind in kinds)
    assert spark == small
    if name in NAMES:
        require_what_grep_counts(small["incident.json"], files)
    assert small["incident.json"]["headline"][0] in done["small"].out


def stored(folder: Path) -> dict[str, Any]:
    """Return all that is stored of an incident; the rows of tables have no order."""
    tables = {
        name: sorted(map(repr, parquet.read_table(folder / "tables" / name).to_pylist()))
        for name in ("lines", "rejected", "rebalances", "members")
    }
    page = (folder / "incident.html").read_text()
    return {
        "page": page,
        "incident.json": json.loads((folder / "incident.json").read_text()),
    } | tables


@pytest.mark.spark
@pytest.mark.usefixtures("small_splits")
def test_copies_damage_and_files_of_others_are_noticed(tmp_path: Path, groupquake: Command) -> None:
    name = NAMES[0]
    folder = tmp_path / "logs"
    in_files(name, folder)
    (folder / "again.log").write_bytes(b"".join(_plain(recorded(name))))
    whole = gzip.compress(max(_plain(recorded(name)), key=len))
    (folder / "cut.log.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.log").touch()
    other = "[2026-11-23 07:36:12,357] INFO x (y)\n"
    half = "[2026-11-23 07:36:12,357] INFO [GroupCoordinator 1]: Preparing to reb"
    (folder / "half.log").write_text(other * 999 + half)
    (folder / "binary.log").write_bytes(bytes(range(256)) * 100)
    done = groupquake("report", folder, "--output", tmp_path / "out", "--master", "local[*]")
    assert done.code == 2, done.err
    found = json.loads((tmp_path / "out" / "incident.json").read_text())
    here = incident_of(recorded(name))
    assert {**found["groups"]} == json.loads(json.dumps(here["groups"]))
    noticed = {Path(notice["file"]).name: notice["what"] for notice in found["notices"]}
    assert "the gzip file is cut off" in noticed["cut.log.gz"]
    [rejected] = found["rejected"]
    assert (Path(rejected["file"]).name, rejected["number"]) == ("half.log", 1000)
    assert rejected["line"] == half
    assert noticed["empty.log"] == "has no line"
    assert "no line is recognised as a broker's" in noticed["binary.log"]
    assert found["coverage"]["copies"] > 0
    assert any("stand in the logs twice" in what for what in noticed.values())
    again = groupquake("report", folder, "--output", tmp_path / "out")
    assert again.code == 64
    assert "exists already" in again.err


def _lines(file: Path) -> list[str]:
    content = file.read_bytes()
    plain = gzip.decompress(content) if file.suffix == ".gz" else content
    return plain.decode().splitlines(keepends=True)


def _plain(files: dict[str, bytes]) -> list[bytes]:
    return [gzip.decompress(one) if name.endswith(".gz") else one for name, one in files.items()]


@pytest.mark.spark
def test_files_that_are_no_logs_of_brokers_are_an_error(
    tmp_path: Path, spark: SparkSession, groupquake: Command
) -> None:
    (tmp_path / "other.log").write_text("[2026-11-23 07:36:12,357] INFO started (kafka.Other)\n")
    done = groupquake("report", tmp_path / "other.log")
    assert done.code == 64
    assert "none of 1 lines is a group coordinator's" in done.err
    assert not (tmp_path / "incident").exists()


def test_logs_and_runs_are_reported_one_after_another(tmp_path: Path, groupquake: Command) -> None:
    (tmp_path / "server.log").touch()
    (tmp_path / "run" / "brokers").mkdir(parents=True)
    done = groupquake("report", tmp_path / "server.log", tmp_path / "run")
    assert (done.code, "some are logs and some are runs" in done.err) == (64, True)
    wrong = groupquake("report", tmp_path / "server.log", "--time-zone", "Nowhere")
    assert (wrong.code, "no time zone is called 'Nowhere'" in wrong.err) == (64, True)
    short = groupquake("report", tmp_path / "server.log", "--session", "30")
    assert (short.code, "has no unit" in short.err) == (64, True)
    missing = groupquake("report", tmp_path / "missing.log")
    assert (missing.code, "No such file" in missing.err) == (64, True)


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.parametrize(
    ("version", "coordinator"), [("3.9.1", "scala"), ("3.9.1", "java"), ("4.3.0", "java")]
)
def test_a_real_broker(
    version: str, coordinator: str, tmp_path: Path, spark: SparkSession, groupquake: Command
) -> None:
    """What 3.9.1 with scala logs, `tests/chaos/clusters/test_lives.py` asks whenever tests run."""
    with stock.start(tmp_path / "cluster", version, coordinator) as cluster:
        stock.play(cluster)
    files = stock.pack(stock.parts(tmp_path / "cluster"))
    assert len(files) > 5
    done = groupquake("report", files[0].parent)
    assert done.code == 2, done.err
    found = json.loads((tmp_path / "incident" / "incident.json").read_text())
    require_what_grep_counts(found, files)
    assert found["brokers"].keys() == {"1"}
    assert found["brokers"]["1"]["starting"] == 2
    assert found["notices"] == []


def zstd(content: bytes) -> bytes:
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as packing:
        packing.write(content)
    return packed.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("end", "pack"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstd)],
    ids=["gz", "bz2", "xz", "zst"],
)
def test_packed_logs_count_as_plain_ones_up_to_a_damage(
    end: str, pack: Callable[[bytes], bytes]
) -> None:
    files = {name: content for name, content in recorded(NAMES[0]).items() if content}
    plain = {
        name.removesuffix(".gz"): gzip.decompress(content) if name.endswith(".gz") else content
        for name, content in files.items()
    }
    whole = incident_of(plain)
    packed = {f"{name}{end}": pack(content) for name, content in plain.items()}
    found = incident_of(packed)
    assert (found["lines"], found["groups"]) == (whole["lines"], whole["groups"])
    twice = {name: pack(plain[name.removesuffix(end)][:0]) + content
             for name, content in packed.items()}  # fmt: skip
    assert incident_of(twice)["lines"] == whole["lines"]
    name, content = max(packed.items(), key=lambda item: len(plain[item[0].removesuffix(end)]))
    cut = incident_of({**packed, name: content[: len(content) // 2]})
    assert cut["coverage"]["lines_read"] < whole["coverage"]["lines_read"]
    (noticed,) = [file for file in cut["files"] if "is cut off" in str(file)]
    assert noticed["file"] == name


def test_other_compressions_have_no_line() -> None:
    plain = {name: content for name, content in recorded(NAMES[0]).items() if content}
    found = incident_of({**plain, "server.log.9.lz4": b"\x04\x22M\x18" + bytes(range(256)) * 9})
    (noticed,) = [one for one in found["notices"] if one["file"] == "server.log.9.lz4"]
    assert "no line is recognised as a broker's" in str(noticed)


@pytest.mark.parametrize("part", ["tap", "brokers"])
def test_the_logs_of_a_run_alone_are_named(tmp_path: Path, groupquake: Command, part: str) -> None:
    log = tmp_path / "run" / part / "1" / "group.log"
    log.parent.mkdir(parents=True)
    log.write_text("1 1795280240777 20738287007595 tap DEBUG Completed request:{} (tap)\n")
    for place in (log.parents[1], log):
        done = groupquake("report", place)
        assert done.code == 64
        assert "has a run's requests; give the folder of its run" in done.err
    (tmp_path / "run" / "environment.json").write_text("{}")
    for place in (log.parents[1], log):
        done = groupquake("report", place)
        assert done.code == 64
        assert f"is a part of a run; give the run's folder, {tmp_path}/run" in done.err


def test_a_folder_of_what_kubectl_wrote_is_one_of_logs(tmp_path: Path) -> None:
    (tmp_path / "kafka-0.txt").touch()
    assert are_logs(str(tmp_path))
    (tmp_path / "environment.json").touch()
    assert not are_logs(str(tmp_path))
