"""Sweeps: an experiment foreseen for each combination of values, with four kinds of members."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, get_args

import pandas as pd
from pydantic import ValidationError

from chaos.plan import make_plan
from groupquake.simulate.course import Course
from groupquake.simulate.forecast import Forecast, courses, forecast, profile_of
from groupquake.simulate.recorded import RecordedCourse
from groupquake.simulate.tally import COUNTED
from reports.judgement.run.forecast import Interval
from scenarios import Experiment, ScenarioError
from scenarios.durations import format_ms, parse_ms
from scenarios.faults import Fault
from scenarios.model import Group, Kind
from scenarios.problems import found_in, nearest
from scenarios.setup import members_of

Values = tuple[str, ...]
KINDS: Mapping[str, tuple[Kind, bool]] = {
    "static, eager": ("static", True), "static, cooperative": ("static", False),
    "dynamic, eager": ("dynamic", True), "dynamic, cooperative": ("dynamic", False),
}  # fmt: skip
"""What all members are, and whether they give up all partitions in a rebalance (KIP-429)."""
COOPERATIVE = "cooperative-sticky"
OF_KIND = ("assignor", "kind")
"""The keys that every sweep changes by itself."""
SESSION = "session_timeout"
MEASURES = {
    "rebalances": "Rebalances", "unowned_partition_s": "Partition-seconds without owner",
}  # fmt: skip
"""What is foreseen of all groups from the first fault to the end of the recovery, as `Interval`s:
columns of the table, and their words."""


@dataclass(frozen=True)
class Sweep:
    """What was foreseen: a row of `frame` is a kind of members and a combination of values.

    `quiet` says in words which session timeout keeps the schedule quiet, and for what price;
    `notes` what is not foreseen.
    """

    keys: Mapping[str, Values]
    frame: pd.DataFrame
    quiet: Sequence[str] = ()
    notes: Sequence[str] = ()

    def lines(self) -> list[str]:
        """Return the table, and what follows from it."""
        table = self.frame.map(str).to_string(index=False).split("\n")
        return [*table, *self.quiet, *(f"not foreseen: {note}" for note in self.notes)]

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; an interval as two numbers, the second may be null."""
        rows = self.frame.to_dict("records")
        return {"rows": rows, "quiet": list(self.quiet), "not_foreseen": list(self.notes)}

    @property
    def axes(self) -> list[str]:
        """The keys that have several values; of one or two of them there is a map."""
        return [key for key, values in self.keys.items() if len(values) > 1] or list(self.keys)[:1]

    def heat(self, measure: str) -> dict[str, dict[str, list[tuple[Interval, float]]]]:
        """Return a map of each kind: by the first axis a row of the values of the second.

        The most of an interval stands beside it, as a part of the most in the whole sweep.
        """
        values = [one if one.most is not None else Interval(one.least, one.least)
                  for one in self.frame[measure]]  # fmt: skip
        highest = max((one.most or 0.0 for one in values), default=0.0) or 1.0
        maps: dict[str, dict[str, list[tuple[Interval, float]]]] = {}
        first = self.axes[0]
        rows = zip(self.frame["kind"], self.frame[first], self.frame[measure], values, strict=True)
        for kind, value, shown, bounded in rows:
            row = maps.setdefault(kind, {}).setdefault(value, [])
            row.append((shown, (bounded.most or 0.0) / highest))
        return maps


class FromFirstFault(Course):
    """A course that counts from its first fault on: a formation may go on after its steady state.

    Members of a cooperative assignor join once more for what others gave up (KIP-429).
    """

    has_begun = False

    def noted(self, fault: Fault, event: str) -> None:
        """Forget what was counted before the first fault."""
        _ = fault, event
        for group in () if self.has_begun else self.groups.values():
            group.look()
            group.tally.rebalances.clear()
            group.tally.stopped_ms = group.tally.unowned_s = 0.0
        self.has_begun = True


@dataclass
class _Row:
    kind: str
    values: Values
    experiment: Experiment
    forecast: Forecast = field(init=False)

    def measured(self) -> Iterator[Interval]:
        groups = self.forecast.groups.values()
        yield _sum(group.rebalances(phase) for group in groups for phase in COUNTED)
        yield _sum(group.unowned_s for group in groups)

    @property
    def is_quiet(self) -> bool:
        """Whether it rebalances in no course, and nothing of it is left open."""
        return next(self.measured()).most == 0 and not self.forecast.notes


def sweep(
    experiment: Experiment, given: Sequence[str], seed: int, rules: str | None,
    progress: Callable[[str], None],
) -> Sweep:  # fmt: skip
    """Foresee an experiment for each combination of values; `given` are texts `KEY=VALUE,VALUE`.

    Raises ScenarioError for a key or a value that is none, before anything is foreseen.
    """
    keys = dict(_read(text) for text in given)
    if len(keys) < len(given):
        raise ScenarioError("--sweep: one key stands twice; give all of its values at once")
    found = {key: places(experiment, key) for key in keys}
    notes: dict[str, None] = {}
    rows = []
    for values in product(*keys.values()):
        changed = _changed(experiment, found, dict(zip(keys, values, strict=True)))
        for kind, (members, is_eager) in KINDS.items():
            try:
                rows.append(_Row(kind, values, of_kind(changed, members, is_eager=is_eager)))
            except ScenarioError as error:
                notes[f"{kind}: {error.args[0]}"] = None
    if not rows:
        raise ScenarioError(f"--sweep: no kind of members is possible; {next(iter(notes))}")
    for number, row in enumerate(rows, 1):
        progress(f"{number} of {len(rows)}: {row.kind}, {_described(keys, row.values)}")
        plan, profile = make_plan(row.experiment, seed), profile_of(row.experiment, rules)
        row.forecast = forecast(row.experiment, plan, profile, FromFirstFault)
        notes |= dict.fromkeys(row.forecast.notes)
    rows.sort(key=lambda row: list(KINDS).index(row.kind))
    frame = pd.DataFrame(
        [(row.kind, *row.values, *row.measured()) for row in rows],
        columns=["kind", *keys, *MEASURES],
    )
    progress("crashing a member")
    return Sweep(keys, frame, list(_quiet(keys, rows, seed, rules)), list(notes))


def _read(text: str) -> tuple[str, Values]:
    key, _, values = text.partition("=")
    read = tuple(dict.fromkeys(values.split(",")))
    if not key or not all(read):
        raise ScenarioError(
            f"--sweep {text}: not KEY=VALUE,VALUE,…; write session_timeout=6s,10s, for example"
        )
    return key, read


def places(experiment: Experiment, key: str) -> list[str]:
    """Return where a name stands in a file, as `--set` spells it; a path stands for itself."""
    document = experiment.model_dump(mode="json", by_alias=True, exclude_none=True)
    paths = list(_paths(document))
    found = [".".join(path) for path in paths if path[-1] == key]
    if key.rpartition(".")[2] in OF_KIND:
        raise ScenarioError(f"--sweep {key}: every sweep changes it by itself; name another key")
    if not found and "." not in key:
        known = dict.fromkeys(path[-1] for path in paths if not path[-1].isdecimal())
        raise ScenarioError(
            f"--sweep {key}: {experiment.name} has no such key; {nearest(key, known)}"
        )
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
        raise ScenarioError(f"--sweep {_described(values, values.values())}: {what}") from error


def of_kind(experiment: Experiment, kind: Kind, *, is_eager: bool) -> Experiment:
    """Return an experiment all of whose members are of a kind; the schedule stays.

    Raises ScenarioError where a fault is for members of the other kind alone.
    """
    document = experiment.model_dump(mode="json", by_alias=True, exclude_none=True)
    for group in document["workload"]["groups"]:
        if is_eager == (group["assignor"] == COOPERATIVE):
            group["assignor"] = "range" if is_eager else COOPERATIVE
        for place, entry in enumerate(group["members"]):
            if entry["kind"] != kind:
                entry.pop("instance_id", None)
                id_ = {"instance_id": f"{group['name']}-{place}-{{n}}"} if kind == "static" else {}
                entry |= {"kind": kind, **id_}
    groups = map(Group.model_validate, document["workload"]["groups"])
    called = [member.name for group in groups for member in members_of(group)]
    now = dict(zip(experiment.member_called, called, strict=True))
    for fault in document.get("faults", ()):
        target, names = fault.get("target"), []
        if target in get_args(Kind):
            of_group = (one for one in experiment.members() if one.group == fault["group"])
            names = [one.name for one in of_group if one.kind == target]
        elif isinstance(target, dict):
            names = target.get("names", [])
        if names:
            fault["target"] = {"names": [now[name] for name in names]}
            fault.pop("group", None)
    try:
        return Experiment.model_validate(document)
    except ValidationError as error:
        raise ScenarioError(*map(str, found_in(error, Experiment))) from error


def _quiet(
    keys: Mapping[str, Values], rows: Sequence[_Row], seed: int, rules: str | None
) -> Iterator[str]:
    """Say which is the smallest session timeout that keeps the schedule quiet, and its price."""
    names = list(keys)
    sessions = [place for place, key in enumerate(names) if key.rpartition(".")[2] == SESSION]
    if len(sessions) != 1:
        return
    at = sessions[0]
    others = [place for place, key in enumerate(names) if place != at and len(keys[key]) > 1]
    beside: dict[str, dict[str, list[_Row]]] = {}
    for row in sorted(rows, key=lambda row: parse_ms(row.values[at])):
        about = _described(
            (names[place] for place in others), (row.values[place] for place in others)
        )
        beside.setdefault(row.kind, {}).setdefault(about, []).append(row)
    never = f"no session timeout of {', '.join(keys[names[at]])} is sure to keep it quiet"
    for kind, mine in beside.items():
        if not any(row.is_quiet for of_it in mine.values() for row in of_it):
            yield f"{kind}: {never}"
            continue
        for about, of_it in mine.items():
            what = f"{kind}, {about}" if about else kind
            first = next((row for row in of_it if row.is_quiet), None)
            if first is None:
                yield f"{what}: {never}"
                continue
            idle = idle_s(first.experiment, seed, rules)
            yield (
                f"{what}: {first.values[at]} is the smallest session timeout that keeps it quiet;"
                f" the partitions of a member that crashes then lie idle for {idle} s"
            )


def idle_s(experiment: Experiment, seed: int, rules: str | None) -> Interval:
    """Return for how long the partitions of a member that is killed have no owner, in seconds.

    One member of each group is killed, the first, and stays away for two sessions.
    """
    first = {member.group: member.name for member in reversed(experiment.members())}
    kills = [
        {
            "fault": "member.kill", "at": "1s", "target": {"names": [first[group.name]]},
            "down_for": format_ms(2 * group.session_timeout_ms),
        }
        for group in experiment.workload.groups
    ]  # fmt: skip
    nothing_else = ("workload.wire_scripts=[]", "expect=[]", "verdicts=[]")
    crash = experiment.override([*nothing_else, f"faults={json.dumps(kills)}"])
    profile = profile_of(crash, rules)
    idle = [
        round(
            max(group.idle_ms(dict(one.phases)["impact"]) for group in one.groups.values()) / 1e3, 1
        )
        for one in courses(crash, make_plan(crash, seed), profile, RecordedCourse)
        if one.is_steady
    ]
    return Interval(min(idle, default=0), max(idle, default=None))


def _described(keys: Iterable[str], values: Iterable[str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))


def _sum(intervals: Iterable[Interval]) -> Interval:
    least, most = zip(*intervals, strict=True)
    bounded = [one for one in most if one is not None]
    is_open = len(bounded) < len(most)
    return Interval(round(sum(least), 1), None if is_open else round(sum(bounded), 1))
