"""Sweeps: an experiment foreseen for each combination of values, with four kinds of members."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from chaos.plan import make_plan
from groupquake.simulate.course import Course
from groupquake.simulate.forecast import courses, foresee, profile_of
from groupquake.simulate.tally import COUNTED
from reports.judgement.run.forecast import Interval
from scenarios import Experiment, ScenarioError
from scenarios.durations import format_ms, parse_ms
from scenarios.model import Kind
from scenarios.problems import nearest

Values = tuple[str, ...]
KINDS: tuple[Kind, ...] = ("static", "dynamic")
PROTOCOLS = {"eager": "range", "cooperative": "cooperative-sticky"}
"""How members rebalance (KIP-429), and the assignor for that where the file has another."""
SESSION = "session_timeout"


class Sweep(NamedTuple):
    """What was foreseen: a row of `frame` is a kind of members and a combination of values.

    Its costs are `Interval`s of all groups, from the first fault to the end of the recovery.
    `axes` are the keys of several values; `said` tells what follows, and what is not foreseen.
    """

    axes: Sequence[str]
    frame: pd.DataFrame
    said: Sequence[str]


class CountedCourse(Course):
    """A course that counts from its first fault on, with members all of a kind.

    A formation may go on after the steady state: members of a cooperative assignor join once more
    for what others gave up (KIP-429).
    """

    has_begun = False

    def __init__(self, *given: Any, kind: Kind) -> None:
        super().__init__(*given)
        for group in self.groups.values():
            group.instances = {name: name if kind == "static" else None for name in group.specs}

    def noted(self, *_: object) -> None:
        """Forget what was counted before the first fault."""
        for group in () if self.has_begun else self.groups.values():
            group.look()
            group.tally.forget()
        self.has_begun = True


class _Row(NamedTuple):
    name: str
    kind: Kind
    values: Mapping[str, str]
    experiment: Experiment


def sweep(
    experiment: Experiment, given: Sequence[str], seed: int, rules: str | None,
    progress: Callable[[str], None],
) -> Sweep:  # fmt: skip
    """Foresee an experiment for each combination of values; `given` are texts `KEY=VALUE,VALUE`.

    Raises ScenarioError for a key or a value that is none, before anything is foreseen.
    """
    keys = dict(map(_read, given))
    if len(keys) < len(given):
        raise ScenarioError("--sweep: one key stands twice; give all of its values at once")
    found = {key: places(experiment, key) for key in keys}
    combined = [dict(zip(keys, values, strict=True)) for values in product(*keys.values())]
    made = [(values, _changed(experiment, found, values)) for values in combined]
    rows = [
        _Row(f"{kind}, {protocol}", kind, values, _rebalancing(changed, protocol))
        for kind, protocol in product(KINDS, PROTOCOLS)
        for values, changed in made
    ]
    frame, still, notes = [], [], dict[str, None]()
    for number, row in enumerate(rows, 1):
        progress(f"{number} of {len(rows)}: {row.name}, {_described(row.values)}")
        plan, of_kind = make_plan(row.experiment, seed), partial(CountedCourse, kind=row.kind)
        one = foresee(row.experiment, plan, rules, of_kind)
        rebalances = _sum(of.rebalances(phase) for of in one.groups.values() for phase in COUNTED)
        unowned = _sum(of.unowned_s for of in one.groups.values())
        costs = {"rebalances": rebalances, "unowned_partition_s": unowned}
        frame.append({"kind": row.name, **row.values, **costs})
        still.append(rebalances == (0, 0) and not one.notes)
        notes |= dict.fromkeys(f"not foreseen: {note}" for note in one.notes)
    axes = [key for key in keys if len(keys[key]) > 1] or list(keys)[:1]
    return Sweep(axes, pd.DataFrame(frame), [*_quiet(rows, still, axes, seed, rules), *notes])


def _read(text: str) -> tuple[str, Values]:
    key, _, values = text.partition("=")
    read = tuple(dict.fromkeys(values.split(",")))
    if not key or not all(read):
        example = "write session_timeout=6s,10s, for example"
        raise ScenarioError(f"--sweep {text}: not KEY=VALUE,VALUE,…; {example}")
    return key, read


def places(experiment: Experiment, key: str) -> list[str]:
    """Return where a name stands in a file, as `--set` spells it; a path stands for itself."""
    paths = [*_paths(experiment.model_dump(mode="json", by_alias=True, exclude_none=True))]
    found = [".".join(path) for path in paths if path[-1] == key]
    if key.rpartition(".")[2] == "assignor":
        raise ScenarioError(f"--sweep {key}: every sweep changes it by itself; name another key")
    if not found and "." not in key:
        known = dict.fromkeys(path[-1] for path in paths if not path[-1].isdecimal())
        advice = nearest(key, known)
        raise ScenarioError(f"--sweep {key}: {experiment.name} has no such key; {advice}")
    return found or [key]


def _paths(node: Any, path: Values = ()) -> Iterator[Values]:
    inside = dict(enumerate(node)) if isinstance(node, list) else node
    for key, inner in inside.items() if isinstance(inside, dict) else ():
        yield (*path, str(key))
        yield from _paths(inner, (*path, str(key)))


def _changed(
    experiment: Experiment, found: Mapping[str, Sequence[str]], values: Mapping[str, str]
) -> Experiment:
    changes = [f"{place}={value}" for key, value in values.items() for place in found[key]]
    try:
        return experiment.override(changes)
    except ScenarioError as error:
        what = error.args[0].partition(": ")[2]  # behind the assignments that caused it
        raise ScenarioError(f"--sweep {_described(values)}: {what}") from error


def _rebalancing(experiment: Experiment, protocol: str) -> Experiment:
    """Return an experiment all of whose groups rebalance by a protocol."""
    cooperative = PROTOCOLS["cooperative"]
    return experiment.override([
        f"workload.groups.{number}.assignor={PROTOCOLS[protocol]}"
        for number, group in enumerate(experiment.workload.groups)
        if (group.assignor == cooperative) != (protocol == "cooperative")
    ])  # fmt: skip


def _quiet(
    rows: Sequence[_Row], still: Sequence[bool], axes: Sequence[str], seed: int, rules: str | None
) -> Iterator[str]:
    """Say which is the smallest session timeout that keeps the schedule quiet, and its price."""
    sessions = [key for key in rows[0].values if key.rpartition(".")[2] == SESSION]
    beside: dict[str, list[_Row]] = {}
    for row, is_still in zip(rows, still, strict=True):
        others = {key: row.values[key] for key in axes if key not in sessions}
        mine = beside.setdefault(", ".join(filter(None, (row.name, _described(others)))), [])
        mine += [row] if is_still else []
    for about, mine in beside.items() if len(sessions) == 1 else ():
        if not mine:
            yield f"{about}: no session timeout of the sweep is sure to keep it quiet"
            continue
        first = min(mine, key=lambda row: parse_ms(row.values[sessions[0]]))
        idle = idle_s(first.experiment, first.kind, seed, rules)
        yield (
            f"{about}: {first.values[sessions[0]]} is the smallest session timeout that keeps it"
            f" quiet; the partitions of a member that crashes then lie idle for {idle} s"
        )


def idle_s(experiment: Experiment, kind: Kind, seed: int, rules: str | None) -> Interval:
    """Return for how long the partitions of a member that is killed have no owner, in seconds.

    One member of each group is killed, the first, and stays away for two sessions.
    """
    first = {member.group: member.name for member in reversed(experiment.members())}
    kills = [
        {"fault": "member.kill", "at": "1s", "target": {"names": [first[group.name]]},
         "down_for": format_ms(2 * group.session_timeout_ms)}
        for group in experiment.workload.groups
    ]  # fmt: skip
    nothing_else = ("workload.wire_scripts=[]", "expect=[]", "verdicts=[]")
    crash = experiment.override([*nothing_else, f"faults={json.dumps(kills)}"])
    plan, profile = make_plan(crash, seed), profile_of(crash, rules)
    drawn = courses(crash, plan, profile, partial(CountedCourse, kind=kind))
    idle = [max(group.tally.idle_ms for group in one.groups.values()) for one in drawn]
    return Interval(round(min(idle) / 1_000, 1), round(max(idle) / 1_000, 1))


def _described(values: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())


def _sum(intervals: Iterator[Interval]) -> Interval:
    least, most = zip(*intervals, strict=True)
    return Interval(round(sum(least), 1), None if None in most else round(sum(most), 1))
