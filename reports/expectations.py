"""What the experiment itself asks for: rebalances per group, phase and reason, min..max."""

from collections import Counter
from dataclasses import dataclass

from scenarios import Experiment


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An expectation that was not met."""

    group: str
    phase: str
    expected: str
    observed: int


def unmet(experiment: Experiment, counts: Counter[tuple[str, str, str]]) -> tuple[Shortfall, ...]:
    """Compare the observed counts, by (group, phase, reason), with `expect`."""
    short = []
    for wanted in experiment.expect:
        observed = sum(
            count
            for (group, phase, reason), count in counts.items()
            if group == wanted.group
            and wanted.phase in (None, phase)
            and wanted.reason in (None, reason)
        )
        low, high = wanted.rebalances.min, wanted.rebalances.max
        if observed < low or (high is not None and observed > high):
            span = f"{low}" if low == high else f"{low}..{'' if high is None else high}"
            because = f" with reason {wanted.reason}" if wanted.reason else ""
            short.append(
                Shortfall(wanted.group, wanted.phase or "total", f"{span}{because}", observed)
            )
    return tuple(short)
