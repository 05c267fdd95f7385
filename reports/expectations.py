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
    short: list[Shortfall] = []
    for wanted in experiment.bounds:
        observed = sum(
            count
            for (group, phase, reason), count in counts.items()
            if group == wanted.group
            and wanted.phase in (None, phase)
            and wanted.reason in (None, reason)
        )
        because = f" with reason {wanted.reason}" if wanted.reason else ""
        phase = wanted.phase or "total"
        short += _missed(wanted.group, phase, "rebalances", observed, wanted.rebalances, because)
    for owners in experiment.owners:
        observed = len(unowned[owners.group])
        short += _missed(owners.group, "the end", UNOWNED, observed, owners.unowned)
    return tuple(short)


def _missed(
    group: str, phase: str, what: str, observed: int, wanted: Range, because: str = ""
) -> list[Shortfall]:
    """Return the expectation if it was not met, else nothing."""
    low, high = wanted.min, wanted.max
    too_many = high is not None and observed > high
    if observed >= low and not too_many:
        return []
    span = f"{low}" if low == high else f"{low}..{'' if high is None else high}"
    return [Shortfall(group, phase, what, f"{span}{because}", observed, too_many)]
