"""The verdict: pass, fail or unknown, with everything it rests on.

It needs three things: the comparison under the release's profile, the experiment's `expect`, and
every fault verified. fail beats unknown beats pass; a gap in the evidence never gives a pass.
"""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from kafka_protocol.group_record import DEFAULT_LIMIT_BYTES, LIMIT_PROPERTY
from reports.judgement import doubtful, findings, incomplete
from reports.judgement.clients.assignments import listed
from reports.judgement.clients.client_verdict import ClientVerdict, about_client
from reports.judgement.digest import Digest, Digester, with_total
from reports.judgement.disturbances import Disturbances
from reports.judgement.doubtful import AGAIN, SETTLED_BY, Doubt
from reports.judgement.expectations import (
    UNOWNED,
    Counted,
    Shortfall,
    expected_verdict,
    in_words,
    missing_members,
    unmet,
)
from reports.judgement.explained import explain
from reports.judgement.incomplete import SHOWN
from reports.judgement.log.log_places import CANNOT_SEE, Level, LogPlaces
from reports.judgement.log.split_rows import STATUSES
from reports.judgement.missing import gaps as missing
from reports.judgement.results import Results
from reports.judgement.rows import Json
from reports.judgement.run import commit_errors
from reports.judgement.run.faults import PLAN_BY_HAND
from reports.judgement.run.journal import OF_PLAN
from reports.judgement.run.run_folder import RunFolder
from scenarios import Experiment

KEPT = "kept the protocol"
LARGE = 0.1
"""The part of the largest batch from which on the headline shows the size of a group's record."""


def evaluate(run: RunFolder, data: Results, profile: str | None) -> Json:
    """Build `verdict.json`; `judged_as`, `foretold` and `came_true` are its keys of before."""
    apart = list(missing_members(run, data.digests))
    data = replace(_with_unexplained_gaps(run, data), breaches=[*data.breaches, *apart])
    disturbances = Disturbances.of_run(run, data, _unread(run, data))
    collected = findings.collect(data.violations, data.comparison, data.member_lines, data.breaches)
    found = disturbances.judged(collected)
    proven = findings.proven_roots(found)
    left = _unowned(run, data)
    short = unmet(run.experiment, data.digests, left, run.level, by_hand=run.by_hand)
    # a count proves something only where the evidence is whole, and the oracle explains it
    whole = run.completed and not (run.aborted or run.stopped or run.failures)
    open_counts = {
        *doubtful.unsure_counts(run, data.bound, data.kip_848),
        *(one.group for one in found if one.root is None and not one.proven),
    }
    checked = data.groups.keys() - open_counts if whole else ()
    counted = [one for one in short if one.proven and one.group in checked]
    known = Counted(run, disturbances, data.observed)
    changed = {one: by for one in counted if (by := known.changed_by(one)) is not None}
    certain = [one for one in counted if one not in changed]
    doubts = [*incomplete.of_evidence(run, data, profile), *incomplete.of_run(run)]
    if found or any(one.group in open_counts for one in short):
        doubts += doubtful.of_assumptions(run)
    doubts += dict.fromkeys(
        Doubt(
            f"what was expected of group {one.group} is not met, but {doubtful.described(by)}",
            SETTLED_BY[by.source],
        )
        for one, by in changed.items()
        if by.source not in doubtful.LISTED_ALREADY
    )
    doubts += doubtful.of_findings(found)
    if run.stopped and (doubts or short):
        cause = "the run was stopped before its time was over"
        doubts.insert(0, Doubt(cause, f"{AGAIN}, to its end"))
    about = [about_client(row, data.places, disturbances) for row in data.client_findings]
    lacks = next(chain(incomplete.not_whole(run, data), incomplete.cut_short(run)), None)
    clients = ClientVerdict.of(run.experiment, about, lacks and lacks.because)
    brokers = "broke the protocol" if proven else "unknown" if found or doubts else KEPT
    doubts += (
        Doubt(one, f"{AGAIN}: a finding of a quiet machine is certain") for one in clients.doubts
    )
    others_fail = bool(proven or certain)
    open_ = doubts or found or short
    verdict = "fail" if others_fail or clients.fails else "unknown" if open_ else "pass"
    because = [one.because for one in doubts]
    members = Counter((one.group, one.kind) for one in run.experiment.members())
    groups = {
        name: _group(run, data, name, members) | {"unowned": left.get(name)}
        for name in _group_names(run, data)
    }
    expected = expected_verdict(
        None if run.rules or run.by_hand else run.experiment.expected_verdict,
        verdict,
        data.broken_promises,
        [one.group for one in proven],
        counted,
        findings.unanswered(proven),
        clients_broken=clients.fails,
    )
    judged = {
        "experiment": run.experiment.name,
        "expected_verdict": expected,
        "broken_promises": data.broken_promises,
    }
    return {
        "verdict": verdict,
        **judged,
        "headline": [
            f"brokers: {brokers} · {clients.headline}",
            *_headline(groups, data.digests),
            *_by_hand(run),
        ],
        "kafka_version": run.environment["kafka_version"],
        "coordinator": run.environment["coordinator"],
        "profile": profile,
        "seed": run.environment["seed"],
        "judge": run.experiment.judge,
        "rules": run.rules,
        "judged_as": run.rules,
        "foretold": expected,
        "evidence_level": run.level,
        **({"cannot_see": list(CANNOT_SEE)} if run.level is Level.WIRE else {}),
        "groups": groups,
        "phases": [{"phase": name, "began_at_ms": at_ms} for name, at_ms in run.phases],
        "faults": [
            {name: fault[name] for name in fault if name not in OF_PLAN} for fault in run.faults
        ],
        "findings": findings.listed(
            found, data.places, partial(explain.of_finding, judged, explain.zero_ms(run))
        ),
        **({"findings_left_out": data.left_out} if data.left_out else {}),
        "expectations_unmet": [
            _unmet(judged, item, known, left, certain=item in certain) for item in short
        ],
        "unknown_because": because if verdict == "unknown" else [],
        "settled_by": [one.settled_by for one in doubts] if verdict == "unknown" else [],
        **({"notes": because} if verdict == "fail" and doubts else {}),
        **({"unsure": list(run.outside.unsure)} if run.outside else {}),
        "counterexample": None,
        "courses": {},
        "departures": [_departure(row, data.places) for row in data.departures[:SHOWN]],
        "clients": {
            "verdict": clients.verdict,
            "counts": clients.counts,
            "says": clients.says,
            "alone": clients.fails and not others_fail,
        },
        "client_findings": clients.findings,
        "client_findings_count": sum(of.rows["client_findings"] for of in data.digests.values()),
        "coverage": _coverage(data),
        **({"witnesses": data.witnesses} if data.witnesses else {}),
        "disturbances": disturbances.as_json(run, found, changed.values()),
        "repeat_command": _repeat_command(run),
    }


def _unmet(
    judged: Json,
    item: Shortfall,
    known: Counted,
    unowned: Mapping[str, Sequence[str]],
    *,
    certain: bool,
) -> Json:
    """Return an expectation that is not met, with its cause if that is `certain`, in words."""
    why = known.why(item) if certain else ""
    more = listed(unowned[item.group]) if item.what == UNOWNED else why
    entry = item.as_json | {"at_ms": known.counted_ms(item)}
    entry |= explain.of_expectation(judged, entry, more)
    return entry | ({"because": why} if why else {})


def _departure(row: Json, places: LogPlaces) -> Json:
    file, line = places.place(row["broker"], row["line"])
    return {
        "group": row["group"],
        "at_ms": round(row["at_ms"], 3),
        "request": f"{row['api']} of {row['client_id']}",
        "promised": row["expected"],
        "observed": row["observed"],
        "log": {"broker": row["broker"], "file": file, "line": line},
    }


def _unread(run: RunFolder, data: Results) -> Mapping[str, str]:
    """Say why nothing about some groups is proven."""
    foreign = doubtful.foreign_groups(run, data.bound)
    return {
        **dict.fromkeys(data.digests.keys() - data.groups.keys(), "no request can be read"),
        **dict.fromkeys(foreign, doubtful.DOUBTFUL["unseen_member"].because),
        **dict.fromkeys(data.kip_848, "the KIP-848 protocol is out of scope"),
    }


def _with_unexplained_gaps(run: RunFolder, data: Results) -> Results:
    """Add the gaps of whole logs, and drop those that the run's own kills explain."""
    absent = [broker for broker in run.brokers if broker not in data.starts]
    gaps = [missing.whole_log(broker, "the whole log is missing") for broker in absent]
    if run.level is not Level.WIRE:
        gaps += missing.wrong_start_counts(data.starts, run)
        gaps += missing.wrong_clocks(data.ended_ms, run)
    return replace(data, gaps=[*gaps, *missing.unexplained(data.gaps, run)])


def _group_names(run: RunFolder, data: Results) -> list[str]:
    """List the experiment's groups in its order, then other groups in the evidence."""
    known = [group.name for group in run.experiment.workload.groups]
    others = {*run.experiment.workload.wire_scripts, *data.groups}
    return known + sorted(others - set(known))


def _group(run: RunFolder, data: Results, name: str, members: Mapping[Any, int]) -> Json:
    row = data.groups.get(name, {})
    digest = data.digests.get(name, Digest())
    return {
        "members_static": members[name, "static"],
        "members_dynamic": members[name, "dynamic"],
        "faults": dict(Counter(f["name"] for f in run.faults if f["group"] in (name, None))),
        "rebalances_observed": with_total(digest.observed),
        "rebalances_expected": with_total(digest.expected),
        "generations": digest.generations,
        "responses_checked": row.get("requests", 0),
        "responses_explained": row.get("explained", 0),
        "record_bytes": row.get("record_bytes"),
        "record_limit_bytes": limit_bytes(run.experiment),
        "bound": data.bound.get(name, {}),
        "clients": dict(digest.clients) if run.has_history else None,
        "coordinators": data.coordinators.get(name, []),
        "commit_errors": commit_errors.listed(data.commit_errors.get(name, {})),
        "records": None if data.altered_history else digest.application,
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
            left[owners.group] = digester.unowned(owners.group)
    return left


def _headline(groups: Mapping[str, Json], digests: Mapping[str, Digest]) -> list[str]:
    """Write the faults of each group and the rebalances they caused, one line a group."""
    lines = []
    for name, group in groups.items():
        count = group["rebalances_observed"]["impact"]
        members = members_in_words(group["members_static"], group["members_dynamic"])
        faults = [f"{times} x {fault}" for fault, times in group["faults"].items()] or ["no fault"]
        hits = sum(group["faults"].values())
        caused = digests[name].by_client.total() if name in digests else 0
        each = f", {count / hits:.1f} per fault" if hits and count and not caused else ""
        each += f" (clients caused {caused} by themselves in the whole run)" if caused else ""
        cost = f"{', '.join(faults)}; {in_words(count, 'rebalance')}{each}"
        size = if_large(group["record_bytes"], group["record_limit_bytes"])
        lines.append(f"{name} ({members}): {cost}{size and f'; {size}'}")
    return lines


def _by_hand(run: RunFolder) -> Iterator[str]:
    """Say what of a run with faults by hand is not compared, and that its plan lacks them."""
    if run.by_hand:
        yield (
            f"{in_words(run.by_hand, 'fault')} by hand: numbers that the experiment expects, its"
            " expected verdict and its forecast do not hold, and are not compared"
        )


def _repeat_command(run: RunFolder) -> str:
    """Return the command that repeats a run, with what was injected by hand if its plan is there.

    It repeats no healing before its time.
    """
    command = str(run.environment["repeat_command"])
    if run.by_hand and (run.path / PLAN_BY_HAND).exists():
        command += f" --plan {shlex.quote(f'{run.place}/{PLAN_BY_HAND}')}"
    return command


def members_in_words(static: int, dynamic: int) -> str:
    """Write how many members of a group its experiment lists: none, if a script plays them."""
    kinds: Sequence[tuple[int, str]] = ((static, "static"), (dynamic, "dynamic"))
    listed = " and ".join(f"{number} {kind}" for number, kind in kinds if number)
    return f"{listed or 'scripted'} {'member' if static + dynamic == 1 else 'members'}"


def _coverage(data: Results) -> Json:
    return {
        "lines_read": sum(data.line_counts.values()),
        **{fate: data.line_counts.get(fate, 0) for fate in STATUSES},
        "gaps": [
            {"file": file, "line": line, "what": gap.cause}
            for gap in incomplete.sure(data)[:SHOWN]
            for file, line in [data.places.place(gap.broker, gap.line or 0)]
        ],
    }


def to_json(verdict: Json) -> str:
    """Write a verdict as JSON; the same content gives the same bytes."""
    return json.dumps(verdict, indent=2, ensure_ascii=False) + "\n"


def limit_bytes(experiment: Experiment) -> int | None:
    """Return the largest batch that a run's brokers take; None for a cluster of a user's."""
    if experiment.cluster.kind == "external":
        return None
    return int(experiment.cluster.config.get(LIMIT_PROPERTY, DEFAULT_LIMIT_BYTES))


def if_large(record_bytes: int | None, most_bytes: int | None) -> str:
    """Write a large record's size; of a small one, or where that is not known, write nothing."""
    if record_bytes is None or most_bytes is None or record_bytes < most_bytes * LARGE:
        return ""
    share = record_bytes / most_bytes
    return f"its record has {in_kib(record_bytes)} of at most {in_kib(most_bytes)} ({share:.0%})"


def in_kib(size: int | None) -> str:
    """Write a number of bytes as people read it: `1,024 KiB`."""
    return "not known" if size is None else f"{size / 1024:,.1f} KiB"
