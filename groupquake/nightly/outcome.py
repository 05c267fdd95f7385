"""What became of one run of a night, read from what its process left behind."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import parquet

from groupquake.exits import OF_VERDICT, Exit
from reports import EvidenceError
from reports.judgement.expectations import described
from reports.judgement.run_folder import RunFolder

Json = dict[str, Any]
Verdict = Literal["fail", "unknown", "not run", "pass"]
WORST_FIRST: tuple[Verdict, ...] = ("fail", "unknown", "not run", "pass")

_NEVER_BEGAN = (Exit.NOT_STEADY, Exit.ABORTED, Exit.USAGE)
"""How a run ends that broke nothing, so that it proves nothing either way."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run went; `verdict` is `not run` until one is proven.

    `groups` holds for each group of the run its `rebalances` in the impact phase and
    `rebalancing_ms`, the time they took.
    """

    state: Literal["waiting", "running", "ended"] = "waiting"
    verdict: Verdict = "not run"
    why: str | None = None
    exit_code: int | None = None
    took_s: float | None = None
    folder: str | None = None
    output: str | None = None
    groups: dict[str, Json] = field(default_factory=dict)


def judged(code: int, took_s: float, folder: Path | None, output: Path) -> Outcome:
    """Return the outcome of a run whose process has ended; a crash is no verdict.

    A run passes with the verdict that its experiment foretells.
    """
    verdict = _read_verdict(folder)
    if verdict is not None and OF_VERDICT.get(verdict["verdict"]) == code:
        told = list(_reasons(verdict))
        more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
        why = told[0] + more if told else None
        found: Verdict = verdict["verdict"]
        if (foretold := verdict["foretold"]) is not None:
            came_true = foretold["came_true"]
            why = f"{found}, {'as' if came_true else f'though {described(foretold)}'} was foretold"
            found = "pass" if came_true else "unknown" if found == "unknown" else "fail"
    else:
        verdict, why = None, _last_words(output, code)
        found = "not run" if code in _NEVER_BEGAN else "unknown"
    return Outcome(
        state="ended",
        verdict=found,
        why=why,
        exit_code=code,
        took_s=round(took_s, 1),
        folder=None if folder is None else f"runs/{folder.name}",
        output=f"output/{output.name}",
        groups=_measured(folder, verdict) if folder is not None and verdict else {},
    )


def _read_verdict(folder: Path | None) -> Json | None:
    if folder is None:
        return None
    try:
        content: Json = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # the run ended before its analysis did
        return None
    return content


def _reasons(verdict: Json) -> Iterator[str]:
    """Say what is behind a verdict that is no pass, the gravest first."""
    for finding in verdict["findings"]:
        if finding["root"]:
            yield (
                f"{finding['kind'].replace('_', ' ')} in {finding['group']}: "
                f"expected {finding['expected']}; observed {finding['observed']}"
            )
    for item in verdict["expectations_unmet"]:
        yield (
            f"expected {item['expected']} {item['what']} of {item['group']} in {item['phase']}, "
            f"observed {item['observed']}"
        )
    yield from verdict["unknown_because"]


def _last_words(output: Path, code: int) -> str:
    lines = output.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
    ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
    return f"{last.removeprefix('groupquake: ').strip()} ({ended})"


def _measured(folder: Path, verdict: Json) -> dict[str, Json]:
    """Count and time the rebalances of the impact phase, group by group."""
    took_ms: dict[str, float] = defaultdict(float)
    try:
        run = RunFolder(folder)
        columns = ["group", "started_ms", "duration_ms"]
        for row in parquet.read_table(folder / "tables" / "observed", columns=columns).to_pylist():
            if row["started_ms"] is not None and run.phase_at(row["started_ms"]) == "impact":
                took_ms[row["group"]] += row["duration_ms"] or 0.0
    except (OSError, pa.ArrowException, EvidenceError):
        took_ms.clear()  # the counts stand in the verdict itself
    return {
        name: {
            "rebalances": group["rebalances_observed"]["impact"],
            "rebalancing_ms": round(took_ms[name], 1),
        }
        for name, group in verdict["groups"].items()
    }
