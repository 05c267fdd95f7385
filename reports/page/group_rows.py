"""The table of all groups at the top of a page: a verdict and its costs in; rows, worst first, out.

Its counts are those of the impact phase, in which faults happen.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from reports.judgement.verdict import members_in_words
from reports.page import faults
from reports.page.costs import Costs

Json = dict[str, Any]
ROWS = 300
"""How many groups are shown; `verdict.json` has all."""
WORST_FIRST = ("fail", "unknown", "pass")


def group_rows(verdict: Json, costs: Costs, shown: Sequence[str]) -> list[Json]:
    """Return the rows; `shown` are the groups that the page shows, in its order.

    `about` is the group's part of the verdict. `state` is one of WORST_FIRST, `why` says it in
    words. `hits` are the faults by noun, `due` is None where the number says nothing of who was
    right. `spared` are rebalances that static members spared at least, None where the page does
    not show the group. `change` are what a client's author should mend, each with the id of its
    place; `place` is the group's own.
    """
    by_group = {name: _by_group(verdict[name]) for name in ("findings", "client_findings")}
    unmet, rows = _by_group(verdict["expectations_unmet"]), list[Json]()
    for name, about in verdict["groups"].items():
        clients = by_group["client_findings"][name]
        roots = [one for one in by_group["findings"][name] if one["root"]]
        state, why = _state(verdict["verdict"], roots, unmet[name], clients)
        due = about["rebalances_expected"]["impact"]
        observed = about["rebalances_observed"]["impact"]
        place = f"group-{shown.index(name) + 1}" if name in shown else None
        rows.append({
            "name": name,
            "about": about,
            "members": members_in_words(about["members_static"], about["members_dynamic"]),
            "state": state,
            "why": why,
            "hits": faults.counted(faults.concerning(name, verdict["faults"])),
            "observed": observed,
            "due": due if state == "pass" or due != observed else None,
            "spared": costs.spared(name) if place else None,
            "change": {one["mend"]: f"client-{name}-{one['rule']}" for one in clients},
            "place": f"finding-{roots[0]['number']}" if roots else place,
        })  # fmt: skip
    return sorted(rows, key=_goodness)


def _goodness(row: Json) -> tuple[float, ...]:
    """Return the key by which the worst comes first."""
    stops = row["about"]["stop_the_world_ms"] or {"total": 0.0}
    idle_s = row["about"]["unowned_partition_s"] or 0.0
    return (WORST_FIRST.index(row["state"]), -row["observed"], -stops["total"], -idle_s)


def _by_group(found: Iterable[Json]) -> defaultdict[str, list[Json]]:
    by_group = defaultdict[str, list[Json]](list)
    for one in found:
        by_group[one["group"]].append(one)
    return by_group


def _state(
    verdict: str, roots: Sequence[Json], unmet: Sequence[Json], clients: Sequence[Json]
) -> tuple[str, str]:
    """Return whether a group is right, and why, in words."""
    if any(one["proven"] for one in roots):
        return "fail", "brokers broke the protocol"
    if any(one["counts"] and "unsure" not in one for one in clients):
        return "fail", "a client broke the protocol"
    if unmet and verdict == "fail":
        return "fail", "not as the experiment expects"
    if roots or unmet:
        return "unknown", "differs, which is not proven"
    if any(one["counts"] for one in clients):
        return "unknown", "a client may have broken the protocol"
    if verdict == "unknown":
        return "unknown", "no difference found"
    return "pass", "all as due" if not clients else "brokers: all as due"
