"""What may be broken by hand in a run: faults, their targets, their fields with fitting values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from inspect import cleandoc
from typing import Any, NamedTuple

from pydantic import ValidationError

from scenarios import Experiment
from scenarios.faults import FAULTS, Fault

Json = dict[str, Any]

SUGGESTED: Mapping[str, Sequence[Any]] = {
    "duration": ("5s", "15s", "45s", "2m", "10m"),
    "number": tuple(2**power for power in range(14)),
    "rate": ("1mbit",),
    "latency": ("500ms",),
}
"""Values that are tried for a key that has no default: by its name, or by what it holds."""
PARTITIONS = 8
"""How many partitions of a topic are offered by number."""
_APART = ("fault", "at", "when", "repeat", "target", "group", "topic", "members", "allow_empty")
"""Keys of a fault that are no fields of the form."""


class Target(NamedTuple):
    """A target of a fault: its label, what it is a part of, and its keys in a file."""

    label: str
    of: str
    keys: Json
    alike: object
    """Targets that are alike here can have the same faults."""
    may_be: "tuple[Target, ...]" = ()
    """The members that may have the role."""


def offer(experiment: Experiment, impossible: Callable[[Fault], str]) -> Json:
    """Return the faults that an experiment allows, and all targets; each fault lists its own.

    `impossible` says why the cluster cannot have a fault, or nothing.
    """
    by_kind = {hit: list(targets(experiment)) for hit, targets in _TARGETS.items()}
    places = {kind: len([*_flat(by_kind, kind)]) for kind in by_kind}
    faults = []
    for name, kind in FAULTS.items():
        hit = _hit_of(kind)
        tried: dict[object, Json | None] = {}
        fitting = []
        for place, target in enumerate(by_kind[hit], places[hit]):
            if target.alike not in tried:
                each = (*target.may_be, target)
                fits = [_values(kind, one, experiment, impossible) for one in each]
                tried[target.alike] = None if None in fits else fits[-1]
            if tried[target.alike] is not None:
                fitting.append(place)
        if values := next(filter(None, tried.values()), None):
            faults.append(
                {
                    "fault": name, "hits": kind.hits, "undo": kind.undo_words,
                    "says": " ".join(cleandoc(kind.__doc__ or "").partition("\n\n")[0].split()),
                    "fields": list(_fields(kind, values, by_kind["broker"])), "targets": fitting,
                }
            )  # fmt: skip
    every = [{"label": t.label, "of": t.of, "keys": t.keys} for of in by_kind.values() for t in of]
    one_shot = [name for name, kind in FAULTS.items() if kind.one_shot]
    return {"faults": faults, "targets": every, "one_shot": one_shot}


def _flat(by_kind: Mapping[str, Sequence[Target]], before: str) -> Iterator[Target]:
    for kind, targets in by_kind.items():
        if kind == before:
            return
        yield from targets


def _hit_of(kind: type[Fault]) -> str:
    """Return the kind of target that a fault has, by the keys of its own."""
    if "target" in kind.model_fields:
        return kind.hits
    return next((key for key in ("topic", "members", "group") if key in kind.model_fields), "all")


def _members(experiment: Experiment) -> Iterator[Target]:
    for name, members in experiment.members_by_group.items():
        of = f"Group {name}"
        for word in ("all", "static", "dynamic"):
            yield Target(f"{word} of {name}", of, {"target": word, "group": name}, (word, name))
        by_name = [
            Target(m.name, of, {"target": {"names": [m.name]}}, (m.group, m.kind, m.client))
            for m in members
        ]
        may_lead = tuple({one.alike: one for one in by_name}.values())
        leader = {"target": {"leader-member-of": name}}
        yield Target(f"leader of {name}", of, leader, ("leader", name), may_lead)
        yield from by_name


def _pairs(experiment: Experiment) -> Iterator[Target]:
    for name, members in experiment.members_by_group.items():
        static = [one.name for one in members if one.kind == "static"]
        for pair in zip(static[::2], static[1::2], strict=False):
            yield Target(" and ".join(pair), f"Group {name}", {"members": pair}, name)


def _groups(experiment: Experiment) -> Iterator[Target]:
    for group in experiment.workload.groups:
        yield Target(group.name, "Groups", {"group": group.name}, group.name)


def _topics(experiment: Experiment) -> Iterator[Target]:
    for topic in experiment.workload.topics:
        yield Target(topic.name, "Topics", {"topic": topic.name}, topic.name)


def _brokers(experiment: Experiment) -> Iterator[Target]:
    for name in experiment.group_names:
        role = {"target": {"coordinator-of": name}}
        yield Target(f"coordinator of {name}", "By role", role, "role")
    yield Target("controller", "By role", {"target": "controller"}, "role")
    for topic in experiment.workload.topics:
        for number in range(min(topic.partitions, PARTITIONS)):
            led = f"{topic.name}/{number}"
            role = {"target": {"partition-leader": led}}
            yield Target(f"leader of {led}", "By role", role, "role")
    for node in experiment.cluster.ids or ():
        yield Target(f"broker {node}", "By id", {"target": {"brokers": [node]}}, "id")


_TARGETS: Mapping[str, Callable[[Experiment], Iterator[Target]]] = {
    "member": _members,
    "members": _pairs,
    "group": _groups,
    "topic": _topics,
    "broker": _brokers,
    "all": lambda _: iter([Target("every broker", "Brokers", {}, "all")]),
}


def _values(
    kind: type[Fault], target: Target, experiment: Experiment, impossible: Callable[[Fault], str]
) -> Json | None:
    """Return values of the required fields with which a fault fits a target; None if none do."""
    schema = _schema(kind)
    names = [name for name in schema["required"] if name not in _APART]
    holds = {name: _held(name, schema["properties"][name]) for name in names}
    if None in holds.values():
        return None
    tries = {name: iter(_suggested(name, *held)) for name, held in holds.items() if held}
    at = f"{experiment.phases.impact_ms}ms"
    given = {"fault": kind.name(), "at": at, **target.keys}
    given |= {name: next(values) for name, values in tries.items()}
    while True:
        try:
            fault = kind.model_validate(given)
        except ValidationError:
            return None
        problems = [str(problem.path[0]) for problem in fault.checks(experiment, ())]
        if not problems:
            return None if impossible(fault) else given
        for name in problems:
            if name not in tries or (value := next(tries[name], None)) is None:
                return None
            given[name] = value


@cache
def _schema(kind: type[Fault]) -> Json:
    return kind.model_json_schema()


def _held(name: str, schema: Json) -> tuple[str, list[Any]] | None:
    """Return what a key holds, and its choices, if it has some; None for what no form has."""
    forms = [form for form in schema.get("anyOf", [schema]) if form.get("type") != "null"]
    form = forms[0]
    if name == "brokers":
        return "broker", []
    if "const" in form:
        return "choice", [form["const"]]
    if "enum" in form:
        return "choice", form["enum"]
    if form.get("type") == "array" and "enum" in form["items"]:
        return "choices", form["items"]["enum"]
    if form.get("type") == "string":
        return ("duration" if form.get("pattern", "").endswith("(ms|s|m|h)$") else "text"), []
    kinds = {"integer": "number", "number": "share", "boolean": "flag"}
    return (kinds[form["type"]], []) if form.get("type") in kinds else None


def _suggested(name: str, holds: str, choices: Sequence[Any]) -> Sequence[Any]:
    if holds == "choices":
        return [[choices[0]]]
    if holds == "broker":
        return ["controller"]
    return choices or SUGGESTED.get(name) or SUGGESTED[holds]


def _fields(kind: type[Fault], values: Json, brokers: Sequence[Target]) -> Iterator[Json]:
    """Yield the fields of the form: what has to be given first."""
    schema = _schema(kind)
    properties = {key: of for key, of in schema["properties"].items() if key not in _APART}
    for name in sorted(properties, key=lambda one: one not in schema["required"]):
        of, required = properties[name], name in schema["required"]
        if (held := _held(name, of)) is None or not (required or name != "every"):
            continue
        holds, choices = held
        options = [{"label": str(one), "value": one} for one in choices]
        if holds == "broker":
            options = [{"label": one.label, "value": one.keys["target"]} for one in brokers]
        yield {
            "name": name, "holds": holds, "required": required, "options": options,
            "value": values.get(name), "says": " ".join(of.get("description", "").split()),
        }  # fmt: skip
