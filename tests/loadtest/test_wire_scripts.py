"""The program that tells stories; what brokers make of them, `protocol-corners` shows."""

import subprocess
import sys
from typing import get_args

from loadtest.wire_scripts.duplicate_instance_ids import DUPLICATES
from loadtest.wire_scripts.known_defects import DEFECTS
from loadtest.wire_scripts.leader_restarts import LEADERS
from loadtest.wire_scripts.protocol_corners import STORIES
from scenarios.wire_scripts import NEEDS, Story


def test_an_experiment_may_name_every_story() -> None:
    told = tuple(story.__name__ for story in (*STORIES, *DUPLICATES, *DEFECTS, *LEADERS))
    assert get_args(Story) == told == tuple(NEEDS)


def test_a_story_that_cannot_be_told_is_said_so() -> None:
    command = [sys.executable, "-m", "loadtest.wire_scripts", "--bootstrap", "127.0.0.1:1"]
    done = subprocess.run([*command, "mixed", "full"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert "mixed-scout: no broker answers" in last
    assert "full-scout: no broker answers" in last
