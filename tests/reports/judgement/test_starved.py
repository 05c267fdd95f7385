"""What a run is worth whose brokers, or whose machine, could not work at their pace."""

import json
from dataclasses import replace

import pytest

from reports.judgement import verdict
from reports.judgement.disturbances import of_standstills
from reports.judgement.missing.gaps import gap
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run.run_folder import MACHINE, RunFolder
from tests.reports.judgement.test_unfinished import too_few, wrong_answer


def standstill(broker, from_ms, until_ms):
    return Disturbance(broker, from_ms, until_ms, "its process was stopped", Source.STANDSTILL)


def judged(made, *standstills, samples=(), elections=(), **found):
    """Judge a run whose broker stood still, on a machine of which there are samples."""
    _, _, data, *_ = made.finish()
    folder = made.folder
    (folder / MACHINE).write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    data = replace(data, of_brokers=[*of_standstills(standstills), *elections], **found)
    return verdict.evaluate(RunFolder(folder), data, "4.3")


def stopped(made, broker="2", length_ms=1_000):
    from_ms = made.recovery_ms - 5_000
    return standstill(broker, from_ms, from_ms + length_ms)


def sampled(made, waiting):
    last_ms = round(made.recovery_ms) + 5_000
    sample = {"event": "sample", "interval_ms": 1_000, "cpu_waiting": waiting}
    return [sample | {"at_ms": at_ms} for at_ms in range(last_ms - 120_000, last_ms, 1_000)]


def grown(made, at_ms):
    """Let the static group rebalance once more, and no fault is why."""
    row = next(row for row in made.comparison if row["group"] == "static")
    later = at_ms - row["observed_started_ms"]
    again = {
        name: value + later if name.endswith("_ms") and name != "off_by_ms" else value
        for name, value in row.items()
    }
    for side in ("observed", "expected"):
        again |= {f"{side}_old_generation": 1, f"{side}_generation": 2}
        again |= {f"{side}_reason": "session_expired"}
    made.comparison.append(again | {"old_generation": 1})


def test_a_run_in_order_passes_and_lists_when_brokers_stood_still(made):
    for still, times in (
        ([], []),
        ([stopped(made, length_ms=200)], []),
        ([stopped(made)], [("2", 1_000, 0)]),
    ):
        result = judged(made, *still)
        assert result["verdict"] == "pass"
        listed = [one for one in result["disturbances"] if one["source"] == "standstill"]
        assert times == [
            (one["broker"], one["until_ms"] - one["from_ms"], one["explains"]) for one in listed
        ]
        assert all(one["because"].endswith("its process was stopped") for one in listed)


def test_too_few_rebalances_prove_nothing_where_their_broker_stood_still(made):
    too_few(made)
    for still in ((), (stopped(made, "1", 200),), (stopped(made, "2"),)):
        assert judged(made, *still)["verdict"] == "fail", "broker 2 did not coordinate the group"
    result = judged(made, stopped(made, "1"))
    assert result["verdict"] == "unknown"
    (why,) = result["unknown_because"]
    assert why.startswith(
        "what was expected of group dynamic is not met, but broker 1 stood still for 1,000 ms"
    )


@pytest.mark.parametrize(
    ("before_ms", "verdict"),
    [(-300, "fail"), (200, "unknown"), (1_300, "unknown"), (1_500, "fail")],
)
def test_too_many_prove_nothing_only_where_one_may_be_due_to_a_standstill(made, before_ms, verdict):
    """The oracle explains it: a session ended. Its member may have been late, or not."""
    at_ms = made.recovery_ms - 1_000
    grown(made, at_ms)
    made.session_ms = 1_000.0
    late = standstill("1", at_ms - before_ms, at_ms - before_ms + 400)
    assert judged(made)["verdict"] == "fail"
    assert judged(made, late)["verdict"] == verdict


def test_what_a_fault_of_the_plan_costs_is_a_fact_whatever_the_machine_did(made):
    """6 s down, and 10 s: with a session of 6 s the member is removed, and joins again."""
    for entry in made.journal:
        if entry["event"] == "intent" and entry["group"] == "static":
            entry["args"] = {"down_for_ms": 10_000}
        if entry["event"] == "healed":
            entry["at_ms"] += 9_000
    first_ms = next(e["at_ms"] for e in made.journal if e["event"] == "injected")
    grown(made, first_ms + 6_000)
    made.session_ms = 6_000.0
    result = judged(made, samples=sampled(made, 0.95))
    assert result["verdict"] == "fail"
    (item,) = result["expectations_unmet"]
    assert item["because"] == "1 rebalance, each due: a member was away 10 s with a session of 6 s"


@pytest.mark.parametrize(("ran_ms", "verdict"), [(4_900.0, "unknown"), (5_100.0, "fail")])
def test_partitions_are_without_owners_however_busy_the_machine_was(made, ran_ms, verdict):
    """Nobody ever owned one; the members ran on for long, and did nothing about it."""
    made.owners = "  - {group: static, unowned: 0}\n"
    made.max_age, made.ran_ms = "1s", ran_ms
    assert judged(made, samples=sampled(made, 0.95))["verdict"] == verdict
    assert judged(made, samples=sampled(made, 0.5))["verdict"] == "fail"


@pytest.mark.parametrize(
    ("wrong", "waiting", "expected"),
    [
        (lambda made: None, 0.95, "pass"),
        (too_few, 0.5, "fail"),
        (too_few, 0.95, "unknown"),
        (wrong_answer, 0.5, "fail"),
        (wrong_answer, 0.95, "unknown"),
    ],
)
def test_what_a_busy_machine_explains(made, wrong, waiting, expected):
    """By itself it is no doubt."""
    wrong(made)
    result = judged(made, samples=sampled(made, waiting))
    assert result["verdict"] == expected
    if expected == "unknown":
        (why,) = result["unknown_because"]
        assert "something waited for a CPU in 95% of the time" in why
        assert not any(finding["proven"] for finding in result["findings"])
        used = [one for one in result["disturbances"] if one["explains"]]
        assert [(one["source"], one["broker"], one["explains"]) for one in used] == [
            ("cpu_pressure", None, 1)
        ]


def test_a_busy_machine_at_another_time_explains_nothing(made):
    wrong_answer(made)
    calm = [one | {"cpu_waiting": 0.1} if abs(one["at_ms"] - made.recovery_ms) < 5_000 else one
            for one in sampled(made, 0.95)]  # fmt: skip
    assert judged(made, samples=calm)["verdict"] == "fail"


def test_many_findings_of_one_cause_are_one_line(made):
    for number in range(40):
        at_ms = made.recovery_ms - 90_000 + 2_100 * number
        made.add_violation(f"2:{number}", at_ms, "dynamic", "dynamic-dynamic-1")
        made.violations[-1]["until_ms"] = at_ms
    result = judged(made, samples=sampled(made, 0.95))
    (finding,) = result["findings"]
    assert finding["times"] == 40
    (why,) = result["unknown_because"]
    assert why.startswith("group dynamic: 40 findings, the first at ")


def test_a_fail_has_notes_and_nothing_that_makes_it_unknown(made):
    wrong_answer(made)
    result = judged(made, kip_848=["static"])
    assert (result["verdict"], result["unknown_because"]) == ("fail", [])
    assert "group static uses the KIP-848 protocol, which is out of scope" in result["notes"]


@pytest.mark.parametrize(("group", "doubtful"), [("dynamic", True), ("static", False)])
@pytest.mark.parametrize("after_ms", [-1.0, 1.0])
def test_a_count_proves_nothing_after_an_election_of_the_group(made, group, doubtful, after_ms):
    """An election without a fault, in the phase that is counted."""
    too_few(made)
    at_ms = dict(made.finish()[0].phases)["impact"] + after_ms
    times = at_ms - 0.5, at_ms + 0.5
    lost = Disturbance("1", *times, "it lost a partition", Source.ELECTION, frozenset({group}))
    result = judged(made, elections=[lost])
    doubtful = doubtful and after_ms > 0
    assert result["verdict"] == ("unknown" if doubtful else "fail")
    assert any(lost.cause in why for why in result["unknown_because"]) == doubtful


def test_disturbances_are_listed_in_one_order(made):
    """However the gaps of two brokers come, which say the same at one time."""
    gaps = [gap(broker, 5, made.recovery_ms - 1_000, "line not understood: x") for broker in "21"]
    one, other = (judged(made, gaps=order)["disturbances"] for order in (gaps, gaps[::-1]))
    assert [each["broker"] for each in one if each["source"] == Source.LOG] == ["1", "2"]
    assert one == other
