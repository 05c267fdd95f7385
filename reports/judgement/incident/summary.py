"""The incident in one JSON object: what was found of groups, brokers and files, put together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.judgement.incident.group_incident import GroupIncident
from reports.judgement.incident.log_files import LogFile, as_json, coverage, notices
from reports.judgement.incident.static_estimate import ASSUMPTIONS
from reports.judgement.incident.storms import STORM_MS, STORM_REBALANCES

Json = dict[str, Any]
LEVEL = "coordinator"
UNKNOWN_BECAUSE = (
    "coordinator lines do not tell the requests: whether a rebalance was due cannot be judged",
)
OF_BROKERS = ("starting", "shut_down", "loaded", "unloaded", "load_failed", "write_failed")
"""The templates that are counted by broker."""


@dataclass(frozen=True)
class Incident:
    """What was read: of all groups the by_group; of the rest, few rows.

    `templates` counts lines by broker and template. `longest` and `members` are rows of
    `group_incident.TABLES`, the worst first; `moves` and `fenced` are lines, as rows.
    """

    files: Sequence[LogFile]
    copies: Mapping[str, int]
    groups: Mapping[str, GroupIncident]
    templates: Mapping[tuple[str, str], int]
    longest: Sequence[Json]
    members: Sequence[Json]
    moves: Sequence[Json]
    fenced: Sequence[Json]
    rejected: Sequence[Json]
    time_zone: str


def summary(found: Incident) -> Json:
    """Return the content of `incident.json`."""
    by_group = dict(sorted(found.groups.items(), key=lambda item: (-_rebalances(item[1]), item[0])))
    reasons: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for one in by_group.values():
        reasons.update(one.reasons)
    for (_, template), count in found.templates.items():
        lines[template] += count
    spared = sum(one.estimate["spared"] for one in by_group.values())
    times = [at for file in found.files for at in (file.summary.first_ms, file.summary.last_ms)]
    known = [at for at in times if at is not None]
    others = sorted({group for file in found.files for group in file.summary.others})
    total = sum(reasons.values())
    all_storms = sum(len(one.storms) for one in by_group.values())
    return {
        "verdict": "unknown",
        "evidence_level": LEVEL,
        "unknown_because": list(UNKNOWN_BECAUSE),
        "headline": _headline(by_group, total, all_storms, spared),
        "first_ms": min(known, default=None),
        "last_ms": max(known, default=None),
        "time_zone": found.time_zone,
        "coverage": coverage(found.files, sum(found.copies.values())),
        "notices": notices(list(found.files), found.copies),
        "files": [as_json(file, found.copies) for file in found.files],
        "rebalances": total,
        "rebalances_by_reason": dict(reasons.most_common()),
        "groups": {name: _group(one) for name, one in by_group.items()},
        "groups_of_other_protocols": others,
        "storms": {"rebalances": STORM_REBALANCES, "within_ms": STORM_MS, "found": all_storms},
        "longest": list(found.longest),
        "worst_members": list(found.members),
        "brokers": _brokers(found.templates),
        "coordinator_moves": list(found.moves),
        "fenced": list(found.fenced),
        "would_be_static": {
            "rebalances": total,
            "spared": spared,
            "estimate": True,
            "assumptions": list(ASSUMPTIONS),
        },
        "rejected": list(found.rejected),
        "lines": dict(lines.most_common()),
    }


def _rebalances(one: GroupIncident) -> int:
    return sum(one.reasons.values())


def _headline(
    groups: Mapping[str, GroupIncident], total: int, all_storms: int, spared: int
) -> list[str]:
    found = [f"{_counted(total, 'rebalance')} of {_counted(len(groups), 'group')}"]
    if all_storms:
        found.append(_counted(all_storms, "storm"))
    if spared:
        found.append(f"static members would have spared about {spared} of {total}")
    return found


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _group(one: GroupIncident) -> Json:
    return {
        "first_ms": one.first_ms,
        "last_ms": one.last_ms,
        "rebalances": _rebalances(one),
        "by_reason": one.reasons,
        "endings": one.endings,
        "coordinators": one.moves,
        "storms": [storm._asdict() for storm in one.storms],
        "would_be_static": one.estimate,
        "lines": one.lines,
    }


def _brokers(templates: Mapping[tuple[str, str], int]) -> Json:
    found: dict[str, Json] = {}
    for (broker, template), count in sorted(templates.items()):
        of_broker = found.setdefault(broker or "?", dict.fromkeys(OF_BROKERS, 0))
        if template in OF_BROKERS:
            of_broker[template] = count
    return found
