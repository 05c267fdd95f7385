"""The incident in one JSON object: what was found of groups, brokers and files, put together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from reports.incident.group_incident import STORM_REBALANCES
from reports.incident.lines.reader import IRRELEVANT, REJECTED, USED
from reports.incident.log_files import as_json, notices
from reports.incident.static_estimate import ASSUMPTIONS
from reports.incident.timing import STORM_MS
from reports.page.wording import counted, lasting, seconds

Json = dict[str, Any]
LEVEL = "coordinator"
UNKNOWN_BECAUSE = (
    "coordinator lines do not tell the requests: whether a rebalance was due cannot be judged",
)
OF_BROKERS = ("starting", "shut_down", "loaded", "unloaded", "load_failed", "write_failed")
"""The templates that are counted by broker."""


def summary(files: Sequence[Json], known: Json, rejected: Sequence[Json], time_zone: str) -> Json:
    """Return the content of `incident.json`.

    `known` is what `rows.joined` has of the lines, `rejected` the first lines that could not be
    read.
    """
    groups: Mapping[str, Json] = known["groups"]
    templates: Mapping[tuple[str, str], Json] = known["templates"]
    by_group = dict(sorted(groups.items(), key=lambda item: (-item[1]["rebalances"], item[0])))
    reasons = Counter[str]()
    for one in by_group.values():  # one count: there may be many thousands of reasons
        reasons.update(one["by_reason"])
    lines, brokers = Counter[str](), dict[str, Json]()
    for (broker, template), count in sorted((of, seen["count"]) for of, seen in templates.items()):
        lines[template] += count
        of_broker = brokers.setdefault(broker or "?", dict.fromkeys(OF_BROKERS, 0))
        if template in OF_BROKERS:
            of_broker[template] = count
    static = [one["would_be_static"] for one in by_group.values()]
    spared = sum(one["spared"] for one in static)
    idle_ms = sum(one["idle_ms"] for one in static)
    times = [at for file in files for at in (file["first_ms"], file["last_ms"]) if at is not None]
    total, found_storms = reasons.total(), sum(len(one["storms"]) for one in by_group.values())
    headline = [f"{counted(total, 'rebalance')} of {counted(len(by_group), 'group')}"]
    missing = sum(one["rebalances_missing"] for one in by_group.values())
    if missing:
        headline[0] += f", {missing:,} more that are not in the logs"
    if unread := sum(file["preparing_rejected"] for file in files):
        headline[0] += f", {unread:,} more in lines that could not be read"
    if found_storms:
        headline.append(counted(found_storms, "storm"))
    headline += [
        f"the longest took {seconds(one['took_ms'], 3)} s ({one['group']})"
        for one in known["shown"]["longest"][:1]
    ]
    headline += [
        f"{one['client']} of {one['group']} began most: {one['rebalances']}"
        for one in known["shown"]["worst_members"][:1]
        if one["rebalances"] > 1
    ]
    if spared:
        headline.append(
            f"static members would have spared about {spared} of {total}, and left partitions"
            f" without an owner for {lasting(idle_ms)} in all"
        )
    of_files = [as_json(file) for file in files]
    summed = (USED, IRRELEVANT, REJECTED, "copies")
    return {
        "verdict": "unknown",
        "evidence_level": LEVEL,
        "unknown_because": list(UNKNOWN_BECAUSE),
        "headline": headline,
        "first_ms": min(times, default=None),
        "last_ms": max(times, default=None),
        "time_zone": time_zone,
        "coverage": {
            "lines_read": sum(file["lines"] for file in of_files),
            **{name: sum(file[name] for file in of_files) for name in summed},
        },
        "notices": notices(files),
        "files": of_files,
        "rebalances": total,
        "rebalances_missing": missing,
        "rebalances_by_reason": dict(reasons.most_common()),
        "groups": by_group,
        "groups_of_other_protocols": sorted({of for file in files for of in file["others"]}),
        "storms": {"rebalances": STORM_REBALANCES, "within_ms": STORM_MS, "found": found_storms},
        **known["shown"],
        "rejected": list(rejected),
        "brokers": brokers,
        "would_be_static": {
            "rebalances": total,
            "spared": spared,
            "estimate": True,
            "assumptions": list(ASSUMPTIONS),
        },
        "lines": dict(lines.most_common()),
    }
