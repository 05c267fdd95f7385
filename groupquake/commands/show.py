"""`groupquake show`: what an experiment does, in some lines."""

import textwrap
from collections.abc import Iterable, Iterator
from operator import attrgetter

import click

from chaos.plan import make_plan
from groupquake.commands.options import WIDTH
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.run_screen import durations
from groupquake.simulate.forecast import described
from reports.judgement.run.forecast import Interval
from scenarios import Experiment, find
from scenarios.durations import format_ms
from scenarios.faults import AnyFault
from scenarios.loading import file_of
from scenarios.model import Clients, Expectation, Expected, Group, Ownership, StaticMembers

MOST = 8
"""The most groups, faults or expectations that are shown."""


@click.command()
@click.argument("name", metavar="NAME|FILE")
@click.option("--file", "as_file", is_flag=True, help="Print its file.")
def show(name: str, *, as_file: bool) -> Exit:
    """Show what an experiment does: members, faults, what is expected, how long it takes."""
    experiment = find(name)
    if as_file:
        Console.result(*file_of(name).read_text("utf-8").rstrip("\n").split("\n"))
    else:
        Console.result(*_about(experiment), f"file      {file_of(name)}")
    return Exit.PASS


def usual_ms(experiment: Experiment) -> int:
    """Return how long a run usually takes, until its verdict, in ms."""
    return round(sum(durations(experiment, make_plan(experiment, 0)).values()) * 1000)


def in_words(duration_ms: int) -> str:
    """Return about how long it is, such as `~70 s` or `~3 min`."""
    if duration_ms < 115_000:
        return f"~{round(duration_ms / 1000, -1):.0f} s"
    return f"~{round(duration_ms / 60_000)} min"


def _about(one: Experiment) -> Iterator[str]:
    """Yield the lines of `show`."""
    judge = "the rules of its release" if one.judge == "release" else one.judge
    cluster, phases = one.cluster, one.phases
    where = (
        "external" if cluster.kind else f"Kafka {cluster.version}, coordinator {one.coordinator}"
    )
    brokers = f"{cluster.brokers} brokers" if cluster.brokers > 1 else "1 broker"
    yield f"{one.name}: {in_words(usual_ms(one))}"
    yield from textwrap.wrap(one.description, WIDTH)
    yield ""
    yield f"cluster   {brokers}, {where}; judged by {judge}"
    yield from _titled("groups", map(_of_group, one.workload.groups))
    if scripts := one.workload.wire_scripts:
        yield from _titled("", [f"a wire script each: {', '.join(scripts)}"])
    faults = map(_of_fault, sorted(one.faults, key=attrgetter("at_ms")))
    yield from _titled("faults", [*faults] or ["none"])
    lasting = format_ms(phases.impact_ms), format_ms(phases.recovery_ms)
    yield "phases    impact {}, recovery {}".format(*lasting)
    rules = "what the rules allow, and nothing else"
    yield from _titled("expected", [*map(_of_expected, one.expect)] or [rules])
    verdicts = [
        f"from {entry.since} on{f' ({entry.coordinator})' if entry.coordinator else ''}: "
        f"{entry.verdict}{f', because of {entry.because}' if entry.because else ''}"
        for entry in one.verdicts
    ]
    yield from _titled("verdict", verdicts or ["pass"])


def _titled(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines behind a title, which stands in the first; of many the first few."""
    every = list(lines)
    more = [f"and {len(every) - MOST} more"] if len(every) > MOST else []
    for number, line in enumerate([*every[:MOST], *more]):
        before = f"{'' if number else title:10}"
        yield from textwrap.wrap(line, WIDTH, initial_indent=before, subsequent_indent=" " * 12)


def _of_group(group: Group) -> str:
    kinds = [
        f"{entry.count} {entry.kind}"
        + (f" {entry.instance_id}" if isinstance(entry, StaticMembers) else "")
        + (f" ({entry.client})" if entry.client != "librdkafka" else "")
        for entry in group.members
    ]
    session = format_ms(group.session_timeout_ms)
    return f"{group.name}: {', '.join(kinds)}; session {session}, {group.assignor}"


def _of_fault(fault: AnyFault) -> str:
    words = [f"{format_ms(fault.at_ms):>6}  {fault.fault}", fault.hits_in_words()]
    words += [f"for {format_ms(fault.lasting_ms)}"] if fault.lasting_ms else []
    words += [f"every {format_ms(fault.every_ms)}"] if fault.every_ms else []
    words += [f"when {fault.when}"] if fault.when else []
    return ", ".join(filter(None, words))


def _of_expected(one: Expected) -> str:
    if isinstance(one, Expectation):
        return described(one)
    if isinstance(one, Clients):
        return f"rules of clients: {one.clients}"
    if isinstance(one, Ownership):
        number, what = one.unowned, "without an owner at the end"
    else:
        number, what = one.moved, "that move"
    return f"{Interval(number.min, number.max)} partitions of {one.group} {what}"
