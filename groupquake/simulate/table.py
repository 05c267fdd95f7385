"""A forecast as lines of a table."""

from collections.abc import Iterator

from groupquake.simulate.forecast import PHASES, Forecast, described
from reports.judgement.run.forecast import Interval
from scenarios.model import Range

ROW = "{:24} {:10} {:18} {:>12}"


def lines(forecast: Forecast) -> Iterator[str]:
    """Yield the table: rebalances by group, phase and reason, their price, what `expect` says."""
    yield f"{forecast.experiment.name}: expected in {forecast.courses} courses; nothing was started"
    yield ROW.format("group", "phase", "reason", "rebalances")
    for name, group in forecast.groups.items():
        for phase in PHASES:
            for reason in group.reasons(phase):
                yield ROW.format(name, phase, reason, str(group.rebalances(phase, reason)))
        yield ROW.format(name, "impact", "in all", str(group.rebalances("impact")))
        yield (
            f"  members stop for {group.stopped_ms} ms, {group.unowned_s} partition-s unowned,"
            f" {group.moved} partitions moved"
        )
        if group.open_because:
            yield f"  open upwards: {', '.join(group.open_because)}"
    impossible = set(forecast.impossible())
    for one in forecast.experiment.bounds:
        due = forecast.of(one)
        if due is None:
            said = "not foreseen"
        elif _is_within(due, one.rebalances):
            said = "comes out"
        else:
            said = f"may come out: {due} due"
        if not any(line.startswith(f"expect: {described(one)}, but") for line in impossible):
            yield f"expect: {described(one)}: {said}"
    yield from sorted(impossible)
    yield from (f"not foreseen: {note}" for note in forecast.notes)


def _is_within(due: Interval, wanted: Range) -> bool:
    """Whether whatever comes is as it is wanted."""
    above = wanted.max is not None and (due.most is None or due.most > wanted.max)
    return due.least >= wanted.min and not above
