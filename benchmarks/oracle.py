"""The oracle alone, on one core: `python -m benchmarks.oracle`.

`step` decides one event after the other; `replay` does so for recorded evidence, and compares every
answer with the one that was given. Seconds are processor time.

Groups of 5 and of 500 are simulated: in a steady one all members join, and then heartbeat and
commit; in the other all but the leader are also restarted once in 54 s, so that two requests in
nineteen are those of a return. The recorded run is one fault after the other, and needs searching.

An event is what is handed to the coordinator: a request, a timer that ran out, or the outcome of a
record write. In the recorded run, timers count where a line of the broker tells of them.
"""

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks import plain
from benchmarks.evidence import multiply
from benchmarks.group import GROUP, RESTARTED, STEADY, Simulation
from benchmarks.sides import profile_of
from benchmarks.table import table
from reference_coordinator.classic.events import Event
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import step
from reference_coordinator.replay import Evidence, replay
from reports.judgement.collector import collector_paused
from reports.judgement.run_folder import RunFolder

Json = dict[str, Any]
SMALL, BIG = 5, 500
LIVES = {"steady": STEADY, "restarted": RESTARTED}
FEWEST = (2 + len(RESTARTED)) * BIG
"""In so many requests the big group joins, syncs and goes through its cycle once."""


@click.command()
@click.option("--requests", default=50_000, show_default=True, help="How many, in each case.")
@click.option("--rounds", default=3, show_default=True, help="How often each is done; medians.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def main(requests: int, rounds: int, *, as_json: bool) -> None:
    """Count the events that the oracle decides in a second."""
    if requests < FEWEST:
        raise click.UsageError(
            f"--requests: {BIG} members need at least {FEWEST} to join and do each thing they do"
        )
    figures = {"recorded run": _recorded(requests, rounds)} | {
        f"{size} {life}": _simulated(size, cycle, requests, rounds)
        for life, cycle in LIVES.items()
        for size in (SMALL, BIG)
    }
    ratios = {
        f"{what}_{life}_{BIG}_to_{SMALL}": figures[f"{BIG} {life}"][f"{what}_us"]
        / figures[f"{SMALL} {life}"][f"{what}_us"]
        for life in LIVES
        for what in ("step", "replay")
    }
    click.echo(json.dumps({**figures, **ratios}, indent=2) if as_json else _shown(figures, ratios))


def _recorded(requests: int, rounds: int) -> Json:
    """Replay the recorded run over and over."""
    with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as folder:
        evidence = multiply(0.1, Path(folder))
        run = RunFolder(evidence.folder)
        groups = list(plain.read(run).evidence(run))
        profile = profile_of(run)
    times = max(1, round(requests / evidence.requests))
    return _replayed(groups * times, profile, rounds, times * _events(groups, profile))


def _simulated(size: int, cycle: tuple[str, ...], requests: int, rounds: int) -> Json:
    """Step through, and replay, the life of a group of `size` static members."""
    profile = NEWEST
    simulation = Simulation(size, profile, cycle)
    evidence = simulation.run(requests)
    events = simulation.events
    seconds = _seconds(lambda: _step_through(events, profile), rounds)
    return {
        "events": len(events),
        "events_per_s": len(events) / seconds,
        "step_us": seconds / len(events) * 1e6,
        "step_us_by_event": _by_event(events, profile),
        **_replayed([evidence], profile, rounds, len(events)),
    }


def _step_through(events: list[Event], profile: Profile) -> None:
    group = Group(GROUP)
    for event in events:
        group, _ = step(group, event, profile)


def _by_event(events: list[Event], profile: Profile) -> dict[str, float]:
    """Return the middle cost of a kind of event, reading the clock included (well below 1 µs)."""
    group = Group(GROUP)
    taken: dict[str, list[int]] = defaultdict(list)
    for event in events:
        began = time.thread_time_ns()
        group, _ = step(group, event, profile)
        taken[type(event).__name__].append(time.thread_time_ns() - began)
    return {kind: median(nanos) / 1e3 for kind, nanos in sorted(taken.items())}


def _events(groups: list[Evidence], profile: Profile) -> int:
    """Count the events that a replay of some groups comes to."""
    bound = [replay(group, profile).bound for group in groups]
    others = sum(told.get(kind, 0) for told in bound for kind in ("timer_instant", "record_write"))
    return others + sum(len(group.requests) for group in groups)


def _replayed(groups: list[Evidence], profile: Profile, rounds: int, events: int) -> Json:
    """Time the replay of some groups; it must explain every answer."""
    requests = sum(len(group.requests) for group in groups)
    with collector_paused():
        results = [replay(group, profile) for group in groups]
    explained = sum(checked.explained for result in results for checked in result.checked)
    if explained != requests or any(result.violations for result in results):
        raise click.ClickException(
            f"{explained} of {requests} answers were explained, and all are sound;"
            " the figures would say nothing"
        )
    with collector_paused():
        seconds = _seconds(lambda: [replay(group, profile) for group in groups], rounds)
    return {
        "requests": requests,
        "requests_per_s": requests / seconds,
        "replayed_events_per_s": events / seconds,
        "replay_us": seconds / events * 1e6,
    }


def _seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the processor time that some work takes, the median of all rounds."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return median(taken)


def _shown(figures: Json, ratios: Json) -> str:
    rows = [("", "step: events/s", "µs/event", "replay: events/s", "µs/event", "requests/s")]
    for name, told in figures.items():
        stepped = ("", "")
        if "events" in told:
            stepped = (f"{told['events_per_s']:,.0f}", f"{told['step_us']:.1f}")
        replayed = (f"{told['replayed_events_per_s']:,.0f}", f"{told['replay_us']:.1f}")
        rows.append((name, *stepped, *replayed, f"{told['requests_per_s']:,.0f}"))
    small, big = (figures[f"{size} restarted"]["step_us_by_event"] for size in (SMALL, BIG))
    kinds = [("step, by event", f"µs at {SMALL}", f"µs at {BIG}", "ratio")]
    kinds += [
        (kind, f"{small[kind]:.1f}", f"{big[kind]:.1f}", f"{big[kind] / small[kind]:.1f}")
        for kind in small
    ]
    steps, replays = (
        " and ".join(f"{ratios[f'{what}_{life}_{BIG}_to_{SMALL}']:.1f}" for life in LIVES)
        for what in ("step", "replay")
    )
    summary = (
        f"{BIG} members against {SMALL}, {' and '.join(LIVES)}: an event costs {steps} times as "
        f"much in step, {replays} times in replay."
    )
    title = "The oracle on one core, every answer explained; medians."
    return "\n".join((title, table(rows), summary, table(kinds)))


if __name__ == "__main__":
    main()
