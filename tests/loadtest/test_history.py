import json
import time
from pathlib import Path

import pytest

from loadtest.errors import LoadtestError
from loadtest.history import ErrorLines, History
from loadtest.timing import QUIET_MS


def test_lines_are_appended_and_in_the_file_before_write_returns(tmp_path):
    path = tmp_path / "history.jsonl"
    history, before_ms = History(path), time.time() * 1000
    history.write("created", member="static-0", group="g", kind="static")
    line = json.loads(path.read_text())
    history.close()
    assert before_ms - 1 <= line.pop("at_ms") <= time.time() * 1000 + 1
    assert line == {"member": "static-0", "group": "g", "kind": "static", "event": "created"}

    history = History(path)
    own = {"member": "m", "group": "g", "kind": "static", "at_ms": 1790000000123.4, "offsets": 7}
    history.write("committed", **own)
    history.close()
    assert json.loads(path.read_text().splitlines()[1]) == {"event": "committed", **own}


def test_events_after_the_end_or_without_a_file_are_dropped(tmp_path):
    history = History(tmp_path / "history.jsonl")
    history.close()
    history.write("hub_lag")
    History(None).write("hub_lag")
    assert (tmp_path / "history.jsonl").read_text() == ""


def test_a_file_that_cannot_be_opened_is_an_error_of_ours(tmp_path):
    with pytest.raises(LoadtestError, match=r"--history .*/nowhere/h\.jsonl: cannot be written"):
        History(tmp_path / "nowhere" / "h.jsonl")


def test_without_room_it_ends_and_its_client_goes_on(caplog):
    history = History(Path("/dev/full"))
    history.write("created", member="m")
    history.add(["{}"])
    [record] = caplog.records
    assert record.getMessage() == "/dev/full ends: No space left on device"


def test_all_lines_are_shown_to_whoever_watches(tmp_path):
    for path in (tmp_path / "history.jsonl", None):
        history, seen = History(path), []
        history.watchers.append(seen.append)
        history.write("created", member="m", at_ms=1.0)
        history.add(['{"event":"closed","member":"n","at_ms":2.0}'])
        history.close()
        assert [(line["event"], line["member"], line["at_ms"]) for line in seen] == [
            ("created", "m", 1.0), ("closed", "n", 2.0)
        ]  # fmt: skip


def test_errors_of_a_kind_are_counted_for_a_second_after_a_line():
    lines = []
    errors = ErrorLines(lambda event, **fields: lines.append((event, fields)))
    later = 1_000.0 + QUIET_MS
    for at_ms in (*(1_000.0 + n for n in range(100)), later, later + QUIET_MS):
        errors.write("lost", "the connection was lost", at_ms)
    errors.write("commit: lost", "another kind", 1_000.1)
    text = {"error": "the connection was lost"}
    assert lines == [
        ("error", {"at_ms": 1_000.0, **text}),
        ("error", {"at_ms": later, **text, "left_out": 99}),
        ("error", {"at_ms": later + QUIET_MS, **text}),
        ("error", {"at_ms": 1_000.1, "error": "another kind"}),
    ]
