"""Sentences about findings: from the fields of their rows, in names, for every kind."""

import re
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import Breach
from reports.judgement.doubtful import DOUBTFUL, SETTLED_BY
from reports.judgement.explained import explain, sentences
from reports.judgement.explained.course import as_json, course_of
from reports.judgement.explained.pages import page_of_defect, page_of_kind, pages
from reports.judgement.findings import collect
from reports.judgement.reasons import LINES
from reports.judgement.run.disturbance import Source
from reports.judgement.timelines.compare import BOTH
from reports.judgement.timelines.member_lines import FIELDS

Json = dict[str, Any]
UUID = "c3b7a1d2-0f3e-4a53-9c80-2a55041f7f57"
ZERO_MS = 10_000.0
SIDES = ("observed", "expected")
OUTCOMES = ("missing", "unexpected", "early", "late", "wrong_reason", "wrong_members",
            "wrong_generation")  # fmt: skip
OF_LINES = ("missing_line", "unexpected_line", "early_line", "late_line", "wrong_line",
            "doubtful_line")  # fmt: skip
RULES = ("answer", "answered_early", "answered_late")


def answer(rule: str = "answer", **changed: Any) -> Json:
    return {
        "group": "g", "at_ms": 13_000.0, "until_ms": 13_000.0, "rule": rule, "searched": True,
        "expected": f"error=NONE; member_id=static-1-?1:53; leader=static-2-{UUID}",
        "observed": "error=GROUP_MAX_SIZE_REACHED; member_id=; leader=", "api": "JOIN_GROUP",
        "client_id": "static-1", "arrived_ms": 12_500.0, "broker": "1", "line": 53,
    } | changed  # fmt: skip


def rebalance(outcome: str, **changed: Any) -> Json:
    row: Json = {f"{side}_{name}": None for side in SIDES for name in BOTH}
    for side in SIDES:
        if (side, outcome) not in (("observed", "missing"), ("expected", "unexpected")):
            row |= {
                f"{side}_started_ms": 14_000.0, f"{side}_reason": "session_expired",
                f"{side}_member_id": f"b-{UUID}", f"{side}_old_generation": 1,
                f"{side}_ended_as": "assigned", f"{side}_leader": f"a-{UUID}",
            }  # fmt: skip
    return row | {"group": "g", "outcome": outcome, "broker": "1", "line": 7, "off_by_ms": -250.0,
                  **changed}  # fmt: skip


def line(outcome: str) -> Json:
    return {
        "group": "g", "kind": "session_expired", "subject": f"b-{UUID}", "nth": 1,
        "outcome": outcome, "broker": "1", "line": 9,
        "at_ms": None if outcome == "missing_line" else 15_000.0,
        "due_ms": None if outcome in ("unexpected_line", "doubtful_line") else 15_600.0,
    }  # fmt: skip


def breach(kind: str) -> Json:
    return {
        "group": "g", "kind": kind, "at_ms": 16_000.0, "from_ms": None, "proven": True,
        "expected": f"SYNC_GROUP of b-{UUID} is answered", "observed": "no answer 9.7 s later",
        "broker": "1", "line": 3, "history": "",
    }  # fmt: skip


FOUND = {
    **{rule: collect([answer(rule)], [], []) for rule in RULES},
    "unexplained": collect([answer(searched=False)], [], []),
    **{outcome: collect([], [rebalance(outcome)], []) for outcome in OUTCOMES},
    **{outcome: collect([], [], [line(outcome)]) for outcome in OF_LINES},
    **{kind.value: collect([], [], [], [breach(kind.value)]) for kind in Breach},
}


@pytest.mark.parametrize("name", FOUND)
def test_each_kind_has_words_and_a_page_with_its_rule(name: str) -> None:
    (one,) = FOUND[name]
    page = pages()[page_of_kind(one.kind)]
    said = sentences.says(one, page.rule, ZERO_MS)
    assert page.rule
    assert page.rule.rstrip(".") in said["due"]
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}|JOIN_GROUP|SYNC_GROUP|None", str(said))
    at_s = (one.row.get("observed_started_ms") or one.at_ms) - ZERO_MS
    assert f"at {at_s / 1000:.1f} s" in str(said)


def said_of(name: str) -> tuple[str, str]:
    (one,) = FOUND[name]
    said = sentences.says(one, "R.", ZERO_MS)
    return said["due"], said["observed"]


def test_an_answer_is_told_by_what_differs() -> None:
    due, observed = said_of("answer")
    assert due == (
        "Broker 1 had to answer the JoinGroup of static-1 with no error (NONE), by this rule: R."
    )
    assert observed == "Broker 1 answered GROUP_MAX_SIZE_REACHED at 3.0 s."
    other = answer(observed=f"error=NONE; member_id=static-1-?1:53; leader=b-{UUID}")
    (one,) = collect([other], [], [])
    assert "with the leader static-2-c3b7, by" in sentences.says(one, "R.", ZERO_MS)["due"]


def test_a_rebalance_and_a_line_say_who_and_when() -> None:
    due, observed = said_of("missing")
    assert due.startswith("Broker 1 had to begin a rebalance of g, because a member's session")
    assert "(b-c3b7) at 4.0 s" in due
    assert observed == "No rebalance began, and g stayed in generation 1."
    assert said_of("unexpected")[0].startswith("No rebalance of g was due at 4.0 s")
    later = rebalance("wrong_reason", expected_started_ms=14_600.0, expected_reason="leave")
    (one,) = collect([], [later], [])
    due = sentences.says(one, "R.", ZERO_MS)["due"]
    assert due == "No rebalance of g was due at 4.0 s, by this rule: R."
    wrong = line("wrong_line") | {"kind": "group_loaded", "subject": "members '0' instead of '2'"}
    (one,) = collect([], [], [wrong])
    said = sentences.says(one, "R.", ZERO_MS)
    assert "had to log that the group was loaded at 5.6 s" in said["due"]
    assert said["observed"].endswith("at 5.0 s, with members '0' instead of '2'.")
    assert said_of("early")[1].endswith("at 4.0 s, 250 ms too early.")
    missing = "Broker 1 did not log that a member's session expired (b-c3b7)."
    assert said_of("missing_line")[1] == missing


def request(at_ms: float, client: str, api: str, **body: Any) -> ObservedRequest:
    answered = {"errorCode": Error.NONE}
    return ObservedRequest(
        f"1:{at_ms:.0f}", "1", api, 4, client, "c", at_ms, at_ms, at_ms, at_ms + 1,
        {"memberId": client, "generationId": 1, **body}, answered,
    )  # fmt: skip


def test_what_was_done_names_faults_acts_and_the_silent() -> None:
    faults = [
        {"name": "member.kill", "target": target, "group": group, "meant_at_ms": at_ms,
         "injected_at_ms": at_ms, "healed_at_ms": at_ms + 2_500}
        for target, group, at_ms in (("b", "g", 11_000.0), ("y", None, 19_000.0), ("x", "other", 1))
    ]  # fmt: skip
    requests = [
        request(9_500.0, "b", "SYNC_GROUP"),
        request(12_000.0, "a", "SYNC_GROUP"),
        *(request(12_500.0 + 500 * n, "a", "HEARTBEAT") for n in range(9)),
        request(18_000.0, "c", "SYNC_GROUP"),
    ]
    entry = {"kind": "missing_rebalance", "group": "g", "at_ms": 17_000.0}
    done = sentences.done(entry, faults, requests, ZERO_MS)
    assert done == (
        "b sent SyncGroup 0.5 s before the impact; then the fault member.kill hit b at 1.0 s;"
        " then a sent SyncGroup at 2.0 s; then the fault member.kill ended for b at 3.5 s."
    )
    requests[1:1] = [request(10_500.0 + n, "a", "SYNC_GROUP") for n in range(3)]
    done = sentences.done(entry, [], requests, ZERO_MS)
    assert done.startswith("b sent its last request 0.5 s before the impact; then a sent")
    assert sentences.done(entry, [], [], ZERO_MS) == "No fault hit g before."
    quiet = [request(11_000.0, "a", "HEARTBEAT")]
    assert sentences.done(entry, [], quiet, ZERO_MS).endswith(
        ", and its members neither came nor went."
    )


def test_a_course_has_the_answer_that_was_due_beside_the_observed() -> None:
    requests = [request(11_000.0, "a", "HEARTBEAT"), request(12_000.0, "b", "HEARTBEAT")]
    course = as_json(course_of(requests, "1:12000", "no error (NONE)"), ZERO_MS)
    assert course["participants"] == ["a", "b", "broker 1"]
    assert [(one["at_s"], one["from"], one["to"], one["due"]) for one in course["arrows"]] == [
        (1.0, "a", "broker 1", ""), (1.001, "broker 1", "a", ""),
        (2.0, "b", "broker 1", ""), (2.001, "broker 1", "b", "no error (NONE)"),
    ]  # fmt: skip


def judged(**changed: Any) -> Json:
    return {"experiment": "mine", "broken_promises": {}, "expected_verdict": None} | changed


def test_a_group_has_the_page_of_the_defect_that_it_shows() -> None:
    absent = judged(broken_promises={"g": ["sync_timer_spares_statics"]})
    assert page_of_defect(absent, "g") == "docs/findings.md#absent-member"
    assert page_of_defect(absent, "other") is None
    assert page_of_defect(judged(broken_promises={"g": ["no_promise"]}), "g") is None
    expected = {"verdict": "fail", "group": "g", "met": True}
    ran = judged(experiment="removed-while-syncing", expected_verdict=expected)
    assert page_of_defect(ran, "g") == "docs/findings.md#removed-while-syncing"
    ran["expected_verdict"] = expected | {"met": False}
    assert page_of_defect(ran, "g") is None


def test_findings_alike_are_one_and_what_is_proven_comes_first() -> None:
    entry = lambda kind, page, *, proven: {
        "root": True, "group": "g", "kind": kind, "page": page, "proven": proven
    }  # fmt: skip
    found = [
        entry("late", "q", proven=False),
        entry("missing_line", "p", proven=True),
        entry("wrong_answer", "p", proven=True),
    ]
    causes = explain.by_cause([*found, found[0] | {"root": False}])
    assert causes == [[found[2], found[1]], [found[0]]]


def test_every_doubt_says_what_settles_it() -> None:
    assert set(SETTLED_BY) == set(Source)
    assert all(one.settled_by for one in DOUBTFUL.values())


def test_why_a_verdict_is_no_pass_has_doubts_first_then_each_cause_once() -> None:
    says = {"done": "A.", "due": "B.", "observed": "C."}
    one = {"root": True, "group": "g", "page": "p", "proven": True, "kind": "k", "says": says}
    unmet = {"says": {"due": "D.", "observed": "E."}}
    judged = {
        "unknown_because": ["a doubt"], "settled_by": ["a new log"],
        "findings": [one, one, {"root": False}], "expectations_unmet": [unmet],
        "clients": {"verdict": "broken", "counts": True, "says": ["it left"]},
    }  # fmt: skip
    all_of_it = ["a doubt (to settle it: a new log)", "C. Due: B.", "E. Due: D."]
    assert explain.why(judged) == [*all_of_it, "your client: it left"]
    judged["clients"]["counts"] = False
    assert explain.why(judged) == all_of_it


def test_each_line_that_is_compared_has_words() -> None:
    assert set(LINES) == set(FIELDS)
