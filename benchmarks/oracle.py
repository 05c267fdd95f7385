"""The speed of the oracle alone, on one core: `python -m benchmarks.oracle`.

`step` processes one event after the other. `replay` does so for evidence, and compares every
response with the observed one. Seconds are processor time.

Groups of 5 and of 500 members are simulated. In a steady group all members join, then send
heartbeats and commits. In a restarted group all members but the leader also restart every 54 s:
two of nineteen requests are those of a static rejoin. The recorded run has many faults, and needs
search.

An event is an input of the coordinator: a request, an expired timer, or the outcome of a record
write. In the recorded run, timers count if a line of the broker shows them.
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

from benchmarks.evidence import multiply
from benchmarks.group import GROUP, RESTARTED, STEADY, SteadyGroup
from benchmarks.table import table
from reference_coordinator.classic.events import Event
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import step
from reference_coordinator.replay import Evidence, replay
from reports.judgement.collector import collector_paused
from reports.judgement.recording import Recording

Json = dict[str, Any]
SMALL, BIG = 5, 500
CYCLES = {"steady": STEADY, "restarted": RESTARTED}
FEWEST = (2 + len(RESTARTED)) * BIG
"""The requests in which the big group joins, syncs and goes through its cycle once."""


@click.command()
@click.option("--requests", default=50_000, show_default=True, help="Requests in each case.")
@click.option(
    "--rounds",
    default=3,
    show_default=True,
    help="Measurements; medians.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def main(requests: int, rounds: int, *, as_json: bool) -> None:
    """Measure the events that the oracle processes in a second."""
    if requests < FEWEST:
        raise click.UsageError(
            f"--requests: {BIG} members need at least {FEWEST} to join and complete their cycle"
        )
    figures = {"recorded run": recorded(requests, rounds)} | {
        f"{size} {kind}": _simulated(size, cycle, requests, rounds)
        for kind, cycle in CYCLES.items()
        for size in (SMALL, BIG)
    }
    ratios = {
        f"{what}_{kind}_{BIG}_to_{SMALL}": figures[f"{BIG} {kind}"][f"{what}_us"]
        / figures[f"{SMALL} {kind}"][f"{what}_us"]
        for kind in CYCLES
        for what in ("step", "replay")
    }
    click.echo(json.dumps({**figures, **ratios}, indent=2) if as_json else _shown(figures, ratios))


def recorded(requests: int, rounds: int) -> Json:
    """Replay the recorded run repeatedly."""
    with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as folder:
        multiply(0.1, Path(folder))
        recording = Recording(Path(folder))
        groups = [recording.evidence_with_faults(group) for group in recording.groups]
        profile = recording.profile
    times = max(1, round(requests / sum(len(group.requests) for group in groups)))
    return replayed(groups * times, profile, rounds, times * _events(groups, profile))


def _simulated(size: int, cycle: tuple[str, ...], requests: int, rounds: int) -> Json:
    """Step through, and replay, the events of a group of `size` static members."""
    profile = NEWEST
    simulation = SteadyGroup(size, profile, cycle)
    evidence = simulation.run_until(requests)
    events = simulation.events
    seconds = _seconds(lambda: _step_through(events, profile), rounds)
    return {
        "events": len(events),
        "events_per_s": len(events) / seconds,
        "step_us": seconds / len(events) * 1e6,
        "step_us_by_event": _by_event(events, profile),
        **replayed([evidence], profile, rounds, len(events)),
    }


def _step_through(events: list[Event], profile: Profile) -> None:
    group = Group(GROUP)
    for event in events:
        group, _ = step(group, event, profile)


def _by_event(events: list[Event], profile: Profile) -> dict[str, float]:
    """Return the median cost of each kind of event, with the clock reading (well below 1 µs)."""
    group = Group(GROUP)
    taken: dict[str, list[int]] = defaultdict(list)
    for event in events:
        began = time.thread_time_ns()
        group, _ = step(group, event, profile)
        taken[type(event).__name__].append(time.thread_time_ns() - began)
    return {kind: median(nanos) / 1e3 for kind, nanos in sorted(taken.items())}


def _events(groups: list[Evidence], profile: Profile) -> int:
    """Count the events in a replay of groups."""
    bound = [replay(group, profile).bound for group in groups]
    others = sum(
        result.get(kind, 0) for result in bound for kind in ("timer_instant", "record_write")
    )
    return others + sum(len(group.requests) for group in groups)


def replayed(groups: list[Evidence], profile: Profile, rounds: int, events: int) -> Json:
    """Time the replay of groups; it must explain every response."""
    requests = sum(len(group.requests) for group in groups)
    with collector_paused():
        results = [replay(group, profile) for group in groups]
    explained = sum(checked.explained for result in results for checked in result.checked)
    if explained != requests or any(result.violations for result in results):
        raise click.ClickException(
            f"{explained} of {requests} responses were explained;"
            " no figures are printed for a wrong result"
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
    """Return the processor time of some work, the median of all rounds."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return median(taken)


def _shown(figures: Json, ratios: Json) -> str:
    rows = [("", "step: events/s", "µs/event", "replay: events/s", "µs/event", "requests/s")]
    for name, result in figures.items():
        stepped = ("", "")
        if "events" in result:
            stepped = (f"{result['events_per_s']:,.0f}", f"{result['step_us']:.1f}")
        replayed = (f"{result['replayed_events_per_s']:,.0f}", f"{result['replay_us']:.1f}")
        rows.append((name, *stepped, *replayed, f"{result['requests_per_s']:,.0f}"))
    small, big = (figures[f"{size} restarted"]["step_us_by_event"] for size in (SMALL, BIG))
    kinds = [("step, by event", f"µs at {SMALL}", f"µs at {BIG}", "ratio")]
    kinds += [
        (kind, f"{small[kind]:.1f}", f"{big[kind]:.1f}", f"{big[kind] / small[kind]:.1f}")
        for kind in small
    ]
    steps, replays = (
        " and ".join(f"{ratios[f'{what}_{kind}_{BIG}_to_{SMALL}']:.1f}" for kind in CYCLES)
        for what in ("step", "replay")
    )
    summary = (
        f"{BIG} members against {SMALL}, {' and '.join(CYCLES)}: an event costs {steps} times as "
        f"much in step, {replays} times in replay."
    )
    title = "The oracle on one core, every response explained; medians."
    return "\n".join((title, table(rows), summary, table(kinds)))


if __name__ == "__main__":
    main()
