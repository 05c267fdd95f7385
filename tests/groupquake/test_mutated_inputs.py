"""1,000 damaged logs, journals and experiments: no traceback, and nothing is dropped silently.

Every case has a seed, so that one that fails can be repeated alone.
"""

import gzip
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reports.incident import page
from reports.judgement import costs, verdict
from reports.judgement.errors import EvidenceError
from reports.judgement.results import Results
from reports.judgement.run.run_folder import RunFolder
from reports.page import junit, report
from scenarios import named, names
from tests.groupquake.conftest import Command
from tests.reports.incident.incident_here import RECORDED, incident_of, recorded
from tests.reports.page_run import made_up

LOGS, JOURNALS, EXPERIMENTS = 400, 300, 300
BLOCK = 50
"""How many cases a test has: one test each would take longer than the cases."""
HUGE = 2_000_000
PREPARING = re.compile(
    rb"\[Group(?:Coordinator|MetadataManager) [^\]\n]*\]:? Preparing to rebalance group"
)
WHOLE = re.compile(
    rb"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] INFO \[GroupCoordinator [^\[\]\n]*\]:? Preparing"
    rb" to rebalance group [^\[\]\n]*"
    rb" \((?:kafka|org\.apache\.kafka)\.coordinator\.group\.\w+\)\r?$",
    re.MULTILINE,
)
Change = Callable[[bytes, Random], bytes]


def blocks(cases: int) -> list[object]:
    """Number the blocks of cases; the first is tested always, the others in exhaustive tests."""
    rest = [
        pytest.param(number, marks=pytest.mark.exhaustive) for number in range(1, cases // BLOCK)
    ]
    return [0, *rest]


def cut(content: bytes, rng: Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def without_begin(content: bytes, rng: Random) -> bytes:
    return content[rng.randrange(len(content) + 1) :]


def twice(content: bytes, rng: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    first = rng.randrange(len(lines) + 1)
    last = rng.randrange(first, len(lines) + 1)
    return b"".join(lines[:last] + lines[first:])


def swapped(content: bytes, rng: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    for _ in range(rng.randrange(1, 6)):
        if lines:
            one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def flipped(content: bytes, rng: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.randrange(1, 200)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def other_encoding(content: bytes, rng: Random) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(rng.choice(["utf-16", "utf-32", "utf-8-sig", "cp1252"]), "replace")


def not_text(content: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice([bytes(4096), rng.randbytes(4096)]) + content[at:]


def huge_line(content: bytes, rng: Random) -> bytes:
    at, more = rng.randrange(len(content) + 1), rng.choice([b"x", b"[", b"{", b" (", b"- "])
    return content[:at] + more * (HUGE // len(more)) + content[at:]


def joined_lines(content: bytes, rng: Random) -> bytes:
    first = rng.randrange(len(content) + 1)
    last = min(len(content), first + rng.randrange(40_000))
    return content[:first] + content[first:last].replace(b"\n", b"") + content[last:]


def windows_lines(content: bytes, _: Random) -> bytes:
    return content.replace(b"\n", b"\r\n")


def empty(_content: bytes, _rng: Random) -> bytes:
    return b""


INSTEAD = [b"null", b"-1", b"1e400", b"NaN", b"[]", b"{}", b'""', b"9" * 30, b"true", b"'", b": "]


def typed_otherwise(content: bytes, rng: Random) -> bytes:
    """Change values: numbers, words and signs become others of another type."""
    found = [*re.finditer(rb'"[^"\n]*"|-?\d+(?:\.\d+)?|true|false|null|[\[\]{}:,-]', content)]
    some = rng.sample(found, min(len(found), rng.randrange(1, 4)))
    for match in sorted(some, key=lambda match: -match.start()):
        content = content[: match.start()] + rng.choice(INSTEAD) + content[match.end() :]
    return content


def deep(content: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice([b"[", b'{"a":', b"- "]) * 20_000 + content[at:]


OF_ALL: tuple[Change, ...] = (
    cut, without_begin, twice, swapped, flipped, other_encoding, not_text, joined_lines,
    windows_lines, empty,
)  # fmt: skip
OF_LOGS = (*OF_ALL, huge_line)
OF_DATA = (*OF_ALL, typed_otherwise, typed_otherwise, deep)


def changed(content: bytes, changes: tuple[Change, ...], rng: Random) -> bytes:
    for change in rng.choices(changes, k=rng.choice([1, 1, 2])):
        content = change(content, rng)
    return content


def unzipped(content: bytes) -> tuple[bytes, bool]:
    """Return what can be read of a gzip file by other means, and whether that is all of it."""
    try:
        return gzip.decompress(content), True
    except (OSError, EOFError, zlib.error):
        pass
    unpacker, read = zlib.decompressobj(wbits=31), bytearray()
    for byte in content:
        try:
            read += unpacker.decompress(bytes([byte]))
        except zlib.error:
            break
        if unpacker.eof:
            break
    return bytes(read), False


def lines_in(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and content != b"")


def damaged_logs(seed: int) -> tuple[dict[str, bytes], dict[str, bytes], set[str]]:
    """Return damaged files; what can be read of them; and those that cannot be read to the end."""
    rng = Random(seed)
    name = rng.choice(sorted(folder.name for folder in RECORDED.iterdir()))
    files = {
        file.removesuffix(".gz"): gzip.decompress(content) if file.endswith(".gz") else content
        for file, content in recorded(name).items()
    }
    for file in rng.sample(sorted(files), rng.randrange(1, len(files) + 1)):
        files[file] = changed(files[file], OF_LOGS, rng)
    if rng.random() < 0.3:
        files["copy.log"] = files[rng.choice(sorted(files))]
    readable, broken = dict(files), set()
    for file in rng.sample(sorted(files), rng.randrange(len(files))):
        packed = gzip.compress(files.pop(file), 1)
        readable.pop(file)
        if rng.random() < 0.5:
            packed = rng.choice([cut, flipped])(packed, rng)
        files[f"{file}.gz"] = packed
        readable[f"{file}.gz"], whole = unzipped(packed) if packed else (b"", True)
        broken |= set() if whole else {f"{file}.gz"}
    return files, readable, broken


def incident_or_error(files: dict[str, bytes]) -> dict[str, Any] | str:
    try:
        return incident_of(files)
    except EvidenceError as error:
        return str(error)


@pytest.mark.parametrize("block", blocks(LOGS))
def test_damaged_logs(block: int) -> None:
    reported = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        files, readable, broken = damaged_logs(seed)
        found = incident_or_error(files)
        if isinstance(found, str):
            assert "\n" not in found
            continue
        reported += 1
        account = found["coverage"]
        sums = account["used"] + account["irrelevant"] + account["rejected"]
        noticed = {notice["file"] for notice in found["notices"]}
        assert broken <= noticed, seed
        assert sums == account["lines_read"], seed
        if not broken:  # of a damaged file no two programs read the same bytes behind the damage
            assert sums == sum(map(lines_in, readable.values())), seed
            whole = sum(len(WHOLE.findall(content)) for content in readable.values())
            known = found["rebalances"] + account["copies"] + account["rejected"]
            assert whole <= known, seed
        assert {file for file, content in files.items() if not content} <= noticed, seed
        if seed % 10 == 0:
            assert "</html>" in page.render(found, found["longest"])
        json.dumps(found, allow_nan=False)
    assert reported > BLOCK // 2


@pytest.mark.parametrize("block", blocks(LOGS))
def test_no_rebalance_of_a_damaged_line_goes_unnoticed(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        _, readable, broken = damaged_logs(seed)
        for name, content in readable.items():
            if name in broken:
                continue
            lines = [line for line in content.split(b"\n") if PREPARING.search(line)]
            if not lines:
                continue
            alone = {"alone.log": b"\n".join(lines) + b"\n"}
            found = incident_or_error(alone)
            if isinstance(found, str):
                assert f"none of {len(lines)} lines" in found, seed
            else:
                assert found["coverage"]["irrelevant"] == 0, (seed, name)


def judged_or_error(folder: Path, data: Results) -> tuple[dict[str, Any] | str, RunFolder]:
    run = RunFolder(folder)
    try:
        found = verdict.evaluate(run, data, "4.3")
        costs.add(found, None, data.digests)
    except EvidenceError as error:
        return str(error), run
    junit.render(found)
    verdict.to_json(found)
    return found, run


@pytest.mark.parametrize("block", blocks(JOURNALS))
def test_damaged_journals(block: int, tmp_path: Path, groupquake: Command) -> None:
    run, _, data, drawn, cost = made_up(tmp_path / "run", size=3).finish()
    journal = run.path / "journal.jsonl"
    content = journal.read_bytes()
    judged = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        rng = Random(seed)
        damaged = changed(content, OF_DATA, rng)
        journal.write_bytes(damaged)
        found, again = judged_or_error(run.path, data)
        if isinstance(found, str):
            assert "journal.jsonl" in found, seed
            assert "\n" not in found, seed
        else:
            judged += 1
            assert found["verdict"] in ("pass", "fail", "unknown")
            assert damaged.count(b"\n") == len(again.journal), seed
            if not damaged.endswith(b"\n") and damaged:
                assert found["verdict"] != "pass", seed
            if seed % 10 == 0:
                report.render(again, found, data, drawn, cost)
        journal.write_bytes(damaged)
        done = groupquake("heal", run.path)
        assert done.code in (0, 5, 64), (seed, done.err)
        assert "Traceback" not in done.out + done.err
    assert judged


@pytest.mark.parametrize("block", blocks(EXPERIMENTS))
def test_damaged_experiments(block: int, tmp_path: Path, groupquake: Command) -> None:
    library = [Path(named.__globals__["LIBRARY"]) / f"{name}.yaml" for name in names()]
    file = tmp_path / "experiment.yaml"
    ends = set()
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        rng = Random(seed)
        damaged = changed(rng.choice(library).read_bytes(), OF_DATA, rng)
        file.write_bytes(damaged)
        done = groupquake(rng.choice(["validate", "plan"]), file)
        assert done.code in (0, 64), (seed, done.err)
        if done.code == 64:
            assert "experiment.yaml" in done.err, seed
        assert "Traceback" not in done.out + done.err
        ends.add(done.code)
    assert ends == {0, 64}
