"""What a client does with errors: the experiment that answers it each, and what its requests show.

A member is alone in its group. For each cell it starts afresh, the tap answers one request of it
with an error, and what it sends until it is closed is what it does.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from groupquake.trial.experiments import Candidate
from kafka_protocol.apis import GROUP_APIS
from kafka_protocol.errors import name_of
from kafka_protocol.log_line import NUMBERED
from kafka_protocol.tap_lines import HIT
from reports.judgement.run.history import ENDS
from scenarios import Experiment

Json = dict[str, Any]
STATIC = "FENCED_INSTANCE_ID"
"""The error that only static members get; they have a group of their own."""
_ERRORS = (
    "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
    "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "GROUP_MAX_SIZE_REACHED",
    "GROUP_AUTHORIZATION_FAILED", "UNKNOWN_SERVER_ERROR", STATIC,
)  # fmt: skip
_NEVER: Mapping[str, Sequence[str]] = {
    "JOIN_GROUP": ("ILLEGAL_GENERATION",),
    "SYNC_GROUP": ("COORDINATOR_LOAD_IN_PROGRESS", "GROUP_MAX_SIZE_REACHED"),
    "HEARTBEAT": ("COORDINATOR_LOAD_IN_PROGRESS", "GROUP_MAX_SIZE_REACHED"),
    "OFFSET_COMMIT": ("GROUP_MAX_SIZE_REACHED",),
}
CELLS: Mapping[str, Sequence[str]] = {
    api: [error for error in _ERRORS if error not in never] for api, never in _NEVER.items()
}
"""The errors of each API that brokers may answer it with, those of static members last."""
EACH_S, DOWN_S = 30, 4
"""How long a cell takes, and how long the member is down before it: it is waited for where it never
joins (`MemberEvidence.rejoined`)."""
IN_A_ROW = 5
"""How many cells a group goes through; the groups do so side by side."""
LEAST_MS = 2_000.0
"""How long a member is seen after an error, or what it does shows nothing."""
SAME_MS = 50.0
"""How far apart a line of a member and a request of it may be that are one act."""
MEMBER_LINES = ("created", "ended", *ENDS)
"""The events of a history after which a member does nothing more by itself, or anew."""


def experiment(candidate: Candidate, version: str) -> Experiment:
    """Return the run of all cells of a client; their groups go through them side by side."""
    groups, faults, longest_s = [], [], 0
    for name, cells in _groups(candidate).items():
        is_static = name == STATIC.lower()
        kind = {"kind": "static", "instance_id": f"{name}-{{n}}"} if is_static else {
            "kind": "dynamic"}  # fmt: skip
        groups.append({
            "name": name, "topics": ["orders"], "assignor": "range", "session_timeout": "6s",
            "heartbeat_interval": "700ms", "max_poll_interval": "6s", "commit_interval": "1s",
            "members": [{**kind, "count": 1}],
        })  # fmt: skip
        member, from_s = {"names": [f"{name}-{0 if is_static else 'dynamic-0'}"]}, 1
        for api, error in cells:
            lie_s, end_s = from_s + DOWN_S // 2, from_s + EACH_S
            two_steps = api == "JOIN_GROUP" and not is_static  # KIP-394
            faults += [
                {"fault": "member.restart", "target": member, "at": f"{from_s}s",
                 "down_for": f"{DOWN_S}s"},
                {"fault": "net.answer-error", "target": member, "apis": [api], "error": error,
                 "after": int(two_steps), "count": 1, "at": f"{lie_s}s",
                 "for": f"{end_s - 1 - lie_s}s"},
            ]  # fmt: skip
            from_s = end_s
        longest_s = max(longest_s, from_s)
        # doubled, so that the tap writes of each: nothing else tells of them
        faults.append({"fault": "net.duplicate", "target": member, "apis": ["FIND_COORDINATOR"],
                       "at": "0s", "for": f"{from_s}s"})  # fmt: skip
    return Experiment.model_validate({
        "name": f"errors-{candidate.name}",
        "description": "One member after the other is answered an error.",
        "cluster": {"version": version, "brokers": 1, "config": {
            "offsets.topic.num.partitions": 6, "group.initial.rebalance.delay.ms": 200}},
        "workload": {
            "topics": [{"name": "orders", "partitions": 2, "replication_factor": 1}],
            "producers": [{"topic": "orders", "rate": 20}],
            "groups": [candidate.takes_over(group) for group in groups],
        },
        "steady_state": {"within": "180s", "probes": [
            {"name": f"{one['name']} is in", "probe": "group.members", "group": one["name"],
             "tolerance": "all"} for one in groups]},
        "faults": faults,
        "phases": {"impact": f"{longest_s + 1}s", "recovery": "0s"},
    })  # fmt: skip


def _groups(candidate: Candidate) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the groups of a run, and the cells of each: API and error."""
    found = {}
    for api, errors in CELLS.items():
        cells = [(api, error) for error in errors if error != STATIC]
        for at in range(0, len(cells), IN_A_ROW):
            found[f"{api.lower().replace('_', '-')}-{at}"] = cells[at : at + IN_A_ROW]
    if candidate.has_static_members:
        found[STATIC.lower()] = [(api, STATIC) for api in CELLS]
    return found


class Sent(NamedTuple):
    """A request as the tap saw it: when it was sent, and when its line was written, in ms."""

    sent_ms: float
    at_ms: float
    client: str
    api: str
    request: Json
    error: int | None
    """What the client was answered instead of the broker's answer, if it was."""
    place: str


@dataclass(frozen=True, slots=True)
class Did:
    """What a client does with an error, in words, and the lines that show it."""

    api: str
    error: str
    does: str
    shown: tuple[str, ...] = ()


def read(folder: Path) -> list[Did]:
    """Return what a run folder shows, a row for each error that was answered, in order."""
    sent = sorted(_requests(folder), key=lambda one: one.sent_ms)
    events = [*map(json.loads, (folder / "history.jsonl").read_text("utf-8").splitlines())]
    found = []
    for lie in (one for one in sent if one.error is not None):
        ends = [
            (one["at_ms"], one["event"])
            for one in events
            if one["member"] == lie.client and one["event"] in MEMBER_LINES
            if one["at_ms"] > lie.at_ms - SAME_MS
        ]
        until_ms, end = min(ends, default=(inf, ""))
        has_ended = end in ("ended", "fenced")
        if not has_ended and until_ms - lie.at_ms < LEAST_MS:
            continue
        until_ms += SAME_MS if has_ended else -SAME_MS
        later = [
            one for one in sent if one.client == lie.client and lie.at_ms < one.sent_ms < until_ms
        ]
        does = ", ".join(_does(lie, later, ends=has_ended))
        shown = tuple(one.place for one in (lie, *later[:3]))
        found.append(Did(lie.api, name_of(lie.error or 0), does, shown))
    return found


def _does(lie: Sent, later: Sequence[Sent], *, ends: bool) -> Iterator[str]:
    """Yield in words what a client does that was answered an error."""
    joins = [one for one in later if one.api == "JOIN_GROUP"]
    before = [one for one in later if not joins or one.sent_ms < joins[0].sent_ms]
    asked = {one.api for one in before}
    if "FIND_COORDINATOR" in asked:
        yield "finds its coordinator again"
    if "LEAVE_GROUP" in asked:
        yield "leaves"
    again = next((one for one in before if one.api == lie.api), None)
    if again and lie.api == "OFFSET_COMMIT" and again.request == lie.request:
        yield "commits the same again"
    elif again and lie.api == "SYNC_GROUP":
        yield "sends it again"
    elif not joins and not ends and not asked.isdisjoint(("HEARTBEAT", "OFFSET_COMMIT")):
        yield "goes on"
    if joins:
        mine = joins[0].request.get("memberId")
        yield "joins with its id" if mine and mine == lie.request["memberId"] else "joins afresh"
    if ends:
        yield "ends"
    elif not later:
        yield "falls silent"


def _requests(folder: Path) -> Iterator[Sent]:
    """Yield what the lines of the tap tell of members' requests."""
    numbered = re.compile(NUMBERED)
    for log in sorted(folder.glob("tap/*/group.log")):
        ahead_ms: float | None = None  # of the clock that orders lines: they show whole ms
        for number, line in enumerate(log.read_text("utf-8", "replace").splitlines(), 1):
            match = numbered.match(line)
            form, colon, text = match[5].partition(":") if match else ("", "", "")
            if match is None or not text.startswith("{"):
                continue
            content = json.loads(text)
            clock_ms = int(match[3]) / 1e6
            ahead_ms = int(match[2]) - clock_ms if ahead_ms is None else ahead_ms
            header, tap = content["requestHeader"], content.get("tap", {})
            at_ms, api = clock_ms + ahead_ms, header["requestApiKeyName"]
            if api in GROUP_APIS or form + colon == HIT:
                yield Sent(
                    at_ms - content.get("totalTimeMs", 0.0), at_ms, header["clientId"], api,
                    content.get("request", {}), tap.get("errorCode"),
                    f"{log.relative_to(folder)}:{number}",
                )  # fmt: skip
