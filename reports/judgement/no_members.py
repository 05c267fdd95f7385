"""Members that ended by themselves, or never came: their groups prove nothing without them."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from reports.judgement.breaches import Breach, breach
from reports.judgement.clients.ownership import DUPLICATE
from reports.judgement.digest import Digest
from reports.judgement.run.run_folder import RunFolder
from scenarios.setup import members_of

FENCES = "member.duplicate-instance"  # for its targets a fence is fatal (KIP-345): they may end
SHOWN = 5


def breaches_of(run: RunFolder, digests: Mapping[str, Digest]) -> Iterator[dict[str, Any]]:
    """Yield rows of `BREACHES` about them, none of which is proven."""
    for entry in (one for one in run.journal if one["event"] == "ended"):
        member, at_ms = entry["member"], max(0.0, min(entry["at_ms"], entry["seen_at_ms"]))
        if not _is_fenced(run, member, at_ms):
            texts = f"{member} runs until it is asked to end", f"{member}: {entry['error']}"
            place = f"history.jsonl: ended of {member} at {at_ms:.1f}"
            row = breach(Breach.ENDED, at_ms, *texts, history=place, proven=False)
            yield {"group": entry["group"], **row}
    for group in run.experiment.workload.groups:
        given = [member.name for member in members_of(group)]
        joiners = digests.get(group.name, Digest()).joiners
        came = {*(given if joiners is None else joiners)}
        absent = [name for name in given if name not in came]
        if absent and run.steady:  # before that, some may not have come yet
            others = sorted(came.difference(given, (name + DUPLICATE for name in given)))[:SHOWN]
            due = f"JoinGroup with the client.id of each member: {', '.join(absent[:SHOWN])}"
            observed = f"none; others, which nobody was given: {', '.join(others) or 'none'}"
            at_ms = next((at_ms for _, at_ms in run.phases), 0.0)
            row = breach(Breach.ABSENT, at_ms, due, observed, proven=False)
            yield {"group": group.name, **row}


def _is_fenced(run: RunFolder, member: str, at_ms: float) -> bool:
    """Whether a fault lets another process have the instance id of a member, or it is that one."""
    return any(
        fault["meant_at_ms"] <= at_ms <= (fault["healed_at_ms"] or inf)
        for fault in run.faults
        if (fault["name"], fault["target"]) == (FENCES, member.removesuffix(DUPLICATE))
    )
