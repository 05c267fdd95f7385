"""A made-up run for the page's tests: two groups, every member restarted in turn.

Plain data in the form in which Spark hands it to the driver; the verdict is the real one of it.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reports.judgement import costs, verdict
from reports.judgement.digest import Digest, Digester
from reports.judgement.explained import explain
from reports.judgement.results import Results
from reports.judgement.run.disturbance import Disturbance
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.timelines.compare import BOTH

Json = dict[str, Any]

ZERO_MS = 1_790_000_000_000.0
"""When formation began."""
IMPACT_MS = ZERO_MS + 10_000
RESTART_EVERY_MS = 5_000
DOWN_MS = 2_500
REBALANCE_MS = 900
REVOKED_MS = 100
"""How long after a rebalance began its members hear of it."""


def stop(group: str, member: str, kind: str, from_ms: float, stopped_ms: float) -> Json:
    """Return a row of `stops`."""
    return locals()


def handover(group: str, at_ms: float, moved: int, unowned_ms: float) -> Json:
    """Return a row of `handovers`."""
    return locals()


def holding(
    group: str, partition: str, member: str, from_ms: float, until_ms: float,
    ended_as: str = "open", overlap_ms: float = 0.0, overlaps: str | None = None,
) -> Json:  # fmt: skip
    """Return a row of `ownership`."""
    return locals()


def expulsion(group: str, at_ms: float, subject: str, api: str = "") -> Json:
    """Return a row of `expulsions`."""
    return locals()


def join(
    group: str, client_id: str, member_id: str, generation: int, answered_ms: float,
    *, static: bool = False,
) -> Json:  # fmt: skip
    """Return a row of `joins`."""
    return locals()


def digests_of(run: RunFolder, tables: Mapping[str, Iterable[Json]]) -> dict[str, Digest]:
    """Return what is counted of the groups of some tables."""
    by_group: dict[str, list[tuple[str, Json]]] = defaultdict(list)
    for name, rows in tables.items():
        for row in rows:
            by_group[row["group"]].append((name, row))
    found = {}
    for group, rows in by_group.items():
        *_, (_, made) = Digester.of(run).digested(group, rows)
        found[group] = Digest.from_json(made["digest"])
    return found


@dataclass
class MadeUpRun:
    """Parts to change before `finish`."""

    folder: Path
    size: int
    environment: Json = field(default_factory=dict)
    journal: list[Json] = field(default_factory=list)
    joins: list[Json] = field(default_factory=list)
    last_ms: dict[tuple[str, str], float] = field(default_factory=dict)
    comparison: list[Json] = field(default_factory=list)
    violations: list[Json] = field(default_factory=list)
    starts: dict[str, int] = field(default_factory=lambda: {"1": 1, "2": 1, "3": 1})
    gaps: list[Disturbance] = field(default_factory=list)
    kip_848: list[str] = field(default_factory=list)
    stops: list[Json] = field(default_factory=list)
    handovers: list[Json] = field(default_factory=list)
    holdings: list[Json] = field(default_factory=list)
    held: dict[tuple[str, int], Json] = field(default_factory=dict)
    """Of those the last of each partition, by group and number."""
    expulsions: list[Json] = field(default_factory=list)
    assigned: list[Json] = field(default_factory=list)
    owners: str = ""
    allowed: str = ""
    """Which rebalances of the dynamic group the experiment expects."""
    client: str = "librdkafka"
    """What the members of the dynamic group are."""
    client_findings: list[Json] = field(default_factory=list)
    client_reasons: dict[float, str] = field(default_factory=dict)
    """What clients gave as their reasons, by when rebalances began."""
    max_age: str = "300s"
    """How long clients may keep metadata."""
    session_ms: float = 10_000.0
    """The longest session of a member."""
    ran_ms: float | None = None
    """For how long all clients ran after topics grew."""

    @property
    def rows(self) -> dict[str, list[Json]]:
        """The rows of the groups that the page shows, by table."""
        heard = [
            {"group": group, "member_id": member, "last_ms": at_ms}
            for (group, member), at_ms in self.last_ms.items()
        ]
        return {
            "stops": self.stops, "handovers": self.handovers, "ownership": self.holdings,
            "expulsions": self.expulsions, "joins": self.joins, "heard": heard,
        }  # fmt: skip

    @property
    def recovery_ms(self) -> float:
        return IMPACT_MS + 3_000 + self.size * RESTART_EVERY_MS

    def finish(self) -> tuple[RunFolder, Json, Results, list[str], dict[str, list[Json]]]:
        """Write the folder and judge the run: the arguments of `page.render`."""
        names = ("environment.json", "plan.json", "experiment.yaml", "journal.jsonl")
        intents = [entry for entry in self.journal if entry["event"] == "intent"]
        plan = {"steps": [{"id": entry["fault_id"]} for entry in intents]}
        journal = "".join(json.dumps(entry) + "\n" for entry in self.journal)
        texts = (json.dumps(self.environment), json.dumps(plan), self._experiment(), journal)
        self.folder.mkdir(exist_ok=True)
        for name, text in zip(names, texts, strict=True):
            (self.folder / name).write_text(text)
        run = RunFolder(self.folder)
        data = self._collected(run)
        judged = verdict.evaluate(run, data, "4.3")
        explain.add(judged, run, {}, {}, data.places)
        costs.add(judged, None, data.digests)
        return run, judged, data, ["dynamic", "static"], self.rows

    def _experiment(self) -> str:
        group = (
            "topics: [orders], session_timeout: 10s, heartbeat_interval: 700ms,"
            f" metadata_max_age: {self.max_age}"
        )
        static = f'{{kind: static, count: {self.size}, instance_id: "static-{{n}}"}}'
        dynamic = f"{{kind: dynamic, count: {self.size}, client: {self.client}}}"
        between = f"rebalances: {{min: {max(0, 2 * self.size - 4)}, max: {2 * self.size + 2}}}"
        return f"""
name: made-up-bounce
description: Restarts every member of a static and of a dynamic group in turn.
workload:
  topics: [{{name: orders, partitions: {max(8, self.size)}}}]
  groups:
    - {{name: static, {group}, members: [{static}]}}
    - {{name: dynamic, {group}, members: [{dynamic}]}}
faults:
  - {{fault: group.bounce, target: all, group: static, at: 3s, down_for: 2s, every: 5s}}
phases: {{impact: 20s, recovery: 5s}}
expect:
  - {{group: static, phase: impact, rebalances: 0}}
  - {{group: dynamic, phase: impact, {self.allowed or between}}}
{self.owners}"""

    def _collected(self, run: RunFolder) -> Results:
        sides: dict[str, list[Json]] = {"observed": [], "expected": []}
        for row in self.comparison:
            for side, rows in sides.items():
                if row[f"{side}_started_ms"] is not None:
                    reason = self.client_reasons.get(row[f"{side}_started_ms"])
                    also = {"duration_ms": REBALANCE_MS, "client_reason": reason}
                    part = {name: row[f"{side}_{name}"] for name in BOTH}
                    rows.append({**part, "group": row["group"], **also})
        span = {
            "first_ms": ZERO_MS + 3_000, "last_ms": self.recovery_ms + 5_000, "brokers": ["1"],
            "max_rebalance_timeout_ms": 30_000.0, "max_session_timeout_ms": self.session_ms,
            "ran_ms": self.ran_ms, "record_bytes": 1_850,
        }  # fmt: skip
        wrong = len(self.violations)
        tables = {
            **sides, "comparison": self.comparison, "violations": self.violations,
            "assigned": self.assigned, "expulsions": self.expulsions, "stops": self.stops,
            "handovers": self.handovers, "client_findings": self.client_findings,
        }  # fmt: skip
        return Results(
            client_findings=self.client_findings,
            digests=digests_of(run, tables),
            observed=sides["observed"],
            comparison=self.comparison,
            violations=self.violations,
            departures=[],
            broken_promises={},
            bound={g: {"member_id": 8, "record_write": 9} for g in ("static", "dynamic")},
            groups={
                "static": {**span, "requests": 400, "explained": 400},
                "dynamic": {**span, "requests": 500, "explained": 500 - wrong},
            },
            kip_848=self.kip_848,
            line_counts={"used": 1000, "irrelevant": 200, "rejected": len(self.gaps)},
            member_lines=[],
            starts=self.starts,
            partitions={"static": 1, "dynamic": 1},
            gaps=self.gaps,
        )

    # what may happen

    def add_fault(
        self, name: str, target: str, group: str, at_ms: float, until_ms: float | None,
        *, cause: str | None = None, witness: str = "it is gone", **args: Any,
    ) -> None:  # fmt: skip
        """Inject a fault, which is healed at a time, if it is, and verified 100 ms later."""
        fault_id = f"{group}.{target}.{name}" if cause is None else f"{group}.{target}"
        of_it: Json = {"fault_id": fault_id}
        intent = {"fault": name, "cause": cause, "target": target, "group": group, "args": args}
        self.journal += [
            {"at_ms": at_ms - 1, "event": "intent", **of_it, **intent, "undo": {}},
            {"at_ms": at_ms, "event": "injected", **of_it},
        ]
        if until_ms is not None:
            how = {"healed": True, "how": "started again"}
            self.journal.append({"at_ms": until_ms, "event": "healed", **of_it, **how})
        seen_ms = (until_ms or at_ms) + 100
        seen = {"verified": True, "witness": witness}
        self.journal.append({"at_ms": seen_ms, "event": "verified", **of_it, **seen})

    def doubt_fault(self, witness: str) -> None:
        """Let one restart have no witness."""
        for entry in self.journal:
            if entry["event"] == "verified" and entry["fault_id"] == "static.static-3":
                entry.update(verified=False, witness=witness)

    def add_violation(self, request: str, at_ms: float, group: str, client: str) -> None:
        """Let an answer be one that nothing explains."""
        self.violations.append({
            "group": group, "request": request, "at_ms": at_ms, "until_ms": at_ms + 2_000,
            "rule": "answer", "searched": True,
            "expected": "error=NONE; generation=3",
            "observed": "error=UNKNOWN_MEMBER_ID; generation=-1",
            "id": request, "api": "HEARTBEAT", "client_id": client, "arrived_ms": at_ms - 2,
            "broker": "2", "file": "brokers/2/group.log", "line": 777,
        })  # fmt: skip

    def add_client_finding(
        self, client: str, *, group: str = "dynamic", said: str | None = None
    ) -> None:
        """Let a client send LeaveGroup, which is static."""
        self.client_findings.append({
            "group": group, "client_id": client, "rule": "stays-when-static",
            "at_ms": IMPACT_MS + 3_000, "what": f"{client} sent LeaveGroup", "requests": "2:59",
            "shown": said, "from_ms": IMPACT_MS + 3_000, "until_ms": IMPACT_MS + 3_100,
            "on_time": False,
        })  # fmt: skip

    def lose(self, at: int, side: str) -> None:
        """Take one side's rebalance out of the comparison."""
        row = self.comparison[at]
        row.update({f"{side}_{name}": None for name in BOTH})
        row[f"{side}_old_generation"] = None
        row["outcome"] = "missing" if side == "observed" else "unexpected"


def made_up(folder: Path, size: int = 8) -> MadeUpRun:
    """Make a run up in which everything is as it has to be."""
    made = MadeUpRun(folder, size)
    made.environment = {
        "kafka_version": "4.3.0", "coordinator": "java", "seed": 42, "broker_config": {},
        "repeat_command": "groupquake run made-up-bounce --seed 42",
    }  # fmt: skip
    made.journal = [
        {"at_ms": ZERO_MS, "event": "phase", "phase": "formation"},
        {"at_ms": IMPACT_MS - 1, "event": "steady_state", "ok": True, "probes": []},
        {"at_ms": IMPACT_MS, "event": "phase", "phase": "impact"},
    ]
    _form(made)
    for number in range(size):
        at_ms = IMPACT_MS + 3_000 + number * RESTART_EVERY_MS
        _restart_static(made, number, at_ms)
        _restart_dynamic(made, number, at_ms + 300)
    made.journal += [
        {"at_ms": made.recovery_ms, "event": "phase", "phase": "recovery"},
        {"at_ms": made.recovery_ms + 5_000, "event": "phase", "phase": "teardown"},
        {"at_ms": made.recovery_ms + 6_000, "event": "phase", "phase": "end"},
    ]
    return made


def _own(made: MadeUpRun, group: str, number: int, owner: int, from_ms: float) -> None:
    """Let a member own the partition of this number from a time on."""
    name = f"static-{owner}" if group == "static" else f"dynamic-dynamic-{owner}"
    held = holding(group, f"orders-{number}", name, from_ms, made.recovery_ms + 5_000)
    made.holdings.append(held)
    made.held[group, number] = held


def _disown(made: MadeUpRun, group: str, number: int, until_ms: float, ended_as: str) -> None:
    """End the last ownership of a partition."""
    made.held[group, number].update(until_ms=until_ms, ended_as=ended_as)


def _form(made: MadeUpRun) -> None:
    for group, name in (("static", "static-{}"), ("dynamic", "dynamic-dynamic-{}")):
        for number in range(made.size):
            _join(made, group, name.format(number), 0, 1, ZERO_MS + 5_000)
            _own(made, group, number, number, ZERO_MS + 5_000)
        made.handovers.append(handover(group, ZERO_MS + 5_000, 0, 0.0))
        _rebalance(made, group, "new_member", f"{name.format(0)}-id0", ZERO_MS + 3_000, made.size)


def _restart_static(made: MadeUpRun, number: int, at_ms: float) -> None:
    name = f"static-{number}"
    made.last_ms["static", f"{name}-id0"] = at_ms - 200
    _join(made, "static", name, 1, 1, at_ms + DOWN_MS + 80)
    _disown(made, "static", number, at_ms, "closed")
    _own(made, "static", number, number, at_ms + DOWN_MS + 80)
    made.handovers.append(handover("static", at_ms + DOWN_MS + 80, 0, DOWN_MS + 80.0))
    _fault(made, "static", name, at_ms)


def _restart_dynamic(made: MadeUpRun, number: int, at_ms: float) -> None:
    name = f"dynamic-dynamic-{number}"
    made.last_ms["dynamic", f"{name}-id0"] = at_ms
    _fault(made, "dynamic", name, at_ms)
    steps = (("leave", 0, at_ms, made.size - 1), ("new_member", 1, at_ms + DOWN_MS, made.size))
    for reason, nth, start_ms, members in steps:
        _rebalance(made, "dynamic", reason, f"{name}-id{nth}", start_ms, members)
        _hand_out(made, number, reason, start_ms)
        for other in range(made.size):
            if other != number or reason == "new_member":
                rejoined = 1 if other < number or (other == number and nth) else 0
                generation = made.comparison[-1]["observed_generation"]
                client = f"dynamic-dynamic-{other}"
                _join(made, "dynamic", client, rejoined, generation, start_ms + REBALANCE_MS)


def _hand_out(made: MadeUpRun, number: int, reason: str, start_ms: float) -> None:
    """Stop everybody but one, and give that one's partition away, or back."""
    assigned_ms, stopped_ms = start_ms + REBALANCE_MS, float(REBALANCE_MS - REVOKED_MS)
    unowned_ms = 0.0
    for other in range(made.size):
        name = f"dynamic-dynamic-{other}"
        if other != number:
            made.stops.append(stop("dynamic", name, "dynamic", start_ms + REVOKED_MS, stopped_ms))
        left = other == number and reason == "leave"
        _disown(made, "dynamic", other, start_ms + (0 if left else REVOKED_MS), "revoked")
        unowned_ms += REBALANCE_MS if left else stopped_ms
        owner = (other + 1) % made.size if left else other
        _own(made, "dynamic", other, owner, assigned_ms)
    made.handovers.append(handover("dynamic", assigned_ms, 1, unowned_ms))


def _join(
    made: MadeUpRun, group: str, client: str, nth: int, generation: int, at_ms: float
) -> None:
    member_id, static = f"{client}-id{nth}", group == "static"
    made.joins.append(join(group, client, member_id, generation, at_ms, static=static))
    made.last_ms[group, f"{client}-id{nth}"] = made.recovery_ms + 5_000


def _rebalance(
    made: MadeUpRun, group: str, reason: str, member_id: str, at_ms: float, members: int
) -> None:
    old = sum(1 for row in made.comparison if row["group"] == group)
    side = {
        "started_ms": at_ms, "joined_ms": at_ms + REBALANCE_MS - 5,
        "assigned_ms": at_ms + REBALANCE_MS, "ended_as": "assigned", "reason": reason,
        "old_generation": old, "generation": old + 1, "member_id": member_id, "leader": member_id,
        "members": members, "assigned_members": members,
        "static_members": members if group == "static" else 0,
    }  # fmt: skip
    made.comparison.append({
        "group": group, "incarnation": 1, "old_generation": old, "outcome": "match",
        "off_by_ms": 0.0, "broker": "1", "line": 10 * old + 7,
        **{f"observed_{name}": value for name, value in side.items()},
        **{f"expected_{name}": value for name, value in side.items()},
    })  # fmt: skip


def _fault(made: MadeUpRun, group: str, target: str, at_ms: float) -> None:
    witness = f"broker 1 heard nothing of {target} for {DOWN_MS} ms"
    until_ms = at_ms + DOWN_MS
    made.add_fault(
        "member.restart", target, group, at_ms, until_ms, cause="group.bounce", witness=witness
    )
