"""The verdict: pass, fail or unknown, with everything it rests on.

It needs three things: the comparison under the release's profile, the experiment's `expect`, and
every fault verified. fail beats unknown beats pass; a gap in the evidence never gives a pass.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reports.judgement import (
    as_json,
    doubtful,
    failed_writes,
    findings,
    no_members,
    record_size,
    unknown,
)
from reports.judgement.clients.client_rules import about_clients
from reports.judgement.coordinators.unplanned_elections import Election
from reports.judgement.counted import Counted
from reports.judgement.digest import Digest, Digester, with_total
from reports.judgement.disturbances import Disturbances
from reports.judgement.expectations import expected_verdict, unmet
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.log.processes import STATUSES
from reports.judgement.missing.gaps import (
    Gap,
    missing_log,
    unexplained,
    wrong_clocks,
    wrong_start_counts,
)
from reports.judgement.run.evidence_level import CANNOT_SEE, Level
from reports.judgement.run.machine_log import Standstill
from reports.judgement.run.run_folder import RunFolder

Json = dict[str, Any]
SHOWN = 20
"""How many rejected or missing lines a verdict quotes."""


@dataclass(frozen=True, slots=True)
class Results:
    """What verdict and page need of the tables: digests of all groups, rows of few."""

    digests: Mapping[str, Digest]
    """What is counted of each group."""
    observed: list[Json]
    """The observed rebalances of the groups that the page shows, in order of time."""
    comparison: list[Json]
    """The comparison of the groups that the page shows, and every row that is no match."""
    member_lines: list[Json]
    violations: list[Json]
    departures: list[Json]
    broken_promises: Mapping[str, Sequence[str]]
    """The promises of KIP-345 that are broken, by group."""
    bound: dict[str, dict[str, int]]
    checks: dict[str, tuple[int, int]]
    """How many responses were checked, and how many explained, by group with requests."""
    groups: dict[str, Json]
    """The rows of the table `groups`, by group with requests; `brokers` is a list."""
    line_counts: dict[str, int]
    """How many lines were used, irrelevant and rejected."""
    starts: Mapping[str, int]
    """How many starts of each broker its log shows; only brokers that have a log."""
    partitions: dict[str, int]
    """How many partitions of `__consumer_offsets` the lines of each group name."""
    gaps: list[Gap]
    standstills: Sequence[Standstill] = ()
    """When brokers stood still, proven, and by no fault of the journal."""
    ended_ms: Mapping[str, float] = field(default_factory=dict)
    """When the brokers (ids) whose logs are whole wrote their last lines."""
    tells_bytes: bool = True
    """Whether requests are logged with the bytes of metadata and assignments, not just lengths."""
    breaches: Sequence[Json] = ()
    """The rows of the table `breaches` of groups whose differences are read."""
    client_findings: Sequence[Json] = ()  # of the groups shown
    left_out: int = 0
    """How many differences, all of groups without any that is read, were not read."""
    places: LogPlaces = field(default_factory=LogPlaces)
    """Where lines stand that are shown."""
    witnesses: Mapping[str, int] | None = None
    """What was compared of brokers' logs and the tap's, where there are both, by kind."""
    elections: Sequence[str] = ()
    """Loads of offsets partitions that no log bears out, in words."""
    moved: Mapping[str, Sequence[Election]] = field(default_factory=dict)
    """The elections of groups' partitions that no fault explains."""
    altered_history: Sequence[str] = ()  # what of it is not understood, in words


def judge(run: RunFolder, data: Results, kip_848: Sequence[str], profile: str | None) -> Json:
    """Build `verdict.json`."""
    apart = list(no_members.breaches_of(run, data.digests))
    data = replace(_with_unexplained_gaps(run, data), breaches=[*data.breaches, *apart])
    disturbances = Disturbances.of_run(
        run,
        gaps=data.gaps,
        standstills=data.standstills,
        moved=data.moved,
        groups=data.groups,
        unread=_unread(run, data, kip_848),
        comparison=data.comparison,
        tells_bytes=data.tells_bytes,
        altered_history=data.altered_history,
    )
    collected = findings.collect(data.violations, data.comparison, data.member_lines, data.breaches)
    found = disturbances.judged(collected)
    proven = findings.proven_roots(found)
    counts = Counter(
        {
            (group, phase, reason): count
            for group, digest in data.digests.items()
            for (phase, reason), count in digest.begun.items()
        }
    )
    left = _unowned(run, data)
    short = unmet(run.experiment, counts, left, run.level)
    # a count proves something only where the evidence is whole, and the oracle explains it
    whole = run.completed and not (run.aborted or run.stopped or run.failures)
    open_counts = {
        *doubtful.unsure_counts(run, data.bound, kip_848),
        *(one.group for one in found if one.root is None and not one.proven),
    }
    counted = [one for one in short if one.proven and one.group in data.checks and whole]
    counted = [one for one in counted if one.group not in open_counts]
    known = Counted(run, disturbances, data.observed)
    changed = {one: by for one in counted if (by := known.changed_by(one)) is not None}
    certain = [one for one in counted if one not in changed]
    uncertain = found or any(one.group in open_counts for one in short)
    doubts = [*_doubts(run, data, kip_848, profile), *(doubtful.assumed(run) if uncertain else ())]
    doubts += dict.fromkeys(
        f"what was expected of group {one.group} is not met, but {unknown.described(by)}"
        for one, by in changed.items()
        if by.source not in unknown.LISTED_ALREADY
    )
    doubts += unknown.doubts(found)
    if run.stopped and (doubts or short):
        doubts.insert(0, "the run was stopped before its time was over")
    if proven or certain:
        verdict = "fail"
    elif doubts or found or short:
        verdict = "unknown"
    else:
        verdict = "pass"
    shown, times = unknown.first_of_each(found)
    members = Counter((one.group, one.kind) for one in run.experiment.members())
    groups = {
        name: _group(run, data, name, members) | {"unowned": left.get(name)}
        for name in _group_names(run, data)
    }
    return {
        "verdict": verdict,
        "experiment": run.experiment.name,
        "headline": _headline(groups),
        "kafka_version": run.environment["kafka_version"],
        "coordinator": run.environment["coordinator"],
        "profile": profile,
        "seed": run.environment["seed"],
        "judge": run.experiment.judge,
        "judged_as": run.judged_as,
        "foretold": expected_verdict(
            None if run.judged_as else run.experiment.expected_verdict,
            verdict,
            data.broken_promises,
            [one.group for one in proven],
            counted,
            findings.unanswered(proven),
        ),
        "broken_promises": data.broken_promises,
        "evidence_level": run.level,
        **({"cannot_see": list(CANNOT_SEE)} if run.level is Level.WIRE else {}),
        "groups": groups,
        "phases": [{"phase": name, "began_at_ms": at_ms} for name, at_ms in run.phases],
        "faults": list(run.faults),
        "findings": [
            as_json.finding(number, one, data.places, times.get(number - 1, 1))
            for number, one in enumerate(shown, 1)
        ],
        **({"findings_left_out": data.left_out} if data.left_out else {}),
        "expectations_unmet": [
            item.as_json
            | ({"because": why} if item in certain and (why := known.why(item)) else {})
            for item in short
        ],
        "unknown_because": doubts if verdict == "unknown" else [],
        **({"notes": doubts} if verdict == "fail" and doubts else {}),
        **({"unsure": list(run.outside.unsure)} if run.outside else {}),
        "counterexample": None,
        "departures": [as_json.departure(row, data.places) for row in data.departures[:SHOWN]],
        **about_clients(data.client_findings, data.digests.values(), data.places, run.busy),
        "coverage": _coverage(data),
        **({"witnesses": data.witnesses} if data.witnesses else {}),
        "disturbances": unknown.listed(run, disturbances.listed, found, changed.values()),
        "repeat_command": run.environment["repeat_command"],
    }


def _unread(run: RunFolder, data: Results, kip_848: Sequence[str]) -> Mapping[str, str]:
    """Say why nothing about some groups is proven."""
    foreign = doubtful.foreign_groups(run, data.bound)
    return {
        **dict.fromkeys(data.digests.keys() - data.checks.keys(), "no request can be read"),
        **dict.fromkeys(foreign, doubtful.DOUBTFUL["unseen_member"]),
        **dict.fromkeys(kip_848, "the KIP-848 protocol is out of scope"),
    }


def _with_unexplained_gaps(run: RunFolder, data: Results) -> Results:
    """Add the gaps of whole logs, and drop those that the run's own kills explain."""
    serving = {broker for row in data.groups.values() for broker in row["brokers"]}
    absent = [broker for broker in run.brokers if broker not in data.starts]
    if run.level is Level.WIRE:
        return replace(
            data, gaps=[*map(missing_log, absent), *unexplained(data.gaps, run, serving)]
        )
    of_logs = [
        *map(missing_log, absent),
        *wrong_start_counts(data.starts, run),
        *wrong_clocks(data.ended_ms, run),
    ]
    return replace(data, gaps=[*of_logs, *unexplained(data.gaps, run, serving)])


def _group_names(run: RunFolder, data: Results) -> list[str]:
    """List the experiment's groups in its order, then other groups in the evidence."""
    known = [group.name for group in run.experiment.workload.groups]
    others = {*run.experiment.workload.wire_scripts, *data.checks}
    return known + sorted(others - set(known))


def _doubts(
    run: RunFolder, data: Results, kip_848: Sequence[str], profile: str | None
) -> list[str]:
    """List, in words, why the verdict cannot be a pass."""
    doubts = []
    if profile is None:
        doubts.append(
            f"the oracle has no profile for Kafka {run.environment['kafka_version']}; it was "
            "replayed under the newest one"
        )
    doubts += [
        f"group {group} uses the KIP-848 protocol, which is out of scope" for group in kip_848
    ]
    doubts += [
        f"group {group}: no request of it in any broker's log"
        for group in run.experiment.group_names
        if group not in data.checks
    ]
    gaps = [gap for gap in data.gaps if gap.sure]
    doubts += [f"evidence is missing: {gap.described(data.places)}" for gap in gaps[:SHOWN]]
    if len(gaps) > SHOWN:
        doubts.append(f"evidence is missing in {len(gaps) - SHOWN} more places")
    doubts += doubtful.altered(run, data.altered_history)
    if not data.tells_bytes:
        doubts += [
            f"group {group}: {findings.LENGTH_ALONE}"
            for group in findings.possible_metadata_changes(data.comparison)
        ]
    doubts += [
        f"group {group}: lines of {count} offsets partitions"
        for group, count in data.partitions.items()
        if count > 1
    ]
    doubts += data.elections[:SHOWN]
    doubts += failed_writes.doubts(run, data.bound)
    known = [*data.bound.items(), *((name, of.clients) for name, of in data.digests.items())]
    doubts += [
        f"group {group}: {kinds[kind]} {what}"
        for kind, what in doubtful.DOUBTFUL.items()
        for group, kinds in known
        if kinds.get(kind)
    ]
    doubts += [
        f"fault {fault['name']} on {fault['target']} was not verified: "
        f"{fault['witness'] or 'it was never carried out'}"
        for fault in run.faults
        if not fault["verified"]
    ]
    doubts += [
        f"fault {fault['name']} on {fault['target']} was not put right"
        for fault in run.faults
        if fault["open"]
    ]
    doubts += [f"fault {step} never began" for step in run.never_began]
    doubts += [
        f"fault {step} was skipped, which the plan does not allow" for step in run.wrongly_skipped
    ]
    doubts += run.failures
    if not run.steady:
        doubts.append("the steady state was not met before the first fault")
    if run.aborted:
        doubts.append("the run was aborted")
    elif not (run.stopped or run.completed):
        doubts.append("the journal ends before the run did")
    if run.cut_off:
        doubts.append("the journal ends within a line: the run died, and what became of it is open")
    return doubts


def _group(run: RunFolder, data: Results, name: str, members: Mapping[Any, int]) -> Json:
    checked, explained = data.checks.get(name, (0, 0))
    digest = data.digests.get(name, Digest())
    return {
        "members_static": members[name, "static"],
        "members_dynamic": members[name, "dynamic"],
        "faults": dict(Counter(f["name"] for f in run.faults if f["group"] in (name, None))),
        "rebalances_observed": with_total(digest.observed),
        "rebalances_expected": with_total(digest.expected),
        "generations": digest.generations,
        "responses_checked": checked,
        "responses_explained": explained,
        "record_bytes": data.groups.get(name, {}).get("record_bytes"),
        "record_limit_bytes": record_size.limit_bytes(run.experiment),
        "bound": data.bound.get(name, {}),
        "clients": dict(digest.clients) if run.has_history else None,
        **({"not_on_wire": digest.not_on_wire} if run.level is Level.WIRE else {}),
    }


def _unowned(run: RunFolder, data: Results) -> dict[str, list[str]]:
    """List the partitions without an owner when the load is stopped, by group.

    Groups that never had an assignment are left out, unless the experiment expects owners in them.
    """
    left = {name: of.unowned for name, of in data.digests.items() if of.unowned is not None}
    digester = Digester.of(run)
    for owners in run.experiment.owners:
        if owners.group not in left:
            left[owners.group] = digester.unowned(owners.group, (), ())
    return left


def _headline(groups: Mapping[str, Json]) -> list[str]:
    """Write the faults of each group and the rebalances they caused, one line a group."""
    lines = []
    for name, group in groups.items():
        count = group["rebalances_observed"]["impact"]
        members = members_in_words(group["members_static"], group["members_dynamic"])
        faults = [f"{times} x {fault}" for fault, times in group["faults"].items()] or ["no fault"]
        hits = sum(group["faults"].values())
        each = f", {count / hits:.1f} per fault" if hits and count else ""
        cost = f"{', '.join(faults)}; {_counted(count, 'rebalance')}{each}"
        size = record_size.if_large(group["record_bytes"], group["record_limit_bytes"])
        lines.append(f"{name} ({members}): {cost}{size and f'; {size}'}")
    return lines


def members_in_words(static: int, dynamic: int) -> str:
    """Write how many static and dynamic members of a group its experiment lists."""
    kinds: Sequence[tuple[int, str]] = ((static, "static"), (dynamic, "dynamic"))
    listed = " and ".join(f"{number} {kind}" for number, kind in kinds if number)
    return f"{listed or 'unlisted'} {'member' if static + dynamic == 1 else 'members'}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _coverage(data: Results) -> Json:
    return {
        "lines_read": sum(data.line_counts.values()),
        **{fate: data.line_counts.get(fate, 0) for fate in STATUSES},
        "gaps": [
            {"file": file, "line": line, "what": gap.what}
            for gap in [gap for gap in data.gaps if gap.sure][:SHOWN]
            for file, line in [data.places.place(gap.broker, gap.line)]
        ],
    }


def to_json(verdict: Json) -> str:
    """Write a verdict as JSON; the same content gives the same bytes."""
    return json.dumps(verdict, indent=2, ensure_ascii=False) + "\n"
