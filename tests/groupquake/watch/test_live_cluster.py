"""`groupquake watch` beside a run: it counts what `groupquake report` counts afterwards."""

import json
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from chaos.waiting import until
from groupquake.watch.counting import State
from tests.groupquake.conftest import arguments, run_in, state_in
from tests.groupquake.whole_run.conftest import TOO_LONG_S, read_until

pytestmark = [pytest.mark.cluster, pytest.mark.long]
BROKERS = (1, 2, 3)
LOGS = [f"runs/latest/brokers/{broker}/server.log" for broker in BROKERS]


class Watch:
    """The follower, which is stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.storms = 0

    def __enter__(self) -> Self:
        words = arguments("watch", *LOGS, "--state", "state.json")
        self._process = subprocess.Popen(words, cwd=self._folder, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        out, _err = self._process.communicate(timeout=60)
        self.storms += out.count(": a storm, ")
        assert self._process.returncode == 0

    def counted(self) -> int:
        state = self.state()
        return sum(group.view("").rebalances for group in state.groups.values())

    def state(self) -> State:
        file = self._folder / "state.json"
        return msgspec.json.decode(file.read_bytes(), type=State) if file.exists() else State()


def reported(folder: Path) -> dict[str, Any]:
    """Return what `report` counts; it takes logs in a run's folder for a part of the run."""
    for log in LOGS:
        shutil.copy(folder / log, folder / f"{Path(log).parent.name}.log")
    done = run_in(folder, "report", "1.log", "2.log", "3.log", "--output", "after")
    assert done.code == 2, done.err
    incident: dict[str, Any] = json.loads((folder / "after" / "incident.json").read_text())
    return incident


def test_it_counts_what_the_report_counts_afterwards(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    command = arguments("run", "rolling-bounce", "--seed", 1, "--no-report")
    with subprocess.Popen(
        command, cwd=tmp_path, env=state_in(tmp_path), stderr=subprocess.PIPE, text=True
    ) as run:
        too_long = threading.Timer(TOO_LONG_S, run.kill)
        too_long.start()
        assert run.stderr is not None
        reader = threading.Thread(target=run.stderr.read)
        try:
            read_until("steady state met", run.stderr)
            reader.start()
            for rebalances in (4, 10):
                with watch:
                    assert until(lambda least=rebalances: watch.counted() >= least, 120)  # type: ignore[misc]
                assert watch.counted() < 17, "some are left for the next one"
            with watch:
                assert run.wait(TOO_LONG_S) == 0
                report = reported(tmp_path)
                seen = sum(sum(of["by_reason"].values()) for of in report["groups"].values())
                assert until(lambda: watch.counted() == seen, 60)
        finally:
            too_long.cancel()
            run.kill()
            reader.join()
    views = [group.view(name) for name, group in watch.state().groups.items()]
    assert {one.name: one.causes for one in views} == {
        name: of["by_reason"] for name, of in report["groups"].items()
    }
    assert {one.name: one.storms for one in views} == {
        name: len(of["storms"]) for name, of in report["groups"].items()
    }
    assert report["groups"]["dynamic"]["rebalances"] >= 12
    assert watch.storms == sum(one.storms for one in views)
