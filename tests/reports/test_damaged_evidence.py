"""2,000 runs that pass, each damaged in one file: no `fail`, no `pass` on what is not understood.

Every case has a seed, so that one that fails can be repeated alone.
"""

import gzip
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from reports.ingest import log_files
from reports.judgement.errors import EvidenceError
from reports.judgement.log.log_bytes import LONGEST, TOO_LONG
from reports.judgement.run.run_folder import HISTORY, RunFolder
from tests.recorded.logs import FETCHES, HISTORIES, TAPPED
from tests.reports.conftest import unpacked
from tests.reports.judged_here import judged_here

CASES, BLOCK, BLOCKS_OF_A_SAMPLE = 2_000, 50, 3
RUNS = {**HISTORIES, **FETCHES, **TAPPED}

Change = Callable[[bytes, Random], bytes]


def nul(line: bytes, _: Random) -> bytes:
    return b"\0" * len(line)


def partly_nul(line: bytes, rng: Random) -> bytes:
    first = rng.randrange(len(line))
    last = rng.randrange(first + 1, len(line) + 1)
    return line[:first] + b"\0" * (last - first) + line[last:]


def no_utf_8(line: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(line))
    return line[:at] + rng.choice([b"\xff", b"\xc3\x28", b"\xed\xa0\x80"]) + line[at + 1 :]


def cut(line: bytes, rng: Random) -> bytes:
    return line[: rng.randrange(1, len(line) - 1)]


def too_long(line: bytes, _: Random) -> bytes:
    return line + b" " * (16 << 20)


def deep(line: bytes, _: Random) -> bytes:
    return line.replace(b"{", b'{"deep":' + b"[" * 10_000 + b"]" * 10_000 + b",", 1)


def of_number(value: bytes) -> Change:
    """Return what replaces one number that is read."""

    def change(line: bytes, rng: Random) -> bytes:
        found = [*NUMBER.finditer(line)]
        one = rng.choice(found)
        number = value or b'"' + one[2] + b'"'
        return line[: one.start(2)] + number + line[one.end(2) :]

    return change


NUMBER = re.compile(
    rb'"(at_ms|offsets|max_ms|totalTimeMs|requestQueueTimeMs|localTimeMs|remoteTimeMs)":'
    rb" ?(\d[\d.]*)"
)
OF_NUMBERS: dict[str, Change] = {
    "NaN": of_number(b"NaN"),
    "1e999": of_number(b"1e999"),
    "2^70": of_number(str(2**70).encode()),
    "a text": of_number(b""),
}
BEYOND_RECOGNITION: dict[str, Change] = {
    "NUL": nul, "some NUL": partly_nul, "no UTF-8": no_utf_8, "cut": cut, "too long": too_long,
}  # fmt: skip
TIMES = ((rb"\b17\d{11}\b", b"4102444800000"), (rb"\b20\d\d-(?=\d\d-\d\d )", b"2100-"))


def of_another_century(line: bytes, _: Random) -> bytes:
    for pattern, instead in TIMES:
        line = re.sub(pattern, instead, line)
    return line


def twice(line: bytes, _: Random) -> bytes:
    return line + b"\n" + line


RECOGNIZED: dict[str, Change] = {"2100": of_another_century, "twice": twice}
"""After these a line is one that might have been written."""
OF_DOCUMENTS = ("NUL", "some NUL", "no UTF-8", "cut", "deep")
KINDS = {**BEYOND_RECOGNITION, **OF_NUMBERS, "deep": deep, **RECOGNIZED}
NEEDS: dict[str, Callable[[bytes], object]] = {
    **dict.fromkeys(KINDS, bool),
    **dict.fromkeys(OF_NUMBERS, NUMBER.search),
    "deep": lambda line: b"{" in line,
}


def damaged(folder: Path, rng: Random) -> tuple[str, bool]:
    """Damage one file; return what was done, and whether it must not pass."""
    names = ["history.jsonl"] * 6 + ["journal.jsonl", "plan.json", "environment.json"]
    logs = [str(log.relative_to(folder)) for log in folder.glob("brokers/*/group.log")]
    files = [name for name in (*names, *logs * 2) if (folder / name).exists()]
    file = folder / rng.choice(files)
    lines = file.read_bytes().splitlines()
    fits = {
        kind: [n for n, line in enumerate(lines) if len(line) > 2 and NEEDS[kind](line)]
        for kind in (OF_DOCUMENTS if file.suffix == ".json" else KINDS)
    }
    kind = rng.choice(sorted(kind for kind, some in fits.items() if some))
    share = rng.choice([0.0, 0.0, 0.3, 1.0])
    some = [n for n in fits[kind] if rng.random() < share] or [rng.choice(fits[kind])]
    some = some[:3] if kind in ("too long", "deep") else some
    for n in some:
        lines[n] = KINDS[kind](lines[n], rng)
    file.write_bytes(b"\n".join(lines) + b"\n")
    return f"{file.relative_to(folder)}: {kind} in {len(some)} lines", kind not in RECOGNIZED


def outcome(folder: Path) -> str:
    """Return the verdict, or what is said in one line of evidence that cannot be read."""
    try:
        return str(judged_here(folder)["verdict"])
    except EvidenceError as error:
        said = str(error)
    assert "\n" not in said
    assert str(folder) in said
    return "no evidence"


BLOCKS_TESTED = [
    *range(BLOCKS_OF_A_SAMPLE),
    *(pytest.param(number, marks=pytest.mark.exhaustive)
      for number in range(BLOCKS_OF_A_SAMPLE, CASES // BLOCK)),
]  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return whole run folders, their logs as they were; each one passes."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: unpacked(run, folder / name) for name, run in RUNS.items()}


def test_without_a_damage_they_pass(runs: dict[str, Path]) -> None:
    assert {name: outcome(folder) for name, folder in runs.items()} == dict.fromkeys(RUNS, "pass")


def judged(seed: int, runs: dict[str, Path], folder: Path) -> str:
    """Damage a copy of a run and judge it; return what is found."""
    rng = Random(seed)
    name = rng.choice(sorted(RUNS))
    shutil.copytree(runs[name], folder)
    what, must_not_pass = damaged(folder, rng)
    found = outcome(folder)
    assert found != "fail", (seed, name, what)
    assert not (found == "pass" and must_not_pass), (seed, name, what)
    shutil.rmtree(folder)
    return found


@pytest.mark.parametrize("block", BLOCKS_TESTED)
def test_a_damaged_run(block: int, runs: dict[str, Path], tmp_path: Path) -> None:
    seeds = range(block * BLOCK, (block + 1) * BLOCK)
    found = Counter(judged(seed, runs, tmp_path / str(seed)) for seed in seeds)
    assert found["unknown"] > BLOCK // 2


@pytest.mark.parametrize("seed", [221, 571])
def test_a_log_of_another_century(seed: int, runs: dict[str, Path], tmp_path: Path) -> None:
    """Every line of a broker that was killed: nothing else tells that its log is not the run's."""
    assert judged(seed, runs, tmp_path / "run") == "unknown"


def test_a_partition_that_cannot_be_is_no_disagreement(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(runs["duplicate-4.3.0"], tmp_path / "run")
    lines = [json.loads(line) for line in (folder / HISTORY).read_text().splitlines()]
    next(one for one in lines if one.get("partitions"))["partitions"][0] = "orders-0x"
    (folder / HISTORY).write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    assert outcome(folder) == "unknown"


IRREGULAR: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a device": lambda file: file.symlink_to("/dev/zero"),
    "a link to itself": lambda file: file.symlink_to(file),
    "a folder": Path.mkdir,
}
READ = (
    "environment.json", "experiment.yaml", "plan.json", "journal.jsonl", "machine.jsonl", HISTORY,
    "brokers/2/group.log", "brokers/2/group.log.1.gz", "brokers/2/jvm-0.log", "tap/1/group.log",
)  # fmt: skip


def test_only_regular_files_are_opened(runs: dict[str, Path], tmp_path: Path) -> None:
    for name, make in product(READ, IRREGULAR.values()):
        folder = shutil.copytree(runs["duplicate-4.3.0"], tmp_path / "run")
        (folder / name).unlink(missing_ok=True)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        make(folder / name)
        with pytest.raises(EvidenceError, match=f"{folder}/{name}: cannot be read"):
            RunFolder(folder).require_regular()
        shutil.rmtree(folder)


@pytest.mark.spark
def test_a_line_that_is_too_long_is_never_left_out(spark: SparkSession, tmp_path: Path) -> None:
    """Whether it ends in its split of the file, in the next one, or much later."""
    long = [b"x" * (mib << 20) for mib in (17, 40, 15, 70)]
    lines = [b"1", long[0], b"2", long[1], b"3", long[2], long[3], b"4"]
    for name, content in (("a", b"\n".join(lines)), ("a.gz", gzip.compress(b"\n".join(lines), 1))):
        (tmp_path / name).write_bytes(content)
        read = log_files.read(spark, [f"file:{tmp_path / name}"]).collect()
        found = [bytes(row["value"]) for row in sorted(read, key=lambda row: row["start"])]
        whole = [one for one in lines if len(one) <= LONGEST]
        assert [one for one in found if one in whole] == whole
        # Hadoop may give the end of a long line, too
        assert {one[-1:] for one in found if one not in whole} == {b"x"}
        assert sum(one.startswith(TOO_LONG) for one in found) >= 3
        assert max(map(len, found)) == 15 << 20
