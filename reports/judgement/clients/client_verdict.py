"""The verdict on clients, beside that on brokers.

It counts in the verdict of the run for programs of the user's own, whose findings somebody can
mend. Clients that come with groupquake are there to load brokers: theirs is shown. An experiment's
`expect: [{clients: kept | shown}]` says otherwise.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from reports.judgement.clients.client_rules.findings import CLIENT_RULES
from reports.judgement.disturbances import Disturbances
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.rows import Json
from reports.judgement.run.disturbance import Source
from scenarios import Experiment
from scenarios.clients import kind_of
from scenarios.setup import DUPLICATE

LISTED = 400  # how many findings about clients a verdict has


class ClientVerdict(NamedTuple):
    """`findings` about clients, each with whether it `counts`, and what follows from them.

    If the verdict as a whole `counts`, it is about the findings that do, else about all. `says` has
    a sentence for each rule that is broken, `whose` the clients of one group or of several.
    """

    findings: Sequence[Json]
    counts: bool
    verdict: Literal["kept", "broken", "unknown"]
    says: Sequence[str]
    whose: str = "your client"

    @classmethod
    def of(
        cls, experiment: Experiment, found: Iterable[Json], missing: str | None
    ) -> "ClientVerdict":
        """Conclude from findings as `about_client` gives them.

        `missing` says why the evidence is not whole: then no finding is certain, and none is no
        proof.
        """
        unsure = {"unsure": f"the evidence is not whole: {missing}"} if missing else {}
        findings = [
            unsure
            | _unknown(experiment, one["client"])
            | one
            | {"counts": _counts(experiment, one["group"], one["client"])}
            for one in found
        ]
        counts = any(_counts(experiment, one.group, one.name) for one in experiment.members())
        counts |= any(one["counts"] for one in findings)
        judged = [one for one in findings if one["counts"] or not counts]
        certain = any("unsure" not in one for one in judged)
        return cls(
            _first(findings),
            counts,
            "broken" if certain else "unknown" if judged or missing else "kept",
            _in_all_groups(judged),
            "your client" if len({one["group"] for one in judged}) < 2 else "your clients",
        )

    @property
    def fails(self) -> bool:
        """Whether it makes the verdict of the run a fail."""
        return self.counts and self.verdict == "broken"

    @property
    def doubts(self) -> list[str]:
        """Why it allows no pass, if it counts and no finding is certain."""
        unsure = self.counts and self.verdict == "unknown"
        return [f"{self.whose}: {one}" for one in self.says] if unsure else []

    @property
    def headline(self) -> str:
        """Its part of the headline."""
        of = self.whose if self.counts else "clients (shown, not counted)"
        return ": ".join((of, self.verdict, *self.says[:1]))


def _first(findings: Sequence[Json]) -> list[Json]:
    """Return as many as a verdict lists, in order: those that count and are certain before all."""
    order = sorted(range(len(findings)), key=lambda at: _rank(findings[at]))
    return [findings[at] for at in sorted(order[:LISTED])]


def _rank(finding: Mapping[str, Any]) -> tuple[bool, bool]:
    return not finding["counts"], "unsure" in finding


def _unknown(experiment: Experiment, client: str) -> Json:
    """Return why nothing is certain about a client.id that no member was given."""
    if client.removesuffix(DUPLICATE) in experiment.member_called:
        return {}
    return {"unsure": f"no member has the client.id {client}: what faults did to it is not known"}


def _counts(experiment: Experiment, group: str, client: str) -> bool:
    """Whether findings about a client of a group count in the verdict of the run.

    A client.id that no member was given is that of the group's programs.
    """
    if experiment.clients is not None:
        return experiment.clients == "kept"
    known = experiment.member_called.get(client.removesuffix(DUPLICATE))
    members = experiment.members_by_group.get(group, ()) if known is None else (known,)
    return any(kind_of(one.client) == "command" for one in members)


def by_rule(found: Iterable[Mapping[str, Any]]) -> Iterable[list[Mapping[str, Any]]]:
    """Return the findings of a group and a rule: those that count and are certain first."""
    of_rule: dict[tuple[str, str, bool], list[Mapping[str, Any]]] = defaultdict(list)
    for one in sorted(found, key=_rank):
        of_rule[one["group"], one["rule"], one["counts"]].append(one)
    return of_rule.values()


def _in_all_groups(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each rule that is broken, in one group or in many."""
    of_rule: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for mine in by_rule(found):
        of_rule[mine[0]["rule"]] += mine
    groups = lambda mine: len({one["group"] for one in mine})
    return [sentence(mine[0], len(mine) - 1, groups(mine)) for mine in of_rule.values()]


def sentence(finding: Mapping[str, Any], more: int = 0, groups: int = 1) -> str:
    """Write a finding: what the member did, how many more there are, and if it is certain."""
    where = f", in {groups} groups" if groups > 1 else ""
    more_of_it = f" (and {more} more{where})" if more else ""
    unsure = f" (not certain: {finding['unsure']})" if "unsure" in finding else ""
    return f"{finding['what']}{more_of_it}{unsure}"


def about_client(row: Json, places: LogPlaces, beside: Disturbances) -> Json:
    """Return a row as a verdict has it: with what its rule demands, its source, and places.

    What a disturbance may explain proves nothing: it gets the key `unsure`, which says why.
    """
    rule = CLIENT_RULES[row["rule"]]
    shown = (one.rpartition(":") for one in row["requests"].split(",") if one)
    log = [places.place(broker, int(line)) for broker, _, line in shown]
    said = [{}] * len(log) if row["shown"] is None else json.loads(row["shown"])
    return {
        "group": row["group"],
        "client": row["client_id"],
        "rule": rule.name,
        "demands": rule.demands,
        "source": rule.source,
        "at_ms": round(row["at_ms"], 3),
        "what": row["what"],
        "mend": rule.mend,
        "about": rule.about,
        "log": [
            {"file": file, "line": number, **one}
            for (file, number), one in zip(log, said, strict=True)
        ],
        **({"unsure": why} if (why := _unsure(row, beside)) else {}),
    }


def _unsure(row: Json, beside: Disturbances) -> str | None:
    """Return why a row proves nothing: no coordinator, or, where it rests on time, no CPU."""
    sources = (Source.ELECTION, Source.WRITES, *([Source.PRESSURE] if row["on_time"] else []))
    within = beside.within(row["group"], row["from_ms"], row["until_ms"], sources)
    longest = max(within, key=lambda one: one.lasted_ms, default=None)
    if longest is None:
        return None
    busy = "the machine was busy: " if longest.source is Source.PRESSURE else ""
    return busy + longest.because
