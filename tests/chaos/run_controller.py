"""Runs a controller as the runner does, in a process of its own: PORT LOG EXPERIMENT JOURNAL."""

import signal
import sys
from pathlib import Path

from chaos.controller import Controller
from chaos.journal import Journal
from chaos.members import Members
from chaos.plan import make_plan
from scenarios import load
from tests.chaos.fake_cluster import FakeCluster
from tests.chaos.fakes import TOKEN

port, log, file, path = sys.argv[1:]
experiment = load(Path(file))
cluster = FakeCluster(Path(log))
with Journal(Path(path)) as journal:
    controller = Controller(
        make_plan(experiment, 1),
        experiment,
        cluster,
        Members(int(port), TOKEN),
        cluster,
        journal,
        progress=lambda line: print(line, flush=True),
        history=Path(path).with_name("history.jsonl"),
    )
    signal.signal(signal.SIGINT, lambda *_: controller.abort("SIGINT"))
    with controller.watching():
        print(controller.run())
