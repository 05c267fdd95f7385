"""What happened in a run outside its forecast."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groupquake.simulate.forecast import Forecast, Interval

FILE = "forecast.json"
"""The forecast in a run folder, as `Forecast.as_dict` has it."""


def write(forecast: Forecast, folder: Path) -> None:
    """Keep the forecast of a run."""
    text = json.dumps(forecast.as_dict(), indent=2) + "\n"
    (folder / FILE).write_text(text, encoding="utf-8")


def of_run(folder: Path, verdict: Mapping[str, Any]) -> list[str]:
    """Return a line for each number of rebalances that lies outside the forecast of a run.

    The verdict stays what it is: a forecast is no rule. Without one there are none.
    """
    file = folder / FILE
    if not file.is_file():
        return []
    forecast = json.loads(file.read_text(encoding="utf-8"))
    lines = []
    for name, expected in forecast["groups"].items():
        seen = verdict["groups"].get(name, {}).get("by_cause", {})
        for phase, counts in expected["rebalances"].items():
            observed = {"total": sum(seen.get(phase, {}).values()), **seen.get(phase, {})}
            for reason in dict.fromkeys((*counts, *observed)):
                due = Interval(*counts.get(reason, _nothing(expected)))
                if not due.holds(count := observed.get(reason, 0)):
                    lines.append(f"{name}, {phase}, {reason}: {count} rebalances, {due} foreseen")
    return lines


def _nothing(expected: Mapping[str, Any]) -> tuple[int, int | None]:
    """Return what is due for a reason that no course had."""
    return (0, None) if expected["open_because"] else (0, 0)
