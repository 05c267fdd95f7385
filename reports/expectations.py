"""What the experiment itself asks for: rebalances by group, phase and reason; owners in the end."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.wording import UNOWNED
from scenarios import Experiment
from scenarios.model import Range


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An expectation that was not met."""

    group: str
    phase: str
    what: str
    expected: str
    observed: int
    too_many: bool


def unmet(
    experiment: Experiment,
    counts: Counter[tuple[str, str, str]],
    unowned: Mapping[str, Sequence[str]],
) -> tuple[Shortfall, ...]:
    """Compare with `expect` what was observed.

    That is rebalances, by (group, phase, reason), and the partitions without owner, by group.
    """
    short = []
    for wanted in experiment.bounds:
        observed = sum(
            count
            for (group, phase, reason), count in counts.items()
            if group == wanted.group
            and wanted.phase in (None, phase)
            and wanted.reason in (None, reason)
        )
        if _misses(observed, wanted.rebalances):
            because = f" with reason {wanted.reason}" if wanted.reason else ""
            expected = f"{_span(wanted.rebalances)}{because}"
            short.append(
                Shortfall(
                    wanted.group,
                    wanted.phase or "total",
                    "rebalances",
                    expected,
                    observed,
                    observed > wanted.rebalances.min,
                )
            )
    for owners in experiment.owners:
        observed = len(unowned[owners.group])
        if _misses(observed, owners.unowned):
            expected = _span(owners.unowned)
            too_many = observed > owners.unowned.min
            short.append(Shortfall(owners.group, "the end", UNOWNED, expected, observed, too_many))
    return tuple(short)


def _misses(observed: int, wanted: Range) -> bool:
    return observed < wanted.min or (wanted.max is not None and observed > wanted.max)


def _span(wanted: Range) -> str:
    low, high = wanted.min, wanted.max
    return f"{low}" if low == high else f"{low}..{'' if high is None else high}"
