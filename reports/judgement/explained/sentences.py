"""Three sentences about a finding, for a reader who was not there.

What was done, what should have happened by which rule, and what happened instead. They are made of
the row that shows the finding; times are seconds since the impact began.
"""

import re
from collections.abc import Sequence
from operator import itemgetter

from reference_coordinator.replay import ObservedRequest
from reports.judgement.explained.course import ACTS
from reports.judgement.findings import Finding
from reports.judgement.reasons import LINES, REASONS
from reports.judgement.rows import Row
from reports.timing import SAME_MOMENT_MS

Said = tuple[str, str]
"""What was due, and what was observed."""
_ID = re.compile(r"(-?[0-9a-f]{4})[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|-\?[\w:.]+")
"""What is random in a member id, behind the member's name, or stands for it."""
_API = re.compile(r"\b(?:[A-Z]+_)?(?:GROUPS?|COMMIT|FETCH)\b|\bHEARTBEAT\b")
CLAUSES = {"error": "error", "member_id": "the member id", "generation": "generation",
           "protocol": "protocol", "leader": "the leader"}  # fmt: skip
"""What an answer says, in words, by the names that the oracle has."""
WORDS = ("broker ", "the ", "each ", "no ", "there ", "this ")
"""What clauses begin with that are not names."""
FEW = 3  # how many of the last acts a sentence names
ANSWERS = ("wrong_answer", "answered_early", "answered_late", "unexplained")
"""The kinds of findings that are about the answer to the last request before them."""
SILENT_MS = 3_500.0
"""A member whose last request is older than that at a finding is said to be silent: longer than
the heartbeat interval that Kafka has by default (3 s)."""


def plain(text: str) -> str:
    """Write a text with short member ids, and APIs as Kafka's documentation has them."""
    return _API.sub(lambda match: api_name(match[0]), _ID.sub(r"\1", text))


def api_name(api: str) -> str:
    """Write the name of an API: `JoinGroup` for `JOIN_GROUP`."""
    return "".join(part.capitalize() for part in api.split("_"))


def when(at_ms: float, zero_ms: float) -> str:
    """Write a time relative to the begin of the impact."""
    seconds = (at_ms - zero_ms) / 1000
    return f"at {seconds:.1f} s" if seconds >= 0 else f"{-seconds:.1f} s before the impact"


def says(one: Finding, rule: str, zero_ms: float) -> dict[str, str]:
    """Return what was due by a rule, and what was observed, a sentence each."""
    return _by_rule(*_said(one, zero_ms), rule)


def of_number(item: Row, rule: str, more: str) -> dict[str, str]:
    """Return what number an experiment expects, by a rule, and what it was; `more` explains it."""
    phase = {"total": "in the whole run", "the end": "at the end"}
    where = phase.get(item["phase"], f"in the {item['phase']}")
    number = f"the number of {item['what']} of {item['group']} {where}"
    observed = f"{number} was {item['observed']}{f': {more}' if more else ''}"
    return _by_rule(f"{number} had to be {item['expected']}", observed, rule)


def _by_rule(due: str, observed: str, rule: str) -> dict[str, str]:
    by = f", by this rule: {rule.rstrip('.')}"
    return {"due": sentence(due + by), "observed": sentence(observed)}


def sentence(text: str) -> str:
    """Write a clause as a sentence; a member's name begins as it does."""
    shown = plain(text)
    return f"{shown[:1].upper() if shown.startswith(WORDS) else shown[:1]}{shown[1:]}."


def _said(one: Finding, zero_ms: float) -> Said:
    """Return what was due, and what was observed, as clauses without a full stop."""
    row, at = one.row, when(one.at_ms, zero_ms)
    broker = f"broker {one.broker}" if one.broker else "the brokers"
    if "api" in row:
        return _of_answer(row, broker, at)
    if "observed_started_ms" in row:
        return _of_rebalance(one, broker, zero_ms)
    if "due_ms" in row:
        return _of_line(row, broker, zero_ms)
    return one.expected, f"{one.observed} ({at})"


def _of_line(row: Row, broker: str, zero_ms: float) -> Said:
    about, wrong = row["subject"] or "", ""
    if row["outcome"] == "wrong_line":
        about, _, wrong = about.rpartition(": ")
    what = f"that {LINES[row['kind']]}{f' ({about})' if about else ''}"
    what += f" (line {row['nth']} of its kind)" if row["nth"] > 1 else ""
    if row["due_ms"] is None:
        written = when(row["at_ms"], zero_ms)
        return f"{broker} had no reason to log {what}", f"{broker} logged {what} {written}"
    due = f"{broker} had to log {what} {when(row['due_ms'], zero_ms)}"
    if row["at_ms"] is None:
        return due, f"{broker} did not log {what}"
    said = f", with {wrong}" if wrong else ""
    return due, f"{broker} logged {what} {when(row['at_ms'], zero_ms)}{said}"


def _of_answer(row: Row, broker: str, at: str) -> Said:
    sides = answer_in_words(row["expected"], row["observed"])
    if sides is None:
        return row["expected"], f"{broker}, {at}: {row['observed']}"
    asked = f"the {api_name(row['api'])} of {row['client_id']}"
    return f"{broker} had to answer {asked} with {sides[0]}", f"{broker} answered {sides[1]} {at}"


def answer_in_words(expected: str, observed: str) -> Said | None:
    """Return in what an answer differs from the one that was due, on both sides.

    None where its fields are not compared: it came at a wrong time. Another error says all.
    """
    fields = lambda text: dict(part.partition("=")[::2] for part in text.split("; "))
    sides = fields(expected), fields(observed)
    if not all("error" in side for side in sides):
        return None
    names = [name for name in sides[0] if sides[0][name] != sides[1].get(name)]
    names = ["error"] if "error" in names else names
    due, seen = (", ".join(_clause(name, side.get(name, "")) for name in names) for side in sides)
    return due, seen


def _clause(name: str, value: str) -> str:
    if name == "error":
        return "no error (NONE)" if value == "NONE" else value
    return f"{CLAUSES.get(name, name)} {value or 'none'}"


def _of_rebalance(one: Finding, broker: str, zero_ms: float) -> Said:
    row, group = one.row, one.group
    due_ms, began_ms = row["expected_started_ms"], row["observed_started_ms"]
    due, seen = (_rebalance(row, side, group) for side in ("expected", "observed"))
    at = when(one.at_ms if began_ms is None else began_ms, zero_ms)
    if due_ms is None:
        return f"no rebalance of {group} was due {at}", f"{broker} began {seen} {at}"
    if began_ms is None:
        stays = f"no rebalance began, and {group} stayed in generation"
        observed = f"{stays} {row['expected_old_generation']}"
        if row["observed_joined_ms"] is not None:
            observed = "no line says that it began, though its join phase ended"
        return f"{broker} had to begin {due} {when(due_ms, zero_ms)}", observed
    outcome = row["outcome"]
    if outcome == "wrong_reason" and began_ms < due_ms - SAME_MOMENT_MS:
        # a later one that was due may be due to this one
        return f"no rebalance of {group} was due {at}", f"{broker} began {seen} {at}"
    off = f", {abs(row['off_by_ms']):,.0f} ms too {outcome}" if outcome in ("early", "late") else ""
    off += ", and was assigned more than once" if outcome == "unexpected" else ""
    return (
        f"{broker} had to begin {due} {when(due_ms, zero_ms)}{_ending(row, 'expected')}",
        f"{broker} began {seen} {at}{_ending(row, 'observed')}{off}",
    )


def _ending(row: Row, side: str) -> str:
    """Write how a rebalance of one side ended, where that is what differs."""
    of = lambda name: "unknown" if (value := row[f"{side}_{name}"]) is None else value
    if row["outcome"] == "wrong_generation":
        return f", from generation {of('old_generation')} to {of('generation')}"
    if row["outcome"] == "wrong_members":
        return f", ended as {of('ended_as')} (members: {of('members')}, leader: {of('leader')})"
    return ""


def _rebalance(row: Row, side: str, group: str) -> str:
    """Write a rebalance of one side with its reason, and the member that it names."""
    reason, member = row[f"{side}_reason"] or "", row[f"{side}_member_id"]
    why = f"{REASONS.get(reason, reason)}{f' ({member})' if member else ''}"
    return f"a rebalance of {group}, because {why}"


def done(
    entry: Row, faults: Sequence[Row], requests: Sequence[ObservedRequest], zero_ms: float
) -> str:
    """Say what faults did to the group of a listed finding before it, and what its members did.

    `requests` are those of its group, as far as they are known, in order of time.
    """
    group, at_ms = entry["group"], entry["at_ms"]
    hit = [
        (f"the fault {fault['name']} {what} {fault['target']}", fault[time])
        for fault in faults
        for what, time in (("hit", "meant_at_ms"), ("ended for", "healed_at_ms"))
        if fault["group"] in (None, group) and fault["injected_at_ms"]
        if (fault[time] or at_ms) < at_ms
    ]
    hit = sorted(hit, key=itemgetter(1))[-FEW:]
    sent = [one for one in requests if one.at_ms <= at_ms]
    asked = [
        (f"{one.client_id} sent {api_name(one.api)}{_removed(one)}", one.at_ms)
        for one in sent
        if one.api in ACTS or (one is sent[-1] and entry.get("kind") in ANSWERS)
    ][-FEW:]
    members = {one.client_id for one in sent if one.api in ACTS}
    last = {one.client_id: one.at_ms for one in sent if one.client_id in members}
    silent = [
        (f"{name} sent its last request", ms)
        for name, ms in last.items()
        if ms < at_ms - SILENT_MS and not any(what.startswith(f"{name} ") for what, _ in asked)
    ]
    known = sorted([*hit, *silent[-2:], *asked], key=itemgetter(1))
    words = "; then ".join(f"{what} {when(ms, zero_ms)}" for what, ms in known)
    still = ", and its members neither came nor went" if sent else ""
    return sentence(words or f"no fault hit {group} before{still}")


def _removed(seen: ObservedRequest) -> str:
    """Say whom a LeaveGroup removes, if that is another member than its sender."""
    left = [
        one.get("groupInstanceId") or one["memberId"] for one in seen.request.get("members", ())
    ]
    return f" for {', '.join(left)}" if seen.api == "LEAVE_GROUP" and left else ""
