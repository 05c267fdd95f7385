"""Several runs of one plan: a row of a table for each, and the worst of their exit codes."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chaos.clusters import ClusterError
from groupquake.console import Console
from groupquake.exits import Exit, NotSteadyError
from groupquake.nightly.night import read_verdict, reasons

WORST_FIRST = (Exit.FAIL, Exit.UNKNOWN, Exit.NOT_STEADY, Exit.PASS)


class Series:
    """What the runs so far came to; one that did not reach its first fault is `not run`."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.folders: list[Path] = []
        self.worst = Exit.PASS

    def add(self, run: Callable[[], tuple[Exit, Path]]) -> None:
        """Carry out one more run, which returns its exit code and folder."""
        began, row = time.monotonic(), dict[str, Any]()
        try:
            code, folder = run()
        except (ClusterError, NotSteadyError) as error:
            Console.error(str(error))
            code, row = Exit.NOT_STEADY, {"run": "-", "verdict": "not run", "why": str(error)}
        else:
            verdict = read_verdict(folder) or {"verdict": "not judged", "groups": {}}
            self.folders.append(folder)
            row = {"run": folder.name, "verdict": verdict["verdict"]}
            for name, group in verdict["groups"].items():
                row[f"rebalances of {name}"] = group["rebalances_observed"]["impact"]
            row["why"] = next(reasons(verdict), "-") if verdict["groups"] else "-"
        self.rows.append({**row, "took_s": round(time.monotonic() - began)})
        self.worst = min(self.worst, code, key=WORST_FIRST.index)

    def show(self) -> None:
        """Print the table: verdicts, rebalances of groups in the impact phase, first reasons."""
        import pandas as pd  # noqa: PLC0415 (it loads slowly)

        if self.rows:
            frame = pd.DataFrame(self.rows).astype(object)
            frame = frame.where(frame.notna(), "-")
            frame["why"] = frame.pop("why")  # the long one last
            Console.result("", *frame.to_string(index=False).split("\n"))
