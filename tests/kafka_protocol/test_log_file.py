"""A log as it is written: numbered from 1 on, and the two times of a line are of one moment."""

import time

import pytest

from kafka_protocol.log_file import NumberedLog
from kafka_protocol.log_line import monotonic_ms, written_ms


def test_a_process_numbers_its_own_lines_and_appends(tmp_path):
    file = tmp_path / "1" / "group.log"
    for text in ("a DEBUG b (c)", "d INFO é (f)"):
        later = []
        log = NumberedLog(file, later.append)
        log.write(text, 5)
        log.write(text, 6)
        assert len(later) == 1, "lines of one moment are written at once"
        log.close()
    lines = file.read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2", "1", "2"]
    assert [line.split(" ", 3)[3] for line in lines] == ["a DEBUG b (c)"] * 2 + ["d INFO é (f)"] * 2


def test_both_times_of_a_line_are_those_of_its_event(tmp_path, monkeypatch):
    log = NumberedLog(tmp_path / "group.log", lambda _: None)
    now_ns, wall = time.monotonic_ns(), time.time_ns
    log.write("a DEBUG b (c)", now_ns)
    monkeypatch.setattr(time, "time_ns", lambda: wall() + 700_000_000)  # the process has waited
    log.write("a DEBUG b (c)", now_ns + 3_000_000)
    log.close()
    first, second = (tmp_path / "group.log").read_text().splitlines()
    (_, begun_ms), (_, ended_ms) = monotonic_ms(first), monotonic_ms(second)
    assert ended_ms - begun_ms == pytest.approx(3)
    assert written_ms(second) - written_ms(first) in (3, 4)
