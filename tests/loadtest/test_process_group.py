"""Processes of a group, as the kernel has them."""

import os
import signal
import subprocess
import sys

import pytest

from loadtest import process_group
from loadtest.process_group import DEAD, STOPPED, is_within

TWO = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"


@pytest.fixture
def group():
    """A process and its child, in a group of their own."""
    with subprocess.Popen(
        [sys.executable, "-c", TWO], stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def test_a_process_that_runs_is_neither_stopped_nor_dead(group):
    assert not is_within(group.pid, STOPPED, 0.2)
    assert not is_within(group.pid, DEAD, 0.2)


def test_all_of_a_group_has_to_be_stopped(group):
    os.kill(group.pid, signal.SIGSTOP)
    assert not is_within(group.pid, DEAD, 0.2)
    os.killpg(group.pid, signal.SIGSTOP)
    assert is_within(group.pid, STOPPED, 20)


def test_a_killed_group_is_dead_before_anybody_has_waited_for_it(group):
    os.killpg(group.pid, signal.SIGKILL)
    assert is_within(group.pid, DEAD, 20)


def test_a_group_that_is_not_there_is_dead():
    assert is_within(2**22 + 1, DEAD, 0.2)


def test_a_thread_that_ends_hides_no_other(tmp_path, monkeypatch):
    fields = lambda state: f"1 (a name) {state} 1 7"
    process = tmp_path / "1"
    for number in "123":
        (process / "task" / number).mkdir(parents=True)
        (process / "task" / number / "stat").touch()
    (process / "stat").write_text(fields("S"))
    *ended, last = process.glob("task/*/stat")
    last.write_text(fields("R"))
    for stat in ended:
        stat.unlink()
        stat.mkdir()  # it is listed, and cannot be read
    monkeypatch.setattr(process_group, "_PROC", tmp_path)
    assert not is_within(7, STOPPED, 0.1)
    last.write_text(fields("T"))
    assert is_within(7, STOPPED, 20)
