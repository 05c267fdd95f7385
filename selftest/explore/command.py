"""`selftest explore`: every course of events of a small group, by the rules of a release."""

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from groupquake import folders
from groupquake.console import Console
from groupquake.exits import Exit
from kafka_protocol.releases import RELEASE
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import (
    LATEST,
    NEWEST,
    PROFILE_NAMES,
    PROFILES,
    default_coordinator,
    profile_named,
)
from reports.judgement.collector import collector_paused
from selftest.explore.coverage import recorded_pairs
from selftest.explore.invariants import INVARIANTS
from selftest.explore.known import explanation
from selftest.explore.play import Player, brokers_for, can_be_played
from selftest.explore.scopes import MIXES, Scope, scopes
from selftest.explore.search import Course, Explored
from selftest.explore.trace import Trace

Json = dict[str, Any]
Found = tuple[Scope, Explored]
"""What was explored of a scope."""
ALL = "all"


@click.command(
    epilog=f"Exit codes: 0 what breaks is known; {Exit.FAIL:d} something breaks that neither a rule"
    f" nor a page explains; {Exit.UNKNOWN:d} time ran out before that depth; {Exit.USAGE:d} bad"
    f" usage. With --play: 0 the broker does what the trace has; {Exit.FAIL:d} it does otherwise.",
)
@click.option("--profile", "names", metavar="NAME", multiple=True, default=[NEWEST.name],
              show_default=True,
              help="The rules: a release, kip-345, …, or all. May be repeated.")  # fmt: skip
@click.option("--depth", type=click.IntRange(0, 100), default=5, show_default=True,
              help="Number of actions in a row.")  # fmt: skip
@click.option("--members", type=click.Choice([str(n) for n in MIXES]), default="2",
              show_default=True,
              help="Size of the group; one instance has two processes.")  # fmt: skip
@click.option("--faults", type=click.IntRange(0, 100), default=1, show_default=True,
              help="Number of crashes, failovers, failed writes, removals in a row.")  # fmt: skip
@click.option("--budget", type=click.FloatRange(0, 86_400, min_open=True), default=60.0,
              show_default=True, help="Seconds of processor time for a profile.")  # fmt: skip
@click.option("--traces", "folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
              help="Write what breaks, and what no recorded sequence has, into files, in the"
                   " Informal Trace Format.")  # fmt: skip
@click.option("--play", "breaks", metavar="WHAT",
              help="Play what breaks, such as static_stays, or a pair of a rule and a move, on"
                   " real brokers.")  # fmt: skip
@click.option("--kafka", default=LATEST, show_default=True, help="Their release.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def explore(
    names: tuple[str, ...], depth: int, members: str, faults: int, budget: float,
    folder: Path | None, breaks: str | None, kafka: str, *, as_json: bool,
) -> Exit:  # fmt: skip
    """Explore a small group exhaustively, by the rules of releases alone, without brokers.

    Processes join, sync, commit, fall silent, crash; timers expire in every order that their times
    allow; writes fail; brokers move the group, die, and load it. After each step the invariants of
    the protocol and of KIP-345 are checked. What breaks is printed as a trace, with the rule of the
    release that is behind it.
    """
    if not RELEASE.fullmatch(kafka):
        raise click.UsageError(f"{kafka!r} is no release of Kafka, such as {LATEST}")
    profiles = [_profile(name) for name in (PROFILE_NAMES if ALL in names else names)]
    console = Console()
    results = []
    for profile in profiles:
        console.progress(f"exploring {profile.name} to depth {depth}")
        with collector_paused():
            found = _explore(profile, depth, int(members), faults, budget)
            recorded = recorded_pairs(profile)
        new = {pair: by for pair, by in _pairs(found).items() if pair not in recorded}
        for number, (what, (scope, course)) in enumerate((_first(found) | new).items(), 1):
            trace = scope.with_heartbeats(course)
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                name = f"{profile.name}-{number}-{what.partition(':')[0]}.itf.json"
                (folder / name).write_text(json.dumps(trace.itf(what), indent=1) + "\n")
            if breaks and what.startswith(breaks) and can_be_played(trace.steps):
                console.result(f"{what}, by the rules of {profile.name}")
                return _play(trace, kafka, console)
        results.append({**_as_json(profile, found), "not_recorded": [*new]})
        if not as_json:
            Console.result(*_lines(results[-1]))
    if breaks:
        raise click.UsageError(f"nothing that is found there, and can be played, begins {breaks!r}")
    if as_json:
        Console.json(results)
    if any(each["explained_by"] is None for result in results for each in result["breaks"]):
        return Exit.FAIL
    in_time = all(scope["in_time"] for result in results for scope in result["scopes"])
    return Exit.PASS if in_time else Exit.UNKNOWN


def _play(trace: Trace, kafka: str, console: Console) -> Exit:
    """Play a trace on brokers of a release; leave their logs and an event file."""
    folder, coordinator = folders.unused(Path(), f"played-{kafka}"), default_coordinator(kafka)
    with brokers_for(trace.steps, kafka, coordinator, folder / "brokers") as cluster:
        player = Player(cluster, kafka, coordinator)
        for line in player.play(trace.steps):
            console.result(line)
    (file := folder / "events.jsonl").write_text(player.events())
    did = "otherwise than" if player.differs else "what"
    console.result(f"Kafka {kafka} did {did} the trace has; `groupquake oracle replay {file}`")
    return Exit.FAIL if player.differs else Exit.PASS


def _profile(name: str) -> Profile:
    profile = PROFILES.get(name) or profile_named(name)
    if profile is None:
        raise click.UsageError(f"there is no profile {name!r}; choose one of {', '.join(PROFILES)}")
    return profile


def _explore(
    profile: Profile, depth: int, members: int, faults: int, budget_s: float
) -> list[Found]:
    """Explore all scopes; each gets an equal part of the time that is left."""
    end_s = time.process_time() + budget_s
    chosen = list(scopes(profile, members, faults))
    found: list[Found] = []
    pairs = set[str]()
    for place, scope in enumerate(chosen):
        now_s = time.process_time()
        part_s = (end_s - now_s) / (len(chosen) - place)
        found.append((scope, scope.explore(depth, now_s + part_s, pairs)))
    return found


def _first(found: Iterable[Found]) -> dict[str, tuple[Scope, Course]]:
    """Return each break with its shortest course, in the first scope that has it."""
    first: dict[str, tuple[Scope, Course]] = {}
    for scope, explored in found:
        for what, course in explored.broken.items():
            first.setdefault(what, (scope, course))
    return first


def _pairs(found: Iterable[Found]) -> dict[str, tuple[Scope, Course]]:
    """Return each pair of a move and a rule with its shortest course."""
    return {pair: (scope, by) for scope, explored in found for pair, by in explored.pairs.items()}


def _as_json(profile: Profile, found: list[Found]) -> Json:
    """Return what was found under a profile."""
    return {
        "profile": profile.name,
        "pairs": len(_pairs(found)),
        "scopes": [
            {
                "name": scope.name,
                "states": explored.states,
                "steps": explored.steps,
                "depths": explored.depths,
                "not_followed": explored.left,
                "in_time": explored.in_time,
            }
            for scope, explored in found
        ],
        "breaks": [
            {
                "what": what,
                "times": sum(explored.counts[what] for _, explored in found),
                "invariant": INVARIANTS[what.partition(":")[0]],
                "explained_by": explanation(what, course, scope) or None,
                "scope": scope.name,
                "trace": list(scope.trace(course).lines()),
            }
            for what, (scope, course) in _first(found).items()
        ],
    }


def _lines(result: Json) -> Iterator[str]:
    """Yield the lines of the counts, and each break with its trace."""
    yield f"{result['profile']}:"
    for scope in result["scopes"]:
        in_time = "" if scope["in_time"] else "; time ran out"
        yield (
            f"  {scope['name']}: {scope['states']:,} states, {scope['steps']:,} steps, depth"
            f" {len(scope['depths'])}; {scope['not_followed']:,} states not followed{in_time}"
        )
    yield f"  {result['pairs']} pairs of a move and a rule that decides it, of which"
    yield f"  {len(result['not_recorded'])} are in no recorded sequence"
    yield f"  {len(result['breaks'])} invariants break:"
    for each in result["breaks"]:
        yield from ("", f"{each['what']} ({each['times']:,} times)", f"  {each['invariant']}.")
        yield f"  Behind it: {each['explained_by'] or 'no rule'}. {each['scope']}:"
        yield from each["trace"]
    yield ""
