"""Members that ended by themselves, or that never came: no fail of a broker, and no pass."""

import json
from dataclasses import replace
from typing import Any

import pytest

from reports.judgement.digest import Digest, Digester
from reports.judgement.errors import EvidenceError
from reports.judgement.group import check_rows
from reports.judgement.run.history import event_of, said_in
from scenarios.faults.member import DuplicateInstance, MemberPause
from tests.recorded.logs import HISTORIES
from tests.reports.page_run import IMPACT_MS, ZERO_MS, MadeUpRun

RECORDED = HISTORIES["removal-3.9.1-java"]
ERROR = "its process has ended by itself, exit code -9; last in members/static-1.log: '\\x1b'"
SEEN_MS = IMPACT_MS + 500.0


def ended(made: MadeUpRun, member: str = "static-1", **changed: Any) -> None:
    entry = {
        "at_ms": SEEN_MS + 100, "event": "ended", "seen_at_ms": SEEN_MS, "member": member,
        "group": "static", "kind": "static", "error": ERROR, "exit_code": -9,
    }  # fmt: skip
    made.journal.insert(3, entry | changed)


def verdict_of(made: MadeUpRun) -> dict[str, Any]:
    _, verdict, *_ = made.finish()
    return verdict


def test_a_member_that_ended_by_itself_is_a_finding_and_quotes_how(made):
    ended(made)
    verdict = verdict_of(made)
    (finding,) = verdict["findings"]
    assert verdict["verdict"] == "unknown"
    assert (finding["kind"], finding["group"]) == ("member_ended", "static")
    assert (finding["root"], finding["proven"], finding["at_ms"]) == (True, False, SEEN_MS)
    assert finding["observed"] == f"static-1: {ERROR}"
    assert finding["history"] == f"history.jsonl: ended of static-1 at {SEEN_MS:.1f}"
    assert finding["log"]["file"] == ""


def test_a_number_of_rebalances_proves_nothing_without_a_member(made):
    del made.comparison[6:]
    assert verdict_of(made)["verdict"] == "fail"
    ended(made, "dynamic-dynamic-1", group="dynamic")
    assert verdict_of(made)["verdict"] == "unknown"
    made.add_violation("2:777", made.recovery_ms - 1_000, "dynamic", "dynamic-dynamic-1")
    assert verdict_of(made)["verdict"] == "fail", "a wrong answer is a broker's all the same"


@pytest.mark.parametrize("member", ["static-1", "static-1.duplicate"])
@pytest.mark.parametrize(
    ("fault", "target", "healed_ms", "excused"),
    [
        (DuplicateInstance, "static-1", SEEN_MS + 1, True),
        (DuplicateInstance, "static-1", None, True),
        (DuplicateInstance, "static-1", SEEN_MS - 1, False),
        (DuplicateInstance, "static-2", SEEN_MS + 1, False),
        (MemberPause, "static-1", SEEN_MS + 1, False),
    ],
    ids=["meanwhile", "not healed", "afterwards", "of another", "another fault"],
)
def test_a_fence_that_a_fault_planned_ends_a_member(
    made, member, fault, target, healed_ms, excused
):
    args = {"duplicate": f"{target}.duplicate"} if fault is DuplicateInstance else {}
    ended(made, member)
    made.journal[3:3] = [
        {"at_ms": SEEN_MS - 5, "event": "intent", "fault_id": "f", "target": target,
         "fault": fault.name(), "group": "static", "args": args},
        *([{"at_ms": healed_ms, "event": "healed", "fault_id": "f", "healed": True}]
          if healed_ms else []),
    ]  # fmt: skip
    kinds = [one["kind"] for one in verdict_of(made)["findings"]]
    assert kinds == ([] if excused else ["member_ended"])


@pytest.mark.parametrize("field", ["member", "group", "error", "seen_at_ms"])
def test_an_altered_entry_is_named(made, field):
    ended(made, **{field: ["x"]})
    with pytest.raises(EvidenceError, match=rf"journal\.jsonl:4: .*'{field}' is of the wrong type"):
        verdict_of(made)


@pytest.mark.parametrize(("seen_ms", "at_ms"), [(2**70, SEEN_MS + 100), (-1e300, 0.0)])
def test_a_time_that_is_none_is_that_of_the_entry_or_the_first(made, seen_ms, at_ms):
    ended(made, seen_at_ms=seen_ms)
    (finding,) = verdict_of(made)["findings"]
    assert finding["at_ms"] == at_ms


@pytest.mark.parametrize("seen_ms", [float("nan"), float("inf"), 10**400])
def test_a_time_that_is_no_number_is_no_journal_s(made, seen_ms):
    ended(made, seen_at_ms=seen_ms)
    with pytest.raises(EvidenceError, match=r"journal\.jsonl:4: no journal entry"):
        verdict_of(made)


def digest(joiners: set[str] | None) -> Digest:
    digester = Digester((("impact", ZERO_MS),), ZERO_MS, {"static": ("orders",)}, {"orders": 8})
    *_, (_, row) = digester.digested("static", (), joiners)
    return Digest.from_json(row["digest"])


@pytest.mark.parametrize(
    ("joiners", "observed"),
    [
        ({f"static-{n}" for n in range(8)}, None),
        ({f"static-{n}" for n in range(8)} | {"payments"}, None),
        ({f"static-{n}" for n in range(7)} | {"payments", "static-0.duplicate"}, "payments"),
        ({f"static-{n}" for n in range(7)}, "none"),
        (set(), "none"),
        (None, None),
    ],
)
def test_a_member_that_never_asked_to_join_is_a_finding(made, monkeypatch, joiners, observed):
    monkeypatch.setattr("tests.reports.page_run.digests_of", lambda *_: {"static": digest(joiners)})
    verdict = verdict_of(made)
    kinds = [(one["kind"], one["proven"]) for one in verdict["findings"]]
    assert kinds == ([] if observed is None else [("not_a_member", False)])
    if observed is not None:
        (finding,) = verdict["findings"]
        assert finding["observed"].endswith(f"nobody was given: {observed}")
        assert "static-7" in finding["expected"] if joiners else "static-0" in finding["expected"]
        assert verdict["verdict"] != "pass"
        made.journal[1]["ok"] = False
        assert verdict_of(made)["findings"] == [], "before the steady state it may not have come"


def test_recorded_requests_tell_who_asked_to_join():
    """The client.id of a request counts, not what a client says of itself."""
    judge = replace(RECORDED.context, digester=Digester.of(RECORDED.run))
    rows = RECORDED.rows_by_group
    for group in RECORDED.run.experiment.workload.groups:
        found = check_rows(
            judge, group.name, rows[group.name], RECORDED.events_by_group[group.name]
        )
        digests = [json.loads(row["digest"]) for name, row in found if name == "digests"]
        headers = [
            line.request["requestHeader"]
            for line in RECORDED.lines
            if line.group == group.name and line.request
        ]
        joined = {one["clientId"] for one in headers if one["requestApiKeyName"] == "JOIN_GROUP"}
        assert [one["joiners"] for one in digests] == [sorted(joined)]
        assert joined >= {one.name for one in RECORDED.run.experiment.members()}


def test_the_history_s_event_is_none_about_partitions():
    line = {"at_ms": 1.0, "member": "m", "group": "g", "event": "ended", "error": "x"}
    assert event_of(said_in(json.dumps(line).encode())) is None
