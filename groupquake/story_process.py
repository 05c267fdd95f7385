"""Stories as a child process: told during the phases of a run, and told to their end."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.journal import Journal
from chaos.patience import exit_code
from groupquake.load_process import environment
from loadtest.tether import tethered
from scenarios import Experiment

START_S = 60.0
POLL_S = 0.05
END_S = 180.0
"""How long after the last phase a story may go on."""


@contextmanager
def telling(
    folder: Path, bootstrap: str, experiment: Experiment, seed: int, journal: Journal
) -> Iterator[None]:
    """Tell the experiment's stories beside the block, and wait for their end after it.

    They begin no later than the block does: faults may be about them.
    The journal gets a failure if one does not go as it should: then it shows nothing.
    """
    names = experiment.workload.stories
    if not names:
        yield
        return
    log = folder.resolve() / "stories.log"
    command = [
        *tethered(signal.SIGKILL), "-m", "loadtest.stories",
        "--bootstrap", bootstrap, "--seed", str(seed), *names,
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is the runner's to handle
        )
    try:
        deadline = time.monotonic() + START_S
        while not log.stat().st_size and process.poll() is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
        yield
        try:
            wrong = process.wait(END_S) != 0
        except subprocess.TimeoutExpired:
            wrong = True
        if wrong:
            told = log.read_text(errors="replace").strip().splitlines()
            last = told[-1] if told else "nothing was said"
            journal.write("failed", fault_id=None, error=f"the stories: {last}; see {log.name}")
    finally:
        process.kill()
        exit_code(process)
