"""The incident in one JSON object: what was found of groups, brokers and files, put together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from reports.incident.group_incident import STORM_MS, STORM_REBALANCES
from reports.incident.log_files import LogFile, as_json, notices
from reports.incident.static_estimate import ASSUMPTIONS
from reports.incident.stock_lines import IRRELEVANT, REJECTED, USED
from reports.page.wording import counted

Json = dict[str, Any]
LEVEL = "coordinator"
UNKNOWN_BECAUSE = (
    "coordinator lines do not tell the requests: whether a rebalance was due cannot be judged",
)
OF_BROKERS = ("starting", "shut_down", "loaded", "unloaded", "load_failed", "write_failed")
"""The templates that are counted by broker."""


def summary(
    files: Sequence[LogFile],
    groups: Mapping[str, Json],
    templates: Mapping[tuple[str, str], int],
    shown: Mapping[str, Sequence[Json]],
    time_zone: str,
) -> Json:
    """Return the content of `incident.json`.

    `groups` has what `group_incident` tells of each, `templates` counts lines by broker and
    template, `shown` has the worst rows of tables, by their keys in `incident.json`.
    """
    by_group = dict(sorted(groups.items(), key=lambda item: (-item[1]["rebalances"], item[0])))
    reasons, lines = Counter[str](), Counter[str]()
    for one in by_group.values():
        reasons.update(one["by_reason"])
    for (_, template), count in templates.items():
        lines[template] += count
    spared = sum(one["would_be_static"]["spared"] for one in by_group.values())
    times = [at for file in files for at in (file.first_ms, file.last_ms)]
    known = [at for at in times if at is not None]
    others = sorted({group for file in files for group in file.others})
    total = sum(reasons.values())
    all_storms = sum(len(one["storms"]) for one in by_group.values())
    of_files = [as_json(file) for file in files]
    summed = (USED, IRRELEVANT, REJECTED, "copies")
    return {
        "verdict": "unknown",
        "evidence_level": LEVEL,
        "unknown_because": list(UNKNOWN_BECAUSE),
        "headline": _headline(len(by_group), total, all_storms, spared),
        "first_ms": min(known, default=None),
        "last_ms": max(known, default=None),
        "time_zone": time_zone,
        "coverage": {
            "lines_read": sum(file["lines"] for file in of_files),
            **{name: sum(file[name] for file in of_files) for name in summed},
        },
        "notices": notices(files),
        "files": of_files,
        "rebalances": total,
        "rebalances_by_reason": dict(reasons.most_common()),
        "groups": by_group,
        "groups_of_other_protocols": others,
        "storms": {"rebalances": STORM_REBALANCES, "within_ms": STORM_MS, "found": all_storms},
        **shown,
        "brokers": _brokers(templates),
        "would_be_static": {
            "rebalances": total,
            "spared": spared,
            "estimate": True,
            "assumptions": list(ASSUMPTIONS),
        },
        "lines": dict(lines.most_common()),
    }


def _headline(groups: int, total: int, all_storms: int, spared: int) -> list[str]:
    found = [f"{counted(total, 'rebalance')} of {counted(groups, 'group')}"]
    if all_storms:
        found.append(counted(all_storms, "storm"))
    if spared:
        found.append(f"static members would have spared about {spared} of {total}")
    return found


def _brokers(templates: Mapping[tuple[str, str], int]) -> Json:
    found: dict[str, Json] = {}
    for (broker, template), count in sorted(templates.items()):
        of_broker = found.setdefault(broker or "?", dict.fromkeys(OF_BROKERS, 0))
        if template in OF_BROKERS:
            of_broker[template] = count
    return found
