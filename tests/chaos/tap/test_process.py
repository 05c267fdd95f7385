"""The tap's process: how it ends, and what its commands do when it does not answer. No broker."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from chaos.errors import ChaosError
from chaos.tap.process import RunningTap, TapGoneError, TapSettings, has_ended, running
from chaos.tap.rules import Rule
from chaos.waiting import until
from kafka_protocol.tap_lines import ENDED, LOGGER

BROKERS = {1: "127.0.0.1:1"}
NEVER_S = 3_600.0
"""Longer than any test may take."""
WITHIN_S = 20.0
HOLD = Rule("hold")
BUFFER_BYTES = 1 << 20
"""More than a pipe or a socket holds."""


@pytest.fixture
def still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningTap]:
    """A tap that stands still."""
    monkeypatch.setattr("chaos.tap.process.TAP_END_S", 0.5)
    with suppress(TapGoneError), running(TapSettings(BROKERS, tmp_path)) as tap:
        monkeypatch.setattr("chaos.tap.process.TAP_ANSWER_S", 0.5)
        psutil.Process(tap.process_id).suspend()
        yield tap


def gone(tap: RunningTap, rule: Rule = HOLD) -> str:
    with pytest.raises(TapGoneError) as caught:
        tap.add("r1", rule)
    return str(caught.value)


def test_a_tap_that_does_not_answer_ends_with_its_rules_and_what_is_asked_then_fails_at_once(
    still: RunningTap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal says of its rules that they ended with it: that has to be true by then."""
    assert "did not answer within 0.5 s and was killed" in gone(still)
    assert has_ended(still.process_id, still.started_at_ms, 0.0)
    monkeypatch.setattr("chaos.tap.process.TAP_ANSWER_S", NEVER_S)
    assert "has ended" in gone(still)


def test_who_waits_behind_another_has_a_deadline_and_ends_the_others_wait(
    still: RunningTap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.tap.process.TAP_ANSWER_S", NEVER_S)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(gone, still)
        assert until(still._commands._one_at_a_time.locked, WITHIN_S)
        monkeypatch.setattr("chaos.tap.process.TAP_ANSWER_S", 0.5)
        assert "did not answer" in gone(still)
        assert "has ended" in first.result()


def test_a_command_that_is_not_read_has_a_deadline(still: RunningTap) -> None:
    assert "did not answer" in gone(still, Rule("hold", ("m" * BUFFER_BYTES,)))


def test_a_tap_that_stands_still_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.tap.process.TAP_END_S", 0.5)
    with running(TapSettings(BROKERS, tmp_path)) as tap:
        psutil.Process(tap.process_id).suspend()
    assert has_ended(tap.process_id, tap.started_at_ms, 0.0)


def test_the_tap_ends_with_its_parent(tmp_path: Path) -> None:
    """However the parent ends."""
    program = (
        "import sys, time; from pathlib import Path; from chaos.tap import process as tap\n"
        f"with tap.running(tap.TapSettings({BROKERS}, Path({str(tmp_path)!r}))) as t:\n"
        "    print(t.process_id, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        process = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    process.wait(WITHIN_S)


def test_the_tap_ends_in_order_if_nobody_reads_its_last_answer(tmp_path: Path) -> None:
    def close_unread(tap: RunningTap) -> None:
        connection = tap._commands._connection
        connection.sendall(b'{"do": "hits"}\n')
        connection.recv(1, socket.MSG_PEEK)
        connection.close()

    with pytest.raises(TapGoneError, match="exit code 0"):
        run_until_it_has_ended(TapSettings(BROKERS, tmp_path), close_unread)
    assert last_line(tmp_path).endswith(f" {ENDED} ({LOGGER})")


def run_until_it_has_ended(settings: TapSettings, how: Callable[[RunningTap], object]) -> None:
    with running(settings) as tap:
        how(tap)
        os.waitid(os.P_PID, tap.process_id, os.WEXITED | os.WNOWAIT)


def last_line(folder: Path) -> str:
    (line,) = (folder / "1" / "group.log").read_text().splitlines()
    return line


def test_a_tap_answers_until_it_ends_and_its_last_line_says_so(tmp_path: Path) -> None:
    log = tmp_path / "1" / "group.log"
    with running(TapSettings(BROKERS, tmp_path)) as tap:
        with pytest.raises(ChaosError, match="refused add: ValidationError: Invalid enum value"):
            tap.add("r1", Rule("sever"))  # type: ignore[arg-type]
        tap.add("r1", HOLD)
        assert tap.hits() == {"r1": 0}
        assert log.read_text() == ""
    assert last_line(tmp_path).startswith("1 ")
    assert last_line(tmp_path).endswith(f" {ENDED} ({LOGGER})")
    gone(tap)


def test_a_tap_that_was_killed_writes_no_last_line(tmp_path: Path) -> None:
    with pytest.raises(TapGoneError, match="ended early"):
        run_until_it_has_ended(
            TapSettings(BROKERS, tmp_path), lambda tap: os.kill(tap.process_id, signal.SIGKILL)
        )
    assert (tmp_path / "1" / "group.log").read_text() == ""
