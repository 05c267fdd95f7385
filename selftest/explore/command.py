"""`selftest explore`: every course of events of a small group, by the rules of a release."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from groupquake.console import Console, json_lines
from groupquake.exits import Exit
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.releases import NEWEST, PROFILE_NAMES, PROFILES, profile_named
from reports.judgement.collector import collector_paused
from selftest.explore.event_file import event_file
from selftest.explore.invariants import INVARIANTS
from selftest.explore.known import explanation
from selftest.explore.scopes import MIXES, Found, Scope, scopes
from selftest.explore.search import Broken

ALL = "all"


@click.command(
    epilog=f"Exit codes: 0 what breaks is known; {Exit.FAIL:d} something breaks that neither a rule"
    f" nor a page explains; {Exit.UNKNOWN:d} time ran out before that depth; {Exit.USAGE:d} bad"
    " usage.",
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
@click.option("--traces", "folder", metavar="DIR",
              type=click.Path(file_okay=False, writable=True, path_type=Path),
              help="Folder for traces: texts, and event files where clients see all.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def explore(
    names: tuple[str, ...], depth: int, members: str, faults: int, budget: float,
    folder: Path | None, *, as_json: bool,
) -> Exit:  # fmt: skip
    """Explore a small group exhaustively, by the rules of releases alone, without brokers.

    Processes join, sync, commit, fall silent, crash; timers expire in every order that their times
    allow; writes fail; brokers move the group, die, and load it. After each step the invariants of
    the protocol and of KIP-345 are checked. What breaks is printed as a trace, with the rule of the
    release that is behind it.
    """
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.UsageError(f"{folder}: no folder for traces ({error.strerror})") from error
    profiles = [_profile(name) for name in (PROFILE_NAMES if ALL in names else names)]
    console = Console()
    results = []
    for profile in profiles:
        console.progress(f"exploring {profile.name} to depth {depth}")
        with collector_paused():
            results.append(
                _Explored(profile, _explore(profile, depth, int(members), faults, budget))
            )
        if not as_json:
            Console.result(*results[-1].lines())
        if folder is not None:
            _write(folder, results[-1])
    if as_json:
        Console.result(*json_lines([each.as_dict() for each in results]))
    if any(each.is_unexplained for each in results):
        return Exit.FAIL
    in_time = all(explored.in_time for each in results for _, explored in each.found)
    return Exit.PASS if in_time else Exit.UNKNOWN


def _write(folder: Path, explored: "_Explored") -> None:
    """Write the traces of a profile, as texts and as event files."""
    settings = {"group.initial.rebalance.delay.ms": Settings().initial_rebalance_delay_ms}
    for number, each in enumerate(explored.breaks.values(), 1):
        invariant = each.broken.what.partition(":")[0]
        file = folder / f"{explored.profile.name}-{number:02}-{invariant}.txt"
        file.write_text("\n".join([each.broken.what, *each.trace, ""]), encoding="utf-8")
        steps = each.scope.trace(each.broken).steps
        if events := event_file(steps, explored.profile.name, settings):
            file.with_suffix(".jsonl").write_text(events, encoding="utf-8")


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
    found = []
    for place, scope in enumerate(chosen):
        now_s = time.process_time()
        part_s = (end_s - now_s) / (len(chosen) - place)
        found.append(Found(scope, scope.explore(depth, now_s + part_s)))
    return found


@dataclass
class _Break:
    """What breaks: where first, what explains it, and how often it does."""

    scope: Scope
    broken: Broken
    why: str
    times: int = 0

    @property
    def invariant(self) -> str:
        """The invariant in words."""
        return INVARIANTS[self.broken.what.partition(":")[0]]

    @property
    def trace(self) -> list[str]:
        """Its shortest course."""
        return list(self.scope.trace(self.broken).lines())


class _Explored:
    """What was found under a profile: each break once, with its shortest course."""

    def __init__(self, profile: Profile, found: list[Found]) -> None:
        self.profile, self.found = profile, found
        self.breaks: dict[str, _Break] = {}
        for scope, explored in found:
            for what, broken in explored.broken.items():
                times = explored.counts[what]
                if what not in self.breaks:
                    why = explanation(broken, scope)
                    self.breaks[what] = _Break(scope, broken, why)
                self.breaks[what].times += times

    @property
    def is_unexplained(self) -> bool:
        """Whether something breaks that nothing explains."""
        return any(not each.why for each in self.breaks.values())

    def lines(self) -> list[str]:
        """Return the lines of the counts, and each break with its trace."""
        lines = [f"{self.profile.name}:"]
        for scope, explored in self.found:
            in_time = "" if explored.in_time else "; time ran out"
            lines.append(
                f"  {scope.name}: {explored.states:,} states, {explored.steps:,} steps, depth"
                f" {len(explored.depths)}; {explored.left:,} states not followed{in_time}"
            )
        lines.append(f"  {len(self.breaks)} invariants break:")
        for what, each in self.breaks.items():
            lines += ["", f"{what} ({each.times:,} times)", f"  {each.invariant}."]
            lines += [f"  Behind it: {each.why or 'no rule'}. {each.scope.name}:", *each.trace]
        return [*lines, ""]

    def as_dict(self) -> dict[str, Any]:
        """Return its JSON object."""
        return {
            "profile": self.profile.name,
            "scopes": [
                {
                    "name": scope.name,
                    "states": explored.states,
                    "steps": explored.steps,
                    "depths": explored.depths,
                    "not_followed": explored.left,
                    "in_time": explored.in_time,
                }
                for scope, explored in self.found
            ],
            "breaks": [
                {
                    "what": what,
                    "times": each.times,
                    "invariant": each.invariant,
                    "explained_by": each.why or None,
                    "scope": each.scope.name,
                    "trace": each.trace,
                }
                for what, each in self.breaks.items()
            ],
        }
