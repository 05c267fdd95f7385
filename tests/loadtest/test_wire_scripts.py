"""The program that runs wire scripts; `protocol-corners` shows how brokers respond to them."""

import subprocess
import sys
from typing import get_args

from loadtest.wire_scripts.duplicate_instance_ids import DUPLICATE_INSTANCE_IDS
from loadtest.wire_scripts.known_defects import KNOWN_DEFECTS
from loadtest.wire_scripts.leader_restarts import LEADER_RESTARTS
from loadtest.wire_scripts.protocol_corners import PROTOCOL_CORNERS
from scenarios.wire_scripts import NEEDS, WireScript


def test_an_experiment_may_name_every_script() -> None:
    names = tuple(
        script.__name__
        for script in (*PROTOCOL_CORNERS, *DUPLICATE_INSTANCE_IDS, *KNOWN_DEFECTS, *LEADER_RESTARTS)
    )
    assert get_args(WireScript) == names == tuple(NEEDS)


def test_a_script_without_a_broker_ends_with_an_error() -> None:
    command = [sys.executable, "-m", "loadtest.wire_scripts", "--bootstrap", "127.0.0.1:1"]
    done = subprocess.run([*command, "mixed", "full"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert "mixed-scout: no broker answers" in last
    assert "full-scout: no broker answers" in last
