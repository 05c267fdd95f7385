"""What a fault by hand would do, foreseen in a process of its own: its stdin is a socket of asks.

It ends when that does. It is nice to the run beside it, which it must not delay.
"""

import json
import socket
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from chaos.by_hand import steps_by_hand
from chaos.child import Child
from chaos.errors import ChaosError
from chaos.plan import Plan
from groupquake.simulate.forecast import QUICK_MEMBERS, foresee
from scenarios import Experiment, ScenarioError, load
from scenarios.model import Phases

Json = dict[str, Any]

MODULE = "groupquake.live.foresee"
NICE = 10


class Forecaster(Child):
    """The process that foresees, as the runner has it."""

    name, log = "the forecast", "forecast.log"
    gone = ChaosError


def foreseen(folder: Path, asked: Mapping[str, Any]) -> Json:
    """Foresee a fault on the experiment of a run folder as the only one, from its steady state on.

    Returns what heals it, and the forecast of each group. Raises ScenarioError.
    """
    experiment, rules = _run(folder)
    if len(experiment.members()) > QUICK_MEMBERS:
        raise ScenarioError(f"more than {QUICK_MEMBERS} members are not foreseen beside a run")
    wider, steps = steps_by_hand(experiment, asked, 1, 0, 0)
    sessions_ms = max(group.session_timeout_ms for group in wider.workload.groups)
    ends_ms = steps[-1].at_ms + steps[-1].what.lasting_ms + 2 * sessions_ms
    phases = Phases.model_construct(impact_ms=ends_ms, recovery_ms=0)
    alone = wider.model_copy(update={"faults": wider.faults[-1:], "phases": phases})
    forecast = foresee(alone, Plan(alone.name, 0, steps), rules)
    undone = list(dict.fromkeys(step.planned.undo for step in steps))
    return {
        "undo": "nothing undoes it" if undone == ["none"] else "; ".join(undone),
        "steps": len(steps),
        "groups": {name: of.as_dict() for name, of in forecast.groups.items()},
        "notes": list(forecast.notes),
    }


@cache
def _run(folder: Path) -> tuple[Experiment, str | None]:
    environment = json.loads((folder / "environment.json").read_text("utf-8"))
    return load(folder / "experiment.yaml"), environment.get("profile")


def main() -> None:
    """Answer each ask with a line, until there are no more."""
    with socket.socket(fileno=sys.stdin.fileno()) as connection, connection.makefile("rw") as lines:
        for line in iter(lines.readline, ""):
            asked = json.loads(line)
            try:
                result: Json = {"forecast": foreseen(Path(asked["folder"]), asked["fault"])}
            except ScenarioError as error:
                result = {"refused": "; ".join(error.args)}
            lines.write(json.dumps({"ok": True, "result": result}) + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
