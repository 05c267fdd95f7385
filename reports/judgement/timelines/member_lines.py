"""Lines about a group's members: each line that is due is in the log once, and no other line is.

The nth line of a kind about a subject is compared with the nth such line that the oracle expects,
in each field that the line has and of which it is known what it has to be.
Fenced lines are paired by `fits` instead (see `fenced_lines`), and judged by the same fields.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from operator import eq
from typing import Any

from kafka_protocol.append_errors import AppendError, append_error
from kafka_protocol.coordinator_lines import OPERATIONS, Grammar
from reference_coordinator.classic.state import State
from reference_coordinator.replay import ExpectedLine, Outage, Says, Stall
from reference_coordinator.replay.failed_writes import TIMED_OUT
from reports.judgement.rows import Json
from reports.judgement.timelines.timeline import Line
from reports.timing import CATCHING_UP_MS, EARLY_MS, TIMER_SLACK_MS, WRITES_FAIL_MS

UNNAMED = "-?"  # stands in the placeholder of a member id that no response names
NOT_GIVEN = ("", "null", "None", "Some(null)", "not provided")
"""How coordinators write that a client gave no instance id, or no reason."""
HOST = re.compile(", clientHost=[^,]*,")
ELEMENTS = re.compile(r"^\w*[\[(]|[\])]$")
"""What Java and Scala write around the elements of a set."""


def _given(due: str, observed: str) -> bool:
    """Compare what a client may have given: an instance id, or a reason."""
    return observed in (due, f"Some({due})") if due else observed in NOT_GIVEN


def _elements(due: str, observed: str) -> bool:
    """Compare sets of ids, in no order."""
    return Counter(due.split(", ")) == Counter(ELEMENTS.sub("", observed).split(", "))


def _without_host(due: str, observed: str) -> bool:
    """Compare what Scala writes of a member, but for the client's host, which no request has."""
    return due == HOST.sub(", clientHost=,", observed)


FENCED, BEGUN = "fenced", "preparing"
SUBJECTS = {
    "static_replaced": "instance", BEGUN: "generation",
    **dict.fromkeys(
        ("absent_dynamic_removed", "unsynced_removed", "nobody_rejoined", "group_loaded"), ""
    ),
}  # fmt: skip
"""The columns that tell lines of a template apart; of the others it is `member`."""
FIELDS = {
    "static_added": "state instance", "static_replaced": "state member",
    "dynamic_given_id": "state", "dynamic_added": "state", "member_added": "state",
    "pending_joins": "state", "left": "client_reason instance more",
    "pending_left": "client_reason", "session_expired": "", "pending_expired": "",
    "absent_dynamic_removed": "removed", "unsynced_removed": "removed", "nobody_rejoined": "",
    "group_loaded": "members generation", "member_loaded": "", FENCED: "instance operation",
    "unexpected_rejoin": "state", "dead": "state",  # no request finds a group in such a state
    BEGUN: "",  # see FIELDS_BY_REASON
}  # fmt: skip
"""The templates that are compared, each with what its lines say beside their subject."""
FIELDS_BY_REASON = {
    **dict.fromkeys(
        ("new_member", "static_replaced", "protocol_change"), "client_reason instance member"
    ),
    **dict.fromkeys(
        ("member_metadata", "leader_rejoin", "join_reason"), "state client_reason member"
    ),
    "session_expired": "member", "leave": "client_reason member", "pending_sync": "removed",
    "assignment_error": "",  # the leader whose write failed may be gone by now
    "over_capacity": "", "group_config": "state",
}  # fmt: skip
ALIKE: Mapping[str, Callable[[str, str], bool]] = {
    "instance": _given, "client_reason": _given, "removed": _elements, "more": _without_host,
    "operation": lambda api, observed: observed in OPERATIONS[api],
}  # fmt: skip
"""How fields are compared that are not the same text in every release."""


def differences(
    kind: str, due: Says, observed: Mapping[str, str], *, names_batch: bool
) -> list[str]:
    """List in words the fields that differ, of those that a line of a template has.

    A "Preparing" line that gives another reason is no difference here: its rebalance has the wrong
    reason. `names_batch`: it lists all members of a LeaveGroup, with the ids of the request.
    """
    expected, fields = dict(due), FIELDS[kind]
    if kind == BEGUN:
        if (reason := expected["reason"]) != observed.get("reason"):
            return []
        fields, sent = FIELDS_BY_REASON[reason], expected.get("members_sent")
        if sent is not None and names_batch:
            expected["member"] = sent
        else:
            observed = {"client_reason": "", **observed}  # none is printed
            if sent is not None and not observed["member"] and "" in sent.split(", "):
                del expected["member"]  # before 3.0 the id is that of the request, too
        if fields == "removed":
            expected["removed"] = expected["member"]
            observed = {**observed, "removed": observed["member"]}
    return [
        f"{name} {observed[name]!r} instead of {expected[name]!r}"
        for name in fields.split()
        if name in expected
        and name in observed
        and UNNAMED not in expected[name]
        and not ALIKE.get(name, eq)(expected[name], observed[name])
    ]


About = tuple[str, str | None]  # a kind of lines, and their subject
Outcome = tuple[str, str]
"""What is wrong with a line, and which field; empty texts where nothing is."""
FINE: Outcome = ("", "")
PLACE = ("broker", "line", "at_ms")
"""The columns of a line that tell where and when it was printed."""

MEMBER_LINES = """
    group STRING, kind STRING, subject STRING, nth INT, outcome STRING, at_ms DOUBLE, due_ms DOUBLE,
    broker STRING, line LONG
"""
EXTENDED = "nobody_rejoined"
"""A join phase goes on, since nobody joined in time. Whether somebody did is open where a timer may
have run out late."""
OF_LOADS = ("group_loaded", "member_loaded")
"""Lines about what a coordinator loads; when it does is judged with its epochs."""
FAILED = ("persist_failed", "empty_failed", "commit_failed", "metadata_failed")
"""Lines of writes that failed: doubtful where no fault and no standstill may explain them."""
OVERDUE = ("stabilized", "assignment")
"""Lines that are expected here where a phase lasts for too long (see `replay.overdue`)."""
ENTERED = {
    "preparing": str(State.PREPARING_REBALANCE), "stabilized": str(State.COMPLETING_REBALANCE),
    "assignment": str(State.STABLE), "empty": str(State.EMPTY),
}  # fmt: skip
"""The states that a group enters with a line, about: that of `assignment` when it is stored."""
UNEXPECTED, DOUBTFUL_LINE = "unexpected_line", "doubtful_line"
"""The outcomes of a line that is not due, and of one that is a finding and proves nothing."""
_PLACEHOLDER = re.compile(r"-\?[^-]*$")
"""Placeholders of member ids that no response names; their lines cannot be paired by subject."""


def compare(
    lines: Iterable[Line],
    expected_lines: Sequence[ExpectedLine],
    grammar: Grammar,
    outages: Sequence[Outage] = (),
    stalls: Sequence[Stall] = (),
    join_timer_ms: float = 0.0,
    may_be_missing: Callable[[ExpectedLine], bool] = lambda _: False,
) -> list[Json]:
    """Return the rows of `MEMBER_LINES`: lines that are missing, unexpected, early, late or wrong.

    A wrong line differs in a field that says more than whom it is about (`said`). A doubtful one
    may be right: it tells of a failed write, and no outage, stall or answer explains that.
    `join_timer_ms` is the longest that a join phase of the group may last. A line that is due is
    missing only where `may_be_missing` does not say so. Whether `BEGUN` is due is judged with its
    rebalance.
    """
    expected, unnamed = _expected(expected_lines, grammar)
    observed = _observed(lines, grammar, _unexplained(expected_lines, outages, stalls))

    def outcome(kind: str, line: Line | None, due: ExpectedLine | None) -> Outcome:
        if kind == EXTENDED and _stood_still(line, due, stalls, join_timer_ms):
            return FINE
        if line is None or due is None:
            if kind == BEGUN or (due is not None and may_be_missing(due)):
                return FINE
            return "missing_line" if due else DOUBTFUL_LINE if kind in FAILED else UNEXPECTED, ""
        return _outcome(kind, line, due, grammar)

    found = list(differing(observed, expected, outcome))
    unpaired = Counter(row["kind"] for row in found if row["outcome"] == UNEXPECTED)
    named = (
        row
        for row in found
        if row["outcome"] != UNEXPECTED or unpaired[row["kind"]] > unnamed[row["kind"]]
    )
    return sorted(named, key=lambda row: (time_of(row), str(row)))


def differing(
    observed: Mapping[About, Sequence[Line]],
    expected: Mapping[About, Sequence[ExpectedLine]],
    outcome: Callable[[str, Line | None, ExpectedLine | None], Outcome],
    fits: Callable[[ExpectedLine, Line], bool] = lambda _, __: True,
) -> Iterator[Json]:
    """Pair each line that is due with the first one left that fits; yield rows of wrong pairs.

    Both have the lines about a subject in the order of their times. What is left comes last.
    `outcome` judges a pair of a kind, one of which may be missing.
    """
    for about in {**observed, **expected}:
        left = list(observed.get(about, ()))
        pairs: list[tuple[Line | None, ExpectedLine | None]] = []
        for due in expected.get(about, ()):
            place = next((place for place, line in enumerate(left) if fits(due, line)), None)
            pairs.append((None if place is None else left.pop(place), due))
        pairs += [(line, None) for line in left]
        for nth, (seen, of) in enumerate(pairs, 1):
            what, wrong = outcome(about[0], seen, of)
            if what:
                yield row_of(about, what, seen, of.at_ms if of else None, nth, wrong)


def time_of(row: Mapping[str, Any]) -> float:
    """Return when the line of a row was printed, or was due, in ms."""
    at_ms: float = row["due_ms"] if row["at_ms"] is None else row["at_ms"]
    return at_ms


def row_of(
    about: About,
    outcome: str,
    line: Line | None,
    due_ms: float | None = None,
    nth: int = 1,
    wrong: str = "",
) -> Json:
    """Return a row of `MEMBER_LINES` without its group; `wrong` says which field is."""
    kind, subject = about
    place = dict.fromkeys(PLACE) if line is None else {name: line[name] for name in PLACE}
    subject = ": ".join(filter(None, (subject, wrong)))
    said = {"kind": kind, "subject": subject, "nth": nth, "outcome": outcome, "due_ms": due_ms}
    return said | place


def _compared(grammar: Grammar) -> set[str]:
    return {kind for kind in FIELDS if grammar.lines_instead.get(kind, kind)} - {FENCED}


def _expected(
    expected_lines: Iterable[ExpectedLine], grammar: Grammar
) -> tuple[dict[About, list[ExpectedLine]], Counter[str]]:
    """Sort the lines that are due, and count those that no subject tells apart, by their kind."""
    compared, instead = {*_compared(grammar), *OVERDUE}, grammar.lines_instead
    found, unnamed = defaultdict[About, list[ExpectedLine]](list), Counter[str]()
    for due in sorted(expected_lines, key=lambda due: due.at_ms):
        kind = instead.get(due.line, due.line)
        if kind in compared and _PLACEHOLDER.search(due.subject):
            unnamed[kind] += 1
        elif kind in compared:
            found[kind, due.subject].append(due)
    return found, unnamed


def _observed(
    lines: Iterable[Line], grammar: Grammar, unexplained: Callable[[Line], bool]
) -> dict[About, list[Line]]:
    """Sort the lines that are compared, each with the state that was entered `before`.

    A coordinator acts on a group in one thread at a time. So its own lines tell the order of two
    requests where their responses leave it open.
    """
    compared, found = _compared(grammar), defaultdict[About, list[Line]](list)
    states: dict[str, str] = defaultdict(lambda: str(State.EMPTY))
    for line in sorted(lines, key=lambda line: (line["at_ms"], line["line"])):
        kind, broker = line["template"], line["broker"]
        if kind in compared or (kind in FAILED and unexplained(line)):
            subject = line.get(SUBJECTS.get(kind, "member"), "")
            about = kind, None if subject is None else str(subject)
            found[about].append({**line, "before": states[broker]})
        states[broker] = ENTERED.get(kind, states[broker])
    return found


def _outcome(kind: str, line: Line, due: ExpectedLine, grammar: Grammar) -> Outcome:
    """Return what is wrong with a line that is due, if anything is, and which field."""
    if kind not in (BEGUN, *OF_LOADS) and (outcome := _untimely(line, due)):
        return outcome, ""
    says = grammar.said(kind, line["message"])
    if says.get("state") == line["before"]:
        del says["state"]
    names_batch = grammar.coordinator == "java"
    wrong = next(iter(differences(kind, due.says, says, names_batch=names_batch)), "")
    return ("wrong_line", wrong) if wrong else FINE


def _untimely(line: Line, due: ExpectedLine) -> str:
    if line["at_ms"] < due.earliest_ms - EARLY_MS:
        return "early_line"
    return "late_line" if line["at_ms"] > due.latest_ms + EARLY_MS else ""


def _stood_still(
    line: Line | None, due: ExpectedLine | None, stalls: Sequence[Stall], join_timer_ms: float
) -> bool:
    """Tell whether the broker of a line, or any where none is known, stood still before it.

    That is while a join timer may have run that ended with the line.
    """
    at_ms = line["at_ms"] if line else due.at_ms if due else inf
    return any(
        stall.from_ms <= at_ms <= stall.until_ms + join_timer_ms + TIMER_SLACK_MS
        and (line is None or line["broker"] == stall.broker)
        for stall in stalls
    )


def _unexplained(
    expected_lines: Iterable[ExpectedLine], outages: Sequence[Outage], stalls: Sequence[Stall]
) -> Callable[[Line], bool]:
    """Tell of lines of failed writes whether no fault, standstill or answer may explain them."""
    timed_out = [due for due in expected_lines if due.line == TIMED_OUT]
    excused = [(outage.from_ms, outage.until_ms) for outage in outages]
    excused += [
        (stall.from_ms, stall.until_ms + CATCHING_UP_MS)
        for stall in stalls
        if stall.until_ms - stall.from_ms >= WRITES_FAIL_MS
    ]
    return lambda line: (
        not any(begin <= line["at_ms"] <= end for begin, end in excused)
        and not any(_shows(answer, line) for answer in timed_out)
    )


def _shows(answer: ExpectedLine, line: Line) -> bool:
    """Tell whether an answer shows the write that a line is about: one that timed out just then."""
    return (
        not _untimely(line, answer)
        and line["broker"] == dict(answer.says)["broker"]
        and append_error(line["message"]) in (AppendError.TIMED_OUT, AppendError.UNNAMED)
    )
