import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from chaos import fault_runner
from chaos.errors import ChaosError
from chaos.journal import Journal, open_faults, read
from scenarios.durations import now_ms
from tests.full_disk import fill, needs_root, small_disk

WRITER = """
import sys
from pathlib import Path
from chaos.journal import Journal
journal = Journal(Path(sys.argv[1]))
journal.write("intent", fault_id="f1.1", kind="recoverable", undo={"do": "start", "member": "m"})
for number in range(1_000_000):
    journal.write("injected", fault_id="f1.1", number=number, padding="x" * 2000)
    print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def intent(fault_id: str, kind: str = "recoverable") -> dict[str, object]:
    return {"fault_id": fault_id, "kind": kind, "undo": {"do": "start", "member": "m"}}


def test_what_is_written_is_on_disk_at_once_and_in_order(path):
    before_ms = now_ms()
    with Journal(path) as journal:
        journal.phase("impact")
        journal.write("aborted", signal="SIGINT")
        phase, aborted = read(path)
    assert (phase["event"], phase["phase"]) == ("phase", "impact")
    assert (aborted["event"], aborted["signal"]) == ("aborted", "SIGINT")
    assert before_ms <= phase["at_ms"] <= aborted["at_ms"] <= now_ms()


def test_every_line_is_synced_to_the_disk(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(len(read(path))))
    with Journal(path) as journal:
        journal.phase("impact")
        journal.phase("recovery")
    assert synced == [1, 2]


def test_threads_write_whole_lines_in_the_order_of_time(path):
    with Journal(path) as journal:
        threads = [
            threading.Thread(
                target=lambda n=n: [journal.write("x", n=n, pad="y" * 5000) for _ in range(20)]
            )
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    times = [entry["at_ms"] for entry in read(path)]
    assert len(times) == 160
    assert times == sorted(times)


def test_a_truncated_last_line_is_ignored_and_removed_when_the_journal_is_opened(path):
    path.write_text('{"at_ms": 1, "event": "phase", "phase": "impact"}\n{"at_ms": 2, "eve')
    assert [entry["at_ms"] for entry in read(path)] == [1]
    with Journal(path) as journal:
        journal.phase("recovery")
    assert [entry["phase"] for entry in read(path)] == ["impact", "recovery"]


def test_a_line_that_is_no_entry_is_an_error_at_its_place(path):
    for line, wrong in (
        ('{"at_ms"', "no JSON"),
        ("17", "no JSON object"),
        ("[" * 100_000, "no JSON"),
        ('{"at_ms": 1}', "'event' is missing"),
        ('{"event": ["intent"]}', "'event' is of the wrong type"),
        ('{"event": "intent", "fault_id": "f1"}', "'kind' is missing"),
        ('{"event": "intent", "fault_id": {}, "kind": "recoverable"}', "'fault_id' is of the"),
        ('{"event": "healed", "fault_id": "f1", "healed": "no"}', "'healed' is of the wrong"),
    ):
        path.write_text(f'{{"event": "x"}}\n{line}\n{{"event": "x"}}\n')
        with pytest.raises(ChaosError, match=f"journal.jsonl:2: .*{wrong}"):
            open_faults(read(path))


def test_a_journal_that_is_not_there_or_of_an_active_run_is_an_error(path):
    with pytest.raises(ChaosError, match="cannot be read"):
        read(path)
    with pytest.raises(ChaosError, match="cannot be opened"):
        Journal(path / "deeper")
    with Journal(path), pytest.raises(ChaosError, match="its run still goes on"):
        Journal(path)
    Journal(path).close()


def test_the_journal_of_a_killed_writer_has_the_open_faults(path):
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(5)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    entries = read(path)
    assert [entry["number"] for entry in entries[1:]][: len(acknowledged)] == acknowledged
    assert [entry["fault_id"] for entry in open_faults(entries)] == ["f1.1"]
    Journal(path).close()  # the dead writer holds nothing


def test_only_what_can_be_undone_and_was_not_is_open(path):
    with Journal(path) as journal:
        for fault_id in ("f1.1", "f1.2", "f1.3"):
            journal.write("intent", **intent(fault_id))
        journal.write("intent", **intent("f2.1", kind="one-shot"))
        journal.write("healed", fault_id="f1.1", healed=True, how="started")
        journal.write("healed", fault_id="f1.2", healed=False, how="refused")
    still_open = open_faults(read(path))
    assert [entry["fault_id"] for entry in still_open] == ["f1.2", "f1.3"]
    assert still_open[0]["undo"] == {"do": "start", "member": "m"}
    assert json.loads(path.read_text().splitlines()[0])["event"] == "intent"


@needs_root
def test_a_full_disk_takes_what_happens_until_all_is_healed(tmp_path):
    with small_disk(tmp_path / "disk", "size=4m") as disk:
        path = disk / "journal.jsonl"
        killed = Journal(path)
        killed.write("intent", **intent("f1.1"))
        os.close(killed._files[path])  # as SIGKILL does
        fill(disk)
        with Journal(path) as journal:
            for number in range(1_000):
                journal.write("injected", fault_id="f1.1", number=number)
            journal.write("healed", fault_id="f1.1", healed=True)
            with pytest.raises(ChaosError, match="cannot be written"):
                journal.write("x", pad="y" * (4 << 20))
        entries = read(path)
        assert (len(entries), open_faults(entries)) == (1_002, ()), "no line is cut off"
        (disk / "filler").unlink()
        assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize > 3.8 * (1 << 20)


def test_a_journal_alone_is_enough_to_heal_what_somebody_knows_how_to_undo(path):
    restart = {"do": "start", "member": "static-3"}
    with Journal(path) as journal:
        for number, undo in enumerate((restart, None, {"do": "tc"}, restart), 1):
            journal.write("intent", fault_id=f"f1.{number}", kind="recoverable", undo=undo)
        last, unknown, none, first = fault_runner.heal(journal)
    gone = "nothing to undo: the load process is gone, and its members with it"
    assert (last, first) == (("f1.4", True, gone), ("f1.1", True, gone))
    for healed in (unknown, none):
        assert (healed.healed, "does not know how to undo" in healed.how) == (False, True)
    assert [entry["fault_id"] for entry in open_faults(read(path))] == ["f1.2", "f1.3"]
    with Journal(path) as journal:
        assert [healed.fault_id for healed in fault_runner.heal(journal)] == ["f1.3", "f1.2"]


def test_what_is_noted_after_the_seal_is_not_in_the_copy(path, tmp_path):
    copy = tmp_path / "copy.jsonl"
    with Journal(path, copy) as journal:
        journal.phase("teardown")
        journal.seal()
        sealed = copy.read_bytes()
        journal.write("deleted", topic="orders")
    assert [entry["event"] for entry in read(path)] == ["phase", "phase", "deleted"]
    assert copy.read_bytes() == sealed
    assert read(copy)[-1]["phase"] == "end"
