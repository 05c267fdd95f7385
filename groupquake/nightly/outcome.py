"""The outcome of one run of a night, from its run folder and output."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from groupquake.exits import OF_VERDICT, Exit
from reports.judgement.expectations import described

Json = dict[str, Any]
Verdict = Literal["fail", "unknown", "not run", "pass"]
WORST_FIRST: tuple[Verdict, ...] = ("fail", "unknown", "not run", "pass")

_NEVER_BEGAN = (Exit.NOT_STEADY, Exit.ABORTED, Exit.USAGE)
"""Exit codes of runs that injected no fault, and so prove nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run; `verdict` is `not run` until there is one.

    `groups` has for each group the number of its `rebalances` in the impact phase.
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

    A run passes with the expected verdict of its experiment.
    """
    verdict = _read_verdict(folder)
    if verdict is not None and OF_VERDICT.get(verdict["verdict"]) == code:
        reasons = list(_reasons(verdict))
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        why = reasons[0] + more if reasons else None
        found: Verdict = verdict["verdict"]
        if (expected := verdict["foretold"]) is not None:
            came_true = expected["came_true"]
            why = (
                f"{found}, as expected"
                if came_true
                else f"{found}, though {described(expected)} was expected"
            )
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
        groups={
            name: {"rebalances": group["rebalances_observed"]["impact"]}
            for name, group in (verdict["groups"] if verdict else {}).items()
        },
    )


def _read_verdict(folder: Path | None) -> Json | None:
    if folder is None:
        return None
    try:
        content: Json = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # the run ended before the end of its analysis
        return None
    return content


def _reasons(verdict: Json) -> Iterator[str]:
    """Yield the reasons of a verdict other than pass, the worst first."""
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
    last = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
    ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
    return f"{last.removeprefix('groupquake: ').strip()} ({ended})"
