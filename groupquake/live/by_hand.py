"""Commands of the page to a run that goes on: lines of JSON on standard input, each answered.

`{"ask": 7, "do": "inject", "fault": {…}}` is answered by `{"answer": {"ask": 7, …}}`. `do` is one
of `offer`, `foresee`, `inject`, `heal` and `heal_all`. An answer with `refused` says in one line
why nothing was done.
"""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from click import UsageError

from chaos.by_hand import lacked, steps_by_hand
from chaos.child import launch
from chaos.controller import Controller
from chaos.errors import ChaosError, RefusedError
from groupquake.external import require_hooks
from groupquake.live.foresee import MODULE, NICE, Forecaster
from groupquake.runner import Runner
from groupquake.timing import FORESEEN_S
from reports.judgement.run.faults import PLAN_BY_HAND
from reports.page.faults import declared
from scenarios import Experiment, ScenarioError
from scenarios.faults import FAULTS

Json = dict[str, Any]


@dataclass
class ByHand:
    """Carries out commands on a run; `allowed` is the cluster whose brokers may be broken."""

    runner: Runner
    allowed: str | None
    _controller: Controller | None = None
    _forecaster: Forecaster | None = None
    _launching: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def answering(self, answer: Callable[[Json], None]) -> Iterator[None]:
        """Answer the commands on standard input from now on, also after the block."""
        thread = threading.Thread(target=self._read, args=(answer,), name="by hand", daemon=True)
        thread.start()
        try:
            yield
        finally:
            if self._forecaster is not None:
                self._forecaster.end(within_s=0)
            if self._controller is not None and (steps := self._controller.by_hand):
                plan = self.runner.plan
                whole = replace(plan, steps=(*plan.steps, *steps)).as_dict()
                text = json.dumps(whole, indent=2) + "\n"
                (self.runner.folder / PLAN_BY_HAND).write_text(text, encoding="utf-8")

    def command(self, controller: Controller) -> None:
        """Command this controller from now on."""
        self._controller = controller

    def _read(self, answer: Callable[[Json], None]) -> None:
        commands = os.dup(0)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)  # no process that we start reads, or holds, the commands
        with os.fdopen(commands, "rb", buffering=0) as lines:
            for line in lines:
                args = (json.loads(line), answer)
                threading.Thread(target=self._answer, args=args, daemon=True).start()

    def _answer(self, command: Json, answer: Callable[[Json], None]) -> None:
        try:
            said = self._do(command)
        except ScenarioError as error:
            said = {"refused": "; ".join(error.args)}
        except (ChaosError, UsageError) as error:
            said = {"refused": str(error)}
        answer({"ask": command["ask"], **said})

    def _do(self, command: Mapping[str, Any]) -> Json:
        match command:
            case {"do": "offer"}:
                self._launched()  # forecasts are asked for next
                return offer(self.runner.experiment, self.runner.tap)
            case {"do": "foresee", "fault": dict(asked)}:
                return self._foresee(asked)
            case {"do": "inject", "fault": dict(asked)}:
                self._require_allowed(asked)
                steps = self._running.inject(asked)
                return {"ids": [step.id for step in steps]}
            case {"do": "heal", "fault_id": str(fault_id)}:
                return {"ids": self._running.heal(fault_id)}
            case {"do": "heal_all"}:
                return {"ids": self._running.heal_all()}
        raise RefusedError("no such command; give offer, foresee, inject, heal or heal_all")

    @property
    def _running(self) -> Controller:
        if self._controller is None:
            raise RefusedError("no fault can be injected yet: the steady state is not met")
        return self._controller

    def _require_allowed(self, asked: Mapping[str, Any]) -> None:
        """Raise UsageError for what may not be broken of a cluster of the user's."""
        if (target := self.runner.place.external) is not None:
            wider, _ = steps_by_hand(self.runner.experiment, asked, 1, 0, self.runner.plan.seed)
            only = wider.model_copy(update={"faults": wider.faults[-1:]})
            require_hooks(only, target, self.allowed)

    def _launched(self) -> Forecaster:
        with self._launching:
            if self._forecaster is None or self._forecaster.exit_status is not None:
                log = self.runner.folder / Forecaster.log
                self._forecaster = Forecaster(*launch(MODULE, log, nice=NICE))
            return self._forecaster

    def _foresee(self, asked: Mapping[str, Any]) -> Json:
        folder = str(self.runner.folder.resolve())
        self._require_allowed(asked)
        found: Json = self._launched().ask(FORESEEN_S, do="foresee", folder=folder, fault=asked)
        return found


def offer(experiment: Experiment, tap: object) -> Json:
    """Return what can be broken: faults, with the JSON schema of their keys, and what they may hit.

    A fault does not fit every target and value; its forecast says so.
    """
    members = experiment.members_by_group
    return {
        "faults": [
            {
                "fault": name,
                "schema": kind.model_json_schema(),
                **declared({"name": name})._asdict(),
            }
            for name, kind in FAULTS.items()
            if not lacked(kind, experiment.needs, tap)
        ],
        "groups": {
            name: {one.name: one.kind for one in members.get(name, ())}
            for name in experiment.group_names
        },
        "topics": {one.name: one.partitions for one in experiment.workload.topics},
        "brokers": experiment.cluster.ids or (),
    }
