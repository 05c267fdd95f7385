"""The cells of a trial: the verdict of a client's run in, two verdicts for each experiment out."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from groupquake.nightly.night import WORST_FIRST
from groupquake.trial.experiments import FAILOVER, Candidate, Fired, experiment_of
from reports.judgement.clients.client_rules.client_processes import Rule
from reports.judgement.clients.client_rules.findings import CLIENT_RULES

Json = dict[str, Any]
Of = Literal["pass", "fail", "unknown", "not run", "not possible"]
Kept = Literal["kept", "broken", "not certain", "not known"]
BROKER_FAULTS = "broker."
KNOWN: Mapping[tuple[str, str], str] = {
    ("franz-go", "stops-when-fenced"): "twmb/franz-go#931",
    ("sarama", "stays-when-its-coordinator-moves"): "IBM/sarama#1231",
    ("kafkajs", "stays-when-its-coordinator-moves"): "tulios/kafkajs#1069",
}
"""A thread upstream about a finding, by client and rule."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one client did in one experiment, and what its brokers did.

    `rebalances` were observed while faults happened; they and the other costs are None where
    nothing tells of them. Each of the `findings` is as the verdict of
    the run has it, with `known` for a thread about it upstream.
    """

    experiment: str
    broker: Of = "not run"
    client: Of = "not run"
    rebalances: int | None = None
    unowned_partition_s: float | None = None
    """How long partitions had no owner, summed up over them; None where clients do not tell."""
    records_twice: int | None = None
    """Records that members processed twice; None where clients do not tell."""
    why: tuple[str, ...] = ()
    """What the brokers did against the rules, proven or not."""
    doubts: tuple[str, ...] = ()
    """What is missing or in doubt: while there is any, neither verdict is a pass."""
    findings: tuple[Json, ...] = field(default=())

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that the client broke, or may have."""
        return tuple(dict.fromkeys(one["rule"] for one in self.findings))


def cell_of(
    candidate: Candidate, name: str, verdict: Json | None, planned: Collection[Fired]
) -> Cell:
    """Return the cell of a client and an experiment.

    `verdict` is that of its run, None if it has none; `planned` are the faults of the run's plan.
    """
    mine = candidate.groups_of(name)
    if not mine:
        return Cell(name, "not possible", "not possible")
    if verdict is None:
        return Cell(name)
    findings = tuple(
        one | {"known": None if candidate.command else KNOWN.get((candidate.name, one["rule"]))}
        for one in verdict["client_findings"]
        if experiment_of_finding(one, verdict) == name
    )
    roots = [one for one in verdict["findings"] if one["root"] and one["group"] in mine]
    doubts = (
        *_missing(name, mine, verdict, planned),
        *(
            doubt
            for doubt in (*verdict["unknown_because"], *verdict.get("notes", ()))
            if _concerns(doubt, mine, verdict)
        ),
    )
    groups = [of for group in mine if (of := verdict["groups"].get(group))]
    return Cell(
        name,
        _of([one["proven"] for one in roots], doubts),
        _of(["unsure" not in one for one in findings], doubts),
        _sum(of["rebalances_observed"]["impact"] for of in groups),
        _sum(of["unowned_partition_s"] for of in groups),
        _sum((of.get("records") or {}).get("twice") for of in groups),
        tuple(f"{one['kind']}: expected {one['expected']}; {one['observed']}" for one in roots),
        doubts,
        findings,
    )


def _sum(numbers: Iterable[float | None]) -> Any:
    """Return a sum; None where one of the numbers is not known, or there is none."""
    every = [*numbers]
    return None if None in every or not every else round(sum(filter(None, every)), 3)


def _of(proven: Sequence[bool], doubts: Collection[str]) -> Of:
    """Return a verdict: `proven` says of each finding whether it is."""
    return "fail" if any(proven) else "unknown" if proven or doubts else "pass"


def _missing(
    name: str, mine: Collection[str], verdict: Json, planned: Collection[Fired]
) -> Iterator[str]:
    """Yield what an experiment was to show, and the evidence does not: groups, and faults."""
    for group in mine:
        if not verdict["groups"].get(group, {}).get("responses_checked"):
            yield f"group {group}: none of its requests is in the evidence"
    seen = Counter(
        Fired(name, fault["name"]) for fault in verdict["faults"]
        if fault["verified"] and _experiment_of_fault(fault) == name
    )  # fmt: skip
    for fired, times in Counter(planned).items():
        if fired.experiment == name and seen[fired] < times:
            yield f"{fired.fault}: {times} planned, {seen[fired]} verified"


def _experiment_of_fault(fault: Json) -> str | None:
    """Return the experiment of a fault of a verdict: a broker's is that of the coordinator."""
    if fault["name"].startswith(BROKER_FAULTS):
        return FAILOVER
    return experiment_of(fault["group"])


def experiment_of_finding(finding: Json, verdict: Json) -> str | None:
    """Return the experiment of a finding: that of its group, or the fault on a broker later on."""
    hits = [
        fault["meant_at_ms"]
        for fault in verdict["faults"]
        if fault["name"].startswith(BROKER_FAULTS)
    ]
    if any(finding["at_ms"] >= at_ms for at_ms in hits):
        return FAILOVER
    return experiment_of(finding["group"])


def _concerns(doubt: str, mine: Collection[str], verdict: Json) -> bool:
    """Whether a doubt may be about some groups: one that names only others is not."""
    words = set(re.findall(r"[\w.-]+", doubt))
    members = {fault["target"]: fault["group"] for fault in verdict["faults"]}
    named = {group for group in verdict["groups"] if group in words}
    named |= {group for target, group in members.items() if target in words and group}
    return not named or bool(named & set(mine))


def as_json(row: Cell) -> Json:
    """Return a cell as `trial.json` has it."""
    return asdict(row) | {"rules": row.rules}


def kept(rows: Collection[Cell]) -> dict[str, Kept]:
    """Return what became of each rule in the cells of a client."""
    found = [one for cell in rows for one in cell.findings]
    sure = {one["rule"] for one in found if "unsure" not in one}
    unsure = {one["rule"] for one in found}
    ran = any(cell.client not in ("not run", "not possible") for cell in rows)
    tells = any(cell.records_twice is not None for cell in rows)

    def of(rule: Rule) -> Kept:
        if rule.name in unsure:
            return "broken" if rule.name in sure else "not certain"
        return "kept" if ran and (tells or rule.about == "protocol") else "not known"

    return {name: of(rule) for name, rule in CLIENT_RULES.items()}


def worst(rows: Iterable[Collection[Cell]]) -> Of:
    """Return the worst verdict of all cells."""
    every = {of for row in rows for cell in row for of in (cell.broker, cell.client)}
    return next((of for of in WORST_FIRST if of in every), "pass")


def link(thread: str) -> str:
    """Return the address of a thread."""
    repository, _, number = thread.partition("#")
    return f"https://github.com/{repository}/issues/{number}"
