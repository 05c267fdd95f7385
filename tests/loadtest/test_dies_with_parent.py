"""A child ends with its parent, however the parent ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from loadtest.dies_with_parent import dying_with_parent
from tests.loadtest.conftest import Locust
from tests.loadtest.loads import of_one_group

PARENT = """
import signal, subprocess, sys, time
from loadtest.dies_with_parent import dying_with_parent
program = "import time; print('up', flush=True); time.sleep(60)"
subprocess.Popen([*dying_with_parent(signal.Signals(int(sys.argv[1]))), "-c", program])
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_child_ends_with_a_parent_that_is_killed(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(int(number))],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as parent:
        assert parent.stdout is not None
        try:
            assert parent.stdout.readline() == b"up\n"
        finally:
            parent.kill()
        assert parent.communicate(timeout=20)[0] == b"", (
            "the pipe is closed once its last holder has ended"
        )


def test_a_child_whose_parent_died_before_prctl_ends() -> None:
    """Here a shell is its parent, not the process that it depends on."""
    command = [*dying_with_parent(signal.SIGKILL), "-c", "print('up')"]
    done = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", *command], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_programs_end_with_a_load_that_is_killed_though_they_are_frozen(
    locust: Callable[..., Locust], tmp_path: Path
) -> None:
    file, names = tmp_path / "experiment.yaml", ("librdkafka-0", "librdkafka-process-0")
    members = [
        {"kind": "static", "count": 1, "instance_id": f"{client}-{{n}}", "client": client}
        for client in ("librdkafka", "librdkafka-process")
    ]
    file.write_text(of_one_group("g", members))
    load = locust("--headless", "--bootstrap", "127.0.0.1:1", "--experiment", str(file))
    load.wait_for(lambda: {load.members()[name]["state"] for name in names} == {"starting"})
    duplicates = [psutil.Process(load.ask("duplicate", member=name)["pid"]) for name in names]
    for duplicate in duplicates:
        load.wait_for(lambda one=duplicate: "dies_with_parent" not in " ".join(one.cmdline()))
        os.kill(duplicate.pid, signal.SIGSTOP)
    load.end(signal.SIGKILL)
    for duplicate in duplicates:
        duplicate.wait(timeout=60)
