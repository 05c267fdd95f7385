"""What a fault by hand would do, foreseen in a process of its own: its stdin is a socket of asks.

It ends when that does. It is nice to the run beside it, which it must not delay.
"""

import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from chaos.by_hand import steps_by_hand
from chaos.child import Child
from chaos.errors import ChaosError
from chaos.plan import Plan
from groupquake.simulate.forecast import QUICK_MEMBERS, GroupForecast, foresee
from reports.judgement.run.forecast import Interval
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

    Returns what heals it, and a sentence for each group. Raises ScenarioError.
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
        "groups": {name: ", ".join(_says(of)) for name, of in forecast.groups.items()},
        "notes": list(forecast.notes),
    }


@cache
def _run(folder: Path) -> tuple[Experiment, str | None]:
    environment = json.loads((folder / "environment.json").read_text("utf-8"))
    return load(folder / "experiment.yaml"), environment.get("profile")


def _says(group: GroupForecast) -> Iterator[str]:
    """Yield what becomes of a group."""
    if group.open_because:
        yield f"not foreseen: {', '.join(group.open_because)} does what virtual time does not have"
        return
    rebalances = group.rebalances("impact")
    why = " and ".join(one.replace("_", " ") for one in group.reasons("impact"))
    yield _counted(rebalances, "rebalance") + (f" ({why})" if why else "")
    for what, unit in (
        (group.stopped_ms, "ms that its members stop, added up"),
        (group.unowned_s, "partition-seconds without an owner"),
        (group.moved, "partitions that move"),
    ):
        if what != (0, 0):
            yield f"{_shown(what)} {unit}"


def _counted(number: Interval, noun: str) -> str:
    return f"{_shown(number)} {noun}" if number.most in (0, 1) else f"{_shown(number)} {noun}s"


def _shown(number: Interval) -> str:
    least, most = (f"{one:,.15g}" if one else "no" for one in (number.least, number.most or 0))
    return least if number.least == number.most else f"{least.replace('no', '0')} to {most}"


def main() -> None:
    """Answer each ask with a line, until there are no more."""
    os.nice(NICE)
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
