"""What a run is worth whose brokers, or whose machine, could not work at their pace."""

import json
from dataclasses import replace

import pytest

from reference_coordinator.replay import Outage
from reports.judgement import verdict
from reports.judgement.coordinators.unplanned_elections import Election
from reports.judgement.run.machine_log import Standstill
from reports.judgement.run.run_folder import MACHINE, RunFolder
from tests.reports.page_run import made_up

WHY = "group dynamic: what is wrong is explained if its brokers acted late"


@pytest.fixture
def made(tmp_path):
    """A run as it has to be."""
    return made_up(tmp_path / "run")


def judged(made, *standstills, samples=(), **found):
    """Judge a run whose broker stood still, on a machine of which there are samples."""
    _, _, data, *_ = made.finish()
    folder = made.folder
    (folder / MACHINE).write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    data = replace(data, standstills=standstills, **found)
    return verdict.judge(RunFolder(folder), data, [], "4.3")


def stopped(made, length_ms=1_000):
    from_ms = made.recovery_ms - 5_000
    return Standstill("2", from_ms, from_ms + length_ms, "its process was stopped")


def test_a_run_without_standstills_lists_none(made):
    result = judged(made)
    assert result["verdict"] == "pass"
    assert "brokers_stood_still" not in result


def test_a_run_in_order_passes_and_lists_when_brokers_stood_still(made):
    result = judged(made, stopped(made))
    assert result["verdict"] == "pass"
    (listed,) = result["brokers_stood_still"]
    assert listed["broker"] == "2"
    assert listed["until_ms"] - listed["from_ms"] == 1_000
    assert listed["because"] == "its process was stopped"


def test_a_short_standstill_is_not_listed(made):
    assert "brokers_stood_still" not in judged(made, stopped(made, 200))


def test_a_count_proves_nothing_where_a_broker_stood_still(made):
    del made.comparison[6:]
    assert judged(made)["verdict"] == "fail"
    assert judged(made, stopped(made, 200))["verdict"] == "fail"
    result = judged(made, stopped(made))
    assert result["verdict"] == "unknown"
    (why,) = result["unknown_because"]
    assert why.startswith("what was expected is not met, but broker 2 stood still for 1,000 ms")


def sampled(made, waiting):
    last_ms = round(made.recovery_ms) + 5_000
    sample = {"event": "sample", "interval_ms": 1_000, "cpu_waiting": waiting}
    return [sample | {"at_ms": at_ms} for at_ms in range(last_ms - 120_000, last_ms, 1_000)]


def test_a_count_proves_nothing_on_a_machine_that_was_busy_all_the_time(made):
    del made.comparison[6:]
    assert judged(made, samples=sampled(made, 0.5))["verdict"] == "fail"
    result = judged(made, samples=sampled(made, 0.95))
    assert result["verdict"] == "unknown"
    assert "the machine was busy" in result["unknown_because"][0]


@pytest.mark.parametrize(("ran_ms", "verdict"), [(4_900.0, "unknown"), (5_100.0, "fail")])
def test_partitions_are_without_owners_however_busy_the_machine_was(made, ran_ms, verdict):
    """Nobody ever owned one; the members ran on for long, and did nothing about it."""
    made.owners = "  - {group: static, unowned: 0}\n"
    made.max_age, made.ran_ms = "1s", ran_ms
    assert judged(made, samples=sampled(made, 0.95))["verdict"] == verdict
    assert judged(made, samples=sampled(made, 0.5))["verdict"] == "fail"


def test_a_busy_machine_in_itself_is_no_doubt(made):
    assert judged(made, samples=sampled(made, 0.95))["verdict"] == "pass"


def test_a_violation_that_lateness_explains_is_a_doubt(made):
    made.add_violation("2:777", made.recovery_ms - 1_000, "dynamic", "dynamic-dynamic-1")
    result = judged(made)
    assert result["verdict"] == "fail"
    assert verdict.proven_wrong(result) == {"dynamic": [(made.recovery_ms - 1_000, "2")]}
    result = judged(made, late_alone={"dynamic": WHY})
    assert result["verdict"] == "unknown"
    assert WHY in result["unknown_because"]
    assert [finding["proven"] for finding in result["findings"]] == [False]
    assert verdict.proven_wrong(result) == {}


def test_lateness_of_one_group_excuses_no_other(made):
    made.add_violation("2:777", made.recovery_ms - 1_000, "dynamic", "dynamic-dynamic-1")
    assert judged(made, late_alone={"static": WHY})["verdict"] == "fail"


@pytest.mark.parametrize(("group", "doubtful"), [("dynamic", True), ("static", False)])
@pytest.mark.parametrize("after_ms", [-1.0, 1.0])
def test_a_count_proves_nothing_of_a_group_that_got_another_coordinator(
    made, group, doubtful, after_ms
):
    """An election without a fault, after the groups were formed: its own writes may have failed."""
    del made.comparison[6:]
    began_ms = min(dict(made.finish()[0].phases).values())
    lost = Election(3, "2", began_ms + after_ms, Outage(0.0, 1e15))
    result = judged(made, moved={group: [lost]})
    doubtful = doubtful and after_ms > 0
    assert result["verdict"] == ("unknown" if doubtful else "fail")
    assert any(lost.described in why for why in result["unknown_because"]) == doubtful
