"""A forecast as lines: in short, or as a table."""

from collections.abc import Iterator

from groupquake.simulate.forecast import PHASES, Forecast, described, wanted

ROW = "{:24} {:10} {:18} {:>12}"


def short(forecast: Forecast) -> Iterator[str]:
    """Yield how many rebalances of each group are expected, and which expectations cannot hold."""
    impact = [f"{group.rebalances('impact')} of {name}" for name, group in forecast.groups.items()]
    yield f"rebalances expected in impact: {', '.join(impact)}"
    yield from forecast.impossible()


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
    for one in forecast.experiment.bounds:
        due = forecast.of(one)
        if due is None:
            yield f"expect: {described(one)}: not foreseen"
        elif due.is_within(wanted(one)):
            yield f"expect: {described(one)}: comes out"
        elif due.meets(wanted(one)):
            yield f"expect: {described(one)}: may come out: {due} due"
    yield from forecast.impossible()
    yield from (f"not foreseen: {note}" for note in forecast.notes)
