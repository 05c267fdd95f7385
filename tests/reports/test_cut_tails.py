"""The tail of a log cut before a kill: a doubt on every coordinator, never a proven difference."""

import json
import lzma
import shutil
from pathlib import Path

import pytest

from reports.judgement.findings import proven_roots
from reports.judgement.recording import Recording
from selftest.mutants.judging import found

MISSING = "the log's end is missing"


def cut(recording: Recording, folder: Path, lines: int, *, measured: bool = True) -> Recording:
    """Take the last lines before the kill out of a killed broker's log.

    If it is `measured`, the journal says how many lines the log had when the broker was killed.
    """
    shutil.copytree(recording.folder, folder)
    ((broker, _, killed_ms),) = recording.run.killed_between
    (log,) = folder.glob(f"brokers/{broker}/group.log*")
    text = log.read_bytes()
    whole = (lzma.decompress(text) if log.suffix == ".xz" else text).decode().splitlines(True)
    mine = (line for line in recording.lines if line.broker == broker)
    known = max(line.number for line in mine if line.at_ms <= killed_ms)
    log.unlink()
    left = whole[: known - lines] + whole[known:]
    (folder / "brokers" / broker / "group.log").write_text("".join(left))
    journal = folder / "journal.jsonl"
    entries = [json.loads(entry) for entry in journal.read_text().splitlines()]
    (kill,) = (entry for entry in entries if entry["event"] == "injected"
               and entry["at_ms"] == killed_ms)  # fmt: skip
    kill["log_lines"] = known if measured else None
    journal.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return Recording(folder)


def test_the_whole_log_leaves_no_doubt(recording: Recording, tmp_path: Path) -> None:
    whole = cut(recording, tmp_path / "run", 0)
    assert whole.gaps == []
    assert [finding for group in whole.groups for finding in found(whole, group)] == []


@pytest.mark.parametrize("lines", [1, 9, 31])
def test_a_tail_that_is_cut_is_a_doubt(recording: Recording, tmp_path: Path, lines: int) -> None:
    altered = cut(recording, tmp_path / "run", lines)
    assert [gap.cause for gap in altered.gaps] == [MISSING]
    differences = [finding for group in altered.groups for finding in found(altered, group)]
    assert proven_roots(differences) == []


def test_a_kill_explains_no_end_where_the_journal_does_not_say_how_long_the_log_was(
    recording: Recording, tmp_path: Path
) -> None:
    unmeasured = cut(recording, tmp_path / "run", 0, measured=False)
    assert [gap.cause for gap in unmeasured.gaps] == [MISSING]


@pytest.mark.parametrize(("after_ms", "goes_on"), [(900, False), (1_100, True), (2_500, True)])
def test_a_killed_broker_writes_no_more(
    recording: Recording, tmp_path: Path, after_ms: int, goes_on: bool
) -> None:
    """The journal says that it was killed earlier; such an end is not that of the kill."""
    folder = tmp_path / "run"
    shutil.copytree(recording.folder, folder)
    ((broker, _, killed_ms),) = recording.run.killed_between
    mine = (line.at_ms for line in recording.lines if line.broker == broker)
    end_ms = max(at_ms for at_ms in mine if at_ms <= killed_ms)
    journal = folder / "journal.jsonl"
    by_ms = int(killed_ms - (end_ms - after_ms))
    text = journal.read_text().replace(f'"at_ms": {killed_ms}', f'"at_ms": {killed_ms - by_ms}')
    journal.write_text(text)
    assert [gap.cause for gap in Recording(folder).gaps] == [MISSING] * goes_on
